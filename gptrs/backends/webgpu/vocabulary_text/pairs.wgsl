// Integers of 64 bits as two words, the lower one first.

fn pair_of_i32(x: i32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u)); }
fn u64_add(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  let low = x.x + y.x;
  return vec2<u32>(low, x.y + y.y + u32(low < x.x));
}
fn u64_sub(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(x.x - y.x, x.y - y.y - u32(x.x < y.x));
}
fn u64_mul(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  let a = x.x & 0xffffu;
  let b = x.x >> 16u;
  let c = y.x & 0xffffu;
  let d = y.x >> 16u;
  let middle = b * c + ((a * c) >> 16u);
  let other = a * d + (middle & 0xffffu);
  let low = ((other & 0xffffu) << 16u) | ((a * c) & 0xffffu);
  let high = b * d + (middle >> 16u) + (other >> 16u);
  return vec2<u32>(low, high + x.x * y.y + x.y * y.x);
}
fn u32_high_product(x: u32, y: u32) -> u32 {
  return u64_mul(vec2<u32>(x, 0u), vec2<u32>(y, 0u)).y;
}
fn u64_less(x: vec2<u32>, y: vec2<u32>) -> bool {
  return x.y < y.y || (x.y == y.y && x.x < y.x);
}
fn i64_less(x: vec2<u32>, y: vec2<u32>) -> bool {
  let a = bitcast<i32>(x.y);
  let b = bitcast<i32>(y.y);
  return a < b || (a == b && x.x < y.x);
}
fn isize_of_i64(x: vec2<u32>) -> i32 {
  let fits = bitcast<i32>(x.y) == (bitcast<i32>(x.x) >> 31u);
  return select(select(2147483647, -2147483647, x.y >= 0x80000000u), bitcast<i32>(x.x), fits);
}
fn isize_of_u64(x: vec2<u32>) -> i32 {
  return select(2147483647, i32(x.x), x.y == 0u && x.x < 0x80000000u);
}
// The upper 32 bits that count, of which the last stands for all below: rounded once.
fn f32_of_u64(x: vec2<u32>) -> f32 {
  if (x.y == 0u) { return f32_of_word(x.x); }
  let shift = 32u - countLeadingZeros(x.y);
  var top = x.y;
  var below = x.x;
  if (shift < 32u) {
    top = (x.y << (32u - shift)) | (x.x >> shift);
    below = x.x << (32u - shift);
  }
  return f32_of_word(top | u32(below != 0u)) * power_of_two(i32(shift));
}
// To the nearest, and of two to the even one.
fn f32_of_word(x: u32) -> f32 {
  let shift = 8 - i32(min(countLeadingZeros(x), 8u));
  if (shift == 0) { return f32(x); }
  let by = u32(shift);
  let half = 1u << (by - 1u);
  let kept = x >> by;
  let rest = x & ((1u << by) - 1u);
  let up = rest > half || (rest == half && (kept & 1u) == 1u);
  return f32(kept + u32(up)) * power_of_two(shift);
}
fn f32_of_i64(x: vec2<u32>) -> f32 {
  let negative = x.y >= 0x80000000u;
  let size = select(x, u64_sub(vec2<u32>(0u, 0u), x), negative);
  return select(f32_of_u64(size), -f32_of_u64(size), negative);
}
fn u64_shift_left(x: vec2<u32>, by: vec2<u32>) -> vec2<u32> {
  if (by.y != 0u || by.x >= 64u) { return vec2<u32>(0u, 0u); }
  if (by.x >= 32u) { return vec2<u32>(0u, x.x << (by.x - 32u)); }
  if (by.x == 0u) { return x; }
  return vec2<u32>(x.x << by.x, (x.y << by.x) | (x.x >> (32u - by.x)));
}
fn u64_shift_right(x: vec2<u32>, by: vec2<u32>) -> vec2<u32> {
  if (by.y != 0u || by.x >= 64u) { return vec2<u32>(0u, 0u); }
  if (by.x >= 32u) { return vec2<u32>(x.y >> (by.x - 32u), 0u); }
  if (by.x == 0u) { return x; }
  return vec2<u32>((x.x >> by.x) | (x.y << (32u - by.x)), x.y >> by.x);
}
fn i64_shift_left(x: vec2<u32>, by: vec2<u32>) -> vec2<u32> { return u64_shift_left(x, by); }
fn i64_shift_right(x: vec2<u32>, by: vec2<u32>) -> vec2<u32> {
  if (by.y >= 0x80000000u) { return vec2<u32>(0u, 0u); }
  let sign = bitcast<u32>(bitcast<i32>(x.y) >> 31u);
  let all = vec2<u32>(sign, sign);
  return u64_shift_right(x ^ all, by) ^ all;
}
fn u64_quotient(x: vec2<u32>, y: vec2<u32>) -> vec4<u32> {
  var rest = vec2<u32>(0u, 0u);
  var result = vec2<u32>(0u, 0u);
  for (var i = 0; i < 64; i += 1) {
    let word = select(x.y << u32(i), x.x << (u32(i) & 31u), i >= 32);
    let carry = (rest.y >> 31u) == 1u;
    rest = vec2<u32>((rest.x << 1u) | (word >> 31u), (rest.y << 1u) | (rest.x >> 31u));
    result = vec2<u32>(result.x << 1u, (result.y << 1u) | (result.x >> 31u));
    if (carry || !u64_less(rest, y)) {
      rest = u64_sub(rest, y);
      result.x |= 1u;
    }
  }
  return vec4<u32>(result, rest);
}
fn i64_size(x: vec2<u32>) -> vec2<u32> {
  return select(x, u64_sub(vec2<u32>(0u, 0u), x), x.y >= 0x80000000u);
}
fn i64_add(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return u64_add(x, y); }
fn i64_sub(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return u64_sub(x, y); }
fn i64_mul(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return u64_mul(x, y); }
fn i64_abs(x: vec2<u32>) -> vec2<u32> { return i64_size(x); }
fn u64_abs(x: vec2<u32>) -> vec2<u32> { return x; }
fn i64_div(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (all(y == vec2<u32>())) { return y; }
  let found = u64_quotient(i64_size(x), i64_size(y));
  let differ = ((x.y ^ y.y) & 0x80000000u) != 0u;
  let up = u64_add(found.xy, vec2<u32>(u32(any(found.zw != vec2<u32>())), 0u));
  return select(found.xy, u64_sub(vec2<u32>(0u, 0u), up), differ);
}
fn u64_div(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (all(y == vec2<u32>())) { return y; }
  return u64_quotient(x, y).xy;
}
fn i64_remainder(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  return select(u64_sub(x, u64_mul(i64_div(x, y), y)), vec2<u32>(), all(y == vec2<u32>()));
}
fn u64_remainder(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  if (all(y == vec2<u32>())) { return y; }
  return u64_quotient(x, y).zw;
}
fn i64_sign(x: vec2<u32>) -> vec2<u32> {
  let positive = vec2<u32>(u32(any(x != vec2<u32>())), 0u);
  return select(positive, vec2<u32>(0xffffffffu, 0xffffffffu), x.y >= 0x80000000u);
}
fn u64_sign(x: vec2<u32>) -> vec2<u32> { return vec2<u32>(u32(any(x != vec2<u32>())), 0u); }
fn u64_gcd(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
  var a = x;
  var b = y;
  while (any(b != vec2<u32>())) {
    let rest = u64_quotient(a, b).zw;
    a = b;
    b = rest;
  }
  return a;
}
fn i64_gcd(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> { return u64_gcd(i64_size(x), i64_size(y)); }
fn i64_of_f32(x: f32) -> vec2<u32> {
  let negative = x < 0.0f;
  if (x >= 9.223372036854775808e+18f) { return vec2<u32>(0xffffffffu, 0x7fffffffu); }
  if (x <= -9.223372036854775808e+18f) { return vec2<u32>(0u, 0x80000000u); }
  let size = u64_of_f32(f32_abs(x));
  return select(size, u64_sub(vec2<u32>(0u, 0u), size), negative);
}
fn u64_of_f32(x: f32) -> vec2<u32> {
  if (is_nan(x) || x < 1.0f) { return vec2<u32>(0u, 0u); }
  if (x >= 1.8446744073709551616e+19f) { return vec2<u32>(0xffffffffu, 0xffffffffu); }
  let bits = bitcast<u32>(x);
  let shift = i32(bits >> 23u) - 150;
  let m = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
  if (shift >= 0) { return u64_shift_left(m, vec2<u32>(u32(shift), 0u)); }
  return vec2<u32>(m.x >> u32(-shift), 0u);
}

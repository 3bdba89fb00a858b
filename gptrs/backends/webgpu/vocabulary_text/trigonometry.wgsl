// Sine, cosine and tangent, and their inverses.

// The bits of 2/pi from the place `at` on, 32 of them.
fn bits_of_turn(at: u32) -> u32 {
  var words = array<u32, 9>(
    0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
    0xdebbc561u);
  let word = at / 32u;
  let shift = at % 32u;
  let low = select(0u, words[word + 1u] >> (32u - shift), shift > 0u);
  return (words[word] << shift) | low;
}
// The quadrant of |x|, and its rest in two parts, by as many bits of 2/pi as it takes (Payne and
// Hanek).
struct Turned { quadrant: u32, rest: f32 }
fn turned_far(size: f32) -> Turned {
  let bits = bitcast<u32>(size);
  let m = (bits & 0x7fffffu) | 0x800000u;
  // size is m times 2 to the power e - 23: the bits from 2 before the point on.
  let e = (bits >> 23u) - 127u;
  let at = 32u + e - 25u;
  let a = u64_mul(vec2<u32>(bits_of_turn(at), 0u), vec2<u32>(m, 0u));
  let b = u64_mul(vec2<u32>(bits_of_turn(at + 32u), 0u), vec2<u32>(m, 0u));
  let c = u64_mul(vec2<u32>(bits_of_turn(at + 64u), 0u), vec2<u32>(m, 0u));
  // The product without what is a multiple of 4 turns, as 64 bits of which 2 are whole.
  var low = b.x + c.y;
  let carry = u32(low < b.x);
  let high = a.x + b.y + carry;
  var whole = high >> 30u;
  var fraction = vec2<u32>(low << 2u, (high << 2u) | (low >> 30u));
  let up = (fraction.y >> 31u) == 1u;
  whole += u32(up);
  let size_of = select(fraction, u64_sub(vec2<u32>(0u, 0u), fraction), up);
  // In two parts, so that the leading zeros of a small rest leave enough bits.
  let shift = countLeadingZeros(size_of.y);
  var top = size_of.y;
  if (shift > 0u) { top = (size_of.y << shift) | (size_of.x >> (32u - shift)); }
  if (shift == 32u) { top = size_of.x; }
  let value = f32(top) * 2.3283064365386963e-10f * power_of_two(-i32(shift));
  return Turned(whole, select(1.0f, -1.0f, up) * value * 1.5707964f);
}
fn turned(size: f32) -> Turned {
  if (size > 4096.0f) { return turned_far(size); }
  let n = round(size * 0.63661975f);
  // pi/2 in parts of 11 bits, whose products with n are exact
  let rest = ((size - n * 1.5703125f) - n * 0.00048351288f) - n * 3.1384043e-07f;
  return Turned(u32(n), rest - n * 6.077100506303966e-11f);
}
fn sine(r: f32) -> f32 {
  let z = r * r;
  return (r * z) * ((-0.00019505146f * z + 0.0083320932f) * z - 0.16666654f) + r;
}
fn cosine(r: f32) -> f32 {
  let z = r * r;
  return 1.0f + ((z * z) * ((2.4412086e-05f * z - 0.001388713f) * z + 0.041666642f) - 0.5f * z);
}
fn f32_sin(x: f32) -> f32 {
  let size = f32_abs(x);
  if (bitcast<u32>(size) >= 0x7f800000u) { return f32_nan(); }
  let found = turned(size);
  let value = select(sine(found.rest), cosine(found.rest), (found.quadrant & 1u) == 1u);
  let flips = ((found.quadrant & 2u) << 30u) ^ (bitcast<u32>(x) & 0x80000000u);
  return bitcast<f32>(bitcast<u32>(value) ^ flips);
}
fn f32_cos(x: f32) -> f32 {
  let size = f32_abs(x);
  if (bitcast<u32>(size) >= 0x7f800000u) { return f32_nan(); }
  let found = turned(size);
  let quadrant = found.quadrant + 1u;
  let value = select(sine(found.rest), cosine(found.rest), (quadrant & 1u) == 1u);
  return bitcast<f32>(bitcast<u32>(value) ^ ((quadrant & 2u) << 30u));
}
fn f32_tan(x: f32) -> f32 {
  let size = f32_abs(x);
  if (bitcast<u32>(size) >= 0x7f800000u) { return f32_nan(); }
  let found = turned(size);
  let s = sine(found.rest);
  let c = cosine(found.rest);
  let value = select(s / c, -c / s, (found.quadrant & 1u) == 1u);
  return bitcast<f32>(bitcast<u32>(value) ^ (bitcast<u32>(x) & 0x80000000u));
}

// (asin x - x) / x
fn asin_part(z: f32) -> f32 {
  let p = ((0.042166412f * z + 0.024180774f) * z + 0.045469772f) * z + 0.074953064f;
  return z * (p * z + 0.16666752f);
}
// For 1/2 < size: the root of z = (1 - size) / 2 in two parts, and its asin less these.
fn beyond_half(size: f32) -> vec3<f32> {
  let z = (1.0f - size) * 0.5f;
  let root = sqrt(z);
  let high = upper(root);
  let low = select(0.0f, (z - high * high) / (root + high), root > 0.0f);
  return vec3<f32>(high, low, root * asin_part(z));
}
fn f32_asin(x: f32) -> f32 {
  let size = f32_abs(x);
  let near = size + size * asin_part(size * size);
  let p = beyond_half(size);
  let high = 0.78539819f - (p.x + p.x);
  let far = high - ((p.z + p.z) + ((p.y + p.y) + 4.371139e-08f)) + 0.78539819f;
  let result = with_sign(select(far, near, size <= 0.5f), x);
  return select(result, f32_nan(), !(size <= 1.0f));
}
fn f32_acos(x: f32) -> f32 {
  let size = f32_abs(x);
  let near = 1.5707964f - (x - (-4.371139e-08f - x * asin_part(x * x)));
  let p = beyond_half(size);
  let half = p.x + (p.y + p.z);
  let angle = half + half;
  let far = select(angle, 3.1415927f - (angle + 8.742278e-08f), x < 0.0f);
  return select(select(far, near, size <= 0.5f), f32_nan(), !(size <= 1.0f));
}
// atan(y / x) in two parts, for y, x >= 0
fn angle_of(y: f32, x: f32) -> vec2<f32> {
  let steep = x < y * 0.41421357f;
  let middle = !steep && y > x * 0.41421357f;
  let over = select(select(y, y - x, middle), -x, steep);
  let under = select(select(x, y + x, middle), y, steep);
  var q = select(over / under, 0.0f, y == x);
  var turn = select(select(0.0f, 1.0f, middle), 2.0f, steep);
  turn = select(turn, 1.0f, y == x && y > 0.0f);
  let z = q * q;
  let p = ((-0.060887355f * z + 0.10598728f) * z - 0.14244345f) * z + 0.19998527f;
  q = q * (z * (p * z - 0.33333316f)) + q;
  return vec2<f32>(turn * 0.78539819f, turn * -2.1855694e-08f + q);
}
fn f32_atan(x: f32) -> f32 {
  let size = f32_abs(x);
  let found = angle_of(size, 1.0f);
  let far = bitcast<u32>(size) == 0x7f800000u;
  return select(with_sign(select(found.x + found.y, 1.5707964f, far), x), x, is_nan(x));
}
fn f32_atan2(y: f32, x: f32) -> f32 {
  if (is_nan(x) || is_nan(y)) { return f32_nan(); }
  let rise = f32_abs(y);
  let run = f32_abs(x);
  let large = rise > 1.3292279957849159e+36f || run > 1.3292279957849159e+36f;
  let small = rise < 8.077935669463161e-28f && run < 8.077935669463161e-28f;
  let scale = select(select(1.0f, 16777216.0f, small), 5.9604644775390625e-08f, large);
  var found = angle_of(rise * scale, run * scale);
  let flat = bitcast<u32>(run) == 0x7f800000u && bitcast<u32>(rise) != 0x7f800000u;
  let steep = bitcast<u32>(rise) == 0x7f800000u && bitcast<u32>(run) != 0x7f800000u;
  found = select(found, vec2<f32>(0.0f, 0.0f), flat);
  found = select(found, vec2<f32>(1.5707964f, -4.371139e-08f), steep);
  let negative = (bitcast<u32>(x) >> 31u) == 1u;
  let back = (3.1415927f - found.x) + (-8.742278e-08f - found.y);
  return with_sign(select(found.x + found.y, back, negative), y);
}

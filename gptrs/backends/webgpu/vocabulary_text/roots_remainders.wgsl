// Roots, remainders, neighbours.

fn f32_cbrt(x: f32) -> f32 {
  let size = f32_abs(x);
  let bits = bitcast<u32>(size);
  if (bits == 0u || bits >= 0x7f800000u) { return x; }
  // Subnormal numbers times 2^150, by their bits; great ones by 2^-24.
  let tiny = bits < 0x800000u;
  let great = size > 1e37f;
  let inside = select(size, size * 5.9604644775390625e-08f, great);
  let whole = select(inside, f32(bits) * 2.0f, tiny);
  var root = bitcast<f32>(bitcast<u32>(whole) / 3u + 709921077u);
  for (var i = 0; i < 3; i += 1) {
    let cube = root * root * root;
    root = root * ((cube + (whole + whole)) / (cube + cube + whole));
  }
  root = root + (whole / (root * root) - root) / 3.0f;
  root = select(root, root * 256.0f, great);
  return with_sign(select(root, root * 8.881784197001252e-16f, tiny), x);
}
// A product with a subnormal number by its bits, as it may count as 0.
fn scaled_up(x: f32, scale: f32) -> f32 {
  let bits = bitcast<u32>(x);
  return select(x * scale, f32(bits) * (scale * 1.1920928955078125e-07f) * 1.1754943508222875e-38f,
    bits < 0x800000u);
}
fn f32_hypot(x: f32, y: f32) -> f32 {
  let a = f32_abs(x);
  let b = f32_abs(y);
  let infinite = bitcast<u32>(a) == 0x7f800000u || bitcast<u32>(b) == 0x7f800000u;
  if (infinite) { return f32_infinity(); }
  if (is_nan(a) || is_nan(b)) { return f32_nan(); }
  let most = max(a, b);
  var scale = 1.0f;
  var back = 1.0f;
  if (most > 1e18f) { scale = 8.470329472543003e-22f; back = 1.1805916207174113e+21f; }
  if (most < 1e-18f) { scale = 1.2676506002282294e+30f; back = 7.888609052210118e-31f; }
  let u = scaled_up(max(a, b), scale);
  let v = scaled_up(min(a, b), scale);
  // The squares in two parts
  let u_high = upper(u);
  let u_low = u - u_high;
  let square = u * u;
  let lost = ((u_high * u_high - square) + 2.0f * u_high * u_low) + u_low * u_low;
  let sum = square + v * v;
  let rest = ((square - sum) + v * v) + lost;
  let root = sqrt(sum);
  return select((root + 0.5f * rest / root) * back, 0.0f, u == 0.0f);
}
fn f32_fmod(x: f32, y: f32) -> f32 {
  let divisor = bitcast<u32>(y) & 0x7fffffffu;
  let size = bitcast<u32>(x) & 0x7fffffffu;
  if (divisor == 0u || divisor > 0x7f800000u || size >= 0x7f800000u) { return f32_nan(); }
  if (size < divisor) { return x; }
  // Integers times powers of 2
  let small = (divisor >> 23u) == 0u;
  let e_y = select(divisor >> 23u, 1u, small);
  let e_x = select(size >> 23u, 1u, (size >> 23u) == 0u);
  let m_y = select((divisor & 0x7fffffu) | 0x800000u, divisor, small);
  var rest = select((size & 0x7fffffu) | 0x800000u, size, (size >> 23u) == 0u) % m_y;
  var left = e_x - e_y;
  while (left > 0u) {
    let step = min(left, 8u);
    rest = (rest << step) % m_y;
    left -= step;
  }
  if (rest == 0u) { return with_sign(0.0f, x); }
  // rest times 2 to the power e_y - 150
  let shift = min(countLeadingZeros(rest) - 8u, e_y - 1u);
  let moved = rest << shift;
  let exponent = select(e_y - shift, 0u, moved < 0x800000u);
  return with_sign(bitcast<f32>((exponent << 23u) | (moved & 0x7fffffu)), x);
}
fn f32_remainder(x: f32, y: f32) -> f32 {
  let modulus = f32_fmod(x, y);
  let differ = ((bitcast<u32>(y) ^ bitcast<u32>(modulus)) & 0x80000000u) != 0u;
  let moved = select(modulus, modulus + y, differ);
  let result = select(with_sign(0.0f, y), moved, modulus != 0.0f);
  return select(result, modulus, y == 0.0f || is_nan(modulus));
}
fn f32_floor_divide(x: f32, y: f32) -> f32 {
  if (y == 0.0f) { return x / y; }
  let modulus = f32_fmod(x, y);
  if (is_nan(modulus)) { return modulus; }
  var quotient = (x - modulus) / y;
  let differ = ((bitcast<u32>(y) ^ bitcast<u32>(modulus)) & 0x80000000u) != 0u;
  if (modulus != 0.0f && differ) { quotient -= 1.0f; }
  if (quotient == 0.0f) { return with_sign(0.0f, x / y); }
  let whole = floor(quotient);
  return select(whole, whole + 1.0f, quotient - whole > 0.5f);
}
fn f32_nextafter(x: f32, y: f32) -> f32 {
  if (is_nan(x) || is_nan(y)) { return f32_nan(); }
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) == 0u) {
    return select(bitcast<f32>((bitcast<u32>(y) & 0x80000000u) | 1u), y, x == y);
  }
  let away = select((y < x), (y > x), bits < 0x80000000u);
  return select(bitcast<f32>(select(bits - 1u, bits + 1u, away)), y, x == y);
}

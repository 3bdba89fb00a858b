// The vocabulary of kernels in WGSL; a kernel takes along the functions that it calls.
//
// WGSL promises little of its own functions of floats, so they are written out. Polynomials and
// formulas are those of gptrs/kernels: vector_math, exponentials, logarithms, trigonometry,
// inverse_trigonometry.

var<private> zero: u32;

fn f32_infinity() -> f32 { return bitcast<f32>(0x7f800000u + zero); }
fn f32_nan() -> f32 { return bitcast<f32>(0x7fc00000u + zero); }
fn f32_bits(x: f32) -> u32 { return bitcast<u32>(x); }
fn f32_of_bits(bits: u32) -> f32 { return bitcast<f32>(bits); }
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn with_sign(x: f32, sign: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(sign) & 0x80000000u));
}
// The upper 12 bits of a number's 24.
fn upper(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }
fn power_of_two(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }
// x times 2 to the power n, which may be beyond the exponents of f32.
fn scaled(x: f32, n: i32) -> f32 {
  let half = n >> 1u;
  return (x * power_of_two(half)) * power_of_two(n - half);
}

fn least(x: i32, y: i32) -> i32 { return min(x, y); }
fn greatest(x: i32, y: i32) -> i32 { return max(x, y); }
fn floor_quotient(x: i32, y: i32) -> i32 {
  let quotient = x / y;
  let rest = x - quotient * y;
  return quotient - i32(rest != 0 && (rest ^ y) < 0);
}

fn f32_of_bf16(bits: u32) -> f32 { return bitcast<f32>(bits << 16u); }
fn bf16_of_f32(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  return select(rounded, (bits >> 16u) | 64u, is_nan(x)) & 0xffffu;
}
fn f32_of_f16(bits: u32) -> f32 {
  let sign = (bits & 0x8000u) << 16u;
  let rest = bits & 0x7fffu;
  let normal = (rest << 13u) + 0x38000000u;
  let small = bitcast<u32>(f32(rest) * 5.9604644775390625e-08f);
  let finite = select(normal, small, rest < 0x400u);
  let infinite = 0x7f800000u | ((rest & 0x3ffu) << 13u);
  return bitcast<f32>(sign | select(infinite, finite, rest < 0x7c00u));
}
fn f16_of_f32(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let size = bits & 0x7fffffffu;
  let small = bitcast<u32>(bitcast<f32>(size) + 0.5f) - 0x3f000000u;
  let normal = (size + 0xfffu + ((size >> 13u) & 1u) - 0x38000000u) >> 13u;
  var result = select(normal, small, size < 0x38800000u);
  result = select(result, 0x7c00u, size >= 0x477ff000u);
  result = select(result, 0x7e00u | ((size >> 13u) & 0x3ffu), size > 0x7f800000u);
  return sign | result;
}
fn f32_of_e5m2(bits: u32) -> f32 { return f32_of_f16((bits & 0xffu) << 8u); }
fn e5m2_of_f32(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 24u) & 0x80u;
  let size = bits & 0x7fffffffu;
  let small = bitcast<u32>(bitcast<f32>(size) + 128.0f) - 0x43000000u;
  let normal = (size + 0xfffffu + ((size >> 21u) & 1u) - 0x38000000u) >> 21u;
  var result = select(normal, small, size < 0x38800000u);
  result = select(result, 0x7cu, size >= 0x47700000u);
  result = select(result, 0x7eu, size > 0x7f800000u);
  return sign | result;
}
fn f32_of_e4m3(bits: u32) -> f32 {
  let sign = (bits & 0x80u) << 24u;
  let rest = bits & 0x7fu;
  let normal = (rest << 20u) + 0x3c000000u;
  let small = bitcast<u32>(f32(rest) * 0.001953125f);
  let finite = select(normal, small, rest < 8u);
  return bitcast<f32>(sign | select(0x7fc00000u, finite, rest < 0x7fu));
}
fn e4m3_of_f32(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 24u) & 0x80u;
  let size = bits & 0x7fffffffu;
  let small = bitcast<u32>(bitcast<f32>(size) + 16384.0f) - 0x46800000u;
  let normal = (size + 0x7ffffu + ((size >> 20u) & 1u) - 0x3c000000u) >> 20u;
  let result = select(normal, small, size < 0x3c800000u);
  return sign | select(result, 0x7fu, size > 0x43e80000u);
}
fn si4(x: u32) -> i32 { return extractBits(bitcast<i32>(x), 0u, 4u); }
fn ui4(x: u32) -> i32 { return i32(x & 15u); }

fn f32_sqrt(x: f32) -> f32 { return sqrt(x); }
fn f32_floor(x: f32) -> f32 { return floor(x); }
fn f32_ceil(x: f32) -> f32 { return ceil(x); }
fn f32_round(x: f32) -> f32 { return with_sign(round(x), x); }
fn f32_trunc(x: f32) -> f32 { return with_sign(trunc(x), x); }
fn f32_abs(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu); }
fn f32_signbit(x: f32) -> u32 { return bitcast<u32>(x) >> 31u; }
fn f32_is_nan(x: f32) -> u32 { return u32(is_nan(x)); }
fn f32_is_finite(x: f32) -> u32 { return u32((bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u); }
fn f32_is_inf(x: f32) -> u32 { return u32((bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u); }
fn f32_copysign(x: f32, y: f32) -> f32 { return with_sign(x, y); }
fn f32_sign(x: f32) -> f32 { return select(f32(i32(x > 0.0f) - i32(x < 0.0f)), x, is_nan(x)); }
// NaN wins, and of zeros +0 is the greater one.
fn f32_maximum(x: f32, y: f32) -> f32 {
  let other = select(y, x, x > y || is_nan(x));
  return select(other, bitcast<f32>(bitcast<u32>(x) & bitcast<u32>(y)), x == y);
}
fn f32_minimum(x: f32, y: f32) -> f32 {
  let other = select(y, x, x < y || is_nan(x));
  return select(other, bitcast<f32>(bitcast<u32>(x) | bitcast<u32>(y)), x == y);
}
fn f32_sum8(x: array<f32, 8>) -> f32 {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}
fn f32_multiply_add(sum: f32, x: f32, y: f32) -> f32 { return sum + x * y; }

// exp r - 1 for |r| up to half of log 2
fn exp_tail(r: f32) -> f32 {
  let p = (((0.0013821446f * r + 0.008368662f) * r + 0.041668255f) * r + 0.16666521f) * r;
  return (r * r) * (p + 0.49999994f) + r;
}
fn exp_rest(x: f32, n: f32) -> f32 { return (x - n * 0.693145751953125f) - n * 1.428606765330187e-06f; }
fn f32_exp(x: f32) -> f32 {
  var inside = select(x, 89.0f, x > 89.0f);
  inside = select(inside, -104.0f, x < -104.0f);
  let n = round(inside * 1.44269504f);
  return select(scaled(exp_tail(exp_rest(inside, n)) + 1.0f, i32(n)), x, is_nan(x));
}
fn f32_exp2(x: f32) -> f32 {
  var inside = select(x, 129.0f, x > 129.0f);
  inside = select(inside, -151.0f, x < -151.0f);
  let n = round(inside);
  return select(scaled(exp_tail((inside - n) * 0.69314718f) + 1.0f, i32(n)), x, is_nan(x));
}
fn f32_expm1(x: f32) -> f32 {
  var inside = select(x, 89.0f, x > 89.0f);
  inside = select(inside, -18.0f, x < -18.0f);
  let n = round(inside * 1.44269504f);
  let power = power_of_two(i32(n) - 1);
  let half = power * exp_tail(exp_rest(inside, n)) + (power - 0.5f);
  return select(half + half, x, f32_abs(x) < 1e-10f || is_nan(x));
}
fn f32_sinh(x: f32) -> f32 {
  let size = f32_abs(x);
  let inside = select(size, 89.6f, size > 89.6f);
  let n = round(inside * 1.44269504f);
  let power = power_of_two(i32(n) - 2);
  let quarter = power * exp_tail(exp_rest(inside, n)) + (power - 0.25f);
  let half = quarter + quarter / (quarter * 4.0f + 1.0f);
  return select(with_sign(half + half, x), x, size < 1e-10f || is_nan(x));
}
fn f32_cosh(x: f32) -> f32 {
  let size = f32_abs(x);
  let inside = select(size, 89.6f, size > 89.6f);
  let n = round(inside * 1.44269504f);
  let power = power_of_two(i32(n) - 2);
  let quarter = power * exp_tail(exp_rest(inside, n)) + power;
  let half = quarter + 0.0625f / quarter;
  return select(half + half, x, is_nan(x));
}
fn f32_tanh(x: f32) -> f32 {
  let size = f32_abs(x);
  let square = x * x;
  let p = ((0.016437879f * square - 0.05267201f) * square + 0.13320729f) * square - 0.33332947f;
  let near = size * square * p + size;
  let far = 1.0f - 2.0f / (f32_exp(2.0f * select(size, 9.1f, size > 9.1f)) + 1.0f);
  return select(with_sign(select(far, near, size < 0.55f), x), x, is_nan(x));
}
fn f32_erf(x: f32) -> f32 {
  let all = f32_abs(x);
  let size = select(all, 3.95f, all > 3.95f);
  var p = (9.387934e-06f * size - 0.00011886115f) * size + 0.00063736306f;
  p = ((p * size - 0.0016756761f) * size + 0.00016950417f) * size + 0.019147823f;
  p = ((p * size - 0.1027763f) * size - 0.63661957f) * size - 0.12837917f;
  let product = size * p;
  let logarithm = product - size;
  let low = product - (logarithm + size);
  let n = round(logarithm * 1.44269504f);
  let power = power_of_two(i32(n));
  let tail = exp_tail(exp_rest(logarithm, n)) + low;
  return select(with_sign((1.0f - power) - power * tail, x), x, is_nan(x));
}

// e and r of x = 2^e (1 + r) > 0, with 1 + r from the root of a half to that of 2
fn log_split(x: f32) -> vec2<f32> {
  let tiny = bitcast<u32>(x) < 0x800000u;
  // Of a subnormal number, its bits as an integer: it may count as 0 in products.
  let bits = select(bitcast<i32>(x), bitcast<i32>(f32(bitcast<u32>(x))), tiny);
  let exponent = (bits - 0x3f3504f3) >> 23u;
  let m = bitcast<f32>(bits - (exponent << 23u));
  return vec2<f32>(f32(exponent - select(0, 149, tiny)), m - 1.0f);
}
// log(1 + r) - r + r r / 2
fn log_tail(r: f32) -> f32 {
  var p = (-0.07636428f * r + 0.12762213f) * r - 0.1315961f;
  p = ((p * r + 0.1420158f) * r - 0.16623409f) * r + 0.20001242f;
  p = (p * r - 0.2500082f) * r + 0.33333331f;
  return r * (r * r) * p;
}
fn log_inside(x: f32) -> f32 {
  let parts = log_split(x);
  let e = parts.x;
  let r = parts.y;
  return e * 0.693145751953125f + (r - (0.5f * r * r - (e * 1.428606765330187e-06f + log_tail(r))));
}
fn log_ends(x: f32, result: f32) -> f32 {
  let bits = bitcast<u32>(x);
  var found = select(result, x, bits >= 0x7f800000u);
  found = select(found, -f32_infinity(), (bits & 0x7fffffffu) == 0u);
  return select(found, f32_nan(), bits > 0x80000000u);
}
fn f32_log(x: f32) -> f32 { return log_ends(x, log_inside(x)); }
fn log_of_base(x: f32, scale: vec2<f32>, exponent: vec2<f32>) -> f32 {
  let parts = log_split(x);
  let e = parts.x;
  let r = parts.y;
  let half = 0.5f * r * r;
  let high = upper(r - half);
  let low = ((r - high) - half) + log_tail(r);
  let whole = e * exponent.x;
  let part = high * scale.x;
  let rest = e * exponent.y + ((low + high) * scale.y + low * scale.x);
  let total = whole + part;
  return log_ends(x, total + (((whole - total) + part) + rest));
}
fn f32_log2(x: f32) -> f32 {
  return log_of_base(x, vec2<f32>(1.4423828125f, 0.0003122284f), vec2<f32>(1.0f, 0.0f));
}
fn f32_log10(x: f32) -> f32 {
  let exponent = vec2<f32>(0.30103302001953125f, -3.0243555e-06f);
  return log_of_base(x, vec2<f32>(0.434326171875f, -3.168997e-05f), exponent);
}
fn log_of_one_and(high: f32, low: f32) -> f32 {
  let u = 1.0f + high;
  let part = u - 1.0f;
  let error = (1.0f - (u - part)) + (high - part);
  let near = log_inside(u) + (error + low) / u;
  return select(log_ends(u, u), near, u > 0.0f && bitcast<u32>(u) < 0x7f800000u);
}
fn f32_log1p(x: f32) -> f32 {
  let result = log_of_one_and(x, 0.0f);
  return select(result, x, f32_abs(x) < 1e-10f);
}
fn f32_asinh(x: f32) -> f32 {
  let size = f32_abs(x);
  let inside = min(size, 8192.0f);
  let square = inside * inside;
  let rest = square / (sqrt(square + 1.0f) + 1.0f);
  let high = inside + rest;
  let near = log_of_one_and(high, (inside - high) + rest);
  let far = log_ends(size, log_inside(size) + 0.69314718f);
  let result = with_sign(select(near, far, size > 8192.0f || is_nan(x)), x);
  return select(result, x, size < 1e-10f);
}
fn f32_acosh(x: f32) -> f32 {
  let t = min(x, 8192.0f) - 1.0f;
  let root = sqrt(t * t + (t + t));
  let high = t + root;
  let low = select((t - high) + root, (root - high) + t, root > t);
  let far = log_ends(x, log_inside(x) + 0.69314718f);
  return select(f32_nan(), select(log_of_one_and(high, low), far, x > 8192.0f), x >= 1.0f);
}
fn f32_atanh(x: f32) -> f32 {
  let size = f32_abs(x);
  let double = size + size;
  let more = double * size / (1.0f - size);
  let high = double + more;
  let low = select((double - high) + more, (more - high) + double, more > double);
  let inside = select(f32_infinity(), log_of_one_and(high, low), size < 1.0f);
  let result = select(f32_nan(), with_sign(inside * 0.5f, x), size <= 1.0f);
  return select(result, x, size < 1e-10f);
}

// x to the power y: 2^(y log2 x), the logarithm in two parts
fn f32_pow(x: f32, y: f32) -> f32 {
  let size = f32_abs(x);
  let parts = log_split(size);
  let r = parts.y;
  let d = 2.0f + r;
  let s = r / d;
  let s_high = upper(s);
  let r_high = upper(r);
  let s_low = (((r - 2.0f * s_high) - s_high * r_high) - s_high * (r - r_high)) / d;
  let z = s * s;
  let p = ((0.28289928f * z + 0.31990576f) * z + 0.41220925f) * z + 0.57707794f;
  let t = s_high * 2.884765625f;
  let t_low = s_high * 0.00062445708f + (s_low * 2.88539f + z * s * (p * z + 0.9617967f));
  let high = parts.x + t;
  let low = ((parts.x - high) + t) + t_low;
  let first = upper(high);
  let second = (high - first) + low;
  let y_high = upper(y);
  let whole = y_high * first;
  let rest = y * second + (y - y_high) * first;
  let product = whole + rest;
  let n = round(clamp(product, -300.0f, 300.0f));
  var result = scaled(exp_tail(((whole - n) + rest) * 0.69314718f) + 1.0f, i32(n));
  result = select(result, f32_infinity(), product > 128.5f);
  result = select(result, 0.0f, product < -151.0f);
  let infinite = (bitcast<u32>(y) & 0x7fffffffu) == 0x7f800000u;
  let grows = select((size < 1.0f), (size > 1.0f), y > 0.0f);
  let end = select(0.0f, f32_infinity(), grows);
  let beyond = infinite || (bitcast<u32>(size) == 0u) || (bitcast<u32>(size) == 0x7f800000u);
  result = select(result, end, beyond);
  result = select(result, 1.0f, size == 1.0f);
  let y_size = f32_abs(y);
  let is_whole = y_size >= 8388608.0f || floor(y) == y;
  let odd = is_whole && y_size < 16777216.0f && (u32(min(y_size, 16777216.0f)) & 1u) == 1u;
  let negative = (bitcast<u32>(x) >> 31u) == 1u;
  result = select(result, -result, negative && odd);
  let bits = bitcast<u32>(x);
  let below = negative && bits != 0x80000000u && bits != 0xff800000u;
  result = select(result, f32_nan(), below && !is_whole);
  result = select(result, f32_nan(), is_nan(x) || is_nan(y));
  return select(result, 1.0f, x == 1.0f || y == 0.0f);
}

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

// Two words as integers of 64 bits.
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
fn i32_of_f32(x: f32) -> i32 { return i32_within(x, -2147483648.0f, 2147483648.0f); }
fn i32_within(x: f32, low: f32, high: f32) -> i32 {
  let inside = x > low && x < high;
  let found = i32(select(0.0f, x, inside));
  let most = select(i32(high) - 1, 2147483647, high >= 2147483648.0f);
  let below = select(found, i32(low), x <= low);
  return select(below, most, x >= high);
}
fn i8_of_f32(x: f32) -> i32 { return i32_within(x, -128.0f, 128.0f); }
fn i16_of_f32(x: f32) -> i32 { return i32_within(x, -32768.0f, 32768.0f); }
fn u8_of_f32(x: f32) -> u32 { return u32(i32_within(x, 0.0f, 256.0f)); }
fn u16_of_f32(x: f32) -> u32 { return u32(i32_within(x, 0.0f, 65536.0f)); }
fn u32_of_f32(x: f32) -> u32 {
  let found = u32(select(0.0f, x, x > 0.0f && x < 4294967296.0f));
  return select(found, 0xffffffffu, x >= 4294967296.0f);
}
fn si4_of_f32(x: f32) -> i32 { return i32_within(x, -8.0f, 8.0f); }
fn ui4_of_f32(x: f32) -> i32 { return i32_within(x, 0.0f, 16.0f); }

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
// Of a driver that takes 1 / (1 / x) for x.
fn f32_reciprocal(x: f32) -> f32 { return select(1.0f / x, x, is_nan(x)); }
// The order of numbers as that of integers, which no driver takes for max, where NaN loses.
fn ordered(x: f32) -> i32 {
  let bits = bitcast<i32>(x);
  return bits ^ ((bits >> 31u) & 0x7fffffff);
}
// NaN wins, and of zeros +0 is the greater one.
fn f32_maximum(x: f32, y: f32) -> f32 {
  return select(y, x, is_nan(x) || (!is_nan(y) && ordered(x) > ordered(y)));
}
fn f32_minimum(x: f32, y: f32) -> f32 {
  return select(y, x, is_nan(x) || (!is_nan(y) && ordered(x) < ordered(y)));
}
fn f32_sum8(x: array<f32, 8>) -> f32 {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}
fn f32_multiply_add(sum: f32, x: f32, y: f32) -> f32 { return sum + x * y; }

// Floats as integers: toward zero; what is beyond the limits becomes the limit, NaN becomes 0.
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

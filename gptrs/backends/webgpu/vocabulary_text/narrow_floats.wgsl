// Narrow floats as their bits, to f32 and back: rounded to nearest even.

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

// Exponentials, logarithms and powers.

// exp r - 1 for |r| up to half of log 2
fn exp_tail(r: f32) -> f32 {
  let p = (((0.0013821446f * r + 0.008368662f) * r + 0.041668255f) * r + 0.16666521f) * r;
  return (r * r) * (p + 0.49999994f) + r;
}
// x - n log 2, log 2 in two parts
fn exp_rest(x: f32, n: f32) -> f32 {
  return (x - n * 0.693145751953125f) - n * 1.428606765330187e-06f;
}
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

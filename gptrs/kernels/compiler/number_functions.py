"""Functions of one number that kernels' source may call: conversions of fp8 and 16-bit floats,
division and powers of integers and of complex numbers. Imported on a cache miss only.

Each is Python that Numba compiles and LLVM inlines; those without loops and calls are vectorised
with the loop around them. Their results have the bits of NumPy's (and ml_dtypes') functions, but
for what the C library rounds otherwise.
"""

# Numba and llvmlite have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownLambdaType=false

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy import complex128, float32, float64, int32, int64, uint8, uint16

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_F16, _F32, _F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
_compiled: Any = njit(error_model="numpy", fastmath=False, boundscheck=False)


@intrinsic
def float_bits(typing_context, x):
    return types.int32(types.float32), lambda c, builder, s, a: builder.bitcast(a[0], _I32)


@intrinsic
def bits_float(typing_context, bits):
    return types.float32(types.int32), lambda c, builder, s, a: builder.bitcast(a[0], _F32)


@intrinsic
def double_bits(typing_context, x):
    return types.int64(types.float64), lambda c, builder, s, a: builder.bitcast(a[0], _I64)


@intrinsic
def bits_double(typing_context, bits):
    return types.float64(types.int64), lambda c, builder, s, a: builder.bitcast(a[0], _F64)


@intrinsic
def half_float(typing_context, bits):
    def code(context, builder, signature, arguments):
        return builder.fpext(builder.bitcast(arguments[0], _F16), _F32)

    return types.float32(types.uint16), code


@intrinsic
def float_half(typing_context, x):
    def code(context, builder, signature, arguments):
        return builder.bitcast(builder.fptrunc(arguments[0], _F16), _I16)

    return types.uint16(types.float32), code


@_compiled
def odd_float(x):
    """A float64 as float32, inexact values rounded to the neighbour with an odd last bit: rounding
    that to 16 bits or less gives the bits of rounding ``x`` once. Source: Boldo and Melquiond,
    "When double rounding is odd"."""
    near = float32(x)
    wide, bits = float64(near), float_bits(near)
    toward_zero = int32(bits - int32(abs(wide) > abs(x)))
    return bits_float(int32(toward_zero | int32(wide != x)))


@_compiled
def float_of_e4m3(bits):
    """fp8_e4m3 (bias 7, no infinities, NaN where all other bits are set), by way of float16, whose
    exponent has the bias 15."""
    half = ((bits & 128) << 8) | ((bits & 127) << 7)
    half = half if bits & 127 != 127 else half | 0x7E00  # a NaN, with its sign
    return half_float(uint16(half)) * float32(256.0)


@_compiled
def e4m3_of_float(x):
    """To nearest even; beyond the greatest number, 448, NaN."""
    sign, whole = _sign(x), abs(x)
    bits = _rounded_bits(whole, 20, 120)
    bits = float_bits(whole + float32(16384.0)) - 1182793728 if whole < 0.015625 else bits
    return uint8(sign | (bits if whole <= 464 else 127))


@_compiled
def float_of_e5m2(bits):
    """fp8_e5m2: the upper half of a float16."""
    return half_float(uint16(bits << 8))


@_compiled
def e5m2_of_float(x):
    """To nearest even; beyond the greatest number, 57344, an infinity."""
    sign, whole = _sign(x), abs(x)
    bits = _rounded_bits(whole, 21, 112)
    bits = float_bits(whole + float32(128.0)) - 1124073472 if whole < 6.103515625e-05 else bits
    bits = bits if whole < 61440 else 124
    return uint8(sign | (bits if whole == whole else 126))


@_compiled
def _sign(x):
    return (float_bits(x) >> 24) & 128


@_compiled
def _rounded_bits(whole, dropped, bias):
    """The bits of a positive float32 without the last ``dropped``, halves to even, and with
    ``bias`` less in the exponent."""
    bits = float_bits(whole)
    odd = (bits >> dropped) & 1
    return ((bits + (1 << (dropped - 1)) - 1 + odd) >> dropped) - (bias << (23 - dropped))


# ln 2 and π/2 in parts whose products with small integers are exact.
_LN2 = (0.6931471803691238, 1.9082149292705877e-10)
_QUARTER = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of √½
_ROUNDER = 6755399441055744.0  # 1.5 · 2⁵²: added, it leaves the nearest integer in the low bits


@_compiled
def double_log(x):
    """log x of a positive, normal float64, within 2 units in the last place: x = 2ᵉ·m, and
    log m = 2 artanh s by its series, where s = (m − 1) / (m + 1) and √½ ≤ m < √2."""
    bits = double_bits(x)
    exponent = (bits - _ROOT_HALF) >> 52
    rest = bits_double(bits - (exponent << 52)) - 1.0
    scale, s = float64(int32(exponent)), rest / (2.0 + rest)
    t = s * s
    tail = 1 / 17 + t * (1 / 19 + t * (1 / 21))
    tail = 1 / 11 + t * (1 / 13 + t * (1 / 15 + t * tail))
    tail = t * (1 / 3 + t * (1 / 5 + t * (1 / 7 + t * (1 / 9 + t * tail))))
    return scale * _LN2[0] + (2.0 * s + (2.0 * s * tail + scale * _LN2[1]))


@_compiled
def double_sin_cos(x):
    """sin x and cos x for 0 ≤ x ≤ 2π, within 2 units in the last place: by their series, at most
    π/4 from a multiple of π/2."""
    turned = x * 0.6366197723675814 + _ROUNDER
    whole, quarter = turned - _ROUNDER, double_bits(turned)
    r = ((x - whole * _QUARTER[0]) - whole * _QUARTER[1]) - whole * _QUARTER[2]
    t = r * r
    tail = 1 / 362880 + t * (-1 / 39916800 + t * (1 / 6227020800 + t * (-1 / 1307674368000)))
    sin = r + r * t * (-1 / 6 + t * (1 / 120 + t * (-1 / 5040 + t * tail)))
    tail = 1 / 40320 + t * (
        -1 / 3628800 + t * (1 / 479001600 + t * (-1 / 87178291200 + t / 20922789888000))
    )
    cos = (1.0 - 0.5 * t) + t * t * (1 / 24 + t * (-1 / 720 + t * tail))
    swapped = quarter & 1 != 0
    first, second = (cos, sin) if swapped else (sin, cos)
    return (-first if quarter & 2 != 0 else first, -second if (quarter + 1) & 2 != 0 else second)


@_compiled
def floor_quotient(x, y):
    """⌊x / y⌋ of integers of at most 32 bits, not for y = 0: a quotient in float64 that is no
    integer is farther from one than its rounding error."""
    inside = int64(float64(x) / float64(y))
    return inside - int64((x != inside * y) & ((x < 0) != (y < 0)))


@_compiled
def floor_remainder(x, y):
    """x − y·⌊x / y⌋ of integers of at most 32 bits."""
    return x - y * floor_quotient(x, y)


@_compiled
def integer_power(x, n):
    """x to the power n ≥ 0, modulo 2⁶⁴."""
    power, square, rest = int64(1), int64(x), int64(n)
    while rest > 0:
        if rest & 1:
            power *= square
        square *= square
        rest >>= 1
    return power


@_compiled
def unsigned_power(x, n):
    """x to the power n, an unsigned integer of 64 bits, modulo 2⁶⁴."""
    power, square, high = int64(1), int64(x), int64(n) < 0
    rest = int64(n) & 0x7FFFFFFFFFFFFFFF
    for _ in range(63):
        if rest & 1:
            power *= square
        square *= square
        rest >>= 1
    return power * square if high else power


@_compiled
def greatest_divisor(x, y):
    """The greatest common divisor of two uint64, by Euclid's algorithm."""
    while y != 0:
        x, y = y, x % y
    return x


@_compiled
def next_bits(bits, x, y, bits_of_y, sign):
    """The bits of the float next to x in the direction of y, neither NaN, from the bits of both:
    magnitudes of adjacent floats are adjacent integers. Bit ``sign`` is that of the sign."""
    if x == y:
        return int64(bits_of_y)
    if x == 0:
        return (int64(y < 0) << sign) + 1
    return int64(bits) + (1 if (y > x) == (x > 0) else -1)


@_compiled
def complex_quotient(x, y):
    """x / y, divided by the larger part of y first. Source: Smith, "Algorithm 116", CACM 1962."""
    if abs(y.real) >= abs(y.imag):
        if y.real == 0 and y.imag == 0:
            return complex(x.real / abs(y.real), x.imag / abs(y.real))
        ratio = y.imag / y.real
        scale = 1 / (y.real + y.imag * ratio)
        return complex((x.real + x.imag * ratio) * scale, (x.imag - x.real * ratio) * scale)
    ratio = y.real / y.imag
    scale = 1 / (y.imag + y.real * ratio)
    return complex((x.real * ratio + x.imag) * scale, (x.imag * ratio - x.real) * scale)


def _of_c(name: str, count: int) -> Any:
    """A function of the C library on complex numbers of two float64."""

    def of(typing_context, *operands):
        def code(context, builder, signature, arguments):
            pair = ir.LiteralStructType([_F64, _F64])
            kind = ir.FunctionType(pair, [_F64] * (2 * count))
            function = builder.module.globals.get(name)
            if function is None:
                function = ir.Function(builder.module, kind, name)
            parts = [builder.extract_value(a, part) for a in arguments for part in (0, 1)]
            return builder.call(function, parts)

        return types.complex128(*[types.complex128] * count), code

    if count == 1:
        return intrinsic(lambda typing_context, x: of(typing_context, x))
    return intrinsic(lambda typing_context, x, y: of(typing_context, x, y))


complex_exp, complex_log, complex_sqrt = _of_c("cexp", 1), _of_c("clog", 1), _of_c("csqrt", 1)
complex_sin, complex_cos, complex_tan = _of_c("csin", 1), _of_c("ccos", 1), _of_c("ctan", 1)
complex_asin, complex_acos, complex_atan = _of_c("casin", 1), _of_c("cacos", 1), _of_c("catan", 1)
complex_sinh, complex_cosh, complex_tanh = _of_c("csinh", 1), _of_c("ccosh", 1), _of_c("ctanh", 1)
complex_asinh, complex_acosh = _of_c("casinh", 1), _of_c("cacosh", 1)
complex_atanh = _of_c("catanh", 1)
_power_of_c = _of_c("cpow", 2)


@_compiled
def complex_log2(x):
    log = complex_log(x)
    return complex(log.real * 1.4426950408889634, log.imag * 1.4426950408889634)


@_compiled
def complex_log10(x):
    log = complex_log(x)
    return complex(log.real * 0.4342944819032518, log.imag * 0.4342944819032518)


@_compiled
def complex_exp2(x):
    return complex_exp(complex(x.real * 0.6931471805599453, x.imag * 0.6931471805599453))


@_compiled
def complex_log1p(x):
    """log (1 + x): near 0 half the logarithm of |1 + x|² = 1 + re·(re + 2) + im²."""
    if math.hypot(x.real, x.imag) < 0.5:
        size = math.log1p(x.real * (x.real + 2.0) + x.imag * x.imag) * 0.5
    else:
        size = math.log(math.hypot(x.real + 1.0, x.imag))
    return complex(size, math.atan2(x.imag, x.real + 1.0))


@_compiled
def complex_expm1(x):
    """eˣ − 1: its real part is expm1 re · cos im − 2·sin² (im / 2).

    A real x has a real result; without a finite imaginary part, that of ∞ is ∞ and that of −∞ is
    −1.
    """
    real = math.expm1(x.real)
    if x.imag == 0:
        return complex(real + 0.0, x.imag)  # of −0, 0
    if math.isinf(x.real) and not math.isfinite(x.imag):
        return complex(real, math.nan if x.real > 0 else 0.0)
    half = math.sin(x.imag * 0.5)
    real = real * math.cos(x.imag) - 2.0 * half * half
    return complex(real, math.exp(x.real) * math.sin(x.imag))


@_compiled
def complex_power(x, y):
    """x to the power y; for a whole power below 100, by multiplication."""
    if y == 0:
        return complex128(1)
    if x == 0:
        return complex128(0) if y.real > 0 else complex(math.nan, math.nan)
    if y.imag == 0 and abs(y.real) < 100 and y.real == math.floor(y.real):
        rest = int64(abs(y.real))
        power, square = complex128(1), x
        while rest > 0:
            if rest & 1:
                power = power * square
            square = square * square
            rest >>= 1
        return power if y.real > 0 else complex_quotient(complex128(1), power)
    return _power_of_c(x, y)


FUNCTIONS: dict[str, Any] = {
    name: globals()[name]
    for name in (
        *("float_bits", "bits_float", "half_float", "float_half", "odd_float"),
        *("float_of_e4m3", "e4m3_of_float", "float_of_e5m2", "e5m2_of_float"),
        *("double_bits", "bits_double", "double_log", "double_sin_cos"),
        *("floor_quotient", "floor_remainder", "integer_power", "unsigned_power"),
        "greatest_divisor",
        *("complex_quotient", "complex_power", "complex_exp", "complex_log", "complex_sqrt"),
        *("complex_sin", "complex_cos", "complex_tan", "complex_asin", "complex_acos"),
        *("complex_atan", "complex_sinh", "complex_cosh", "complex_tanh", "complex_asinh"),
        *("complex_acosh", "complex_atanh", "complex_log2", "complex_log10", "complex_exp2"),
        *("complex_log1p", "complex_expm1", "next_bits"),
    )
}

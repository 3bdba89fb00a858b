"""exp, log, tanh and erf on vectors of f64 and on scalars.

As in `gptrs.kernels.vector_math`, every function has as arguments the IR builder and a vector, or a
scalar, is free of branches and of tables, and passes NaN on. The bounds are checked by tests, on
levels with a fused multiply-add and on those without:

| function | bound |
|---|---|
| exp | 1.2 ulp; 0 and inf beyond the range |
| log | 1 ulp |
| tanh | 2.5 ulp |
| erf | 1.5 ulp |

The polynomials are minimax fits of our own (Remez exchange with 50 digits, weighted so that the
error is relative to the result). Coefficients are rounded to f64 from the lowest power up, the
higher ones being fitted again each time; those of erf, whose terms are small, all at once.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I64, Builder, like
from gptrs.kernels.vector_math import polynomial

# ln 2 in two parts: the first has 42 bits, so that its product with an exponent is exact.
LN2_HIGH, LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
# Added to a small float, it leaves the nearest integer in the low bits: 1.5 · 2⁵².
ROUNDER = 6755399441055744.0

# (exp r − 1 − r) / r² for |r| ≤ ln 2 / 2, error of exp 2⁻⁵⁴·⁵
_EXP = (
    *(0.5, 0.16666666666666688, 0.041666666666666824, 0.008333333333313892),
    *(0.0013888888888777798, 0.00019841269903376433, 2.480158755973583e-05),
    *(2.7557228661524866e-06, 2.755706145353412e-07, 2.5115606504190398e-08),
    2.0935387011760418e-09,
)
# (2 atanh(s) / s − 2) / s² in s² for |s| ≤ 3 − 2√2, error of log 2⁻⁵⁹
_ATANH = (
    *(0.6666666666666734, 0.3999999999941664, 0.2857142874202817, 0.22222198605057925),
    *(0.18183562850871293, 0.15314084861033692, 0.14795633042333253),
)

# (erf x − x) / x in x² for |x| ≤ 1, error of erf 2⁻⁵⁶·⁹
_ERF = (
    *(0.12837916709551256, -0.3761263890318352, 0.11283791670944185, -0.02686617064311144),
    *(0.005223977606118201, -0.0008548325929299106, 0.00012055293576377275),
    *(-1.4924712290816285e-05, 1.6447131419811136e-06, -1.620631250155755e-07),
    *(1.3710974567312181e-08, -7.779456921831117e-10),
)
# log(erfc x) / x for 1 ≤ x ≤ 5.95, error of erf 2⁻⁵⁵
_LOG_ERFC = (
    *(-1.1283788642943402, -0.6366225749359284, -0.10276067304646669, 0.019097596320299472),
    *(0.00026295338258096725, -0.0017619823366388143, 0.0006463278687424468),
    *(-5.6357654760717e-05, -5.953668606916786e-05, 3.827011566973618e-05),
    *(-1.342958064048674e-05, 3.272219049044627e-06, -5.788512562685049e-07),
    *(7.362850450598995e-08, -6.417492273573023e-09, 3.440645415409854e-10),
    -8.565676208737925e-12,
)

_MANTISSA, _BIAS = 52, 1023
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD


def bits(f: Builder, x: Any) -> Any:
    """The bits of f64 as i64."""
    vector = isinstance(x.type, ir.VectorType)
    return f.bitcast(x, ir.VectorType(I64, x.type.count) if vector else I64)


def with_sign_of(f: Builder, value: Any, x: Any) -> Any:
    """``value``, which is not negative, with the sign of x (of −0 too)."""
    pattern = bits(f, x)
    sign = f.and_(pattern, like(pattern, -(1 << 63)))
    return f.bitcast(f.or_(bits(f, value), sign), x.type)


def power_of_two(f: Builder, n: Any, kind: Any) -> Any:
    """2ⁿ for integers −1022 ≤ n ≤ 1023."""
    return f.bitcast(f.shl(f.add(n, like(n, _BIAS)), like(n, _MANTISSA)), kind)


def exp_tail(f: Builder, r: Any) -> Any:
    """eʳ − 1 for |r| ≤ ln 2 / 2."""
    return f.multiply_add(f.fmul(r, r), polynomial(f, r, _EXP), r)


def reduced(f: Builder, x: Any, low: Any = None) -> tuple[Any, Any]:
    """n and eʳ − 1, where eˣ = 2ⁿ·eʳ: n = ⌊x / ln 2⌉. ``low`` is added to x and r."""
    rounder = like(x, ROUNDER)
    shifted = f.multiply_add(x, like(x, math.log2(math.e)), rounder)
    whole = f.fsub(shifted, rounder)
    r = f.multiply_add(whole, like(x, -LN2_HIGH), x)
    r = f.multiply_add(whole, like(x, -LN2_LOW), r)
    r = r if low is None else f.fadd(r, low)
    return f.sub(bits(f, shifted), bits(f, rounder)), exp_tail(f, r)


def exp(f: Builder, x: Any, low: Any = None) -> Any:
    """eˣ; with ``low``, the exponential of the sum, where |low| is below the last place of x."""
    # Beyond, the result is inf or 0. NaN compares false and stays.
    most, least = like(x, 710.0), like(x, -746.0)
    x = f.select(f.fcmp_ordered(">", x, most), most, x)
    x = f.select(f.fcmp_ordered("<", x, least), least, x)
    n, tail = reduced(f, x, low)
    # In two factors, so that neither leaves the range of exponents; only the last product rounds.
    # The first is 2^(n ± 64): an arithmetic shift of i64 is slow where there is no AVX-512.
    outer = f.fcmp_ordered(">", x, like(x, 0.0))
    apart = f.select(outer, like(n, 64), like(n, -64))
    result = f.fmul(f.fadd(tail, like(x, 1.0)), power_of_two(f, f.sub(n, apart), x.type))
    return f.fmul(result, f.select(outer, like(x, 2.0**64), like(x, 2.0**-64)))


def split(f: Builder, x: Any, *, subnormal: bool = True) -> tuple[Any, Any]:
    """e and r of x = 2ᵉ·(1 + r) > 0 with √½ ≤ 1 + r < √2. Without ``subnormal``, x is none."""
    tiny = f.fcmp_ordered("<", x, like(x, 2.0**-1022)) if subnormal else None
    pattern = bits(f, x if tiny is None else f.select(tiny, f.fmul(x, like(x, 2.0**54)), x))
    # Exponents count from 0, so that they fit the low bits of 2⁵², which converts them to f64.
    biased = f.add(f.sub(pattern, like(pattern, _SQRT_HALF_BITS)), like(pattern, _BIAS << 52))
    exponent = f.lshr(biased, like(pattern, _MANTISSA))
    shift = f.shl(f.sub(exponent, like(pattern, _BIAS)), like(pattern, _MANTISSA))
    r = f.fsub(f.bitcast(f.sub(pattern, shift), x.type), like(x, 1.0))
    offset = like(x, 2.0**52)
    e = f.bitcast(f.or_(exponent, bits(f, offset)), x.type)
    bias = like(x, 2.0**52 + _BIAS)
    if tiny is not None:
        bias = f.select(tiny, like(x, 2.0**52 + _BIAS + 54), bias)
    return f.fsub(e, bias), r


def _atanh(f: Builder, r: Any, half: Any) -> tuple[Any, Any]:
    """s = r / (2 + r), and what it is multiplied by in log (1 + r) = r − (r²/2 − s·(...))."""
    s = f.fdiv(r, f.fadd(r, like(r, 2.0)))
    square = f.fmul(s, s)
    return s, f.multiply_add(square, polynomial(f, square, _ATANH), half)


def log_tail(f: Builder, r: Any) -> Any:
    """log (1 + r) − (r − r²/2) for √½ ≤ 1 + r < √2."""
    return f.fmul(*_atanh(f, r, f.fmul(f.fmul(r, r), like(r, 0.5))))


def log(f: Builder, x: Any) -> Any:
    """log x = e·ln 2 + 2 atanh s with s = r / (2 + r); −inf at 0, NaN below."""
    e, r = split(f, x)
    half = f.fmul(f.fmul(r, r), like(x, 0.5))
    s, inner = _atanh(f, r, half)
    inner = f.multiply_add(s, inner, f.fmul(e, like(x, LN2_LOW)))
    result = f.multiply_add(e, like(x, LN2_HIGH), f.fsub(r, f.fsub(half, inner)))
    result = f.select(f.fcmp_ordered("==", x, like(x, math.inf)), x, result)
    result = f.select(f.fcmp_ordered("==", x, like(x, 0.0)), like(x, -math.inf), result)
    return f.select(f.fcmp_unordered("<", x, like(x, 0.0)), like(x, math.nan), result)


def tanh(f: Builder, x: Any) -> Any:
    """tanh x = t / (t + 2) with t = exp 2|x| − 1, which is 2ⁿ·(eʳ − 1) + (2ⁿ − 1)."""
    size = f.magnitude(x)
    double, bound = f.fadd(size, size), like(x, 44.0)  # tanh 22 is 1 in f64
    double = f.select(f.fcmp_ordered(">", double, bound), bound, double)
    n, tail = reduced(f, double)
    power = power_of_two(f, n, x.type)
    t = f.multiply_add(power, tail, f.fsub(power, like(x, 1.0)))
    return with_sign_of(f, f.fdiv(t, f.fadd(t, like(x, 2.0))), x)


def erf(f: Builder, x: Any) -> Any:
    """erf x: a polynomial up to |x| = 1, then 1 − exp(log erfc |x|)."""
    size, bound = f.magnitude(x), like(x, 5.95)  # from 5.93 on, erf x is 1 in f64
    near = f.multiply_add(size, polynomial(f, f.fmul(x, x), _ERF), size)
    inside = f.select(f.fcmp_ordered(">", size, bound), bound, size)
    rest = exp(f, f.fmul(inside, polynomial(f, inside, _LOG_ERFC)))
    far = f.fsub(like(x, 1.0), rest)
    return with_sign_of(f, f.select(f.fcmp_ordered("<", size, like(x, 1.0)), near, far), x)

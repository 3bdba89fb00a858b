"""log1p, log2, log10 and the inverse hyperbolic functions, on vectors of f32 or f64 and on scalars.

As in `gptrs.kernels.vector_math`: free of branches and of tables, NaN passes. All are made of
the parts of log x, where x = 2ᵉ·(1 + r) with √½ ≤ 1 + r < √2:

    log x = e·ln 2 + (r − r²/2 + tail)

log1p and the functions made of it take their operand as a sum of two numbers:

    1 + x = u + c                # u rounded, c its rounding error
    log (1 + x) = log u + c / u

Bounds, checked by tests, in units in the last place:

| function | f32 | f64 |
|---|---|---|
| log1p | 1.5 | 1.5 |
| log2, log10 | 1 | 1 |
| asinh, acosh, atanh | 2.5 | 2.5 |
"""

from __future__ import annotations

import math

from gptrs.kernels import vector_math, vector_math64
from gptrs.kernels.compiler.ir_builder import like
from gptrs.kernels.compiler.numbers import Number, Truth, formula, sum_of_two

_LN2 = math.log(2.0)
# 1 / ln 2, 1 / ln 10 and log₁₀ 2 in two parts, for f32 and for f64: the products of the first part
# with a number of half the bits, or with an exponent, are exact.
_LOG2_E = {
    True: (1.4423828125, 0.0003122284),
    False: (1.4426950407214463, 1.6751713164886512e-10),
}
_LOG10_E = {
    True: (0.434326171875, -3.168997e-05),
    False: (0.4342944818781689, 2.5082946711645275e-11),
}
_LOG10_2 = {
    True: (0.30103302001953125, -3.0243555e-06),
    False: (0.30102999566395283, 2.8363394551044964e-14),
}


def _parts(x: Number) -> tuple[Number, Number, Number, Number]:
    """e, r, r²/2 and the tail of log x for x > 0."""
    of = vector_math if x.is_f32 else vector_math64
    e, r = (Number(x.f, part) for part in of.split(x.f, x.value))
    half = r * r * 0.5
    return e, r, half, Number(x.f, of.log_tail(x.f, r.value))


def _log(x: Number) -> Number:
    """log x for 0 < x < ∞."""
    of = vector_math if x.is_f32 else vector_math64
    e, r, half, tail = _parts(x)
    return e.multiply_add(of.LN2_HIGH, r - (half - e.multiply_add(of.LN2_LOW, tail)))


def _with_ends(x: Number, result: Number) -> Number:
    """A logarithm of x: −∞ at 0, ∞ at ∞, NaN below."""
    result = x.equals(math.inf).where(x, result)
    result = x.equals(0.0).where(x.constant(-math.inf), result)
    return (x >= 0.0).where(result, math.nan)


def _high(x: Number) -> Number:
    """x without the last half of its bits."""
    dropped = (1 << (12 if x.is_f32 else 32)) - 1
    return x.of_bits(x.f.and_(x.bits, like(x.bits, ~dropped)))


def _of_base(x: Number, scale: tuple[float, float], exponent: tuple[float, float]) -> Number:
    """The logarithm of x to the base b, with 1 / ln b and the logarithm of 2 in parts."""
    e, r, half, tail = _parts(x)
    high = _high(r - half)
    low = ((r - high) - half) + tail
    whole, part = e * exponent[0], high * scale[0]
    rest = (low + high).multiply_add(scale[1], low * scale[0])
    rest = e.multiply_add(exponent[1], rest) if exponent[1] else rest
    total = whole + part
    return _with_ends(x, total + (((whole - total) + part) + rest))


@formula
def log2(x: Number) -> Number:
    """log x / log 2; whole for powers of 2."""
    return _of_base(x, _LOG2_E[x.is_f32], (1.0, 0.0))


@formula
def log10(x: Number) -> Number:
    """log x / log 10."""
    return _of_base(x, _LOG10_E[x.is_f32], _LOG10_2[x.is_f32])


def _log_of_one_and(high: Number, low: Number) -> Number:
    """log (1 + high + low), where |low| is below the last place of high ≥ −1."""
    u, error = sum_of_two(high.constant(1.0), high)
    result = _log(u) + (error + low) / u
    near = (u > 0.0) & (u < math.inf)
    return near.where(result, _with_ends(u, u))


@formula
def log1p(x: Number) -> Number:
    """log (1 + x); −∞ at −1, NaN below."""
    return _log_of_one_and(x, x.constant(0.0)).with_sign_of(x)


def _far(x: Number) -> tuple[Truth, float]:
    """Where 2·x stands for x + √(x² ± 1), and the bound from which."""
    bound = 2.0**13 if x.is_f32 else 2.0**28
    return x > bound, bound


@formula
def asinh(x: Number) -> Number:
    """log (1 + (|x| + x² / (1 + √(x² + 1)))), with the sign of x; log |x| + log 2 far away."""
    size = abs(x)
    far, bound = _far(size)
    inside = size.at_most(bound)
    square = inside * inside
    high, low = sum_of_two(inside, square / ((square + 1.0).root() + 1.0))
    near = _log_of_one_and(high, low)
    return far.where(_with_ends(size, _log(size) + _LN2), near).with_sign_of(x)


@formula
def acosh(x: Number) -> Number:
    """log (1 + (t + √(2·t + t²))) with t = x − 1; NaN below 1, log x + log 2 far away."""
    far, bound = _far(x)
    t = x.at_most(bound) - 1.0
    high, low = sum_of_two(t, t.multiply_add(t, t + t).root())
    result = far.where(_with_ends(x, _log(x) + _LN2), _log_of_one_and(high, low))
    return (x >= 1.0).where(result, math.nan)


@formula
def atanh(x: Number) -> Number:
    """log (1 + 2·|x| / (1 − |x|)) / 2, with the sign of x; NaN beyond 1."""
    size = abs(x)
    double = size + size
    high, low = sum_of_two(double, double * size / (1.0 - size))
    inside = (size < 1.0).where(_log_of_one_and(high, low), double * math.inf)
    return (size <= 1.0).where(inside * 0.5, math.nan).with_sign_of(x)

"""The gamma function, its logarithm and the derivative of that, and functions of these.

With f the fraction of x and 0 < x below 8 or 10, all are those of 1 + f, by a polynomial, and what
the recurrence Γ(x + 1) = x·Γ(x) adds; above, Stirling's series; below 0, the reflection at 0. All
is computed in f64: f32 is within 0.51 units in the last place, but beside zeros at negative x.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

from gptrs.errors import ArgumentError
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.approximation import (
    in_doubles,
    in_doubles_together,
    mapped,
    polynomial,
)
from gptrs.numpy_api.function import as_tensor, public

__all__ = [
    "beta",
    "betaln",
    "digamma",
    "factorial",
    "gamma",
    "gammasgn",
    "lgamma",
    "multigammaln",
]

Operand = Any
"""A Tensor, an array or a Python number."""

# log Γ(1 + f) / (f·(f − 1)) and ψ(1 + f) / (f − its zero) for f in [0, 1], error 2⁻⁵⁴
_LOG_GAMMA = (
    *(0.4831289505409809, -0.07297994795715304, 0.015727850268641097, -0.003913560937626331),
    *(0.001049818664454635, -0.0002945507015164312, 8.510090373634476e-05),
    *(-2.5094328700900636e-05, 7.511391846837954e-06, -2.2742472358027586e-06),
    *(6.948428393704062e-07, -2.138638060528023e-07, 6.623870571642316e-08),
    *(-2.0619851263731666e-08, 6.430366506216791e-09, -2.0184741279133343e-09),
    *(6.5655031582108e-10, -2.075322954216366e-10, 5.030067090605482e-11),
    *(-1.5936042537298723e-11, 1.1577613910649688e-11, -3.700571132904742e-12),
)
_DIGAMMA = (
    *(0.951055876031833, -0.21181371064073026, 0.06013562106019355, -0.018550615381738605),
    *(0.005936795278433826, -0.0019350666647832667, 0.000636888028319074),
    *(-0.00021074841215733007, 6.995020484160625e-05, -2.325823828431376e-05),
    *(7.741156881253708e-06, -2.578107848270217e-06, 8.591324222417666e-07),
    *(-2.8628755280038686e-07, 9.500926192924096e-08, -3.166618072027162e-08),
    *(1.10370884388543e-08, -3.6788868183645545e-09, 8.668257373761658e-10),
    *(-2.889363639216111e-10, 2.4765474440031764e-10, -8.25512972008104e-11),
)
_ZERO = 0.46163214496836236, -1.5522348162858677e-17
# B₂ₖ / (2k·(2k − 1)) and B₂ₖ / 2k of the series of log Γ and ψ
_STIRLING = (
    *(0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953),
    *(0.0008417508417508417, -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242),
    *(0.17964437236883057,),
)
_LOG_DERIVATIVE = (
    *(0.08333333333333333, -0.008333333333333333, 0.003968253968253968, -0.004166666666666667),
    *(0.007575757575757576, -0.021092796092796094, 0.08333333333333333, -0.4432598039215686),
)
_LARGE_LOG_GAMMA, _LARGE_DIGAMMA = 8, 10
_TINY = -1e-30
"""log |Γ(x)| is −log |x| nearer to 0; the product in its reflection would be 0."""


def _parts(size: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The whole number below ``size`` < most, and the rest."""
    size = OPS["minimum"](size, float(most))
    whole = OPS["floor"](size)
    return whole, OPS["sub"](size, whole)


def _from_nearest(x: Tensor) -> Tensor:
    """π times the distance to the nearest whole number, with a sign."""
    return OPS["mul"](OPS["sub"](x, OPS["round"](x)), math.pi)


def stirling_series(inverse: Tensor) -> Tensor:
    """log Γ(x) − (x − 1/2)·log x + x − log √(2π) of ``inverse`` = 1/x, for x ≥ 8."""
    return OPS["mul"](polynomial(OPS["mul"](inverse, inverse), _STIRLING), inverse)


def _recurrence(size: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The whole number below ``size`` ≥ 0, the rest f, log Γ(1 + f) and, from 1 on, the product
    Γ(size) / Γ(1 + f). For sizes below `_LARGE_LOG_GAMMA`."""
    whole, f = _parts(size, _LARGE_LOG_GAMMA)
    near = OPS["mul"](polynomial(mapped(f, 0.0, 1.0), _LOG_GAMMA), f)
    near = OPS["mul"](near, OPS["sub"](f, 1.0))
    factors = FUNCTIONS["ones_like"](f)
    for n in range(1, _LARGE_LOG_GAMMA - 1):
        factor = OPS["select"](OPS["greater"](whole, float(n)), OPS["add"](f, float(n)), 1.0)
        factors = OPS["mul"](factors, factor)
    return whole, f, near, factors


def _log_gamma(x: Tensor, _: bool) -> Tensor:
    size = OPS["abs"](x)
    whole, f, near, factors = _recurrence(size)
    small, large = OPS["less"](whole, 1.0), OPS["greater_equal"](size, float(_LARGE_LOG_GAMMA))
    log = OPS["log"](OPS["select"](large, size, OPS["select"](small, f, factors)))
    near = OPS["add"](near, OPS["select"](small, OPS["neg"](log), log))
    inverse = OPS["reciprocal"](size)
    series = stirling_series(inverse)
    far = OPS["mul"](OPS["sub"](size, 0.5), OPS["sub"](log, 1.0))
    far = OPS["add"](far, OPS["add"](series, (math.log(2 * math.pi) - 1) / 2))
    found = OPS["select"](large, far, near)
    sine = OPS["abs"](OPS["mul"](OPS["sin"](_from_nearest(size)), size))
    reflected = OPS["sub"](OPS["sub"](math.log(math.pi), OPS["log"](sine)), found)
    reflected = OPS["select"](OPS["equal"](sine, 0.0), math.inf, reflected)
    found = OPS["select"](OPS["less"](x, _TINY), reflected, found)
    return OPS["select"](OPS["is_inf"](x), math.inf, found)


@public(op="log")
def lgamma(x: Operand) -> Tensor:
    """log |Γ(x)|; ∞ at 0 and negative whole numbers. f64 within 6 units in the last place for
    x > 0; below, of the greater of it and 1."""
    return in_doubles(_log_gamma, x)


def _alternating(whole: Tensor) -> Tensor:
    """1 of even whole numbers, −1 of odd ones."""
    return 1.0 - 2.0 * (whole - OPS["floor"](whole * 0.5) * 2.0)


def _gamma(x: Tensor, _: bool) -> Tensor:
    size = OPS["abs"](x)
    whole, f, near, factors = _recurrence(size)
    one = OPS["exp"](near)
    near = OPS["select"](OPS["less"](whole, 1.0), one / f, one * factors)
    # √(2π)·xˣ⁻¹ᐟ²·e⁻ˣ of the series, with half of the power at a time, which is in range.
    root = OPS["pow"](size, size * 0.5 - 0.25)
    series = OPS["exp"](stirling_series(OPS["reciprocal"](size))) * math.sqrt(2 * math.pi)
    far = root * OPS["exp"](-size) * root * series
    found = OPS["select"](OPS["greater_equal"](size, float(_LARGE_LOG_GAMMA)), far, near)
    found = OPS["select"](OPS["greater"](size, 172.0), math.inf, found)
    sine = OPS["sin"](_from_nearest(x)) * _alternating(OPS["round"](x))
    reflected = -math.pi / (x * found * sine)
    reflected = OPS["select"](OPS["equal"](sine, 0.0), math.nan, reflected)
    found = OPS["select"](OPS["less"](x, 0.0), reflected, found)
    return OPS["select"](OPS["equal"](x, 0.0), OPS["reciprocal"](x), found)


@public(op="exp")
def gamma(x: Operand) -> Tensor:
    """Γ(x); ±∞ at ±0, NaN at negative whole numbers. f64 within 6 units in the last place."""
    return in_doubles(_gamma, x)


@public(op="sign")
def gammasgn(x: Operand) -> Tensor:
    """The sign of Γ(x), 1 or −1; NaN at negative whole numbers."""

    def body(x: Tensor, _: bool) -> Tensor:
        below = OPS["floor"](x)
        sign = OPS["select"](OPS["equal"](below, x), math.nan, _alternating(below))
        sign = OPS["select"](OPS["less"](x, 0.0), sign, OPS["copysign"](1.0, x))
        return OPS["select"](OPS["equal"](x, x), sign, x)

    return in_doubles(body, x)


@public(op="exp", other_names={"n": "x"})
def factorial(x: Operand) -> Tensor:
    """x!, which is Γ(x + 1), and 0 of negative numbers."""
    return in_doubles(lambda x, d: OPS["select"](OPS["less"](x, 0.0), 0.0, _gamma(x + 1.0, d)), x)


@public(op="exp")
def beta(x: Operand, y: Operand) -> Tensor:
    """Γ(x)·Γ(y) / Γ(x + y), the beta function; NaN where one of the three has a pole. f64 within
    2e-13 for positive x and y with a sum below 170; beyond, exp(`betaln`)."""

    def body(x: Tensor, y: Tensor) -> Tensor:
        total = x + y
        sizes = (OPS["abs"](each) for each in (x, y, total))
        ordinary = OPS["less"](functools.reduce(OPS["maximum"], sizes), 170.0)
        sign = gammasgn(x) * gammasgn(y) * gammasgn(total)
        direct = _gamma(x, True) * (_gamma(y, True) / _gamma(total, True))
        return OPS["select"](ordinary, direct, sign * OPS["exp"](betaln(x, y)))

    return in_doubles_together(body, x, y)


def _digamma(x: Tensor, _: bool) -> Tensor:
    size = OPS["abs"](x)
    whole, f = _parts(size, _LARGE_DIGAMMA)
    apart = OPS["sub"](OPS["sub"](f, _ZERO[0]), _ZERO[1])
    near = OPS["mul"](polynomial(mapped(f, 0.0, 1.0), _DIGAMMA), apart)
    # Σ 1/(f + n) as one fraction.
    over, under = FUNCTIONS["zeros_like"](f), FUNCTIONS["ones_like"](f)
    for n in range(1, _LARGE_DIGAMMA - 1):
        more, term = OPS["greater"](whole, float(n)), OPS["add"](f, float(n))
        over = OPS["select"](more, OPS["add"](OPS["mul"](over, term), under), over)
        under = OPS["select"](more, OPS["mul"](under, term), under)
    small = OPS["less"](whole, 1.0)
    over, under = OPS["select"](small, -1.0, over), OPS["select"](small, f, under)
    near = OPS["add"](near, OPS["div"](over, under))
    inverse = OPS["reciprocal"](size)
    square = OPS["mul"](inverse, inverse)
    series = OPS["mul"](polynomial(square, _LOG_DERIVATIVE), square)
    far = OPS["sub"](OPS["sub"](OPS["log"](size), OPS["mul"](inverse, 0.5)), series)
    found = OPS["select"](OPS["greater_equal"](size, float(_LARGE_DIGAMMA)), far, near)
    angle = _from_nearest(x)
    reflected = OPS["sub"](found, OPS["reciprocal"](x))
    reflected = OPS["sub"](reflected, OPS["div"](math.pi, OPS["tan"](angle)))
    reflected = OPS["select"](OPS["equal"](angle, 0.0), math.nan, reflected)
    found = OPS["select"](OPS["less"](x, 0.0), reflected, found)
    return OPS["select"](OPS["equal"](x, 0.0), OPS["neg"](OPS["reciprocal"](x)), found)


@public(op="log")
def digamma(x: Operand) -> Tensor:
    """The derivative of log Γ(x); NaN at negative whole numbers, ∓∞ at ±0. f64 within 6 units in
    the last place for x > 0; below, of the greatest of its terms and 1."""
    return in_doubles(_digamma, x)


@public(op="log", other_names={"input": "x", "a": "x", "d": "p"})
def multigammaln(x: Operand, p: int) -> Tensor:
    """log (π^(p·(p − 1)/4)·Γ(x)·Γ(x − 1/2)···Γ(x − (p − 1)/2)), of the gamma function of p ≥ 1
    dimensions; NaN for x ≤ (p − 1)/2."""
    order = operator.index(p)
    if order < 1:
        raise ArgumentError(f"p is {order}, expected 1 or more")

    def body(x: Tensor, _: bool) -> Tensor:
        total = lgamma(x)
        for k in range(1, order):
            total = OPS["add"](total, lgamma(OPS["sub"](x, k / 2)))
        total = OPS["add"](total, order * (order - 1) / 4 * math.log(math.pi))
        return OPS["select"](OPS["less_equal"](x, (order - 1) / 2), math.nan, total)

    return in_doubles(body, x)


@public(op="log")
def betaln(x: Operand, y: Operand) -> Tensor:
    """log |Γ(x)·Γ(y) / Γ(x + y)|, the logarithm of the beta function."""
    x, y = promote((as_tensor(x), as_tensor(y)), ("float",))
    return OPS["sub"](OPS["add"](lgamma(x), lgamma(y)), lgamma(OPS["add"](x, y)))

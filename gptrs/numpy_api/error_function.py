"""The error function's complement, inverse and kin: erfc, erfcx, erfinv, ndtr, ndtri, log_ndtr.

For s ≥ 0, erfc s = exp(−s²)·V(s) / (1 + 2s), where V is between 1 and 2/√π; a polynomial in
(s − 3) / (s + 3) gives it for all s. Source: Shepherd and Laframboise, "Chebyshev approximation of
(1 + 2x) exp(x²) erfc x in 0 ≤ x < ∞", 1981. The inverse is a polynomial in w = −log (1 − x²), in √w
where that is larger; of f64 a step of Halley's follows. All is computed in f64: f32 is within 0.6
units in the last place, f64 within the bounds of the docstrings.
"""

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.approximation import in_doubles, mapped, polynomial
from gptrs.numpy_api.function import public

__all__ = ["erfc", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

Operand = Any
"""A Tensor, an array or a Python number."""

# V, with a relative error of 2⁻⁵⁴; and of 2⁻³⁶
_ERFCX = (
    *(1.2530080582697296, -0.1356211061245812, -0.04756229435345109, 0.1296451587027627),
    *(-0.11927366341528031, 0.06830802734391855, -0.023770514919504816, 0.0025293918168181233),
    *(0.001888690371667297, -0.0007798322768798117, -0.00010515990092647466),
    *(0.00012509936726341788, 4.949987955732799e-06, -2.010057701262032e-05),
    *(-7.33141182334831e-07, 3.4723149569310428e-06, 3.60386916290929e-07),
    *(-6.162482113105505e-07, -1.4682599660972323e-07, 1.0109068164486426e-07),
    *(4.694559096292753e-08, -1.2426530712797833e-08, -1.1731252949858499e-08),
    *(3.6009354863232597e-10, 2.061511692209589e-09, 2.460274448010755e-10),
    *(-1.8802074955522467e-10, -4.1550433828338884e-11),
)
_ERFCX_OF_FLOATS = (
    *(1.2530080582677954, -0.13562110611486225, -0.0475622941046549, 0.12964515745696892),
    *(-0.11927366876986259, 0.06830805369513955, -0.023770470011140875, 0.0025291780293455308),
    *(0.001888499606562229, -0.0007789724105693683, -0.00010469801671162524),
    *(0.0001231921184419861, 4.274481052619356e-06, -1.7686944205536348e-05),
    *(-1.17906380443904e-07, 1.7677257035627202e-06),
)

# erf⁻¹(x) / x: of w in [0, 5], of √w in [√5, 6.1], and of 1/√w in [1/28, 1/6] over √w; 2⁻²⁷ to 2⁻³¹
_NEAR = (
    *(1.5014093517481764, 0.6166006918714606, -0.026108281752861017, -0.01957356183368391),
    *(0.008525942391231351, -0.00048789063575624566, -0.0008364907738609052),
    *(0.0002921690115087194, 2.5182562318746536e-05, -4.143433102262246e-05),
    *(4.139544299940102e-06, 2.943653372407573e-06),
)
_FAR = (
    *(4.0094446591140285, 1.9509933686870584, 0.003252451180851294, -0.004918775238368562),
    *(0.003339287716203608, -0.0020582262524783423, 0.0016575924161595455),
    *(-0.0015823440815977382, 0.0011259222027404814, -0.0013895628414740367, 0.00258061385990469),
    *(-0.0015833578710646172, -0.0010928319388847944, 0.0012925403278434891),
    *(3.312283285352115e-05, -0.0002255771863701569),
)
_FARTHEST = (
    *(0.9888591261731686, -0.011125251651165636, -0.0014747481905008448, 0.00045420532540420635),
    *(-7.548407258757785e-05, 1.912509546587351e-05, -6.358428920868879e-06),
    *(1.8658357406959102e-06, -7.097602781159569e-07, 8.00582410376177e-07),
    *(-3.8037254681752357e-07,),
)
_SPLIT = 5.0
_FARTHEST_SPLIT = 6.0


def _scaled_tail(s: Tensor, wide: bool) -> Tensor:
    """exp(s²)·erfc s for s ≥ 0."""
    t = OPS["sub"](1.0, OPS["div"](6.0, OPS["add"](s, 3.0)))
    value = polynomial(t, _ERFCX if wide else _ERFCX_OF_FLOATS)
    return OPS["div"](value, OPS["add"](OPS["mul"](s, 2.0), 1.0))


def _exp_of_square(s: Tensor, factor: float, wide: bool) -> Tensor:
    """exp(factor·s²) for |s| ≤ 40: of f64 by the square in two parts."""
    if not wide:
        return OPS["exp"](OPS["mul"](OPS["mul"](s, s), factor))
    high = s.astype("f32").astype("f64")
    low = OPS["mul"](OPS["mul"](OPS["sub"](s, high), OPS["add"](s, high)), factor)
    near = polynomial(low, (1.0, 1.0, 1 / 2, 1 / 6))
    return OPS["mul"](OPS["exp"](OPS["mul"](OPS["mul"](high, high), factor)), near)


def _tail(s: Tensor, wide: bool) -> Tensor:
    """erfc s for s ≥ 0."""
    s = OPS["minimum"](s, 30.0)  # 0 from there on
    return OPS["mul"](_exp_of_square(s, -1.0, wide), _scaled_tail(s, wide))


def _normal_tail(s: Tensor, wide: bool) -> Tensor:
    """The probability of more than s ≥ 0 standard deviations."""
    s = OPS["minimum"](s, 40.0)
    tail = _scaled_tail(OPS["mul"](s, math.sqrt(0.5)), wide)
    return OPS["mul"](OPS["mul"](_exp_of_square(s, -0.5, wide), tail), 0.5)


@public(op="erf")
def erfc(x: Operand) -> Tensor:
    """1 − erf x, also where that is small; f64 within 4 units in the last place."""

    def body(x: Tensor, wide: bool) -> Tensor:
        tail = _tail(OPS["abs"](x), wide)
        return OPS["select"](OPS["less"](x, 0.0), OPS["sub"](2.0, tail), tail)

    return in_doubles(body, x)


@public(op="erf")
def erfcx(x: Operand) -> Tensor:
    """exp(x²)·erfc x; f64 within 4 units in the last place."""

    def body(x: Tensor, wide: bool) -> Tensor:
        size = OPS["abs"](x)
        tail = _scaled_tail(size, wide)
        whole = OPS["mul"](_exp_of_square(OPS["minimum"](size, 30.0), 1.0, wide), 2.0)
        return OPS["select"](OPS["less"](x, 0.0), OPS["sub"](whole, tail), tail)

    return in_doubles(body, x)


def _inverse(s: Tensor, q: Tensor, wide: bool, *, far: bool = False) -> Tensor:
    """y ≥ 0 with erf y = s and erfc y = q, of s + q = 1; ∞ at q = 0, NaN below. Only with ``far``
    is q as small as numbers are."""
    w = OPS["neg"](OPS["log"](OPS["mul"](q, OPS["add"](s, 1.0))))
    root = OPS["sqrt"](w)
    near = polynomial(mapped(w, 0.0, _SPLIT), _NEAR)
    ratio = polynomial(mapped(root, math.sqrt(_SPLIT), 6.1), _FAR)
    if far:
        v = mapped(OPS["reciprocal"](root), 1 / 28, 1 / _FARTHEST_SPLIT)
        farthest = OPS["mul"](polynomial(v, _FARTHEST), root)
        ratio = OPS["select"](OPS["less"](root, _FARTHEST_SPLIT), ratio, farthest)
    y = OPS["mul"](OPS["select"](OPS["less"](w, _SPLIT), near, ratio), s)
    if wide:
        apart = OPS["sub"](q, _tail(y, wide))
        apart = OPS["select"](OPS["less"](s, 0.5), OPS["sub"](OPS["erf"](y), s), apart)
        slope = OPS["exp"](OPS["neg"](OPS["mul"](y, y)))
        step = OPS["div"](apart, slope)
        if far:  # where q has few bits left, the tail would have as few
            half = _exp_of_square(y, 0.5, wide)
            apart = OPS["sub"](OPS["mul"](OPS["mul"](q, half), half), _scaled_tail(y, wide))
            step = OPS["select"](OPS["less"](q, 1e-290), apart, step)
        step = OPS["mul"](step, math.sqrt(math.pi) / 2)
        y = OPS["sub"](y, OPS["div"](step, OPS["add"](OPS["mul"](y, step), 1.0)))
    return OPS["select"](OPS["equal"](q, 0.0), math.inf, y)


@public(op="erf")
def erfinv(x: Operand) -> Tensor:
    """The number whose erf is x; ±∞ at ±1, NaN beyond. f64 within 4 units in the last place."""

    def body(x: Tensor, wide: bool) -> Tensor:
        size = OPS["abs"](x)
        return OPS["copysign"](_inverse(size, OPS["sub"](1.0, size), wide), x)

    return in_doubles(body, x)


@public(op="erf")
def ndtr(x: Operand) -> Tensor:
    """The probability of a standard normal variable below x, erfc(−x/√2) / 2; f64 within 4 units in
    the last place."""

    def body(x: Tensor, wide: bool) -> Tensor:
        tail = _normal_tail(OPS["abs"](x), wide)
        return OPS["select"](OPS["less"](x, 0.0), tail, OPS["sub"](1.0, tail))

    return in_doubles(body, x)


@public(op="erf")
def ndtri(p: Operand) -> Tensor:
    """The inverse of `ndtr`; −∞ at 0, ∞ at 1, NaN outside. f64 within 6 units in the last place."""

    def body(p: Tensor, wide: bool) -> Tensor:
        lower = OPS["less"](p, 0.5)
        q = OPS["mul"](OPS["select"](lower, p, OPS["sub"](1.0, p)), 2.0)
        y = OPS["mul"](_inverse(OPS["sub"](1.0, q), q, wide, far=True), math.sqrt(2.0))
        return OPS["select"](lower, OPS["neg"](y), y)

    return in_doubles(body, p)


@public(op="log")
def log_ndtr(x: Operand) -> Tensor:
    """log (ndtr x), also where that is 0; f64 within 4 units in the last place."""

    def body(x: Tensor, wide: bool) -> Tensor:
        size = OPS["abs"](x)
        tail = _scaled_tail(OPS["mul"](size, math.sqrt(0.5)), wide)
        square = OPS["mul"](OPS["mul"](size, size), 0.5)
        below = OPS["sub"](OPS["log"](OPS["mul"](tail, 0.5)), square)
        above = OPS["log1p"](OPS["neg"](_normal_tail(size, wide)))
        below = OPS["select"](OPS["equal"](size, math.inf), -math.inf, below)
        return OPS["select"](OPS["less"](x, 0.0), below, above)

    return in_doubles(body, x)

"""The Bessel functions of the first and second kind, J and Y, of order 0 and 1.

For x < 8 polynomials in x², of Y beside 2/π·log(x)·J; from there on an amplitude and a phase:

    J(x) = √(2/πx)·(P cos χ − Q sin χ),   Y(x) = √(2/πx)·(P sin χ + Q cos χ)

with χ = x − π/4 for order 0, x − 3π/4 for order 1, and P and x·Q polynomials in (8/x)². All is
computed in f64: f32 is within 0.6 units in the last place; the error of f64 is below 3e-15, of
results above 1 relatively, and beside a zero not smaller.
"""

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.approximation import even_polynomial, in_doubles, mapped, polynomial
from gptrs.numpy_api.function import public

__all__ = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"]

Operand = Any
"""A Tensor, an array or a Python number."""

_SPLIT = 8.0
# J₀(x), J₁(x)/x, Y₀(x) − 2/π·log(x)·J₀(x) and (Y₁(x) − 2/π·(log(x)·J₁(x) − 1/x))/x of x² in
# [0, 64]; then P and x·Q of (8/x)² in [0, 1].
_J0_NEAR = (
    *(0.04582966485981377, 0.9303012472958572, -0.6484692830871837, -0.8080888076696872),
    *(1.0383794611437211, -0.5074680458471, 0.14598884856759264, -0.028472718610882047),
    *(0.004058078989140991, -0.0004435459224311503, 3.8473197855944365e-05),
    *(-2.717749223632098e-06, 1.5956109104549218e-07, -7.91532308295207e-09),
    *(3.3634475788173604e-10, -1.243301171273326e-11, 4.0037632815796753e-13),
)
_J1_NEAR = (
    *(-0.05814382795599107, 0.08105866038589796, 0.15151665143806636, -0.2595948652859303),
    *(0.15858376432721838, -0.05474581821284722, 0.012456814392263375, -0.0020290394945705996),
    *(0.0002494945813597261, -2.404574865968694e-05, 1.8684526037206013e-06),
    *(-1.196708186787801e-07, 6.431190177265836e-09, -2.943013798001659e-10),
    *(1.1658972367678622e-11, -4.0045728425886457e-13),
)
_Y0_NEAR = (
    *(-0.382250654459425, -0.8284358903604587, 1.6470964788745466, 0.14412632369302475),
    *(-1.0775477338215995, 0.6721770783431679, -0.21895747096171628, 0.046367047681375125),
    *(-0.00702574105727097, 0.000806158605961636, -7.279541882454115e-05),
    *(5.3213188103997145e-06, -3.2185078445935923e-07, 1.6390875014077404e-08),
    *(-7.13046146536789e-10, 2.6926938054524057e-11, -8.840112096073101e-13),
)
_Y1_NEAR = (
    *(0.07075985882118005, -0.24337743079193114, 0.02336757172099348, 0.23507209206669755),
    *(-0.19639839859930203, 0.07854786922242532, -0.01962875683311711, 0.0034224907399188495),
    *(-0.0004438173434420147, 4.467433012646365e-05, -3.601000022590458e-06),
    *(2.3804930420514178e-07, -1.3153147367094951e-08, 6.169688029066965e-10),
    *(-2.499531546171249e-11, 8.760001143977853e-13),
)
_P0 = (
    *(0.9994572757882519, -0.0005363673192129672, 6.137416080109497e-06),
    *(-2.0527448261170675e-07, 1.280376144080092e-08, -1.2121098178951377e-09),
    *(1.5500565496632596e-10, -2.491146535471666e-11, 4.786995821368028e-12),
    *(-1.0157485021065676e-12, 2.4531772967345006e-13, -1.0251790052831013e-13),
    *(3.3394522590708086e-14,),
)
_Q0 = (
    *(-0.12444091103610815, 0.0005466519279475266, -1.1817110661200976e-05),
    *(5.684971881753781e-07, -4.534972837363434e-08, 5.146231602705606e-09),
    *(-7.5763304988972e-10, 1.3623497617833053e-10, -2.8707211071105146e-11),
    *(6.951785915752245e-12, -1.8736407435432932e-12, 4.605060470396766e-13),
    *(-1.3137515498826721e-13, 1.0185094098694345e-13, -4.0574096424029806e-14),
)
_P1 = (
    *(1.0009070262780821, 0.0008988049416705183, -7.9596946984383e-06, 2.453676633366693e-07),
    *(-1.4708512991275258e-08, 1.3602969253877949e-09, -1.713107485294131e-10),
    *(2.72345126828134e-11, -5.191158004646548e-12, 1.0954826479277623e-12),
    *(-2.6335760672461096e-13, 1.0923713653079462e-13, -3.5455617466606254e-14),
)
_Q1 = (
    *(0.3742149922195918, -0.0007697167057643706, 1.4569614809851411e-05),
    *(-6.633568561050814e-07, 5.136105997071193e-08, -5.720890888840857e-09),
    *(8.316077350038262e-10, -1.4816588916791194e-10, 3.100364837230575e-11),
    *(-7.465104477698295e-12, 2.002728774766582e-12, -4.915740629676554e-13),
    *(1.3996264453472162e-13, -1.0759215471978604e-13, 4.275621822194763e-14),
)


def _far(x: Tensor, order: int, *, second: bool) -> Tensor:
    """J, or Y if it is the ``second`` kind, of x ≥ 8.

    sin χ and cos χ are sums of sin x and cos x, since x − π/4 would round.
    """
    inverse = OPS["reciprocal"](x)
    ratio = inverse * _SPLIT
    p_table, q_table = (_P1, _Q1) if order else (_P0, _Q0)
    squared = mapped(ratio * ratio, 0.0, 1.0)
    p, q = polynomial(squared, p_table), polynomial(squared, q_table) * inverse
    sine, cosine = OPS["sin"](x), OPS["cos"](x)
    total, difference = sine + cosine, sine - cosine
    cosine, sine = (difference, -total) if order else (total, difference)  # of χ, times √2
    wave = p * sine + q * cosine if second else p * cosine - q * sine
    return OPS["select"](OPS["is_inf"](x), 0.0, OPS["sqrt"](inverse * (1 / math.pi)) * wave)


def _first_kind(x: Tensor, order: int) -> Tensor:
    size = OPS["abs"](x)
    near = (
        even_polynomial(x, _SPLIT, _J1_NEAR) * size
        if order
        else even_polynomial(x, _SPLIT, _J0_NEAR)
    )
    far = _far(OPS["maximum"](size, _SPLIT), order, second=False)
    found = OPS["select"](OPS["less"](size, _SPLIT), near, far)
    return found * OPS["copysign"](1.0, x) if order else found


def _second_kind(x: Tensor, order: int) -> Tensor:
    log = OPS["log"](x) * (2 / math.pi)
    if order:
        near = (
            log * (even_polynomial(x, _SPLIT, _J1_NEAR) * x)
            - (2 / math.pi) / x
            + x * even_polynomial(x, _SPLIT, _Y1_NEAR)
        )
    else:
        near = log * even_polynomial(x, _SPLIT, _J0_NEAR) + even_polynomial(x, _SPLIT, _Y0_NEAR)
    far = _far(OPS["maximum"](x, _SPLIT), order, second=True)
    found = OPS["select"](OPS["less"](x, _SPLIT), near, far)
    return OPS["select"](OPS["equal"](x, 0.0), -math.inf, found)


@public(op="sin")
def bessel_j0(x: Operand) -> Tensor:
    """Σ (−1)ᵏ·(x/2)²ᵏ / k!²."""
    return in_doubles(lambda x, _: _first_kind(x, 0), x)


@public(op="sin")
def bessel_j1(x: Operand) -> Tensor:
    """Σ (−1)ᵏ·(x/2)²ᵏ⁺¹ / (k!·(k + 1)!)."""
    return in_doubles(lambda x, _: _first_kind(x, 1), x)


@public(op="sin")
def bessel_y0(x: Operand) -> Tensor:
    """The solution of Bessel's equation beside `bessel_j0`: −∞ at 0, NaN of negative numbers."""
    return in_doubles(lambda x, _: _second_kind(x, 0), x)


@public(op="sin")
def bessel_y1(x: Operand) -> Tensor:
    """The solution of Bessel's equation beside `bessel_j1`: −∞ at 0, NaN of negative numbers."""
    return in_doubles(lambda x, _: _second_kind(x, 1), x)

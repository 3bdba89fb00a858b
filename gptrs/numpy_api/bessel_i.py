"""The modified Bessel functions of the first kind, of order 0 and 1, and e^−|x| times
them. ``ptir.i1`` is a dtype: the function has torch's longer name.

For |x| < 8 a polynomial in |x|, from there on one in 1/|x| over √|x|. All is computed in f64: f32
is within 0.6 units in the last place, f64 within 8.
"""

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.approximation import in_doubles, mapped, polynomial
from gptrs.numpy_api.function import public

__all__ = ["i0", "i0e", "i1e", "modified_bessel_i1"]

Operand = Any
"""A Tensor, an array or a Python number."""

_SPLIT = 8.0
# e⁻ˣ·I₀(x) of x in [0, 8], and √x times it of 1/x in [0, 1/8]; of I₁, of I₁(x) / x in [0, 8]
_I0_NEAR = (
    *(0.2070019212239867, -0.11300432688620549, 0.09451562853995103, -0.08904344136075991),
    *(0.08734341617552291, -0.08496338091615124, 0.07927522590716898, -0.06954119561742342),
    *(0.056777032019843215, -0.04298594945226738, 0.03017791202356886, -0.019682654708082413),
    *(0.011960077903963348, -0.006792399792271578, 0.0036171264596770616, -0.0018118870527295522),
    *(0.0008563152483951447, -0.0003829015089457559, 0.0001624054672701359),
    *(-6.550956130635514e-05, 2.5202271984440893e-05, -9.25059710625537e-06),
    *(3.2293850630678377e-06, -1.0891964284507317e-06, 3.675592893288293e-07),
    *(-1.1339523685907105e-07, 2.6273368345256394e-08, -7.860369707508212e-09),
    *(4.469372581856615e-09, -1.1662904878442954e-09),
)
_I0_FAR = (
    *(0.4021765094450081, 0.0033605519836678913, 0.00013621607438951463, 1.114303378845176e-05),
    *(1.4838476780922646e-06, 2.9735992084667734e-07, 8.872014585661555e-08),
    *(3.932512321137824e-08, 2.156780676115673e-08, 7.559364098665437e-09),
    *(-6.856484545962442e-09, -1.3427511481900905e-08, -5.0175940345046716e-09),
    *(7.600254486433509e-09, 6.522264862032271e-09, -3.5862834111582305e-09),
    *(-4.5305710768621196e-09, 1.6084886155781772e-09, 2.163681278413876e-09),
    *(-6.327909921997027e-10, -6.494591114401118e-10, 1.7698085539456536e-10),
    *(9.114760157514253e-11, -2.4421972688131832e-11),
)
_I1_NEAR = (
    *(0.044687709875608835, -0.06112433802966629, 0.0680575999095116, -0.0684826062058255),
    *(0.0637674037134072, -0.05528003922705058, 0.044674572621255064, -0.03367135551994034),
    *(0.023686016957724227, -0.01557130925657511, 0.00958396215077406, -0.005534567760544582),
    *(0.003005762419557192, -0.0015388749636515487, 0.000744512345281566, -0.0003411747437353928),
    *(0.00014842124144631648, -6.142651349494123e-05, 2.4233756432468166e-05),
    *(-9.131846315273642e-06, 3.2938951625746042e-06, -1.1380759138279984e-06),
    *(3.759400376008922e-07, -1.2000364861910367e-07, 3.8028049651067336e-08),
    *(-1.1191257727176943e-08, 2.6037822441041467e-09, -7.379291130374042e-10),
    *(3.727630409237771e-10, -9.365751909742237e-11),
)
_I1_FAR = (
    *(0.38939845902587233, -0.009749577193235765, -0.00021923576383137776),
    *(-1.5038547198221758e-05, -1.8349102493990178e-06, -3.4838563464253135e-07),
    *(-1.0001075046243961e-07, -4.3128498031006734e-08, -2.3394122958362557e-08),
    *(-8.432168972932417e-09, 6.84757829926934e-09, 1.4051746928735543e-08),
    *(5.5720183980930355e-09, -7.687251308765992e-09, -6.9444186339873875e-09),
    *(3.501765193290176e-09, 4.763780078020254e-09, -1.5218214060680734e-09),
    *(-2.2624401109204446e-09, 5.870664618471487e-10, 6.7727478454462e-10),
    *(-1.6283264322621244e-10, -9.491890392992048e-11, 2.2421768596847442e-11),
)


def _scaled(x: Tensor, near: tuple[float, ...], far: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """The polynomials of |x| and of 1/|x|."""
    low = polynomial(mapped(OPS["minimum"](x, _SPLIT), 0.0, _SPLIT), near)
    inverse = OPS["reciprocal"](OPS["maximum"](x, _SPLIT))
    return low, OPS["mul"](polynomial(mapped(inverse, 0.0, 1 / _SPLIT), far), OPS["sqrt"](inverse))


def _order_0(x: Tensor) -> Tensor:
    size = OPS["abs"](x)
    low, high = _scaled(size, _I0_NEAR, _I0_FAR)
    return OPS["select"](OPS["less"](size, _SPLIT), low, high)


def _order_1(x: Tensor) -> Tensor:
    size = OPS["abs"](x)
    low, high = _scaled(size, _I1_NEAR, _I1_FAR)
    found = OPS["select"](OPS["less"](size, _SPLIT), OPS["mul"](low, size), high)
    return OPS["copysign"](found, x)


def _grown(scaled: Tensor, x: Tensor) -> Tensor:
    """e^|x| times ``scaled``, in two factors: their product may be in range where e^|x| is not."""
    size = OPS["abs"](x)
    root = OPS["exp"](OPS["mul"](size, 0.5))
    found = OPS["mul"](OPS["mul"](scaled, root), root)
    return OPS["select"](OPS["greater"](size, 720.0), OPS["copysign"](math.inf, scaled), found)


@public(op="exp")
def i0(x: Operand) -> Tensor:
    """Σ (x/2)²ᵏ / k!²."""
    return in_doubles(lambda x, _: _grown(_order_0(x), x), x)


@public(op="exp")
def i0e(x: Operand) -> Tensor:
    """exp(−|x|)·i0(x)."""
    return in_doubles(lambda x, _: _order_0(x), x)


@public(op="exp")
def modified_bessel_i1(x: Operand) -> Tensor:
    """Σ (x/2)²ᵏ⁺¹ / (k!·(k + 1)!)."""
    return in_doubles(lambda x, _: _grown(_order_1(x), x), x)


@public(op="exp")
def i1e(x: Operand) -> Tensor:
    """exp(−|x|)·modified_bessel_i1(x)."""
    return in_doubles(lambda x, _: _order_1(x), x)

"""The Airy function Ai, the solution of y'' = x·y that vanishes at ∞.

For −4 ≤ x ≤ 2 a polynomial in x. Beyond, with ζ = 2/3·|x|^1.5 (source: NIST Digital Library of
Mathematical Functions, 9.7):

    Ai(x) = e^−ζ·F / (2√π·x^¼),   Ai(−x) = (P sin(ζ + π/4) − Q cos(ζ + π/4)) / (√π·x^¼)

with F a polynomial in 1/ζ, P and ζ·Q in 1/ζ². All is computed in f64: f32 is within 0.6 units in
the last place for |x| < 1000; the error of f64 is that of rounding ζ, some 2e-16·ζ.
"""

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.approximation import in_doubles, mapped, polynomial
from gptrs.numpy_api.function import public

__all__ = ["airy_ai"]

Operand = Any
"""A Tensor, an array or a Python number."""

_LOW, _HIGH = -4.0, 2.0
_ZETA_LOW, _ZETA_HIGH = (abs(x) ** 1.5 * (2 / 3) for x in (_LOW, _HIGH))
# Ai(x) of x in [-4, 2]; F of 1/ζ; P and ζ·Q of (ζ(−4)/ζ)².
_NEAR = (
    *(0.5355608832923521, -0.030481701349935518, -2.4100239748155845, 2.45574652684047),
    *(1.738934153074326, -4.358618303078402, 1.6884916282343785, 2.051875877617018),
    *(-2.3728414078121514, 0.37669987612774675, 0.8528469041153786, -0.6132456100953199),
    *(0.01890359448929538, 0.18298768302943746, -0.09191078854232448, -0.005411907421033433),
    *(0.02403276302266418, -0.008944316566560384, -0.001184352339191269, 0.0021324799755411887),
    *(-0.000607494333250199, -0.00012151208173716436, 0.00013649715102700242),
    *(-3.0593233722064465e-05, -8.205752997713773e-06, 6.855006558696347e-06),
    *(-1.1317719509106102e-06, -5.327418162824017e-07, 2.46564165796707e-07),
    *(9.65803696882359e-09, -1.583914458741765e-08),
)
_FAR = (
    *(0.983679282828043, -0.014613458724023516, 0.0014132014717029575, -0.00022785221366479908),
    *(4.846334053382966e-05, -1.235439136947749e-05, 3.5878329689095155e-06),
    *(-1.1510179227385573e-06, 3.9970880001578955e-07, -1.4817525815514658e-07),
    *(5.8020341371436036e-08, -2.3598427188400136e-08, 9.984700470064157e-09),
    *(-4.916246190444235e-09, 2.417112863971864e-09, -2.816986226354107e-10),
    *(-7.598201853112061e-11, -9.131530574156334e-10, 6.200741512453467e-10),
    *(3.4705645407553154e-10, -2.499121453926284e-10, -1.3270601964142346e-10),
    *(8.420330221634052e-11,),
)
_P = (
    *(0.999363720981151, -0.0006209941418019416, 1.4258707706651875e-05),
    *(-9.054529720196242e-07, 1.0042136705887986e-07, -1.5925134157474398e-08),
    *(3.2419573130647253e-09, -7.938135001056149e-10, 2.225650861541687e-10),
    *(-6.96436403087975e-11, 2.705853629796065e-11, -1.1002442862433134e-11),
    *(9.305121270486023e-13, 2.2103630245487495e-13, 2.0179198677608532e-12),
    *(-1.0992152516140823e-12,),
)
_Q = (
    *(0.0688085741766544, -0.0006071316848869089, 2.6011127080597532e-05),
    *(-2.3247007302733242e-06, 3.2297389410734727e-07, -6.030167966064036e-08),
    *(1.3918242143430164e-08, -3.768710626282985e-09, 1.1551390998974295e-09),
    *(-3.9105837821079025e-10, 1.469834576757439e-10, -5.953716438186264e-11),
    *(1.8107393466990428e-11, -5.502987397594759e-12, 1.2041842730325665e-11),
    *(-8.065123708442928e-12, -4.055195126799009e-12, 3.246731273922276e-12),
    *(2.0674557768867684e-12, -1.3647556331014506e-12),
)


def _decaying(x: Tensor) -> Tensor:
    """Ai(x) of x ≥ 2."""
    root = OPS["sqrt"](x)
    zeta = x * root * (2 / 3)
    ratio = mapped(OPS["reciprocal"](zeta), 0.0, 1 / _ZETA_HIGH)
    scale = OPS["exp"](-zeta) * (0.5 / math.sqrt(math.pi))
    return scale * polynomial(ratio, _FAR) / OPS["sqrt"](root)


def _oscillating(x: Tensor) -> Tensor:
    """Ai(−x) of x ≥ 4."""
    root = OPS["sqrt"](x)
    zeta = x * root * (2 / 3)
    inverse = OPS["reciprocal"](zeta)
    ratio = inverse * _ZETA_LOW
    squared = mapped(ratio * ratio, 0.0, 1.0)
    p, q = polynomial(squared, _P), polynomial(squared, _Q) * inverse
    sine, cosine = OPS["sin"](zeta), OPS["cos"](zeta)
    wave = p * (sine + cosine) - q * (cosine - sine)  # times √2
    found = wave * (math.sqrt(0.5 / math.pi)) / OPS["sqrt"](root)
    return OPS["select"](OPS["is_inf"](x), 0.0, found)


def _airy(x: Tensor) -> Tensor:
    held = OPS["minimum"](OPS["maximum"](x, _LOW), _HIGH)
    near = polynomial(mapped(held, _LOW, _HIGH), _NEAR)
    high = _decaying(OPS["maximum"](x, _HIGH))
    low = _oscillating(OPS["maximum"](-x, -_LOW))
    above = OPS["select"](OPS["greater"](x, _HIGH), high, near)
    return OPS["select"](OPS["less"](x, _LOW), low, above)


@public(op="exp")
def airy_ai(x: Operand) -> Tensor:
    """∫ cos(t³/3 + x·t) / π of t ≥ 0."""
    return in_doubles(lambda x, _: _airy(x), x)

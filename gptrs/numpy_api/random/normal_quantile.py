"""The normal distribution function and its inverse in f64.

Source of the inverse: Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution"
(1988), PPND16: rational functions of degree 7, right to about 16 digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.arithmetic import where

# Numerators and denominators, the highest power first.
_MIDDLE = (
    (
        *(2509.0809287301226727, 33430.575583588128105, 67265.770927008700853),
        *(45921.953931549871457, 13731.693765509461125, 1971.5909503065514427),
        *(133.14166789178437745, 3.387132872796366608),
    ),
    (
        *(5226.495278852854561, 28729.085735721942674, 39307.89580009271061),
        *(21213.794301586595867, 5394.1960214247511077, 687.1870074920579083),
        *(42.313330701600911252, 1.0),
    ),
)
_NEAR = (
    (
        *(7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177),
        *(1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055),
        *(4.6303378461565452959, 1.42343711074968357734),
    ),
    (
        *(1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966),
        *(0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494),
        *(2.05319162663775882187, 1.0),
    ),
)
_FAR = (
    (
        *(2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386),
        *(0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358),
        *(5.4637849111641143699, 6.6579046435011037772),
    ),
    (
        *(2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5),
        *(7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531),
        *(0.59983220655588793769, 1.0),
    ),
)
_TERMS = 24
"""Of the continued fraction of the tail: enough for 15 digits at −5."""


def _polynomial(coefficients: Sequence[float], x: Tensor) -> Tensor:
    value = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        value = value * x + coefficient
    return value


def _quotient(parts: tuple[Sequence[float], Sequence[float]], x: Tensor) -> Tensor:
    return _polynomial(parts[0], x) / _polynomial(parts[1], x)


def normal_quantile(p: Tensor) -> Tensor:
    """Φ⁻¹ (p): −∞ at 0."""
    q = p - 0.5
    r = OPS["sqrt"](-OPS["log"](where(q < 0, p, 1 - p)))
    tail = where(r <= 5, _quotient(_NEAR, r - 1.6), _quotient(_FAR, r - 5))
    middle = q * _quotient(_MIDDLE, 0.180625 - q * q)
    return where(OPS["abs"](q) <= 0.425, middle, OPS["copysign"](tail, q))


def lower_tail(x: Tensor) -> Tensor:
    """Φ (x), for x < 0 precise in relation to its size: below −5 φ(x) over Laplace's continued
    fraction |x| + 1 / (|x| + 2 / (|x| + …))."""
    size = OPS["maximum"](-x, 5.0)
    fraction = size
    for term in range(_TERMS, 0, -1):
        fraction = size + term / fraction
    far = OPS["exp"](-0.5 * size * size) / (fraction * math.sqrt(2 * math.pi))
    return where(x < -5, far, 0.5 + 0.5 * OPS["erf"](x / math.sqrt(2)))

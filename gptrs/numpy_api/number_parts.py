"""Mantissas, exponents, fractions and remainders; questions about infinities and parts."""

from __future__ import annotations

import math
from typing import Any

from gptrs.errors import DTypeError
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor, public

__all__ = [
    "fmod",
    "frexp",
    "iscomplex",
    "isneginf",
    "isposinf",
    "isreal",
    "ldexp",
    "modf",
    "spacing",
]

Operand = Any
"""A Tensor, an array or a Python number."""


def _float(x: Operand) -> Tensor:
    """An operand as floats: integers become f32."""
    (x,) = promote((as_tensor(x),), ("float",))
    return x


def _wide(x: Tensor) -> Tensor:
    """Floats in a dtype whose range has room for the numbers between."""
    return x.astype("f32") if x.dtype.bits < 32 else x


def _scaled(x: Tensor, n: Tensor) -> Tensor:
    """x · 2ⁿ, rounded once, for whole numbers n of the dtype of ``x``.

    The last of three factors alone may leave the range of normal numbers.
    """
    most = 1022 if x.dtype.bits == 64 else 126
    last = OPS["clamp"](n, -most, most)
    rest = OPS["sub"](n, last)
    before = OPS["clamp"](rest, -most, most)
    first = OPS["clamp"](OPS["sub"](rest, before), -most, most)
    for factor in (first, before, last):
        x = OPS["mul"](x, OPS["exp2"](factor))
    return x


@public(op="log2")
def frexp(x: Operand) -> tuple[Tensor, Tensor]:
    """The mantissa m, ½ ≤ |m| < 1, and the exponent e (si32) of x = m·2ᵉ. Of 0, infinities and NaN
    x itself and 0."""
    given = _float(x)
    x = _wide(given)
    number = OPS["logical_and"](OPS["is_finite"](x), OPS["not_equal"](x, 0.0))
    size = OPS["select"](number, OPS["abs"](x), 1.0)
    exponent = OPS["add"](OPS["floor"](OPS["log2"](size)), 1.0)
    mantissa = _scaled(size, OPS["neg"](exponent))
    # Beside a power of two, the logarithm may be rounded to a whole number.
    above, below = OPS["greater_equal"](mantissa, 1.0), OPS["less"](mantissa, 0.5)
    factor = OPS["select"](above, 0.5, OPS["select"](below, 2.0, FUNCTIONS["ones_like"](mantissa)))
    step = OPS["sub"](OPS["cast"](above, dtype="si32"), OPS["cast"](below, dtype="si32"))
    mantissa = OPS["copysign"](OPS["mul"](mantissa, factor), x)
    exponent = OPS["add"](OPS["cast"](exponent, dtype="si32"), step)
    result = OPS["select"](number, mantissa, x)
    return result.astype(given.dtype), OPS["select"](number, exponent, 0)


@public(op="mul")
def ldexp(x: Operand, n: Operand) -> Tensor:
    """x · 2ⁿ for integers n, rounded once."""
    given = _float(x)
    x = _wide(given)
    n = as_tensor(n)
    if not n.dtype.is_integer:
        raise DTypeError(f"n has dtype {n.dtype}, expected integers", fix="ptir.exp2 takes floats")
    n = OPS["clamp"](n.astype("si64"), -5000, 5000)  # beyond, the result is 0 or infinite
    return _scaled(x, n.astype(x.dtype)).astype(given.dtype)


@public(op="trunc")
def modf(x: Operand) -> tuple[Tensor, Tensor]:
    """What is after the point and the integer before it, both with the sign of x."""
    x = _float(x)
    whole = OPS["trunc"](x)
    rest = OPS["select"](OPS["is_inf"](x), 0.0, OPS["sub"](x, whole))
    return OPS["copysign"](rest, x), whole


@public(op="remainder")
def fmod(x: Operand, y: Operand) -> Tensor:
    """x − y·trunc (x / y): it has the sign of x, as in C. Integers by zero are an error."""
    x, y = promote((as_tensor(x), as_tensor(y)))
    if x.dtype.is_float:
        return OPS["copysign"](OPS["remainder"](OPS["abs"](x), OPS["abs"](y)), x)
    rest = OPS["remainder"](x, y)
    if x.dtype.kind != "int":
        return rest
    apart = OPS["not_equal"](OPS["less"](x, 0), OPS["less"](y, 0))
    apart = OPS["logical_and"](apart, OPS["not_equal"](rest, 0))
    return OPS["select"](apart, OPS["sub"](rest, y), rest)


@public(op="nextafter")
def spacing(x: Operand) -> Tensor:
    """The distance of x to the next number away from 0, with the sign of x."""
    x = _float(x)
    size = OPS["abs"](x)
    gap = OPS["sub"](OPS["nextafter"](size, math.inf), size)
    return OPS["select"](OPS["less"](x, 0.0), OPS["neg"](gap), gap)


@public(op="is_inf")
def isposinf(x: Operand) -> Tensor:
    """Whether x is +∞."""
    return OPS["equal"](_float(x), math.inf)


@public(op="is_inf")
def isneginf(x: Operand) -> Tensor:
    """Whether x is −∞."""
    return OPS["equal"](_float(x), -math.inf)


@public(op="equal")
def isreal(x: Operand) -> Tensor:
    """Whether the imaginary part is 0."""
    x = as_tensor(x)
    if x.dtype.is_complex:
        return OPS["equal"](OPS["imag"](x), 0.0)
    return FUNCTIONS["ones_like"](x, dtype="i1")


@public(op="not_equal")
def iscomplex(x: Operand) -> Tensor:
    """Whether the imaginary part is not 0."""
    return OPS["logical_not"](isreal(x))

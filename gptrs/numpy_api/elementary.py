"""Elementary functions that several ops express, by the dtype: rounding of integers, the size and
the sign of complex numbers, sums of logarithms."""

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import NUMBERS, promote
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor, public

__all__ = [
    "abs",
    "ceil",
    "float_power",
    "floor",
    "logaddexp",
    "logaddexp2",
    "round",
    "sign",
    "square",
    "trunc",
]

Operand = Any
"""A Tensor, an array or a Python number."""


@public
def abs(x: Operand) -> Tensor:
    """|x|, of complex numbers a float; of bools ``x`` itself."""
    x = as_tensor(x)
    if x.dtype.is_complex:
        return OPS["hypot"](OPS["real"](x), OPS["imag"](x))
    return x if x.dtype.is_bool else OPS["abs"](x)


@public
def sign(x: Operand) -> Tensor:
    """−1, 0 or 1; of complex numbers x / |x|, and 0 at 0. NaN stays NaN."""
    x = as_tensor(x)
    if not x.dtype.is_complex:
        return OPS["sign"](x)
    size = abs(x)
    is_zero = OPS["equal"](size, 0.0)
    parts = (OPS["div"](OPS[part](x), size) for part in ("real", "imag"))
    return OPS["complex"](*(OPS["select"](is_zero, 0.0, part) for part in parts))


def _whole(name: str, x: Operand) -> Tensor:
    """A rounding to integers; what is one is returned as it is."""
    x = as_tensor(x)
    return x if x.dtype.is_integer or x.dtype.is_bool else OPS[name](x)


@public
def floor(x: Operand) -> Tensor:
    """The greatest integer ≤ x, in the dtype of ``x``."""
    return _whole("floor", x)


@public
def ceil(x: Operand) -> Tensor:
    """The least integer ≥ x, in the dtype of ``x``."""
    return _whole("ceil", x)


@public
def trunc(x: Operand) -> Tensor:
    """The nearest integer toward 0, in the dtype of ``x``."""
    return _whole("trunc", x)


@public
def round(x: Operand, decimals: int = 0) -> Tensor:
    """The nearest number of so many decimals, halves to the even one; of complex numbers each
    part."""
    x = as_tensor(x)
    if x.dtype.is_complex:
        return OPS["complex"](round(OPS["real"](x), decimals), round(OPS["imag"](x), decimals))
    if not decimals:
        return _whole("round", x)
    if decimals < 0:
        scale = 10**-decimals
        return FUNCTIONS["multiply"](_whole("round", FUNCTIONS["divide"](x, scale)), scale)
    scale = 10**decimals
    return FUNCTIONS["divide"](_whole("round", FUNCTIONS["multiply"](x, scale)), scale)


@public(op="mul")
def square(x: Operand) -> Tensor:
    """x · x."""
    x = as_tensor(x)
    return FUNCTIONS["multiply"](x, x)


@public(op="log")
def logaddexp(x: Operand, y: Operand) -> Tensor:
    """log (eˣ + eʸ), without an exponential beyond the range."""
    x, y, less, more = _largest(x, y)
    apart = OPS["add"](more, OPS["log1p"](OPS["exp"](less)))
    # The difference of equal infinities is NaN.
    return OPS["select"](OPS["equal"](x, y), OPS["add"](x, math.log(2.0)), apart)


@public(op="log2")
def logaddexp2(x: Operand, y: Operand) -> Tensor:
    """log₂ (2ˣ + 2ʸ), without a power beyond the range."""
    x, y, less, more = _largest(x, y)
    rest = OPS["mul"](OPS["log1p"](OPS["exp2"](less)), 1 / math.log(2.0))
    return OPS["select"](OPS["equal"](x, y), OPS["add"](x, 1.0), OPS["add"](more, rest))


def _largest(x: Operand, y: Operand) -> tuple[Any, ...]:
    """Two operands in one dtype, minus their distance, and the greater."""
    x, y = (operand if isinstance(operand, NUMBERS) else as_tensor(operand) for operand in (x, y))
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x = as_tensor(x)
    x, y = promote((x, y), ("float",))
    less = OPS["neg"](OPS["abs"](OPS["sub"](x, y)))
    return x, y, less, OPS["maximum"](x, y)


@public(op="pow")
def float_power(x: Operand, y: Operand) -> Tensor:
    """x to the power y, floats or complex numbers also of integers."""
    x, y = (operand if isinstance(operand, NUMBERS) else as_tensor(operand) for operand in (x, y))
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x = as_tensor(x)
    return OPS["pow"](*promote((x, y), ("float", "complex")))

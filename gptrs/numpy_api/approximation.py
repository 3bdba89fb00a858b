"""Evaluation of functions in f64 by polynomials.

The polynomials interpolate at Chebyshev points, with 40 digits; an interval is mapped to [−1, 1],
and coefficients begin with that of the power 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor


def in_doubles(body: Callable[[Tensor, bool], Tensor], x: Any) -> Tensor:
    """``body`` of x as f64, rounded once to the dtype of x; integers become f32. It is told whether
    the result is f64."""
    (given,) = promote((as_tensor(x),), ("float",))
    return body(given.astype("f64"), given.dtype.bits == 64).astype(given.dtype)


def in_doubles_together(body: Callable[..., Tensor], *operands: Any) -> Tensor:
    """``body`` of the operands as f64 of one shape, rounded once to the dtype they promote to."""
    given = promote(tuple(map(as_tensor, operands)), ("float",))
    wide = FUNCTIONS["broadcast_arrays"](*(x.astype("f64") for x in given))
    return body(*wide).astype(given[0].dtype)


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Σ cₖ·xᵏ, by Horner's rule."""
    *others, last = coefficients
    result = OPS["add"](OPS["mul"](x, last), others.pop())
    for coefficient in reversed(others):
        result = OPS["add"](OPS["mul"](result, x), coefficient)
    return result


def mapped(x: Tensor, low: float, high: float) -> Tensor:
    """x ∈ [low, high] as a number in [−1, 1]."""
    scale = 2 / (high - low)
    return OPS["add"](OPS["mul"](x, scale), -1 - low * scale)


def even_polynomial(x: Tensor, most: float, coefficients: Sequence[float]) -> Tensor:
    """A polynomial in x² ∈ [0, most²]; of greater x what it is at ``most``."""
    square = OPS["minimum"](OPS["mul"](x, x), most**2)
    return polynomial(mapped(square, 0.0, most**2), coefficients)

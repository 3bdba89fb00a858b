"""Evaluation of functions in f64 by polynomials.

The polynomials interpolate at Chebyshev points, with 40 digits; an interval is mapped to [−1, 1],
and coefficients begin with that of the power 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor


def in_doubles(body: Callable[[Tensor, bool], Tensor], x: Any) -> Tensor:
    """``body`` of x as f64, rounded once to the dtype of x; integers become f32. It is told whether
    the result is f64."""
    (given,) = promote((as_tensor(x),), ("float",))
    return body(given.astype("f64"), given.dtype.bits == 64).astype(given.dtype)


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

"""Samples of the elements of an array: choice, permutation."""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import DimLike, Shape, surely_greater
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import dim_text, f64, normal_axis, shape_text, ui64
from gptrs.numpy_api.creation import Extents, arange, shape_of
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.random.continuous import gumbel
from gptrs.numpy_api.random.keys import bits
from gptrs.numpy_api.random.operands import as_key, random_function, real, uniform64
from gptrs.numpy_api.random.uniforms import randint
from gptrs.numpy_api.searching import argsort, searchsorted
from gptrs.numpy_api.taking import take, take_along_axis

__all__ = ["choice", "permutation"]


@random_function
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Tensor:
    """The slices of ``x`` along ``axis``, or 0 to ``x`` − 1, in random order.

    If ``independent``, each row along ``axis`` has an order of its own. The order is that of random
    integers of 64 bits.
    """
    key, x = as_key(key), _elements(x)
    if not x.ndim:
        raise ShapeError(f"x has type {x.type}, expected an array or a number of positions")
    at = normal_axis(axis, x.ndim)
    if independent:
        order = argsort(bits(key, x.shape, ui64), axis=at)
        return take_along_axis(x, order, axis=at)
    return take(x, argsort(bits(key, x.shape[at], ui64)), axis=at)


def _elements(x: Any) -> Tensor:
    """An array, or the positions below a number."""
    return arange(x) if isinstance(x, int) else as_tensor(x)


@random_function
def choice(
    key: Any,
    a: Any,
    shape: Extents = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
) -> Tensor:
    """Slices of ``a`` along ``axis``, or integers below ``a``: as many as ``shape`` has, which
    takes the place of the axis.

    With probabilities ``p``, in any unit, or all alike; without ``replace`` each at most once.
    """
    key, a, wanted = as_key(key), _elements(a), shape_of(shape)
    if not a.ndim:
        raise ShapeError(f"a has type {a.type}, expected an array or a number of positions")
    at = normal_axis(axis, a.ndim)
    n = a.shape[at]
    weights = None if p is None else real("p", p)
    if weights is not None and (weights.ndim != 1 or weights.shape != (n,)):
        raise ShapeError(f"p has shape {shape_text(weights.shape)}, expected [{dim_text(n)}]")
    if replace:
        places = _with_replacement(key, n, weights, wanted)
    else:
        places = _without_replacement(key, n, weights, wanted)
    return take(a, places, axis=at)


def _with_replacement(key: Tensor, n: DimLike, p: Tensor | None, shape: Shape) -> Tensor:
    if p is None:
        return randint(key, shape, 0, n if isinstance(n, int) else as_tensor(n))
    sums = OPS["cumsum"](p, axis=0)
    last = sums[-1]
    # 1 - u is in (0, 1]: an element of probability 0 has no number of its own.
    return searchsorted(sums, last * (1 - uniform64(key, shape)))


def _without_replacement(key: Tensor, n: DimLike, p: Tensor | None, shape: Shape) -> Tensor:
    count: Any = 1
    for extent in shape:
        count = count * extent
    if surely_greater(count, n):
        raise ArgumentError(
            f"{dim_text(count)} of {dim_text(n)} elements, expected at most all of them",
            fix="replace=True",
        )
    if p is None:
        order = argsort(bits(key, (n,), ui64))
    else:  # the greatest of log p + gumbel are a sample without replacement
        order = argsort(OPS["log"](p) + gumbel(key, (n,), f64), descending=True)
    return order[:count].reshape(shape)

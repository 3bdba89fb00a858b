"""Sorting, elements by rank (medians among them) and searching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs.ir.dims import DimLike
from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.reductions import axes_of
from gptrs.torch.aten.table import UnsupportedError, aten, ptir


@aten("sort", "sort.stable")
def sort(
    x: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> tuple[Tensor, Tensor]:
    if x.ndim == 0:
        return x, ptir.zeros((), dtype=ptir.si64)
    return ptir.ops.sort(x, axis=dim, descending=descending)


@aten("topk")
def topk(
    x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    if x.ndim == 0:  # the first 0 or 1 of one element
        return x, ptir.zeros((), dtype=ptir.si64)
    return ptir.top_k(x, k=k, axis=dim, largest=largest)


@aten("kthvalue")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The ``k``-th smallest element along ``dim``, counted from 1, and its index; NaN is last."""
    return _of_rank(x, k - 1, dim, keepdim)


def _of_rank(x: Tensor, rank: Tensor | DimLike, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The element that is at ``rank`` when ``dim`` is sorted, and its index in ``x``."""
    if x.ndim == 0:
        return x, ptir.zeros((), dtype=ptir.si64)
    shape = (*x.shape[: dim % x.ndim], 1, *x.shape[dim % x.ndim + 1 :])
    at = ptir.broadcast_to(ptir.cast(rank, dtype=ptir.si64), shape=shape)
    found = (ptir.take_along_axis(y, at, axis=dim) for y in ptir.ops.sort(x, axis=dim))
    values, places = (y if keepdim else ptir.squeeze(y, axis=dim) for y in found)
    return values, places


@aten("mode")
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if x.ndim == 0:
        return x, ptir.zeros((), dtype=ptir.si64)
    values, places = ptir.mode(x, dim, keepdim)
    return values, places


def _median(*, skips_nan: bool) -> Callable[..., tuple[Tensor, Tensor]]:
    """The lower of two medians along an axis, and its index. NaN wins unless it is skipped."""

    def call(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        extent = x.shape[dim] if x.ndim else 1
        if extent == 0:
            raise UnsupportedError("the median of no elements")
        nans = ptir.sum(
            ptir.cast(ptir.not_equal(x, x), dtype=ptir.si64), axis=axes_of(x, dim), keepdims=True
        )
        numbers = extent - nans
        # Sorted, NaNs follow the numbers.
        middle = ptir.maximum(numbers - 1, 0) // 2
        if not skips_nan:
            middle = ptir.where(nans > 0, numbers, middle)
        return _of_rank(x, middle, dim, keepdim)

    return call


def _of_all_alone(function: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., Tensor]:
    """The element that ``function(x, axis)`` finds among all."""

    def call(x: Tensor) -> Tensor:
        return function(ptir.reshape(x, shape=(x.size,)), 0)[0]

    return call


for _name, _function in {
    "median": _median(skips_nan=False),
    "nanmedian": _median(skips_nan=True),
}.items():
    aten(f"{_name}.dim")(_function)
    aten(_name)(_of_all_alone(_function))


@aten("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    rows: Tensor,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    if sorter is not None:
        rows = ptir.take_along_axis(rows, sorter, axis=-1)
    if not isinstance(values, Tensor):
        values = ptir.full((), values, dtype=rows.dtype)
    return ptir.searchsorted(rows, values, side="right" if right or side == "right" else "left")


@aten("bucketize.Tensor")
def bucketize(
    x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    return ptir.bucketize(x, boundaries, right=right)

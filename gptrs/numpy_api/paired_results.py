"""Several statistics at once, in torch's words: topk, kthvalue, mode, aminmax, std_mean."""

from __future__ import annotations

from typing import Any, NamedTuple

from gptrs.errors import ArgumentError
from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.manipulation import squeeze
from gptrs.numpy_api.searching import searchsorted, sort
from gptrs.numpy_api.statistics import Axes, max, mean, min, std, var

__all__ = ["aminmax", "bucketize", "kthvalue", "mode", "msort", "std_mean", "topk", "var_mean"]


class Found(NamedTuple):
    """Elements, and their positions (si64)."""

    values: Tensor
    indices: Tensor


class Extremes(NamedTuple):
    """The results of `aminmax`."""

    min: Tensor
    max: Tensor


@public
def topk(x: Any, k: DimLike, dim: int = -1, largest: bool = True, sorted: bool = True) -> Found:
    """The ``k`` greatest elements along ``dim``, or the least, and their positions; always in
    order, best first."""
    return Found(*OPS["top_k"](as_tensor(x), k=k, axis=dim, largest=largest))


@public
def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Found:
    """The ``k``-th least element along ``dim``, counted from 1, and its position."""
    x = as_tensor(x)
    axis = normal_axis(dim, x.ndim)
    if k < 1:
        raise ArgumentError(f"k is {k}, expected at least 1")
    best = OPS["top_k"](x, k=k, axis=axis, largest=False)
    place = slice(k - 1, k) if keepdim else k - 1
    return Found(*(part[(*(slice(None),) * axis, place)] for part in best))


@public
def mode(x: Any, dim: int = -1, keepdim: bool = False) -> Found:
    """The most frequent element along ``dim``, the least of several, and the last position of
    it."""
    x = as_tensor(x)
    axis = normal_axis(dim, x.ndim)
    ordered, order = OPS["sort"](x, axis=axis)
    keys = (slice(None),) * axis
    changes = ordered[(*keys, slice(1, None))] != ordered[(*keys, slice(None, -1))]
    places = OPS["iota"](shape=changes.shape, axis=axis, dtype="si64") + 1
    low, high = ([int(i == axis) * side for i in range(x.ndim)] for side in (1, 0))
    firsts = OPS["select"](changes, places, 0)
    starts = OPS["cummax"](OPS["pad"](firsts, low=low, high=high, value=0), axis=axis)
    lengths = OPS["iota"](shape=x.shape, axis=axis, dtype="si64") - starts
    at = OPS["argmax"](lengths, axis=axis, keepdims=True)
    found = [OPS["gather"](part, at, axis=axis) for part in (ordered, order)]
    return Found(*(part if keepdim else squeeze(part, axis) for part in found))


@public
def msort(x: Any) -> Tensor:
    """The elements in order along the first axis."""
    return sort(x, axis=0)


@public
def aminmax(x: Any, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """The least and the greatest element along ``dim``, or of all."""
    x = as_tensor(x)
    return Extremes(min(x, dim, keepdim), max(x, dim, keepdim))


@public
def var_mean(
    x: Any,
    dim: Axes = None,
    *,
    correction: float = 1,
    keepdim: bool = False,
    unbiased: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The variance with torch's ``correction`` of 1, and the mean, over ``dim``."""
    x = as_tensor(x)
    correction = correction if unbiased is None else int(unbiased)
    return var(x, dim, correction=correction, keepdims=keepdim), mean(x, dim, keepdims=keepdim)


@public
def std_mean(
    x: Any,
    dim: Axes = None,
    *,
    correction: float = 1,
    keepdim: bool = False,
    unbiased: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The square root of the variance with torch's ``correction`` of 1, and the mean."""
    x = as_tensor(x)
    correction = correction if unbiased is None else int(unbiased)
    return std(x, dim, correction=correction, keepdims=keepdim), mean(x, dim, keepdims=keepdim)


@public
def bucketize(x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The positions (si64) of the elements among the sorted ``boundaries``: before equal ones, or
    after them if ``right``; with ``out_int32`` as si32."""
    return searchsorted(boundaries, x, right=right, out_int32=out_int32)

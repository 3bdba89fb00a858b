"""Reductions: merged, without axes of extent 1, without transposes."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import Shape, dim
from gptrs.ir.ops.elementwise import add
from gptrs.ir.ops.reduce import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from gptrs.ir.ops.shape import reshape, transpose
from gptrs.ir.rewrite import rewrite, rewrite_each
from gptrs.ir.tensor import Tensor
from gptrs.passes.rules.shapes import (
    Perm,
    differ_in_ones,
    in_shape,
    is_one,
    longer_axes,
    reduced_shape,
)

Axes = tuple[int, ...]
M, N = dim("m"), dim("n")
_LOGICAL = (reduce_any, reduce_all)
_TOTALS = (reduce_sum, reduce_prod)
_EXTREMES = (reduce_max, reduce_min)


@rewrite_each(
    (*_LOGICAL, *_EXTREMES, reduce_prod),
    lambda op: lambda x, a, k: op(x, axes=a, keepdims=k),
    samples=[
        {"x": "R[m,1,n,1]", "a": (1, 3), "k": False},
        {"x": "R[1,n]", "a": (0,), "k": True},
        {"x": "R[]", "a": (), "k": False},
    ],
)
def reshape_for(op: Any, x: Tensor, a: Axes, k: bool) -> Tensor | None:
    """A reduction over axes of extent 1 is a reshape."""
    return _reshape_for_reduction(x, a, k)


@rewrite(
    lambda x, a, k: reduce_sum(x, axes=a, keepdims=k),
    samples=[{"x": "I[m,1,n,1]", "a": (1, 3), "k": False}, {"x": "I[m]", "a": (), "k": True}],
)
def reshape_for_integer_sum(x: Tensor, a: Axes, k: bool) -> Tensor | None:
    """A sum of integers over axes of extent 1 is a reshape."""
    return _reshape_for_reduction(x, a, k) if x.dtype.is_integer else None


@rewrite(
    lambda x, a, k: reduce_sum(x, axes=a, keepdims=k),
    samples=[{"x": "F[m,1,n,1]", "a": (1, 3), "k": False}, {"x": "F[m]", "a": (), "k": True}],
    larger="a sum over an axis takes longer than adding 0",
)
def reshape_for_sum(x: Tensor, a: Axes, k: bool) -> Tensor | None:
    """A sum of floats over axes of extent 1 is x + 0, as sums begin with 0: −0 becomes +0."""
    reshaped = _reshape_for_reduction(x, a, k) if x.dtype.is_float else None
    return None if reshaped is None else add(reshaped, 0.0)


def _reshape_for_reduction(x: Tensor, axes: Axes, keepdims: bool) -> Tensor | None:
    if not all(is_one(x.shape[axis]) for axis in axes):
        return None
    return in_shape(x, reduced_shape(x.shape, axes, keepdims))


_TWICE = [
    {"x": "R[m,3,n]", "a": (1,), "b": (0,), "k": False},
    {"x": "R[2,m,3,n]", "a": (0, 2), "b": (1,), "k": False},
    {"x": "R[2,m,n]", "a": (0,), "b": (2,), "k": True},
]


@rewrite_each(
    (*_LOGICAL, *_EXTREMES),
    lambda op: lambda x, a, b, k: op(op(x, axes=a, keepdims=k), axes=b, keepdims=k),
    samples=_TWICE,
)
def merge_exact(op: Any, x: Tensor, a: Axes, b: Axes, k: bool) -> Tensor:
    """A reduction of a reduction, in any order: max, min, any, all."""
    return op(x, axes=_both(x, a, b, k), keepdims=k)


@rewrite_each(
    _TOTALS,
    lambda op: lambda x, a, b, k: op(op(x, axes=a, keepdims=k), axes=b, keepdims=k),
    samples=[{**sample, "x": str(sample["x"]).replace("R", "I")} for sample in _TWICE],
)
def merge_integer(op: Any, x: Tensor, a: Axes, b: Axes, k: bool) -> Tensor | None:
    """A reduction of a reduction, of integers."""
    return op(x, axes=_both(x, a, b, k), keepdims=k) if x.dtype.is_integer else None


@rewrite_each(
    _TOTALS,
    lambda op: lambda x, a, b, k: op(op(x, axes=a, keepdims=k), axes=b, keepdims=k),
    samples=[{**sample, "x": str(sample["x"]).replace("R", "F")} for sample in _TWICE],
    alone=True,
    rounds=True,
    ulps=8,
    magnitude=8,
    finite=True,
)
def merge(op: Any, x: Tensor, a: Axes, b: Axes, k: bool) -> Tensor | None:
    """A reduction of a reduction of floats, rounded in another order. A partial result may be
    infinite where the whole is not."""
    return None if x.dtype.is_integer else op(x, axes=_both(x, a, b, k), keepdims=k)


def _both(x: Tensor, a: Axes, b: Axes, keepdims: bool) -> Axes:
    """The axes of ``x`` that are reduced by ``a`` first, then by ``b`` of the remaining ones."""
    rest = range(x.ndim) if keepdims else [i for i in range(x.ndim) if i not in a]
    return tuple(sorted({*a, *(rest[i] for i in b)}))


_MOVED = [
    {"x": "R[m,3,n]", "p": (1, 0, 2), "a": (0,), "k": False},
    {"x": "R[m,2,n]", "p": (2, 1, 0), "a": (0, 1, 2), "k": False},
]


@rewrite_each(
    (*_LOGICAL, *_EXTREMES),
    lambda op: lambda x, p, a, k: op(transpose(x, perm=p), axes=a, keepdims=k),
    samples=_MOVED,
)
def transposed_exact(op: Any, x: Tensor, p: Perm, a: Axes, k: bool) -> Tensor | None:
    """Drop a transpose before max, min, any or all if the remaining axes keep their order."""
    return _without_transpose(op, x, p, a, k)


@rewrite_each(
    _TOTALS,
    lambda op: lambda x, p, a, k: op(transpose(x, perm=p), axes=a, keepdims=k),
    samples=[{**sample, "x": str(sample["x"]).replace("R", "I")} for sample in _MOVED],
)
def transposed_integer(op: Any, x: Tensor, p: Perm, a: Axes, k: bool) -> Tensor | None:
    """Drop a transpose before a reduction of integers if the remaining axes keep their order."""
    return _without_transpose(op, x, p, a, k) if x.dtype.is_integer else None


@rewrite_each(
    _TOTALS,
    lambda op: lambda x, p, a, k: op(transpose(x, perm=p), axes=a, keepdims=k),
    samples=[{**sample, "x": str(sample["x"]).replace("R", "F")} for sample in _MOVED],
    rounds=True,
    ulps=8,
    magnitude=8,
    finite=True,
)
def transposed(op: Any, x: Tensor, p: Perm, a: Axes, k: bool) -> Tensor | None:
    """Drop a transpose before a sum of floats if the remaining axes keep their order; it is rounded
    in another order. A part of a sum may be infinite where the whole is not."""
    return None if x.dtype.is_integer else _without_transpose(op, x, p, a, k)


def _without_transpose(op: Any, x: Tensor, p: Perm, a: Axes, keepdims: bool) -> Tensor | None:
    kept = [axis for i, axis in enumerate(p) if i not in a]
    if keepdims or kept != sorted(kept):
        return None
    return op(x, axes=tuple(sorted(p[axis] for axis in a)))


@rewrite_each(
    (*_LOGICAL, *_TOTALS, *_EXTREMES),
    lambda op: lambda x, s, a, k: op(reshape(x, shape=s), axes=a, keepdims=k),
    samples=[
        {"x": "E[m,3]", "s": (M, 1, 3, 1), "a": (2,), "k": False},
        {"x": "E[1,m,2,n]", "s": (M, 2, N), "a": (0, 1), "k": False},
        {"x": "E[2,m]", "s": (1, 2, M), "a": (1,), "k": True},
    ],
    alone=True,
)
def reshaped_after(op: Any, x: Tensor, s: Shape, a: Axes, k: bool) -> Tensor | None:
    """A reshape that adds or drops axes of extent 1 moves after an exact reduction."""
    is_rounded = x.dtype.is_float or x.dtype.is_complex
    if (op in _TOTALS and is_rounded) or not differ_in_ones(x.shape, s):
        return None
    pairs = zip(longer_axes(x.shape), longer_axes(s), strict=True)
    axes = tuple(old for old, new in pairs if new in a)
    return in_shape(op(x, axes=axes), reduced_shape(s, a, k))

"""Gather and scatter by integer tensors: take, gather, scatter_add, scatter_reduce.

An index out of range is an `ElementError`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gptrs.errors import ArgumentError, ElementError, ShapeError
from gptrs.ir.checks import one_dtype, require
from gptrs.ir.dims import surely_greater
from gptrs.ir.extremes import MAXIMUM, MINIMUM
from gptrs.ir.kinds import OpKind
from gptrs.ir.primitives import arithmetic, primitive
from gptrs.ir.program import Attrs, Fails
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, normal_axis, shape_text

__all__ = ["gather", "scatter_add", "scatter_reduce", "take"]

Reduce = Literal["add", "max", "min", "replace"]


@primitive(kind=OpKind.INDEX)
def take(x: Tensor, indices: Tensor) -> Type:
    """Rows of ``x`` (its first axis) in the order of ``indices``, of any shape."""
    require(indices, "int", "uint")
    if x.ndim == 0:
        raise ShapeError("x has rank 0: there is no axis to take from")
    return x.type.with_shape((*indices.shape, *x.shape[1:]))


@take.numpy
def _(x: Array, indices: Array) -> Array:
    _check_range(indices, x.shape[0], 0)
    return np.take(x, indices, axis=0)


@primitive(kind=OpKind.INDEX)
def gather(x: Tensor, index: Tensor, *, axis: int) -> Type:
    """result[i, j, ...] = x with the index along ``axis`` replaced by index[i, j, ...]."""
    _check_index(x, index, axis)
    return x.type.with_shape(index.shape)


@gather.numpy
def _(x: Array, index: Array, *, axis: int) -> Array:
    _check_range(index, x.shape[axis], axis)
    _check_inside(index.shape, x.shape, "x", axis)
    inside = tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape))
    return np.take_along_axis(x[inside], index.astype(np.int64), axis)


@arithmetic(OpKind.INDEX)
def scatter_add(x: Tensor, index: Tensor, source: Tensor, *, axis: int) -> Type:
    """``x`` with source[i, j, ...] added where index[i, j, ...] points along ``axis``."""
    require(x, "int", "uint", "float", "complex")
    _check_source(x, index, source, axis)
    return x.type


@scatter_add.numpy
def _(x: Array, index: Array, source: Array, *, axis: int) -> Array:
    result = x.copy()
    np.add.at(result, _places(x, index, axis), _used(source, index))
    return result


@arithmetic(OpKind.INDEX)
def scatter_reduce(x: Tensor, index: Tensor, source: Tensor, *, axis: int, reduce: Reduce) -> Type:
    """``x`` combined with source[i, j, ...] where index[i, j, ...] points along ``axis``.

    ``reduce`` is add, max, min or replace (the last source in row-major order stays).
    """
    if reduce not in _REDUCE:
        raise ArgumentError(f"reduce is {reduce!r}, expected one of {', '.join(_REDUCE)}")
    if reduce != "replace":
        require(x, "int", "uint", "float")
    _check_source(x, index, source, axis)
    return x.type


@scatter_reduce.numpy
def _(x: Array, index: Array, source: Array, *, axis: int, reduce: Reduce) -> Array:
    result = x.copy()
    places, used = _places(x, index, axis), _used(source, index)
    if (combine := _REDUCE[reduce]) is None:
        result[places] = used
    else:
        combine.at(result, places, used)
    return result


_REDUCE: dict[str, Any] = {"add": np.add, "max": MAXIMUM, "min": MINIMUM, "replace": None}


def _canonical(x: Tensor, *_: Tensor, axis: int, **__: object) -> Attrs:
    return {"axis": normal_axis(axis, x.ndim)}


gather.canonical(_canonical)
scatter_add.canonical(_canonical)
scatter_reduce.canonical(_canonical)


def _at_elements(*_: Tensor, **__: object) -> Fails:
    return Fails.AT_ELEMENTS


for _op in (take, gather, scatter_add, scatter_reduce):
    _op.failing(_at_elements)
    _op.harmless = {"indices" if _op is take else "index": 0}


def _check_index(x: Tensor, index: Tensor, axis: int) -> None:
    require(index, "int", "uint")
    inside = index.ndim == x.ndim and not any(
        surely_greater(n, x.shape[i]) for i, n in enumerate(index.shape) if i != axis
    )
    if not inside:
        raise ShapeError(
            f"index of shape {shape_text(index.shape)} does not lie in x of shape"
            f" {shape_text(x.shape)}: the same rank, and no axis but {axis} longer"
        )


def _check_source(x: Tensor, index: Tensor, source: Tensor, axis: int) -> None:
    _check_index(x, index, axis)
    one_dtype(x, source)
    if source.ndim != x.ndim or any(map(surely_greater, index.shape, source.shape)):
        raise ShapeError(
            f"index of shape {shape_text(index.shape)} does not lie in source of shape"
            f" {shape_text(source.shape)}"
        )


def _check_range(index: Array, extent: int, axis: int) -> None:
    wide = index.astype(np.int64) if index.dtype.itemsize < 8 else index  # room for the extent
    wrong = (wide < 0) | (wide >= extent)
    if wrong.any():
        raise ElementError(
            f"index {index[wrong][0]} is out of range for axis {axis} of extent {extent}",
            fix="clamp the indices, or look at where they come from",
        )


def _check_inside(
    index: tuple[int, ...], shape: tuple[int, ...], name: str, but: int | None = None
) -> None:
    """Run-time check, for symbolic extents: whether ``index`` fits into ``shape``."""
    for axis, (n, extent) in enumerate(zip(index, shape, strict=True)):
        if n > extent and axis != but:
            raise ElementError(f"index has extent {n} along axis {axis}, {name} has {extent}")


def _places(x: Array, index: Array, axis: int) -> tuple[Array, ...]:
    _check_range(index, x.shape[axis], axis)
    _check_inside(index.shape, x.shape, "x", axis)
    places: list[Array] = [*np.indices(index.shape, sparse=True)]
    places[axis] = index.astype(np.int64)
    return tuple(places)


def _used(source: Array, index: Array) -> Array:
    _check_inside(index.shape, source.shape, "source")
    return source[tuple(slice(n) for n in index.shape)]

"""Data movement ops: reshape, transpose, broadcast_to, slice, concat, pad, tile. No arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, ElementError, ShapeError
from gptrs.ir.checks import one_dtype
from gptrs.ir.dims import Dim, DimLike, Shape, product, same, same_shape, surely_greater
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.literal import check_extents
from gptrs.ir.primitives import primitive
from gptrs.ir.program import Attrs, Fails
from gptrs.ir.row_rules import elementwise_rows, reshape_rows, transpose_rows
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, broadcast_shapes, normal_axis, shape_text

__all__ = ["broadcast_to", "concat", "pad", "reshape", "tile", "transpose"]


@primitive(kind=OpKind.VIEW, rows=reshape_rows)
def reshape(x: Tensor, *, shape: Shape) -> Type:
    """The same elements in row-major order in another shape; one extent may be -1."""
    check_extents(shape)
    if not same(product(shape), x.size):
        raise ShapeError(
            f"{shape_text(x.shape)} has {x.size} elements, {shape_text(shape)} has {product(shape)}"
        )
    return x.type.with_shape(shape)


@reshape.canonical
def _(x: Tensor, *, shape: Shape) -> Attrs:
    inferred = [i for i, n in enumerate(shape) if isinstance(n, int) and n == -1]
    if not inferred:
        return {"shape": shape}
    known = product(tuple(n for i, n in enumerate(shape) if i not in inferred))
    if len(inferred) > 1:
        raise ShapeError(f"shape {shape} leaves more than one extent open")
    if same(known, 0):
        raise ShapeError(f"shape {shape} does not determine the extent that is left open")
    extent = x.size // known
    if not same(extent * known, x.size):
        raise ShapeError(f"{shape_text(x.shape)} ({x.size} elements) does not fit shape {shape}")
    return {"shape": tuple(extent if i in inferred else n for i, n in enumerate(shape))}


@reshape.numpy
def _(x: Array, *, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


@primitive(kind=OpKind.VIEW, rows=transpose_rows)
def transpose(x: Tensor, *, perm: tuple[int, ...]) -> Type:
    """Permute the axes: axis ``i`` of the result is axis ``perm[i]`` of ``x``."""
    if sorted(perm) != list(range(x.ndim)):
        raise ShapeError(f"perm must name each of the {x.ndim} axes once, found {perm}")
    return x.type.with_shape(x.shape[p] for p in perm)


@transpose.canonical
def _(x: Tensor, *, perm: tuple[int, ...]) -> Attrs:
    return {"perm": tuple(normal_axis(p, x.ndim) for p in perm)}


@transpose.numpy
def _(x: Array, *, perm: tuple[int, ...]) -> Array:
    return np.transpose(x, perm)


@primitive(kind=OpKind.VIEW, rows=elementwise_rows)
def broadcast_to(x: Tensor, *, shape: Shape) -> Type:
    """Repeat ``x`` along new leading axes and axes of extent 1, aligned at the right."""
    check_extents(shape)
    if x.ndim > len(shape) or not same_shape(broadcast_shapes(x.shape, shape), shape):
        raise ShapeError(f"{shape_text(x.shape)} does not broadcast to {shape_text(shape)}")
    return x.type.with_shape(shape)


@broadcast_to.numpy
def _(x: Array, *, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, shape)


@primitive(kind=OpKind.VIEW)
def slice_(
    x: Tensor,
    *,
    starts: tuple[DimLike, ...],
    sizes: tuple[DimLike, ...],
    strides: tuple[int, ...] | None = None,
) -> Type:
    """A box of ``sizes`` elements from ``starts``, every ``strides``-th along each axis; backwards
    where a stride is negative."""
    assert strides is not None
    if not len(starts) == len(sizes) == len(strides) == x.ndim:
        raise ShapeError(f"starts, sizes and strides need {x.ndim} entries each")
    check_extents(sizes)
    for axis, (start, size, stride, extent) in enumerate(
        zip(starts, sizes, strides, x.shape, strict=True)
    ):
        if not stride:
            raise ShapeError(f"stride 0 of axis {axis}, expected another number")
        low, end = slice_ends(start, size, stride)
        if surely_greater(0, low) or surely_greater(end, extent):
            raise ShapeError(
                f"axis {axis}: {size} elements from {start} in steps of {stride} do not fit"
                f" extent {extent}"
            )
    return x.type.with_shape(sizes)


@slice_.canonical
def _(
    x: Tensor,
    *,
    starts: tuple[DimLike, ...],
    sizes: tuple[DimLike, ...],
    strides: tuple[int, ...] | None,
) -> Attrs:
    return {"strides": (1,) * x.ndim if strides is None else strides}


@slice_.failing
def _(
    x: Tensor,
    *,
    starts: tuple[DimLike, ...],
    sizes: tuple[DimLike, ...],
    strides: tuple[int, ...],
) -> Fails:
    fits = all(map(_fits, x.shape, starts, sizes, strides))
    return Fails.NEVER if fits else Fails.AT_SIZES


def _fits(extent: DimLike, start: DimLike, size: DimLike, stride: int) -> bool:
    """Whether a box lies in an axis at every size of the symbols."""
    low, end = slice_ends(start, size, stride)
    inside = surely_greater(low, -1) and surely_greater(extent + 1, end)
    return inside and surely_greater(size, -1)


def slice_ends(start: DimLike, size: DimLike, stride: int) -> tuple[DimLike, DimLike]:
    """The first position in memory order that a slice of an axis reads, and the one after the
    last."""
    if same(size, 0):
        return start, start
    last = start + (size - 1) * stride
    return (start, last + 1) if stride > 0 else (last, start + 1)


@slice_.numpy
def _(
    x: Array, *, starts: tuple[int, ...], sizes: tuple[int, ...], strides: tuple[int, ...]
) -> Array:
    spans: list[slice] = []
    for axis, (b, n, s) in enumerate(zip(starts, sizes, strides, strict=True)):
        low, end = slice_ends(b, n, s)
        if low < 0 or end > x.shape[axis]:  # symbolic: only now known
            raise ElementError(
                f"axis {axis}: {n} elements from {b} in steps of {s} do not fit extent"
                f" {x.shape[axis]}"
            )
        stop = b + n * s
        spans.append(slice(b, stop if stop >= 0 else None, s))
    return x[tuple(spans)]


@primitive(kind=OpKind.MOVEMENT)
def concat(xs: tuple[Tensor, ...], *, axis: int = 0) -> Type:
    """The operands one after the other along ``axis``."""
    dtype = one_dtype(*xs)
    first, total = xs[0], xs[0].shape[axis]
    for x in xs[1:]:
        fits = x.ndim == first.ndim and all(
            same(a, b)
            for i, (a, b) in enumerate(zip(x.shape, first.shape, strict=True))
            if i != axis
        )
        if not fits:
            raise ShapeError(
                f"{shape_text(x.shape)} does not continue {shape_text(first.shape)} along axis"
                f" {axis}: the other extents differ"
            )
        total = total + x.shape[axis]
    return Type((total if i == axis else n for i, n in enumerate(first.shape)), dtype)


concat.promoting("xs")


@concat.canonical
def _(xs: Any, *, axis: int) -> Attrs:
    if not isinstance(xs, tuple) or not xs or not all(isinstance(x, Tensor) for x in xs):  # pyright: ignore[reportUnknownVariableType]
        raise ArgumentError("concat takes a tuple or list of at least one Tensor")
    return {"axis": normal_axis(axis, xs[0].ndim)}  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


@concat.numpy
def _(xs: tuple[Array, ...], *, axis: int) -> Array:
    return np.concatenate(xs, axis)


@primitive(kind=OpKind.MOVEMENT)
def pad(
    x: Tensor,
    *,
    low: tuple[int, ...],
    high: tuple[int, ...],
    interior: tuple[int, ...] | None = None,
    value: float = 0,
) -> Type:
    """``value`` around ``x``: ``low`` before, ``high`` after, ``interior`` between neighbours."""
    assert interior is not None
    one_dtype(x, value)
    if not len(low) == len(high) == len(interior) == x.ndim:
        raise ShapeError(f"low, high and interior need {x.ndim} entries each")
    if min((*low, *high, *interior), default=0) < 0:
        raise ShapeError("padding is negative", fix="use slice to take elements away")
    return x.type.with_shape(
        lo + hi + n + _gaps(n, between)
        for n, lo, hi, between in zip(x.shape, low, high, interior, strict=True)
    )


def _gaps(extent: DimLike, between: int) -> DimLike:
    """Padding elements between ``extent`` neighbours."""
    if isinstance(extent, Dim):
        return (extent - 1) * between
    return max(extent - 1, 0) * between


@pad.canonical
def _(
    x: Tensor,
    *,
    low: tuple[int, ...],
    high: tuple[int, ...],
    interior: tuple[int, ...] | None,
    value: float,
) -> Attrs:
    return {
        "interior": (0,) * x.ndim if interior is None else interior,
        "value": bool(value) if x.dtype.is_bool else value,
    }


@pad.numpy
def _(
    x: Array,
    *,
    low: tuple[int, ...],
    high: tuple[int, ...],
    interior: tuple[int, ...],
    value: float,
) -> Array:
    spans = list(zip(x.shape, low, high, interior, strict=True))
    shape = [lo + n + max(n - 1, 0) * between + hi for n, lo, hi, between in spans]
    result = np.full(shape, value, x.dtype)
    inside = [
        slice(lo, lo + max((n - 1) * (between + 1) + 1, 0), between + 1)
        for n, lo, _, between in spans
    ]
    result[tuple(inside)] = x
    return result


@primitive(kind=OpKind.MOVEMENT)
def tile(x: Tensor, *, reps: tuple[int, ...]) -> Type:
    """``x`` repeated ``reps[i]`` times along axis ``i``."""
    if len(reps) != x.ndim or min(reps, default=0) < 0:
        raise ShapeError(f"reps {reps}: expected {x.ndim} counts of at least 0")
    return x.type.with_shape(n * r for n, r in zip(x.shape, reps, strict=True))


@tile.numpy
def _(x: Array, *, reps: tuple[int, ...]) -> Array:
    return np.tile(x, reps)

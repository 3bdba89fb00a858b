"""Batching rules of ops with indices: examples lie one after the other, at offsets of their size.

An index that is out of range for its example would point into a neighbour, so it is looked up in
a range of that extent first (`checked`), which fails as the op does.
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.batching.axes import along_axis, fold, move_axis, spread
from gptrs.ir.dims import DimLike, Shape, product, same
from gptrs.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from gptrs.ir.ops.elementwise import cast, clamp, minimum
from gptrs.ir.ops.index import gather, scatter_add, scatter_reduce, take
from gptrs.ir.ops.literal import full, iota
from gptrs.ir.ops.segment import segment_reduce
from gptrs.ir.ops.shape import broadcast_to, reshape
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import si64

along_axis(scatter_add, scatter_reduce)


def checked(index: Tensor, extent: DimLike) -> Tensor:
    """``index`` in si64; an error where it does not lie from 0 to ``extent`` − 1."""
    return take(iota(shape=(extent,), dtype=si64), index)


def offset(index: Tensor, extent: DimLike) -> Tensor:
    """Indices [B, ...] into examples of ``extent`` rows as indices into all rows, one example after
    the other."""
    number = iota(shape=(index.shape[0], *[1] * (index.ndim - 1)), dtype=si64)
    return index + number * extent


@take.batching
def _(size: DimLike, mapped: tuple[bool, bool], x: Tensor, indices: Tensor) -> Tensor:
    if not mapped[0]:
        return take(x, indices)
    extent = x.shape[1]
    index = spread(checked(indices, extent), size, mapped[1])
    return take(fold(x), offset(index, extent))


@gather.batching
def _(size: DimLike, mapped: tuple[bool, bool], x: Tensor, index: Tensor, *, axis: int) -> Tensor:
    if mapped[0]:
        return gather(x, spread(index, size, mapped[1]), axis=axis + 1)
    beside = move_axis(index, 0, axis)  # [..., B, n, ...]: along the axis, which may be longer
    shape = beside.shape
    joined = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    found = gather(x, reshape(beside, shape=joined), axis=axis)
    return move_axis(reshape(found, shape=shape), axis, 0)


@segment_reduce.batching
def _(
    size: DimLike,
    mapped: tuple[bool, bool],
    x: Tensor,
    segments: Tensor,
    *,
    count: DimLike,
    reduce: Any,
) -> Tensor:
    if not mapped[1]:
        return move_axis(
            segment_reduce(move_axis(x, 0, 1), segments, count=count, reduce=reduce), 1, 0
        )
    rows = fold(spread(x, size, mapped[0]))
    places = reshape(offset(checked(segments, count), count), shape=(rows.shape[0],))
    found = segment_reduce(rows, places, count=count * size, reduce=reduce)
    return reshape(found, shape=(size, count, *rows.shape[1:]))


@dynamic_slice.batching
def _(size: DimLike, mapped: Any, x: Tensor, start: tuple[Any, ...], *, sizes: Shape) -> Tensor:
    if not any(mapped[1]):
        return dynamic_slice(x, (0, *start), sizes=(size, *sizes))
    shape = x.shape[1:] if mapped[0] else x.shape
    kept = _whole(shape, sizes)
    places = _places(shape[:kept], start[:kept], sizes[:kept], mapped[1][:kept], size)
    rows = product(shape[:kept])
    if mapped[0]:
        places = offset(places, rows)
        rows = rows * size
    found = take(reshape(x, shape=(rows, *shape[kept:])), places)
    return reshape(found, shape=(size, *sizes))


@dynamic_update_slice.batching
def _(size: DimLike, mapped: Any, x: Tensor, update: Tensor, start: tuple[Any, ...]) -> Tensor:
    x, update = spread(x, size, mapped[0]), spread(update, size, mapped[1])
    if not any(mapped[2]):
        return dynamic_update_slice(x, update, (0, *start))
    shape, sizes = x.shape[1:], update.shape[1:]
    kept = _whole(shape, sizes)
    places = _places(shape[:kept], start[:kept], sizes[:kept], mapped[2][:kept], size)
    rows, width = product(shape[:kept]), product(shape[kept:])
    lines = (size, product(sizes[:kept]), width)
    index = broadcast_to(reshape(places, shape=(*lines[:2], 1)), shape=lines)
    target = reshape(x, shape=(size, rows, width))
    source = reshape(update, shape=lines)
    result = scatter_reduce(target, index, source, axis=1, reduce="replace")
    return reshape(result, shape=(size, *shape))


def _whole(shape: Shape, sizes: Shape) -> int:
    """The number of axes before the last ones that a box has whole."""
    kept = len(shape)
    while kept and same(shape[kept - 1], sizes[kept - 1]):
        kept -= 1
    return kept


def _places(
    shape: Shape, start: tuple[Any, ...], sizes: Shape, mapped: tuple[bool, ...], size: DimLike
) -> Tensor:
    """The places [B, n] in row-major order of the elements of a box of each example."""
    places: Tensor = broadcast_to(iota(shape=(1,), dtype=si64), shape=(size, 1))
    for axis, first in enumerate(start):
        most = shape[axis] - sizes[axis]
        at = first if isinstance(first, Tensor) else full(shape=(), value=first, dtype=si64)
        if at.dtype.kind == "uint" and at.dtype.bits == 64:
            at = minimum(at, most)  # greater ones than si64 has
        at = clamp(cast(at, dtype=si64), 0, most)
        if mapped[axis]:
            at = reshape(at, shape=(size, 1))
        along = at + iota(shape=(1, sizes[axis]), dtype=si64, axis=1)
        along = reshape(along, shape=(along.shape[0], 1, sizes[axis]))
        places = reshape(places, shape=(size, places.shape[1], 1)) * shape[axis] + along
        places = reshape(places, shape=(size, places.shape[1] * sizes[axis]))
    return places

"""The elements that a key selects: read with slices and gathers, written with updates and scatters.

    x ── box ──▶ y ── gather ──▶ [pre, K, post] ── arrange ──▶ x[key]
         slice        take, gather                 transpose, reshape

The box has the slices and integers of the key. In ``y``, which has an axis for each slice and each
index array, the axes from the first to the last index array are merged into one, along which the
arrays, broadcast together and counted in row-major order, are K places. Slices between them are
counted along. Writing goes the same way back: a scatter into ``y``, then an update of the box.
A key without index arrays is a slice and a reshape, one leading array is a take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from gptrs.errors import ArgumentError, ElementError
from gptrs.ir.dims import Dim, DimLike, Shape, product, same, same_shape, surely_greater
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, dim_text
from gptrs.numpy_api.effects import check
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.index_keys import Gap, Part, Places, Position, Span
from gptrs.numpy_api.manipulation import flip, moveaxis, rows_at
from gptrs.numpy_api.taking import from_front

Combine = Literal["replace", "add", "max", "min", "mul"]


class Selection:
    """The elements of ``x`` that ``parts`` (without masks) select, of ``shape``."""

    def __init__(self, x: Tensor, parts: Sequence[Part]) -> None:
        self._box = _Box(x.shape, [part for part in parts if not isinstance(part, Gap | None)])
        kept = [part for part in parts if isinstance(part, Span | Places)]
        arrays = [at for at, part in enumerate(parts) if isinstance(part, Position | Places)]
        self._gather = _Gather(self._box.kept, kept) if Places in map(type, kept) else None
        self.shape = self._box.kept
        self._front = False  # the axes of index arrays come first, as these have gaps between
        if self._gather is not None:
            pre, places, post = self._gather.shape
            self._front = bool(places) and arrays[-1] - arrays[0] >= len(arrays)
            self.shape = (*places, *pre, *post) if self._front else (*pre, *places, *post)
        self._arranged = self.shape
        for at in self._new_axes(parts):
            self.shape = (*self.shape[:at], 1, *self.shape[at:])

    def _new_axes(self, parts: Sequence[Part]) -> list[int]:
        """The places in the result of the axes that ``None`` adds, in order."""
        found: list[int] = []
        rank = len(self._gather.broadcast) if self._gather is not None else 0
        at, pending = (rank, 0) if self._front else (0, rank)
        for part in parts:
            if part is None:
                found.append(at)
            elif isinstance(part, Places) or (isinstance(part, Position) and pending):
                at, pending = at + pending, 0
            if part is None or isinstance(part, Span):
                at += 1
        return found

    @property
    def has_arrays(self) -> bool:
        """Whether elements may be selected more than once."""
        return self._gather is not None

    def read(self, x: Tensor) -> Tensor:
        """x[key]."""
        box = self._box.read(x)
        if self._gather is None:
            return _reshaped(box, self.shape)
        found = self._gather.read(_reshaped(box, self._box.kept))
        if self._front and self._gather.before:
            first, count = self._gather.before, len(self._gather.broadcast)
            found = moveaxis(found, range(first, first + count), range(count))
        return _reshaped(found, self.shape)

    def write(self, x: Tensor, source: Tensor, combine: Combine = "replace") -> Tensor:
        """``x`` with ``source``, in the shape of the selection, combined into it."""
        if self._gather is not None:
            source = _reshaped(source, self._arranged)
            if self._front and self._gather.before:
                first, count = self._gather.before, len(self._gather.broadcast)
                source = moveaxis(source, range(count), range(first, first + count))
            box = _reshaped(self._box.read(x), self._box.kept)
            source = self._gather.write(box, source, combine)
        return self._box.write(x, source)

    def products(self, x: Tensor, source: Tensor) -> Tensor:
        """For each element of ``x`` the product of the elements of ``source`` at its place, or
        1."""
        one = True if x.dtype.is_bool else 1
        ones: Tensor = OPS["full"](shape=x.shape, value=one, dtype=x.dtype)
        return self.write(ones, source, "mul")


class _Box:
    """The slices of a key: places from ``starts`` on, every ``strides``-th, some backwards."""

    def __init__(self, shape: Shape, parts: Sequence[Part]) -> None:
        starts: list[DimLike] = []
        self.sizes: Shape = ()
        self._strides: tuple[int, ...] = ()
        self._shape = shape
        self._backwards: list[int] = []
        self.kept: Shape = ()
        for axis, (part, extent) in enumerate(zip(parts, shape, strict=True)):
            start, size, stride = 0, extent, 1
            if isinstance(part, Position):
                start, size = part.start, 1
            elif isinstance(part, Span):
                start, size, stride = part
            if stride < 0:
                self._backwards.append(axis)
                start, stride = start + (size - 1) * stride if not same(size, 0) else 0, -stride
            starts.append(start)
            self.sizes = (*self.sizes, size)
            self._strides = (*self._strides, stride)
            if not isinstance(part, Position):
                self.kept = (*self.kept, size)
        self._starts = tuple(starts)
        self._is_whole = same_shape(self.sizes, shape) and set(self._strides) <= {1}

    def read(self, x: Tensor) -> Tensor:
        if not self._is_whole:
            x = OPS["slice"](x, starts=self._starts, sizes=self.sizes, strides=self._strides)
        return self._turned(x)

    def write(self, x: Tensor, source: Tensor) -> Tensor:
        if any(same(size, 0) for size in self.sizes):
            return x
        source = self._turned(_reshaped(source, self.sizes))
        if self._is_whole:
            return source
        if set(self._strides) <= {1}:
            self._check_fit()
            return OPS["dynamic_update_slice"](x, source, self._starts)
        inside = OPS["full"](shape=self.sizes, value=True, dtype="i1")
        return OPS["select"](self._spread(inside, False), self._spread(source, 0), x)

    def _check_fit(self) -> None:
        """Check at symbolic sizes what is known of others: that the box lies in the array, where
        dynamic_update_slice moves it."""
        for axis, (extent, start, size) in enumerate(
            zip(self._shape, self._starts, self.sizes, strict=True)
        ):
            ends = start, extent - start - size
            for left in (n for n in ends if not surely_greater(n + 1, 0)):
                text = f"axis {axis}: {dim_text(size)} elements from {dim_text(start)} do not fit"
                check(as_tensor(left) >= 0, f"{text} extent {{}}", as_tensor(extent))

    def _turned(self, x: Tensor) -> Tensor:
        return flip(x, self._backwards) if self._backwards else x

    def _spread(self, source: Tensor, value: float) -> Tensor:
        """``source`` at its places in an array of the whole shape, ``value`` elsewhere."""
        spans = list(zip(self._shape, self._starts, self.sizes, self._strides, strict=True))
        high = tuple(n - ((size - 1) * by + 1) - first for n, first, size, by in spans)
        if any(isinstance(n, Dim) for n in (*self._starts, *high)):
            raise ArgumentError(
                "x[::step] = v needs to know the extents of x, found symbolic ones",
                fix="ptir.where(mask, v, x) with a mask of positions",
            )
        gaps = tuple(by - 1 for by in self._strides)
        value = False if source.dtype.is_bool else value
        return OPS["pad"](source, low=self._starts, high=high, interior=gaps, value=value)


class _Gather:
    """The index arrays of a key, as places along the axes ``first`` to ``last`` of y, merged."""

    def __init__(self, extents: Shape, parts: Sequence[Part]) -> None:
        arrays = [at for at, part in enumerate(parts) if isinstance(part, Places)]
        self.before, last = arrays[0], arrays[-1]
        spanned = list(zip(extents, parts, strict=True))[self.before : last + 1]
        self.broadcast = broadcast_shapes(
            *(part.indices.shape for _, part in spanned if isinstance(part, Places))
        )
        between = tuple(n for n, part in spanned if not isinstance(part, Places))
        self.shape = extents[: self.before], self.broadcast, (*between, *extents[last + 1 :])
        merged = product(tuple(n for n, _ in spanned))
        self._merged = *extents[: self.before], merged, *extents[last + 1 :]
        self._after = extents[last + 1 :]
        self._counted = (*self.broadcast, *between)
        self._places = _merged_places(spanned, self._counted)

    def read(self, y: Tensor) -> Tensor:
        """[pre, K, post], with the axes of K as they are: those of the arrays, then those of slices
        between them."""
        found = rows_at(_reshaped(y, self._merged), self._places, self.before)
        pre, places, post = self.shape
        return _reshaped(found, (*pre, *places, *post))

    def write(self, y: Tensor, source: Tensor, combine: Combine) -> Tensor:
        axis, count = self.before, product(self._counted)
        pre, after = self._merged[:axis], self._after
        source = _reshaped(source, (*pre, count, *after))
        row = _reshaped(self._places, (count,))
        into = _reshaped(y, self._merged)
        if combine == "mul":
            rows = moveaxis(source, axis, 0)
            extent = self._merged[axis]
            found = OPS["segment_reduce"](rows, row, count=extent, reduce="mul")
            return _reshaped(moveaxis(found, 0, axis), y.shape)
        index = _reshaped(row, (*(1,) * len(pre), count, *(1,) * len(after)))
        index = OPS["broadcast_to"](index, shape=source.shape)
        if combine == "add":
            found = OPS["scatter_add"](into, index, source, axis=axis)
        else:
            found = OPS["scatter_reduce"](into, index, source, axis=axis, reduce=combine)
        return _reshaped(found, y.shape)


def _merged_places(spanned: Sequence[tuple[DimLike, Part]], shape: Shape) -> Tensor:
    """The index arrays and slices along several axes as one array of places, of ``shape``, in the
    row-major order of their elements; -1 where one is out of range."""
    if len(spanned) == 1 and isinstance(spanned[0][1], Places):
        return counted(spanned[0][1].indices, spanned[0][0], 0)
    slices = sum(isinstance(part, Span) for _, part in spanned)
    behind = slices
    total: Any = 0
    inside: Tensor | None = None
    for axis, (extent, part) in enumerate(spanned):
        if isinstance(part, Places):
            place = counted(part.indices, extent, axis).astype("si64")
            place = _reshaped(place, (*place.shape, *(1,) * slices))
            if place.is_traced or isinstance(extent, Dim):
                lies = OPS["logical_and"](place >= 0, place < extent)
                inside = lies if inside is None else OPS["logical_and"](inside, lies)
        else:
            behind -= 1
            place = _reshaped(_count_up(extent), (extent, *(1,) * behind))
        total = total * extent + place if axis else place
    if inside is not None:
        total = OPS["select"](inside, total, -1)
    return total if same_shape(total.shape, shape) else OPS["broadcast_to"](total, shape=shape)


def counted(indices: Tensor, extent: DimLike, axis: int) -> Tensor:
    """``indices`` counted from the front. Raises `ElementError` for a known one out of range."""
    if indices.is_traced or isinstance(extent, Dim):
        return from_front(indices, extent)
    known = indices.numpy()
    wrong = (known >= extent) | (known < -extent)
    if wrong.any():
        raise ElementError(
            f"index {known[wrong].flat[0]} is out of range for axis {axis} of extent {extent}",
            fix="clamp the indices, or look at where they come from",
        )
    if not (known < 0).any():
        return indices
    return Tensor(np.where(known < 0, known.astype(np.int64) + extent, known))


def _count_up(extent: DimLike) -> Tensor:
    return OPS["iota"](shape=(extent,), dtype="si64")


def _reshaped(x: Tensor, shape: Shape) -> Tensor:
    return x if same_shape(x.shape, shape) else OPS["reshape"](x, shape=shape)

"""Boxes: contiguous parts of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gptrs.ir.dims import DimLike, Shape, same, same_shape


class Box(NamedTuple):
    """A part of an array without gaps."""

    starts: Shape
    sizes: Shape

    def equals(self, other: Box) -> bool:
        return same_shape(self.starts, other.starts) and same_shape(self.sizes, other.sizes)

    def is_whole(self, axis: int, shape: Shape) -> bool:
        """Whether it has all of an axis."""
        return same(self.sizes[axis], shape[axis])

    def covers(self, axes: range, shape: Shape) -> bool:
        """Whether it has all of some axes."""
        return all(self.is_whole(axis, shape) for axis in axes)

    def of(self, part: Box) -> Box:
        """The box that ``part``, a box of what this box holds, is of the array."""
        pairs = zip(self.starts, part.starts, strict=True)
        return Box(tuple(mine + theirs for mine, theirs in pairs), part.sizes)

    def within(self, other: Box) -> Box:
        """This box as a part of what ``other`` holds, which has it."""
        starts = tuple(
            mine - theirs for mine, theirs in zip(self.starts, other.starts, strict=True)
        )
        return Box(starts, self.sizes)

    def around(self, other: Box, shape: Shape) -> Box | None:
        """A box of an array of ``shape`` that has both: all of the axes on which they differ. None
        where that is all of the array."""
        mine, theirs = (zip(b.starts, b.sizes, strict=True) for b in (self, other))
        pairs = [
            a if same(a[0], b[0]) and same(a[1], b[1]) else (0, extent)
            for a, b, extent in zip(mine, theirs, shape, strict=True)
        ]
        starts, sizes = (tuple(pair[n] for pair in pairs) for n in (0, 1))
        return None if same_shape(sizes, shape) else Box(starts, sizes)

    def along(self, axes: Mapping[int, int], shape: Shape) -> Box | None:
        """The part of another array of which its ``axes`` are axes of this one, and all of its
        other axes; None where that is all of it."""
        starts: list[DimLike] = [0] * len(shape)
        sizes: list[DimLike] = [*shape]
        for theirs, ours in axes.items():
            if same(self.sizes[ours], 0):
                sizes[theirs] = 0
            elif not same(shape[theirs], 1):  # which is broadcast, or all of it is taken
                starts[theirs], sizes[theirs] = self.starts[ours], self.sizes[ours]
        box = Box(tuple(starts), tuple(sizes))
        return None if same_shape(box.sizes, shape) else box

"""Loop nests of indexed access: the words of `gptrs.kernels.indexing.loop_nest`.

Input: the axes of the index and of the rows behind it, at the sizes of a call. Axes that all arrays
can traverse as one are merged; the last one becomes the columns, one more the rows, and the rest is
around them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from gptrs.backends.faer.calls.axes import merged
from gptrs.backends.faer.calls.base import Binder, Word
from gptrs.ir.dims import DimLike
from gptrs.kernels.indexing.loop_nest import CHUNK, NEST_ARGUMENTS
from gptrs.lazy_dataclass import dataclass

_TILE = 8192  # elements of a tile, where there are so many
_SHORT = 16  # indices beside each other that are too few for vectors
_COLUMNS = 32  # of which a thread gets at least so many
_SHARED = 1 << 15  # elements from which on threads share a line
_WIDE, _LARGE = 24, 1 << 18
"""Columns, and elements of a table, from which on it pays that each thread reads all indices."""


class Axis(NamedTuple):
    """An axis: its extent, and its strides in the table, the index and the elements."""

    extent: int
    table: int
    indices: int
    elements: int


_ONE = Axis(1, 0, 0, 0)


@dataclass(frozen=True)
class Nest:
    """The loops at known sizes. An index of the ``line`` moves by ``step`` in the table, and is
    less than ``extent``."""

    outer: tuple[Axis, ...]
    rows: Axis
    line: Axis
    columns: Axis
    extent: int
    step: int

    @property
    def size(self) -> int:
        """The number of elements that are moved."""
        return math.prod(a.extent for a in (*self.outer, self.rows, self.line, self.columns))

    def checks(self) -> Nest:
        """The same indices without columns: nothing is moved."""
        axes = [a for a in (*self.outer, self.rows, self.columns) if a.indices]
        made = nest_of(axes, self.line, [], self.extent, self.step)
        return replace(made, columns=Axis(0, 0, 0, 0))

    def reading(self) -> tuple[dict[str, Word], int]:
        """The words of tiles of about `_TILE` elements, for a kernel that reads the table; and the
        extent."""
        column_tile = max(1, min(_TILE, self.columns.extent))
        piece = max(1, min(_TILE // column_tile, self.line.extent))
        row_tile = self._rows_of_a_tile(column_tile, piece)
        return self._words(column_tile, row_tile, piece, -(-self.line.extent // piece))

    def writing(self, threads: int) -> tuple[dict[str, Word], int]:
        """The words for a kernel that writes the table: whole lines. Where they are too few for all
        threads, these share the columns, or the places in the table."""
        column_tile, pieces = self.columns.extent, 1
        row_tile = self._rows_of_a_tile(self.columns.extent, self.line.extent)
        tiles = math.prod(a.extent for a in self.outer) * -(-self.rows.extent // row_tile)
        if tiles < threads and self.size >= _SHARED:
            if self.columns.indices:
                if self.columns.extent >= _COLUMNS * threads:
                    share = -(-self.columns.extent // threads)
                    column_tile = -(-share // _COLUMNS) * _COLUMNS
            elif column_tile >= _WIDE or self.extent * column_tile >= _LARGE:
                pieces = threads  # columns of one row would share a cache line
        return self._words(column_tile, row_tile, -(-self.extent // pieces), pieces)

    def _rows_of_a_tile(self, columns: int, indices: int) -> int:
        """As many as have about `_TILE` elements. All indices of a tile are checked before any is
        used: where each row has its own, no more than the first cache holds."""
        rows = _TILE // max(1, columns * indices)
        own = CHUNK // max(1, indices) if self.rows.indices else rows
        return max(1, min(rows, own))

    def _words(
        self, column_tile: int, row_tile: int, piece: int, pieces: int
    ) -> tuple[dict[str, Word], int]:
        columns, rows = self.columns, self.rows
        column_tiles = max(1, -(-columns.extent // max(1, column_tile)))
        row_tiles = -(-rows.extent // row_tile)
        words: dict[str, Word] = dict.fromkeys(NEST_ARGUMENTS, 0)
        words.update(extent=self.extent, step=self.step, line=self.line.extent)
        words.update(columns=columns.extent, column_tile=column_tile, column_tiles=column_tiles)
        words.update(rows=rows.extent, row_tile=row_tile, row_tiles=row_tiles)
        words.update(piece=piece, pieces=pieces, axes=len(self.outer))
        for name, axis in (("row", rows), ("line", self.line), ("column", columns)):
            strides = {"table": axis.table, "index": axis.indices, "elements": axis.elements}
            words.update({f"{a}_{name}": s for a, s in strides.items() if f"{a}_{name}" in words})
        around = math.prod(axis.extent for axis in self.outer)
        return words, around * row_tiles * pieces * column_tiles

    def block(self, words: Mapping[str, Word], **more: Word) -> list[Word]:
        """The argument block of these words and ``more``."""
        return [*{**words, **more}.values(), *(word for axis in self.outer for word in axis)]


def axes_of(b: Binder, shape: Sequence[DimLike], *strides: Sequence[DimLike] | int) -> list[Axis]:
    """Axes of these extents, with their strides in the table, the index and the elements; a number
    is the stride of all axes."""
    each = [(s,) * len(shape) if isinstance(s, int) else s for s in strides]
    return [Axis(*map(b.size, axis)) for axis in zip(shape, *each, strict=True)]


def nest_of(
    before: Iterable[Axis], line: Axis, after: Iterable[Axis], extent: int, step: int
) -> Nest:
    """The nest of these axes in row-major order, of which indices replace ``line``."""
    outer, inner = merged_axes(before), merged_axes(after)
    columns = inner.pop() if inner else _ONE
    if columns.indices and columns.extent < _SHORT:
        inner.append(columns)
        columns = _ONE
    outer += inner
    rows = outer.pop() if outer else _ONE
    return Nest(tuple(outer), rows, line, columns, extent, step)


def merged_axes(axes: Iterable[Axis]) -> list[Axis]:
    """The same positions in the same order, with as few axes as possible."""
    return [Axis(*axis) for axis in merged(axes)]

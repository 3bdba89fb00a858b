"""Lines along an axis: how a call reads the operand of an op along one axis.

Output: the words of `gptrs.kernels.ordering.lines` at the sizes of a call. The axis that lies most
closely in memory becomes the columns; axes that can be traversed as one are merged.
"""

from __future__ import annotations

from gptrs.backends.faer.calls.axes import Axis, merged
from gptrs.backends.faer.calls.base import Address, Binder
from gptrs.backends.memory_operands import Source
from gptrs.backends.views import View
from gptrs.kernels.ordering.lines import LINE_ARGUMENTS, TILE
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Lines:
    """An array at known sizes as lines along an axis. ``steps`` are the distances of the elements
    of a line in the operand and in the result."""

    count: int
    steps: tuple[int, int]
    axes: tuple[Axis, ...]

    @property
    def number(self) -> int:
        """How many lines there are."""
        total = 1
        for axis in self.axes:
            total *= axis.extent
        return total

    def triples(self) -> list[int]:
        """The words of the axes."""
        return [word for axis in self.axes for word in axis]


def lines_of(b: Binder, source: Source, axis: int, result: View) -> Lines:
    """The lines of ``source`` along ``axis``; ``result`` has its shape."""
    shape = [b.size(n) for n in source.view.shape]
    strides = [b.size(n) for n in source.view.strides]
    targets = [b.size(n) for n in result.strides]
    axes = [*zip(shape, strides, targets, strict=True)]
    around = merged(axes[:axis] + axes[axis + 1 :])
    return Lines(shape[axis], (strides[axis], targets[axis]), tuple(Axis(*each) for each in around))


def tiles_of(lines: Lines, tile: int = TILE) -> tuple[dict[str, int | Address], list[int], int]:
    """The words of `LINE_ARGUMENTS` for tiles of up to ``tile`` columns, the triples behind them,
    and the number of tiles."""
    axes = [*lines.axes]
    columns = axes.pop() if axes else Axis(1, 0, 0)
    outer = Lines(lines.count, lines.steps, tuple(axes))
    tile = max(1, min(tile, columns.extent))
    tiles = -(-columns.extent // tile)
    words: dict[str, int | Address] = dict.fromkeys(LINE_ARGUMENTS, 0)
    words.update(count=lines.count, x_step=lines.steps[0], result_step=lines.steps[1])
    words.update(columns=columns.extent, x_column=columns.source, result_column=columns.result)
    words.update(tile=tile, tiles=tiles, axes=len(axes))
    return words, outer.triples(), outer.number * tiles

"""Code generation of fused loops that are blocked for the cache: operands in permuted orders.

    for tile in first … last:                          # parallel: 16 rows
        for begin in 0, 128, … of the elements of a row:
            for row in the tile:
                for j in begin … begin + 128:
                    out[row, j] = f(x[row, j], y[j, row])

An operand that is contiguous along the rows is read one cache line per element by a loop along a
row. In a block its lines stay in the first cache until all rows of the tile have read them, and its
pages in the translation buffer. The rows of a tile are counted over all axes of rows, so that a
tile may cross the end of the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.backends.faer.loop_writer import LoopWriter
from gptrs.backends.regions import Region
from gptrs.backends.views import Load, Reduce, walk
from gptrs.ir.dims import DimLike, product, same

ROWS, ELEMENTS = 16, 128
"""A block: rows for a cache line of f32, and elements whose lines fill a quarter of an L1 cache."""
_NEAR = 16  # a stride in elements below which lines are read whole without blocks


class BlockedWriter(LoopWriter):
    """Writes the loops of a region without reductions in blocks of `ROWS` rows by `ELEMENTS`."""

    def __init__(self, region: Region, *, precise: bool = False, shared: bool = False) -> None:
        super().__init__(region, precise=precise, shared=shared)
        self._row.depth = self._depth = 4

    @property
    def loop(self) -> str:
        return "for tile in range(first, last):"

    @property
    def extent(self) -> DimLike:
        return (product(self.region.rows) + (ROWS - 1)) // ROWS

    def write(self) -> None:
        super().write()
        rows = self.words.size(product(self.region.rows), "rows")
        count = self.words.size(self.region.inner[-1], "n")
        self.rows = [
            f"        end_row = min(tile * {ROWS} + {ROWS}, {rows})",
            f"        for begin in range(0, {count}, {ELEMENTS}):",
            f"            for row in range(tile * {ROWS}, end_row):",
            *(f"        {line}" for line in self.rows),
        ]

    def _count(self, last: int) -> None:
        self.rows += [f"        {line}" for line in self._split("row", last)]

    def _heads(self, indices: Sequence[str], sizes: Sequence[str]) -> list[str]:
        end = f"min(begin + {ELEMENTS}, {sizes[-1]})"
        return [f"for {indices[-1]} in range(begin, {end}):"]


def prefers_blocks(region: Region) -> bool:
    """Whether an operand of ``region`` is contiguous across rows, and far apart along one."""
    parts = list(walk(region.expression))
    if not region.rows or len(region.inner) != 1 or any(isinstance(p, Reduce) for p in parts):
        return False
    last = len(region.rows) - 1
    return any(
        isinstance(part, Load)
        and same(part.view.strides[last], 1)
        and _is_far(part.view.strides[last + 1])
        for part in parts
    )


def _is_far(stride: DimLike) -> bool:
    return not isinstance(stride, int) or abs(stride) >= _NEAR

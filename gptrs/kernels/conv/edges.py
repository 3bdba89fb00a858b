"""Output rows of a convolution at the edges of the image: rows of taps that meet padding alone.

A row of taps above or below the image multiplies zeros; `Edges` leaves such rows out of the sums
where all taps concerned are finite (an infinite one or NaN times zero is NaN). Output rows are
grouped: edge rows one by one, the rows between them, which read all taps, at once. Used by
`gptrs.kernels.conv.direct`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gptrs.kernels.compiler.ir_builder import Function, i64
from gptrs.kernels.conv.window_tiles import inside


class Group(NamedTuple):
    """Rows of outputs that read the same rows of taps."""

    first: Any
    end: Any
    taps: tuple[Any, Any]
    """The first row of taps that meets the image, and the one behind the last."""
    prefetches: Any
    """Whether its row blocks prefetch the next panel."""


class Edges:
    """The rows of taps inside the image, from the argument block of a convolution."""

    def __init__(self, f: Function, arguments: dict[str, Any]) -> None:
        self._f, self._arguments = f, arguments
        # Outputs between these lack no row of the image.
        self._begin = f.ceiling(arguments["top"], arguments["stride_down"])
        reach = f.mul(f.sub(arguments["taps_down"], i64(1)), arguments["far_down"])
        room = f.sub(f.add(arguments["height"], arguments["top"]), reach)
        self._end = f.ceiling(f.positive(room), arguments["stride_down"])

    def taps(self, row: Any) -> tuple[Any, Any]:
        """The first row of taps that meets the image from output ``row``, and the one behind the
        last; equal if none does."""
        f, arguments = self._f, self._arguments
        start = f.sub(f.mul(row, arguments["stride_down"]), arguments["top"])
        return inside(f, start, arguments["height"], arguments["taps_down"], arguments["far_down"])

    def finite(self, top: Any, bottom: Any, panel: Any, row: Any) -> Any:
        """Whether the taps of ``panel`` are finite that rows ``top`` to ``bottom`` may leave out.

        A row of taps has ``row`` elements of the panel.
        """
        f = self._f
        begin, end = self.taps(top)[0], self.taps(f.sub(bottom, i64(1)))[1]
        lost = f.mul(f.sub(self._arguments["taps_down"], end), row)
        above = f.all_finite(panel, f.mul(begin, row))
        return f.and_(above, f.all_finite(f.at(panel, f.mul(end, row)), lost))

    @contextmanager
    def each_group(self, top: Any, bottom: Any, some: Any) -> Generator[Group]:
        """A loop over rows ``top`` to ``bottom``: rows at the edges one by one, if there are
        ``some`` edges, and all others at once."""
        f = self._f

        def between(row: Any, least: Any) -> Any:
            row = f.least(row, bottom)
            return f.select(f.icmp_signed("<", row, least), least, row)

        begin = f.select(some, between(self._begin, top), top)
        end = f.select(some, between(self._end, begin), bottom)
        above, middle = f.sub(begin, top), f.icmp_signed("<", begin, end)
        count = f.add(f.add(above, f.sub(bottom, end)), f.select(middle, i64(1), i64(0)))
        with f.loop(i64(0), count) as loop:
            among = f.icmp_signed("<=", loop.index, above)
            row = f.sub(bottom, f.sub(count, loop.index))
            first = f.select(among, f.add(top, loop.index), row)
            whole = f.and_(f.icmp_signed("==", loop.index, above), middle)
            behind = f.select(whole, end, f.add(first, i64(1)))
            met = self.taps(first)
            taps = (
                f.select(whole, i64(0), met[0]),
                f.select(whole, self._arguments["taps_down"], met[1]),
            )
            yield Group(first, behind, taps, f.or_(whole, f.not_(middle)))

"""Rows of outputs whose windows reach beyond the image: zeros there are left out of their sums."""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

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
    asks: Any
    """Whether its strips ask for the next panel."""


class Edges:
    """Where rows of taps are outside the image, by the words of a convolution."""

    def __init__(self, f: Function, words: dict[str, Any]) -> None:
        self._f, self._words = f, words
        # Outputs between these lack no row of the image.
        self._begin = f.ceiling(words["top"], words["stride_down"])
        reach = f.mul(f.sub(words["taps_down"], i64(1)), words["far_down"])
        room = f.sub(f.add(words["height"], words["top"]), reach)
        self._end = f.ceiling(f.positive(room), words["stride_down"])

    def taps(self, row: Any) -> tuple[Any, Any]:
        """The first row of taps that meets the image from output ``row``, and the one behind the
        last; equal if none does."""
        f, words = self._f, self._words
        start = f.sub(f.mul(row, words["stride_down"]), words["top"])
        return inside(f, start, words["height"], words["taps_down"], words["far_down"])

    def finite(self, top: Any, bottom: Any, panel: Any, row: Any) -> Any:
        """Whether those taps of ``panel`` are finite that rows ``top`` to ``bottom`` could do
        without. A row of taps has ``row`` elements of it."""
        f = self._f
        begin, end = self.taps(top)[0], self.taps(f.sub(bottom, i64(1)))[1]
        lost = f.mul(f.sub(self._words["taps_down"], end), row)
        above = f.all_finite(panel, f.mul(begin, row))
        return f.and_(above, f.all_finite(f.at(panel, f.mul(end, row)), lost))

    @contextmanager
    def each_group(self, top: Any, bottom: Any, some: Any) -> Generator[Group]:
        """A loop over rows ``top`` to ``bottom``: those at the edges one by one, if there are
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
                f.select(whole, self._words["taps_down"], met[1]),
            )
            yield Group(first, behind, taps, f.or_(whole, f.not_(middle)))

"""Code generation of loops that read elements next to each other: stencils.

    for begin in 0, 8, … of the elements of a row:
        start = begin, but for the last block the 8 elements at the end of the row
        for j in start … start + 8:
            out[j] = f(x[j − 1], x[j], x[j + 1])

Of vectors that begin at x[j − 1], x[j] and x[j + 1] two at least cross cache lines, those of half a
line every second time, those of a whole line each time. So a block is half a line, one vector of
256 bits. The last block repeats elements of the one before rather than go through the rest one by
one, of a row of 38 elements six. No array that a kernel reads overlaps its result.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from gptrs.backends.faer.expression_writer import Scope
from gptrs.backends.faer.loop_writer import LoopWriter
from gptrs.backends.regions import Region
from gptrs.backends.views import Apply, Literal, Load, View, walk
from gptrs.ir.dims import same
from gptrs.ir.ops.elementwise import abs_, add, div, mul, neg, sub
from gptrs.ir.types import f32, f64

_BITS = 256  # of a block, half a cache line
_OPS = frozenset({abs_, add, div, mul, neg, sub})
"""Ops that LLVM makes vectors of in a block without a loop."""


class NeighbourWriter(LoopWriter):
    """Writes the loops of a region that reads neighbours, in blocks."""

    @contextmanager
    def _loop(self, sizes: Sequence[str], letter: str) -> Generator[Scope]:
        (n,) = sizes
        scope = Scope((letter,), self._depth + 1)
        yield scope
        size = _BITS // self.region.result.type.dtype.bits
        heads = [
            f"for begin in range(0, {n} if {n} >= {size} else 0, {size}):",
            f"    start = min(begin, {n} - {size})",
            f"    for k in range({size}):",
            f"        {letter} = start + k",
        ]
        indent = "    " * self._depth
        self._nest(
            [
                *(indent + head for head in heads),
                *("    " + line for line in scope.lines),
                f"{indent}for {letter} in range({n} if {n} < {size} else 0):",
                *scope.lines,
            ]
        )


def reads_neighbours(region: Region) -> bool:
    """Whether the rows of ``region`` read an array at places that are less than a block apart, and
    are but arithmetic."""
    dtype = region.result.type.dtype
    if not region.rows or len(region.inner) != 1 or dtype not in (f32, f64):
        return False
    loads: list[Load] = []
    for part in walk(region.expression):
        if part.dtype is not dtype:
            return False
        if isinstance(part, Load):
            loads.append(part)
        elif not isinstance(part, Literal) and not (isinstance(part, Apply) and part.op in _OPS):
            return False
    along = [load for load in loads if load.view.depends(-1)]
    if not all(same(view.strides[-1], 1) for view in (region.output, *(x.view for x in along))):
        return False
    near = _BITS // dtype.bits
    return any(
        a.value is b.value and a is not b and _apart(a.view, b.view, near)
        for a in along
        for b in along
    )


def _apart(a: View, b: View, near: int) -> bool:
    distance = a.offset - b.offset
    return a.strides == b.strides and isinstance(distance, int) and 0 < distance < near

"""Code generation of fused loops over short rows: norms of points, the greatest of few classes.

    for row in range(first, last):
        sum = ((f(x[row, 0]) + f(x[row, 8])) + f(x[row, 4])) + …
        for j in range(10): out[row, j] = …

The elements of a reduction are written out, so that they stay in registers: lanes in memory would
be stored one by one and loaded as vectors, which waits for the stores. Elements are joined as in
`gptrs.kernels.rowwise.reduce`, whose lanes they are, so that a result has the bits that it has in
other loops.

LLVM makes vectors across rows of up to 8 elements, which it shuffles, so the lengths and strides of
rows are in the text. Elements of longer ones it would gather one by one: those are computed row by
row, in vectors of the elements of one, unless functions such as exp take most of the time.
"""

from __future__ import annotations

from typing import NamedTuple

from gptrs.backends.faer import scalars
from gptrs.backends.faer.expression_writer import Scope
from gptrs.backends.faer.loop_writer import LoopWriter
from gptrs.backends.regions import Region
from gptrs.backends.value_numbering import ValueNumbering
from gptrs.backends.vectorization import crosses_rows
from gptrs.backends.views import Apply, Expression, Iota, Literal, Reduce, View, walk
from gptrs.ir.dims import DimLike, Shape
from gptrs.ir.ops import elementwise, reduce

_MOST = 32  # elements of a row
_COST = 96  # additions that all elements of a reduction cost: each has a text of its own
_READ, _WRITTEN = 8, 7  # adjacent elements that LLVM shuffles well to vectors across rows
_FUNCTION = 10  # additions that exp and the like cost


class ShortRowWriter(LoopWriter):
    """Writes the loops of a region whose rows have few elements, a number that is known."""

    def write(self) -> None:
        self._by_row = is_row_by_row(self.region)
        if self._by_row:
            self._row.add("row_by_row()")
        super().write()

    def _sum(self, part: Reduce, word: str) -> str:
        zero = scalars.start(part.op, part.accumulator)
        text = f"{zero} + {self._joined(part, self._row)}"
        return self._name(self._row, word, text, part.accumulator)

    def _fold(self, part: Reduce, word: str) -> str:
        if self._by_row and (place := _place(part, self.region)) is not None:
            return self._place(part, place)
        if self._by_row and word in _EXTREMES:
            text = f"{_EXTREMES[word]}(({', '.join(self._written_out(part, self._row))}))"
        else:
            text = self._joined(part, self._row)
        return self._name(self._row, word, text, part.accumulator)

    def _place(self, part: Reduce, place: Place) -> str:
        """The first place of an element."""
        row = Scope(("0",), self._row.depth, self._row.lines)
        best, other = (self._emit(x, row) for x in (place.best, place.other))
        scopes = (Scope((str(k),), row.depth, row.lines) for k in range(int(part.extents[0])))
        elements = ", ".join(self._emit(place.x, scope) for scope in scopes)
        text = f"first_equal(({elements}), {best}, {other})"
        return self._name(self._row, "place", text, part.accumulator)

    def _words_of(self, extents: Shape) -> list[str]:
        return [str(extent) for extent in extents]

    def _stride(self, stride: DimLike, shared: object) -> str:
        literal = isinstance(stride, int) and abs(stride) <= _MOST
        return str(stride) if literal else super()._stride(stride, shared)


_EXTREMES = {"max": "greatest_of", "min": "least_of"}


class Place(NamedTuple):
    """The least place along an axis where ``x`` equals ``best`` or is NaN; ``other`` if there is
    none."""

    x: Expression
    best: Expression
    other: Expression


def _place(part: Reduce, region: Region) -> Place | None:
    """What a reduction finds the place of, as `gptrs.backends.faer.expansions` writes argmax."""
    if part.op is not reduce.reduce_min:
        return None
    match part.body:
        case Apply(
            op=elementwise.select,
            operands=(
                Apply(
                    op=elementwise.logical_or,
                    operands=(
                        Apply(op=elementwise.equal, operands=(x, best)),
                        Apply(op=elementwise.not_equal, operands=(y, z)),
                    ),
                ),
                Iota(view=View(strides=(*before, 1), offset=0)),
                Literal() as other,
            ),
        ) if not any(before) and isinstance(best, Reduce):
            numbers = ValueNumbering(len(region.rows))
            return Place(x, best, other) if len({*map(numbers.number, (x, y, z))}) == 1 else None
        case _:
            return None


def is_row_by_row(region: Region) -> bool:
    """Whether the rows are too long for vectors across them, and have nothing that needs such
    vectors: functions, or reductions of integers but those of argmax."""
    reductions = reductions_of(region)
    read = max((int(n) for part in reductions for n in part.extents), default=0)
    written = max(map(int, region.inner), default=0)
    if read <= _READ and written <= _WRITTEN:
        return False
    costs = (part.op.cost for part in walk(region.expression) if isinstance(part, Apply))
    kept = all(part.accumulator.is_float or _place(part, region) is not None for part in reductions)
    return kept and all(cost < _FUNCTION for cost in costs)


def is_of_short_rows(region: Region) -> bool:
    """Whether a region has the form at the head of this file."""
    if not region.rows or region.others or not all(map(_is_short, region.inner)):
        return False
    reductions = reductions_of(region)
    if not reductions and not region.inner:
        return False
    return all(_can_be_written(region, part) for part in reductions)


def reductions_of(region: Region) -> list[Reduce]:
    return [part for part in walk(region.expression) if isinstance(part, Reduce)]


def _can_be_written(region: Region, part: Reduce) -> bool:
    if len(part.extents) != 1 or not _is_short(part.extents[0]) or part.chunks is not None:
        return False
    if part.accumulator.is_complex or crosses_rows(region, part):
        return False
    costs = (p.op.cost for p in walk(part.body, into=False) if isinstance(p, Apply))
    return int(part.extents[0]) * sum(costs) <= _COST


def _is_short(extent: DimLike) -> bool:
    return isinstance(extent, int) and 1 < extent <= _MOST

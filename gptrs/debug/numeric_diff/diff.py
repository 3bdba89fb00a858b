"""`Diff`: two runs of one program, instruction by instruction, as text, HTML and JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from gptrs.debug.explain import columns
from gptrs.debug.numeric_diff.deviation import Deviation
from gptrs.debug.numeric_diff.element_errors import ElementErrors
from gptrs.errors import Location
from gptrs.html_tables import code, fragment, styled, table
from gptrs.lazy_dataclass import dataclass

_HEAD = ("", "op", "result", "own abs", "rel", "ulp", "total abs", "elements", "line")
_DIFFERS = "differs"


@dataclass(frozen=True)
class Row:
    """One instruction, or one result of the whole function.

    ``own`` is the error of the instruction alone: both ways compute it from the same operands.
    ``total`` is the difference of what both ways give there, with all that was different before.
    """

    number: int
    """Of the instruction, in program order; of a result its number."""
    op: str
    text: str
    """The instruction as the program prints it."""
    type: str
    where: Location | None
    """The user's line."""
    own: ElementErrors | None
    """None for results, and for instructions that cannot be run alone (effects)."""
    total: ElementErrors
    path: tuple[str, ...] = ()
    """The loop iterations and branches that it is in: ``("scan body, iteration 3",)``."""
    note: str = ""

    @property
    def judged(self) -> ElementErrors:
        """The errors that decide: `own`, of results `total`."""
        return self.total if self.own is None else self.own

    @property
    def agrees(self) -> bool:
        """Whether every element is within its bound."""
        return self.judged.beyond == 0

    def as_json(self) -> dict[str, Any]:
        """The row as plain data."""
        return {
            "number": self.number,
            "op": self.op,
            "text": self.text,
            "type": self.type,
            "where": None if self.where is None else str(self.where),
            "path": list(self.path),
            "own": None if self.own is None else self.own.as_json(),
            "total": self.total.as_json(),
            "agrees": self.agrees,
            "note": self.note,
        }


@dataclass(frozen=True)
class Diff:
    """What two ways to run a function give. Its text is a table that ends with the verdict."""

    function: str
    a: str
    b: str
    """The names of the ways."""
    rows: tuple[Row, ...]
    """One for each instruction of the traced program, in its order; none where a way is a Python
    function."""
    results: tuple[Row, ...]
    """One for each array that the function returns, of the program as it runs."""
    cause: Deviation | None = None
    """The pass that changes what the program computes, or the instruction after all passes that
    differs, where that was found."""

    @property
    def first(self) -> Row | None:
        """The first row that is beyond its bound; of a loop or branch the instruction inside."""
        wrong = [row for row in (*self.rows, *self.results) if not row.agrees]
        if not wrong:
            return None
        return next((row for row in wrong[1:2] if row.path), wrong[0])

    @property
    def agrees(self) -> bool:
        """Whether all rows are within their bounds."""
        return self.first is None

    def as_json(self) -> str:
        """A line of JSON for each row, and one for the verdict."""
        rows = [{"kind": "instruction", **row.as_json()} for row in self.rows]
        rows += [{"kind": "result", **row.as_json()} for row in self.results]
        verdict = {
            "kind": "verdict",
            "function": self.function,
            "a": self.a,
            "b": self.b,
            "agrees": self.agrees,
            "verdict": self.verdict,
        }
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in (*rows, verdict))

    @property
    def verdict(self) -> str:
        """One line: whether they agree, else what differs first and where."""
        first, ways = self.first, f"{self.function}: {self.a} and {self.b}"
        if first is None:
            most = max((row.total.max_abs for row in self.results), default=0.0)
            count = f"{len(self.rows)} instructions within their bounds, " if self.rows else ""
            return f"{ways} agree: {count}results differ by at most {most:.3g}"
        errors, at = first.judged, f" at {first.where}" if first.where else ""
        inside = "".join(f" in {each}" for each in first.path)
        apart = f"{errors.beyond} of {errors.size} elements, max abs {errors.max_abs:.3g}"
        said = f"{ways} differ first in {first.op} ({first.type}){inside}{at}: {apart}"
        if self.cause is not None:
            what = "the pass" if self.cause.kind == "pass" else "what runs"
            said += f"; to blame: {what} {self.cause.name}"
        return said

    def __str__(self) -> str:
        table = columns([_HEAD, *map(_cells, (*self.rows, *self.results))])
        return "\n".join([f"{self.function}, {self.a} against {self.b}:", *table, *self._end()])

    __repr__ = __str__

    def _end(self) -> Iterator[str]:
        yield ""
        if self.cause is not None:
            yield from self.cause.lines(self.a)
            yield ""
        yield self.verdict

    def _repr_html_(self) -> str:
        """The same for notebooks; the instruction and its line are a tooltip of each op."""
        rows = map(_html_cells, (*self.rows, *self.results))
        return fragment(table(_HEAD, rows, numbers=range(3, 7)), code("\n".join(self._end())))


def _cells(row: Row) -> tuple[str, ...]:
    own = row.own
    numbers = ("", "", "") if own is None else _numbers(own)
    op = " › ".join((*row.path, row.op))
    elements = f"{row.judged.differing} of {row.judged.size}" if row.judged.differing else ""
    mark = ("?" if row.judged.unknown else "") if row.agrees else _DIFFERS
    line = os.path.basename(row.where.place) if row.where else row.note
    return (mark, op, row.type, *numbers, f"{row.total.max_abs:.2g}", elements, line)


def _numbers(errors: ElementErrors) -> tuple[str, str, str]:
    return f"{errors.max_abs:.2g}", f"{errors.max_rel:.2g}", f"{errors.max_ulp:.2g}"


def _html_cells(row: Row) -> tuple[str, ...]:
    mark, op, *others = _cells(row)
    title = row.text if row.where is None else f"{row.text}\n{row.where}"
    return mark, styled("" if row.agrees else "minus", op, title), *others

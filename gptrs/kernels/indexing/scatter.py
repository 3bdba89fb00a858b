"""Elements of a table replaced, added, multiplied or compared at indices: scatter and segments.

    one index per row of the table:            one index per element:
    for k in line, in order                    for k in line, in order
        row = index[k]                             for j in columns
        table[row, :] += elements[k, :]                table[index[k, j], j] += elements[k, j]

The loops are those of `gptrs.kernels.indexing.loop_nest`. Elements meet at one place only along the
line, which one thread traverses in order. A piece is a range of the table's rows: a thread reads
all indices of the line, and of each chunk it lists those that are in its range.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import Literal

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.indexing.loop_nest import (
    CHUNK,
    UNROLL,
    Elements,
    index_at,
    nest_source,
    unrolled,
)

Combine = Literal["replace", "add", "mul", "max", "min"]


def scatter_kernel(combine: Combine, table: Elements, number: str, index: Elements) -> Kernel:
    """table[r, index[r, k, j], j] is combined with elements[r, k, j], for each k in order.

    ``number`` is the type that arithmetic on loaded elements has. Arguments: `NEST_ARGUMENTS`;
    extent: the axes, the tiles and the pieces.
    """
    name = f"scatter_{combine}_{table.name}_{index.name}"
    combined = _combined(combine, table, number)
    functions = _row_function(combined, table)
    source = nest_source(name, table, index, functions, _body(index, combined, table))
    return compile_source(source, name)


Combined = Callable[[str, str], str]


def _combined(combine: Combine, table: Elements, number: str) -> Combined:
    """The text of the number that an element of the table becomes."""

    def text(old: str, new: str) -> str:
        x, y = table.load(old), table.load(new)
        match combine:
            case "replace":
                return y
            case "add" | "mul":
                return f"{number}(({x}) {'+' if combine == 'add' else '*'} ({y}))"
            case "max" | "min":
                name = "maximum" if combine == "max" else "minimum"
                return f"{name if number.startswith('float') else combine}({x}, {y})"

    return text


def _row_function(combined: Combined, table: Elements) -> str:
    """``combine_row``: a contiguous row of the table combined with one of the elements."""
    load = f"xJ = {combined('table[to + j + J]', 'elements[at + j + J]')}"
    body = unrolled(UNROLL, load, f"table[to + j + J] = {table.store('xJ')}")
    return f"""
def combine_row(elements, at, table, to, width):
    whole = width // {UNROLL} * {UNROLL}
    for j in range(0, whole, {UNROLL}):
{indent(body, " " * 8)}
    for j in range(whole, width):
        x = {combined("table[to + j]", "elements[at + j]")}
        table[to + j] = {table.store("x")}
"""


def _body(index: Elements, combined: Combined, table: Elements) -> str:
    def one(to: str, at: str) -> str:
        x = combined(f"table[{to}]", f"elements[{at}]")
        return f"x = {x}\ntable[{to}] = {table.store('x')}"

    def at_index(k: str) -> str:
        """The statements for position ``k`` of a chunk."""
        return f"""\
to = target + {index_at(index, f"places + {k} * index_line")} * step
at = source + {k} * elements_line
if width == 1:
{indent(one("to", "at"), "    ")}
elif table_column == 1 and elements_column == 1:
    combine_row(elements, at, table, to, width)
else:
    for j in range(width):
{indent(one("to + j * table_column", "at + j * elements_column"), " " * 8)}"""

    return f"""
low = part * piece
chosen = local_int32s({CHUNK})
if index_column == 0:
    for chunk in range(0, line, {CHUNK}):
        count = min({CHUNK}, line - chunk)
        first_index = index_first + chunk * index_line
        first_element = elements_first + chunk * elements_line
        top = highest_of_rows(index, first_index, index_row, height, index_line, count)
        if top >= uint64(extent):
            failures = 1
            height = 0
        for r in range(height):
            target = table_first + r * table_row
            places, source = first_index + r * index_row, first_element + r * elements_row
            if pieces == 1:
                for k in range(count):
{indent(at_index("k"), " " * 20)}
            else:
                some = 0
                for k in range(count):
                    chosen[some] = k
                    i = {index_at(index, "places + k * index_line")}
                    some += int64(uint64(i - low) < uint64(piece))
                for n in range(some):
                    k = int64(chosen[n])
{indent(at_index("k"), " " * 20)}
else:
    for r in range(height):
        target = table_first + r * table_row
        for k in range(line):
            places = index_first + r * index_row + k * index_line
            at = elements_first + r * elements_row + k * elements_line
            if highest(index, places, index_column, width) >= uint64(extent):
                failures = 1
            else:
                for j in range(width):
                    i = {index_at(index, "places + j * index_column")}
                    to = target + i * step + j * table_column
{indent(one("to", "at + j * elements_column"), " " * 20)}
"""

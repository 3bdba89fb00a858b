"""The loops of indexed access, and their argument block: a table, indices, and elements beside
them.

    for outer in axes[0], axes[1], ...            # any number of axes: their indices by division
        for tile of rows, piece, tile of columns  # extent: outer · tiles
            for chunk of line                     # the axis that indices replace
                for row in rows of the tile
                    for k in chunk
                        for j in columns of the tile  # vectors where contiguous
                            table[row, index[row, k, j], j]  and  elements[row, k, j]

An array that lacks an axis has stride 0 along it. Where the index has none along the columns, it is
read once for a whole row of the table. The indices of a chunk in all rows, or those along the
columns, are compared with the extent as vectors before any is used, so that the loop that moves
elements has no test.
"""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import indent

from gptrs.lazy_dataclass import dataclass

CHUNK = 1024
"""Indices of a line that are checked at a time: they stay in the first cache."""
UNROLL = 8
"""Elements of a row that are all read before the first one is written: the compiler need not know
that the arrays are apart to use vectors."""

_ARRAYS = ("table", "index", "elements")
NEST_ARGUMENTS = (
    *(*_ARRAYS, "status", "extent", "step"),
    *("columns", "column_tile", "column_tiles", "line", "piece", "pieces"),
    *("rows", "row_tile", "row_tiles", "axes"),
    *(f"{array}_row" for array in _ARRAYS),
    *("index_line", "elements_line"),
    *(f"{array}_column" for array in _ARRAYS),
)
"""The argument block, in order; then, for each of the ``axes``, the outermost first: its extent,
and its stride in each array.

An index from 0 to ``extent`` − 1 moves by ``step`` elements in the table. ``status`` is the address
of a `gptrs.kernels.driver.step_table.Status`, where code 1 is stored if an index is out of range.
There are ``column_tiles`` tiles of ``column_tile`` (the last may have fewer) in ``columns``, rows
likewise; what the ``pieces`` of size ``piece`` divide is up to the kernel. Strides count elements.
Arrays that are written overlap no other.
"""

_OFFSET = """
def offset(axes, count, position, which):
    total = 0
    for k in range(count - 1, -1, -1):
        extent = axes[4 * k]
        rest = position // extent
        total += (position - rest * extent) * axes[4 * k + which]
        position = rest
    return total
"""


@dataclass(frozen=True)
class Elements:
    """A dtype in kernel source: its name, the pointer to what is stored, and the texts of a loaded
    element and of a stored number, with ``X`` for what is converted."""

    name: str
    pointer: str
    loaded: str = "X"
    stored: str = "X"

    def load(self, place: str) -> str:
        """The text of the element at ``place``."""
        return self.loaded.replace("X", place)

    def store(self, name: str) -> str:
        """The text of the number ``name`` as it is stored."""
        return self.stored.replace("X", name)


def index_at(index: Elements, place: str) -> str:
    """The text of an index as a signed integer of 64 bits."""
    return f"int64({index.load(f'index[{place}]')})"


def nest_source(name: str, table: Elements, index: Elements, functions: str, body: str) -> str:
    """The source of the kernel ``name``: the statements ``body`` for each tile.

    They may use ``height`` and ``width``, the numbers of rows and columns, the places
    ``table_first``, ``index_first`` and ``elements_first`` of the tile's first elements, and
    ``part``, the number of the piece. ``functions`` are those that they call, beside ``highest``
    and ``highest_of_rows``.
    """
    pointers = {"table": table.pointer, "index": index.pointer, "elements": table.pointer}
    firsts = (
        f"{array}_first = offset(shifted(w, {len(NEST_ARGUMENTS)}), axes, outer, {number})"
        f" + begin * {array}_row + column * {array}_column"
        for number, array in enumerate(_ARRAYS, 1)
    )
    return f"""{_OFFSET}
{_highest(index)}
{functions.strip()}


def {name}(arguments, first, last):
    w = words(arguments)
{_lines((f"{word} = w[{place}]" for place, word in enumerate(NEST_ARGUMENTS)), 4)}
{_lines((f"{array} = {pointer}({array})" for array, pointer in pointers.items()), 4)}
    failures = 0
    for item in range(first, last):
        rest = item // column_tiles
        column = (item - rest * column_tiles) * column_tile
        width = min(column_tile, columns - column)
        part = rest % pieces
        rest = rest // pieces
        outer = rest // row_tiles
        begin = (rest - outer * row_tiles) * row_tile
        height = min(row_tile, rows - begin)
{_lines(firsts, 8)}
{indent(body.strip(), " " * 8)}
    if failures != 0:
        report_failure(status, 1)
"""


def unrolled(count: int, load: str, store: str) -> str:
    """The statements ``load`` for ``count`` elements, then the statements ``store``; in both ``J``
    is the number of an element."""
    lines = [text.replace("J", str(j)) for text in (load, store) for j in range(count)]
    return "\n".join(lines)


def _highest(index: Elements) -> str:
    """``highest``: the greatest of some indices as unsigned numbers; a negative one is huge. And
    ``highest_of_rows``: of as many in each of some rows."""

    def loop(place: str) -> str:
        return f"""
        for k in range(count):
            top = max(top, uint64({index_at(index, place)}))"""

    return f"""
def highest(index, at, step, count):
    top = uint64(0)
    if step == 1:{loop("at + k")}
    else:{loop("at + k * step")}
    return top


def highest_of_rows(index, at, row, height, step, count):
    if row == step * count:
        return highest(index, at, step, height * count)
    top = uint64(0)
    for r in range(height):
        top = max(top, highest(index, at + r * row, step, count))
    return top
"""


def _lines(lines: Iterable[str], spaces: int) -> str:
    return indent("\n".join(lines), " " * spaces)

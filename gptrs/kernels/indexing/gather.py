"""Elements of a table read at indices: take and gather; indices checked alone.

    one index per row of the table:            one index per element:
    for k in line                              for k in line
        row = index[k]                             for j in columns
        elements[k, :] = table[row, :]                 elements[k, j] = table[index[k, j], j]

Elements are moved as bits, from any strides to any. The loops are those of
`gptrs.kernels.indexing.loop_nest`; a piece is a part of the line.
"""

from __future__ import annotations

from textwrap import indent

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.indexing.loop_nest import (
    CHUNK,
    UNROLL,
    Elements,
    index_at,
    nest_source,
    unrolled,
)
from gptrs.kernels.rowwise.block_copy import BITS


def gather_kernel(size: int, index: Elements) -> Kernel:
    """elements[r, k, j] = table[r, index[r, k, j], j], of elements of ``size`` bytes.

    Arguments: `NEST_ARGUMENTS`; extent: the axes, the tiles and the pieces. Without columns it only
    checks the indices.
    """
    name = f"gather{size}_{index.name}"
    table = Elements(str(size), BITS[size])
    return compile_source(nest_source(name, table, index, _MOVE, _body(index)), name)


def index_check_kernel(index: Elements) -> Kernel:
    """Fails where an index is out of range, as `gather_kernel` without columns does: it is shorter,
    and compiles in less time. Arguments: `NEST_ARGUMENTS`; extent: the axes, the tiles and the
    pieces."""
    name = f"check_{index.name}"
    table = Elements("8", BITS[8])
    return compile_source(nest_source(name, table, index, "", _CHECK), name)


_CHECK = f"""
start = part * piece
end = min(start + piece, line)
for chunk in range(start, end, {CHUNK}):
    count = min({CHUNK}, end - chunk)
    first_index = index_first + chunk * index_line
    top = highest_of_rows(index, first_index, index_row, height, index_line, count)
    if top >= uint64(extent):
        failures = 1
"""

_MOVE = f"""
def move(table, at, elements, to, width):
    whole = width // {UNROLL} * {UNROLL}
    for j in range(0, whole, {UNROLL}):
{indent(unrolled(UNROLL, "xJ = table[at + j + J]", "elements[to + j + J] = xJ"), " " * 8)}
    for j in range(whole, width):
        elements[to + j] = table[at + j]
"""


def _body(index: Elements) -> str:
    return f"""
start = part * piece
end = min(start + piece, line)
if index_column == 0:
    for chunk in range(start, end, {CHUNK}):
        count = min({CHUNK}, end - chunk)
        first_index = index_first + chunk * index_line
        first_element = elements_first + chunk * elements_line
        top = highest_of_rows(index, first_index, index_row, height, index_line, count)
        if top >= uint64(extent):
            failures = 1
            height = 0
        for r in range(height):
            at, to = first_index + r * index_row, first_element + r * elements_row
            source = table_first + r * table_row
            if width == 1:
                for k in range(count):
                    i = source + {index_at(index, "at + k * index_line")} * step
                    elements[to + k * elements_line] = table[i]
            elif table_column == 1 and elements_column == 1:
                for k in range(count):
                    i = source + {index_at(index, "at + k * index_line")} * step
                    move(table, i, elements, to + k * elements_line, width)
            else:
                for k in range(count):
                    i = source + {index_at(index, "at + k * index_line")} * step
                    for j in range(width):
                        place = to + k * elements_line + j * elements_column
                        elements[place] = table[i + j * table_column]
else:
    for r in range(height):
        source = table_first + r * table_row
        for k in range(start, end):
            at = index_first + r * index_row + k * index_line
            to = elements_first + r * elements_row + k * elements_line
            if highest(index, at, index_column, width) >= uint64(extent):
                failures = 1
            else:
                for j in range(width):
                    i = source + {index_at(index, "at + j * index_column")} * step
                    elements[to + j * elements_column] = table[i + j * table_column]
"""

"""Positions in sorted rows, by binary search of many values in step.

    for row, block of values:                      # extent
        low[i] = 0
        for half of 1/2, 1/4, ... of the row       # the same for all values
            for i in block                         # vectors: gathers and selects
                low[i] += half if rows[low[i] + half - 1] stands before values[i]

Elements are compared by the keys of a sort (`gptrs.kernels.ordering.keys`).
"""

from __future__ import annotations

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.ordering.keys import KeyType

BLOCK = 256
"""The most values that are searched in step."""


def binary_search_kernel(key: KeyType) -> Kernel:
    """result[r, i] = how many elements of rows[r] stand before values[r, i], or beside it.

    Arguments: the parameters of the source; strides count elements, and a row of ``columns`` values
    has ``blocks`` blocks. Extent: rows times ``blocks``.
    """
    return compile_source(_source(key), f"binary_search_{key.name}")


def _source(key: KeyType) -> str:
    def advance(half: str, place: str) -> str:
        return f"""for i in range(width):
                other = key_of(rows[start + ({place}) * step], flip)
                before = (other < keys[i]) | ((other == keys[i]) & beside)
                low[i] += {half} if before else 0"""

    return f"""{key.source()}

def binary_search_{key.name}(
    rows: {key.pointer}, values: {key.pointer}, out: words, right: int64, length: int64,
    columns: int64, blocks: int64, row: int64, step: int64, values_row: int64, values_step: int64,
    first, last,
):
    keys, low = local_{key.keys}({BLOCK}), local_words({BLOCK})
    flip, beside = {key.number}(0), right != 0
    for item in range(first, last):
        which = item // blocks
        begin = (item - which * blocks) * {BLOCK}
        width = min({BLOCK}, columns - begin)
        at, start = which * values_row + begin * values_step, which * row
        for i in range(width):
            keys[i] = key_of(values[at + i * values_step], flip)
            low[i] = 0
        count = length
        while count > 1:
            half = count >> 1
            {advance("half", "low[i] + half - 1")}
            count -= half
        if length > 0:
            {advance("1", "low[i]")}
        for i in range(width):
            out[which * columns + begin + i] = low[i]
"""

"""Positions of the greatest or least element along an axis, the first of equals.

    columns contiguous:                        otherwise:
    for i in count                             for block of 256 elements of the line    # vectors
        for j in tile       # vectors              m = greatest key of the block
            if key of x[i, j] > best[j]:           if m > best: best = m; where = block
                best[j], at[j] = ...           at = first element of that block whose key is best

The layout is that of `gptrs.kernels.ordering.lines`. Keys are those of a sort
(`gptrs.kernels.ordering.keys`), complemented for the least element, but NaN wins at both ends: it
has a key above all others. Each element is read once, those of one block twice.
"""

from __future__ import annotations

from collections.abc import Callable

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.ordering.keys import KeyType
from gptrs.kernels.ordering.lines import LINE_ARGUMENTS, OFFSET, unpacked

EXTREME_ARGUMENTS = ("flip", *LINE_ARGUMENTS)
"""0 for the greatest element or -1 for the least; then `LINE_ARGUMENTS`. The result (int64) has one
element for each line. A line has less than 2³¹."""

BLOCK = 256
"""Elements of a line, whose number is known to the compiler."""
COLUMNS = 1024
"""The most columns of a tile."""


def arg_extreme_kernel(isa: Isa, key: KeyType) -> Kernel:
    """result = the position of the greatest or least of x[0], ..., x[count - 1], along lines.

    Arguments: `EXTREME_ARGUMENTS`; extent: the axes times ``tiles``.
    """
    return compile_source(_source(key, isa.vector_bits), f"arg_extreme_{key.name}")


def _source(key: KeyType, vector_bits: int) -> str:
    ranked = "key_of(element, flip)"
    if key.nan is not None:
        ranked = f"{key.number}({key.greatest}) if is_nan(element) else {ranked}"

    def block(size: str, step: str) -> str:
        return f"""
            for i in range({size}):
                most = max(most, rank(x[here + i{step}], flip))"""

    def found(size: str, step: str) -> str:
        return f"""
            for i in range({size}):
                is_best = rank(x[at + i{step}], flip) == best
                first = min(first, int32(i) if is_best else int32({BLOCK}))"""

    def of_any_step(loop: Callable[[str, str], str], margin: str) -> str:
        """The loop for elements apart, and those for a whole block and a part of one, if they may
        be contiguous."""
        apart = f"if x_step != 1:{loop('size', ' * x_step')}"
        if key.numbers:
            return apart
        return f"""{apart}
{margin}elif size == {BLOCK}:{loop(str(BLOCK), "")}
{margin}else:{loop("size", "")}"""

    adjacent = ""
    if key.numbers:
        adjacent = f"""
        elif x_step == 1:
            line = shifted({key.numbers}(address), at)
            for j in range(width):
                if flip == 0:
                    found = first_greatest(shifted(line, j * x_column), count, {vector_bits})
                else:
                    found = first_least(shifted(line, j * x_column), count, {vector_bits})
                result[to + j * result_column] = found"""
    return f"""{OFFSET}
{key.source()}

def rank(element, flip):
    return {ranked}


def first_of(x, at, x_step, size, flip, best):
    first = int32(size)
    {of_any_step(found, " " * 4)}
    return first


def of_line(x, at, x_step, count, flip):
    best, where, size = rank(x[at], flip), 0, min({BLOCK}, count)
    for block in range(0, count, {BLOCK}):
        block = min(block, count - size)  # the last one begins in the one before
        here = at + block * x_step
        most = rank(x[here], flip)
        {of_any_step(block, " " * 8)}
        if most > best:
            best, where = most, block
    return where + first_of(x, at + where * x_step, x_step, size, flip, best)


def of_columns(x, at, x_step, count, flip, width, best, places):
    for j in range(width):
        best[j] = rank(x[at + j], flip)
        places[j] = 0
    for i in range(1, count):
        here = at + i * x_step
        for j in range(width):
            key = rank(x[here + j], flip)
            better = key > best[j]
            best[j] = key if better else best[j]
            places[j] = int32(i) if better else places[j]


def arg_extreme_{key.name}(arguments, first, last):
{unpacked(EXTREME_ARGUMENTS)}
    address, x, result, flip = x, {key.pointer}(x), words(result), {key.number}(flip)
    best, places = local_{key.keys}({COLUMNS}), local_int32s({COLUMNS})
    for item in range(first, last):
        outer = item // tiles
        begin = (item - outer * tiles) * tile
        width = min(tile, columns - begin)
        at = offset(triples, axes, outer, 1) + begin * x_column
        to = offset(triples, axes, outer, 2) + begin * result_column
        if x_column == 1 and x_step != 1:
            of_columns(x, at, x_step, count, flip, width, best, places)
            for j in range(width):
                result[to + j * result_column] = places[j]{adjacent}
        else:
            for j in range(width):
                found = of_line(x, at + j * x_column, x_step, count, flip)
                result[to + j * result_column] = found
"""

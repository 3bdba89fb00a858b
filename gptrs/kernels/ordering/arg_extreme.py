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

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.ordering.keys import KeyType
from gptrs.kernels.ordering.lines import LINE_ARGUMENTS, OFFSET, unpacked

EXTREME_ARGUMENTS = ("flip", *LINE_ARGUMENTS)
"""0 for the greatest element or -1 for the least; then `LINE_ARGUMENTS`. The result (int64) has one
element for each line. A line has less than 2³¹."""

BLOCK = 256
"""Elements of a line, whose number is known to the compiler."""
COLUMNS = 1024
"""The most columns of a tile."""


def arg_extreme_kernel(key: KeyType) -> Kernel:
    """result = the position of the greatest or least of x[0], ..., x[count - 1], along lines.

    Arguments: `EXTREME_ARGUMENTS`; extent: the axes times ``tiles``.
    """
    return compile_source(_source(key), f"arg_extreme_{key.name}")


_RANKED = """
def of_ends(most, least, flip):
    return most
"""

_ENDS = """
def of_ends(most, least, flip):
    if most > {infinity} or least < ~{infinity}:
        return {number}({greatest})
    most = {number}(most ^ flip)
    most = {number}(most + 1) if most < 0 else most  # keys are two's complement
    return {number}(most ^ flip)
"""


def _source(key: KeyType) -> str:
    ranked = "key_of(element, flip)"
    if key.nan is not None:
        ranked = f"{key.number}({key.greatest}) if is_nan(element) else {ranked}"

    monotone = key.nan is not None and bool(key.monotone)
    each = "monotone(x[{0}], flip)" if monotone else "rank(x[{0}], flip)"

    def block(size: str, step: str) -> str:
        return f"""
            for i in range({size}):
                key = {each.format(f"here + i{step}")}
                most = max(most, key)
                least = min(least, key)"""

    def found(size: str, step: str) -> str:
        return f"""
            for i in range({size}):
                is_best = rank(x[at + i{step}], flip) == best
                first = min(first, int32(i) if is_best else int32({BLOCK}))"""

    ends = _ENDS.format(infinity=(key.nan or 1) - 1, greatest=key.greatest, number=key.number)
    return f"""{OFFSET}
{key.source()}

def rank(element, flip):
    return {ranked}


def monotone(x, flip):
    return {key.number}(({key.monotone or 0}) ^ flip)

{ends if monotone else _RANKED}

def first_of(x, at, x_step, size, flip, best):
    first = int32(size)
    if x_step != 1:{found("size", " * x_step")}
    elif size == {BLOCK}:{found(str(BLOCK), "")}
    else:{found("size", "")}
    return first


def of_line(x, at, x_step, count, flip):
    best, where, size = rank(x[at], flip), 0, min({BLOCK}, count)
    for block in range(0, count, {BLOCK}):
        block = min(block, count - size)  # the last one begins in the one before
        here = at + block * x_step
        most = least = {each.format("here")}
        if x_step != 1:{block("size", " * x_step")}
        elif size == {BLOCK}:{block(str(BLOCK), "")}
        else:{block("size", "")}
        most = of_ends(most, least, flip)
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
    x, result, flip = {key.pointer}(x), words(result), {key.number}(flip)
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
                result[to + j * result_column] = places[j]
        else:
            for j in range(width):
                found = of_line(x, at + j * x_column, x_step, count, flip)
                result[to + j * result_column] = found
"""

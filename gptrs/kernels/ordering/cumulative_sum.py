"""Cumulative sums along an axis, in order.

    columns contiguous:                       the axis contiguous:
    for i in count                            for 4 lines at a time (then 1)
        for j in tile        # vectors            for i in count
            sum[j] += x[i, j]                         sum += x[line, i]      # 4 chains
            result[i, j] = sum[j]                     result[line, i] = sum

The layout is that of `gptrs.kernels.ordering.lines`. Each sum is the one before plus the next
element, in the type of the op's arithmetic, and is rounded to the dtype as it is stored: the bits
of NumPy. An addition takes 2 to 4 cycles that the next one of its line waits for; four lines fill
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.ordering.lines import LINE_ARGUMENTS, OFFSET, TILE, unpacked

LINES = 4
"""Lines that are summed beside each other where the axis is contiguous."""


@dataclass(frozen=True)
class Element:
    """A dtype in kernel source: pointers to what is stored and to numbers that are added, the type
    of such a number, and texts that convert between the two."""

    name: str
    pointer: str
    numbers: str
    number: str
    read: Callable[[str], str]
    stored: Callable[[str], str]


def cumulative_sum_kernel(element: Element) -> Kernel:
    """result[i] = x[0] + ... + x[i] along lines of elements.

    Arguments: `LINE_ARGUMENTS`; extent: the axes times ``tiles``.
    """
    return compile_source(_source(element), f"cumulative_sum_{element.name}")


def _source(e: Element) -> str:
    def lines(count: int) -> str:
        """The loop over ``count`` lines that begin at ``source`` and ``target``."""
        first = [
            f"s{k} = {e.read(f'x[source + {k} * x_column]')}\n"
            f"result[target + {k} * result_column] = {e.stored(f's{k}')}"
            for k in range(count)
        ]
        more = [
            f"s{k} = {e.number}(s{k} + {e.read(f'x[source + {k} * x_column + i * x_step]')})\n"
            f"result[target + {k} * result_column + i * result_step] = {e.stored(f's{k}')}"
            for k in range(count)
        ]
        body = "\n".join(more).replace("\n", "\n                    ")
        start = "\n".join(first).replace("\n", "\n                ")
        return f"""
                source = at + column * x_column
                target = to + column * result_column
                {start}
                for i in range(1, count):
                    {body}"""

    def columns(x_column: str, result_column: str) -> str:
        x, to = f"x[source{x_column}]", f"result[target{result_column}]"
        return f"""
            source, target = at, to
            for j in range(width):
                s = {e.number}({e.read(x)})
                sums[j] = s
                {to} = {e.stored("s")}
            for i in range(1, count):
                source, target = at + i * x_step, to + i * result_step
                for j in range(width):
                    s = {e.number}(sums[j] + {e.read(x)})
                    sums[j] = s
                    {to} = {e.stored("s")}"""

    return f"""{OFFSET}
def cumulative_sum_{e.name}(arguments, first, last):
{unpacked(LINE_ARGUMENTS)}
    x, result = {e.pointer}(x), {e.pointer}(result)
    sums = local_{e.numbers}({TILE})
    for item in range(first, last):
        outer = item // tiles
        begin = (item - outer * tiles) * tile
        width = min(tile, columns - begin)
        at = offset(triples, axes, outer, 1) + begin * x_column
        to = offset(triples, axes, outer, 2) + begin * result_column
        if x_column == 1 and result_column == 1:{columns(" + j", " + j")}
        else:
            whole = width // {LINES} * {LINES}
            for column in range(0, whole, {LINES}):{lines(LINES)}
            for column in range(whole, width):{lines(1)}
"""

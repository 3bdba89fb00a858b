"""Rows of a few arrays joined to one: points of their coordinates, concat of few columns.

    for row in range(first, last):                  # extent
        whole[row] = part 0[row], part 1[row], ...  # written out

Elements are moved as bits. Widths, and the strides of rows that follow each other, are in the text:
LLVM shuffles vectors across short rows, longer ones are written one by one
(`gptrs.backends.faer.short_row_writer`).
"""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.rowwise.block_copy import BITS

_SHUFFLED, _BYTES = 8, 32  # elements of a row, and bytes, that shuffles of vectors write well


def join_rows_kernel(size: int, widths: Sequence[int], contiguous: Sequence[bool]) -> Kernel:
    """Joins rows of parts of these ``widths``, of elements of ``size`` bytes; rows of those that
    are ``contiguous`` follow each other.

    Arguments: the addresses of the whole and of each part, then the distance between rows of each
    part in elements, read where they do not follow each other. Extent: rows. The whole overlaps no
    part.
    """
    named = "_".join(f"{w}" if c else f"{w}s" for w, c in zip(widths, contiguous, strict=True))
    name, count, total = f"join_rows{size}_{named}", len(widths), sum(widths)
    pointer = BITS[size]
    lines = ["w = words(arguments)", f"whole = {pointer}(w[0])"]
    lines += [f"x{n} = {pointer}(w[{n + 1}])" for n in range(count)]
    lines += [f"s{n} = w[{count + n + 1}]" for n in range(count) if not contiguous[n]]
    lines.append("for row in range(first, last):")
    body = ["row_by_row()"] if total > _SHUFFLED or total * size > _BYTES else []
    loads, stores = list[str](), list[str]()
    for n, width in enumerate(widths):
        row = f"row * {width}" if contiguous[n] else f"row * s{n}"
        for j in range(width):
            place = len(stores)
            loads.append(f"a{place} = x{n}[{row} + {j}]")
            stores.append(f"whole[row * {total} + {place}] = a{place}")
    lines += [f"    {line}" for line in (*body, *loads, *stores)]
    text = "\n".join(f"    {line}" for line in lines)
    return compile_source(f"def {name}(arguments, first, last):\n{text}\n", name)

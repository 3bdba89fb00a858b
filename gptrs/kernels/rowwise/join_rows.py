"""Rows of a few arrays joined to one: points of their coordinates, concat of few columns.

    for row in range(first, last):                  # extent
        whole[row] = part 0[row], part 1[row], ...  # written out

Elements are moved as bits. Widths, and short distances of rows, are in the text: LLVM shuffles
vectors across short rows, longer ones are written one by one
(`gptrs.backends.faer.short_row_writer`).
"""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.rowwise.block_copy import BITS

_SHUFFLED, _BYTES = 8, 32  # elements of a row, and bytes, that shuffles of vectors write well


def join_rows_kernel(size: int, widths: Sequence[int], strides: Sequence[int | None]) -> Kernel:
    """Joins rows of parts of these ``widths``, of elements of ``size`` bytes; between rows of a
    part are as many elements as its stride says, if it is known.

    Arguments: the addresses of the whole and of each part, then the stride of each part, which is
    read where it is not known. Extent: rows. The whole overlaps no part.
    """
    known = ("any" if stride is None else str(stride) for stride in strides)
    parts = (f"{width}of{stride}" for width, stride in zip(widths, known, strict=True))
    name, count, total = f"join_rows{size}_{'_'.join(parts)}", len(widths), sum(widths)
    pointer = BITS[size]
    lines = ["w = words(arguments)", f"whole = {pointer}(w[0])"]
    lines += [f"x{n} = {pointer}(w[{n + 1}])" for n in range(count)]
    lines += [f"s{n} = w[{count + n + 1}]" for n in range(count) if strides[n] is None]
    lines.append("for row in range(first, last):")
    body = ["row_by_row()"] if total > _SHUFFLED or total * size > _BYTES else []
    loads, stores = list[str](), list[str]()
    for n, width in enumerate(widths):
        row = f"row * s{n}" if strides[n] is None else f"row * {strides[n]}"
        for j in range(width):
            place = len(stores)
            loads.append(f"a{place} = x{n}[{row} + {j}]")
            stores.append(f"whole[row * {total} + {place}] = a{place}")
    lines += [f"    {line}" for line in (*body, *loads, *stores)]
    text = "\n".join(f"    {line}" for line in lines)
    return compile_source(f"def {name}(arguments, first, last):\n{text}\n", name)

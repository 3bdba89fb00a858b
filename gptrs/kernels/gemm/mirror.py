"""Mirror the lower triangles of square matrices: the second half of a symmetric product A·Aᵀ.

    for (matrix, block of rows):                # extent
        for columns before the diagonal, as many at a time:
            transpose a square of elements in registers
        for the elements next to the diagonal:  one by one

Elements are copied as bits. Caller: `gptrs.backends.faer.calls.tiled_steps`; the tiled product
(`gptrs.kernels.gemm.tiled`) has computed the elements on the diagonal and below.
"""

from __future__ import annotations

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa

_LANES = 8
MIRROR_ARGUMENTS = ("matrices", "size", "blocks")
"""The argument block of `mirror_kernel`: the first element, the rows of a matrix, and
`mirror_blocks` of them. The extent is matrices times blocks."""


def mirror_blocks(size: int) -> int:
    """The number of blocks of rows of a matrix."""
    return -(-size // _LANES)


def mirror_kernel(isa: Isa, bits: int) -> KernelText:
    """Copy elements of so many ``bits`` below the diagonal to their place above it.

    Arguments: `MIRROR_ARGUMENTS`.
    """
    name = f"mirror{bits}"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, MIRROR_ARGUMENTS[:1], MIRROR_ARGUMENTS[1:])
    element, size = ir.IntType(bits), w["size"]
    vector = ir.VectorType(element, _LANES)
    with f.loop(first, last) as item:
        matrix, block = f.udiv(item.index, w["blocks"]), f.urem(item.index, w["blocks"])
        base = f.at(w["matrices"], f.mul(matrix, f.mul(size, size)), element)
        top = f.mul(block, i64(_LANES))
        end = f.least(f.add(top, i64(_LANES)), size)
        whole = f.icmp_signed("==", f.sub(end, top), i64(_LANES))
        squares = f.select(whole, top, i64(0))
        with f.loop(i64(0), squares, i64(_LANES)) as left:
            rows = [f.add(f.mul(f.add(top, i64(i)), size), left.index) for i in range(_LANES)]
            square = f.transposed([f.read(f.at(base, row, element), vector) for row in rows])
            for i, column in enumerate(square):
                place = f.add(f.mul(f.add(left.index, i64(i)), size), top)
                f.write(column, f.at(base, place, element))
        with f.loop(top, end) as row, f.loop(squares, row.index) as column:
            source = f.add(f.mul(row.index, size), column.index)
            place = f.add(f.mul(column.index, size), row.index)
            f.write(f.read(f.at(base, source, element), element), f.at(base, place, element))
    f.ret_void()
    return KernelText(str(module), name)

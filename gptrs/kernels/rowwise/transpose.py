"""Transposing block copy: an n-dimensional block whose contiguous axes differ in source and
destination, in tiles that are transposed in registers.

    for panel in axes[0], axes[1], ..., panels of 64 rows       # parallel
        for column in 0, L, 2L, ... of columns
            for row in the panel, in steps of L                 # an L x L tile
                v[k] = source[row : row + L, column + k]        # L vectors, contiguous
                v = transpose of v                              # log₂ L steps of shuffles
                destination[row + k, column : column + L] = v[k]

    argument block:  | pointers, sizes | axes · (extent, source stride, destination stride) |

L is the number of elements in a vector, at most 16. The destination is contiguous along a row, the
source along a column. A panel reads 256 bytes at a time of each line of an f32 source, and writes
64 lines side by side: neither side leaves the caches with a part of a line, nor its pages the
translation buffer. The last tile of a side ends where the side does and overlaps the one before.
Elements are moved as bits, 1 to 16 bytes; those of 16 bytes are vectors themselves (L is 4, each
moved alone).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I8, I64, POINTER, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.block_copy import ElementBytes

PANEL = 64
"""Rows of the destination that are written side by side."""

TRANSPOSE_ARGUMENTS = (
    *("source", "destination", "rows", "columns", "source_column", "destination_row", "axes"),
)
"""The argument block of `transpose_kernel`, in order; then ``axes`` triples (extent, stride in the
source, stride in the destination) of the axes around them, the outermost first.

There are ``columns`` elements in a row of the destination, contiguous there and ``source_column``
apart in the source; ``rows`` of them, contiguous in the source and ``destination_row`` apart in the
destination. Both are at least `tile_side`. Distances count elements. Source and destination do not
overlap.
"""


def tile_side(isa: Isa, size: ElementBytes) -> int:
    """The rows and columns of a tile in registers."""
    return 4 if size == 16 else min(16, isa.vector_bits // (8 * size))


def transpose_kernel(isa: Isa, size: ElementBytes) -> KernelText:
    """destination[..., row, column] = source[..., column, row], of elements of ``size`` bytes.

    Arguments: `TRANSPOSE_ARGUMENTS`; extent: the product of the axes and of ⌈rows / `PANEL`⌉.
    """
    module = ir.Module(f"transpose{size} {isa.name}")
    f = Function.kernel(module, isa, f"transpose{size}")
    address, first, last = f.arguments
    w = f.argument_block(address, TRANSPOSE_ARGUMENTS[:2], TRANSPOSE_ARGUMENTS[2:])
    side = tile_side(isa, size)
    panels = f.ceiling(w["rows"], i64(PANEL))
    ends = [f.sub(w[name], i64(side)) for name in ("rows", "columns")]
    with f.loop(first, last) as item:
        places = _origin(f, address, w, f.udiv(item.index, panels))
        source, destination = (
            f.at(w[name], f.mul(place, i64(size)), I8)
            for name, place in zip(("source", "destination"), places, strict=True)
        )
        begin = f.mul(f.urem(item.index, panels), i64(PANEL))
        end = f.least(f.add(begin, i64(PANEL)), w["rows"])
        with f.loop(i64(0), w["columns"], i64(side)) as columns:
            column = f.least(columns.index, ends[1])
            with f.loop(begin, end, i64(side)) as rows:
                row = f.least(rows.index, ends[0])
                _tile(f, size, side, w, source, destination, row, column)
    f.ret_void()
    return KernelText(str(module), f"transpose{size}")


def _origin(f: Function, address: Any, w: dict[str, Any], index: Any) -> list[Any]:
    """Where matrix number ``index`` begins in the source and in the destination."""
    block = f.inttoptr(f.add(address, i64(8 * len(TRANSPOSE_ARGUMENTS))), POINTER)
    with f.loop(i64(0), w["axes"], carried=[index, i64(0), i64(0)]) as back:
        axis = f.sub(f.sub(w["axes"], i64(1)), back.index)  # from the innermost to the first
        at = f.mul(axis, i64(3))
        extent, *strides = (f.word(f.at(block, f.add(at, i64(word)), I64)) for word in range(3))
        rest, *places = back.values
        along = f.urem(rest, extent)
        moved = [f.add(p, f.mul(along, s)) for p, s in zip(places, strides, strict=True)]
        back.values = [f.udiv(rest, extent), *moved]
    return back.values[1:]


def _tile(
    f: Function,
    size: ElementBytes,
    side: int,
    w: dict[str, Any],
    source: Any,
    destination: Any,
    row: Any,
    column: Any,
) -> None:
    """Transpose one tile."""

    def line(base: Any, number: Any, stride: Any, begin: Any) -> Any:
        return f.at(base, f.mul(f.add(f.mul(number, stride), begin), i64(size)), I8)

    origins = [
        [line(source, f.add(column, i64(k)), w["source_column"], row) for k in range(side)],
        [line(destination, f.add(row, i64(k)), w["destination_row"], column) for k in range(side)],
    ]
    align = min(size, 8)
    if size == 16:
        kind = ir.VectorType(I64, 2)
        for k in range(side):
            for j in range(side):
                value = f.load(f.at(origins[0][k], i64(16 * j), I8), align=align, typ=kind)
                f.store(value, f.at(origins[1][j], i64(16 * k), I8), align=align)
        return
    kind = ir.VectorType(ir.IntType(8 * size), side)
    lines = [f.load(place, align=align, typ=kind) for place in origins[0]]
    for value, place in zip(f.transposed(lines), origins[1], strict=True):
        f.store(value, place, align=align)

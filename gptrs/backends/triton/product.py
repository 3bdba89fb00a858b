"""Matrix products of floats as tile programs.

    program: a batch, SIDE rows, SIDE columns
        for each DEPTH of k:
            total += A[rows, k] · B[k, columns]         `tl.dot`, zeros beyond the ends

Products of 16-bit floats are exact in f32, in which they are added; those of f32 are not rounded
before (``ieee``).
"""

from __future__ import annotations

from dataclasses import replace

from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.operands import terms
from gptrs.backends.c_family.kernels.product import Product
from gptrs.backends.c_family.kernels.product_tiles import tiled_dot_general_calls
from gptrs.backends.memory_operands import Graph
from gptrs.backends.triton.tiles import (
    ELEMENTS,
    as_python,
    has_tiles,
    is_plain,
    lines_of,
    tile_call,
)
from gptrs.ir.program import Instruction

SIDE, DEPTH = 64, 32
_WARPS, _STAGES = 4, 3


def dot_general_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """The kernels of a ``dot_general``: a tile program where C has tiles, too."""
    calls = tiled_dot_general_calls(instruction, graph)
    made = Product.of(instruction, graph)
    if not made.is_float or not has_tiles((made.a.value, made.b.value, made.result)):
        return calls
    tiles = _tiles(made, instruction)
    if tiles is None:
        return calls
    return [replace(tiles, when=call.when) if call.kernel.group else call for call in calls]


def _tiles(made: Product, instruction: Instruction) -> KernelCall | None:
    if not all(axes.extents for axes in (made.rows, made.columns, made.depth)):
        return None  # a product of vectors
    builder = KernelBuilder()
    height, width = made.rows.size, made.columns.size
    across, down = (width + SIDE - 1) // SIDE, (height + SIDE - 1) // SIDE
    x, y = builder.read(made.a.value), builder.read(made.b.value)
    batches, (a_batch, b_batch) = made.batch.place(builder, "batch", "b")
    rows, (a_row,) = made.rows.place(builder, "row", "m")
    columns, (b_column,) = made.columns.place(builder, "column", "n")
    depths, (a_depth, b_depth) = made.depth.place(builder, "k", "k")
    m, n, depth = (builder.dim(size) for size in (height, width, made.depth.size))
    a_at, b_at = terms(made.a.offset(builder), a_batch), terms(made.b.offset(builder), b_batch)
    out = builder.write(made.result)
    texts = (m, n, depth, a_at, b_at, a_row, b_column, a_depth, b_depth)
    if not is_plain(*texts, *batches, *rows, *columns, *depths):
        return None
    m, n, depth, a_at, b_at, a_row, b_column, a_depth, b_depth = map(as_python, texts)
    a_row, b_column = _vector(a_row, "row"), _vector(b_column, "column")
    a_depth, b_depth = _vector(a_depth, "k"), _vector(b_depth, "k")
    wide = "" if made.a.dtype is made.b.dtype else ".to(tl.float32)"
    inside = f"(row < {m})[:, None] & (column < {n})[None, :]"
    lines = [
        f"across, outer = item % (({n} + {SIDE - 1}) // {SIDE}),"
        f" item // (({n} + {SIDE - 1}) // {SIDE})",
        f"down, batch = outer % (({m} + {SIDE - 1}) // {SIDE}),"
        f" outer // (({m} + {SIDE - 1}) // {SIDE})",
        *lines_of(batches),
        f"row, column = down * {SIDE} + tl.arange(0, {SIDE}),"
        f" across * {SIDE} + tl.arange(0, {SIDE})",
        *lines_of([*rows, *columns]),
        f"a_rows, b_columns = {x} + {a_at} + {a_row}, {y} + {b_at} + {b_column}",
        f"total = tl.zeros(({SIDE}, {SIDE}), tl.float32)",
        f"for first in range(0, {depth}, {DEPTH}):",
        f"    k = (first + tl.arange(0, {DEPTH})).to(tl.int64)",
        *(f"    {line}" for line in lines_of(depths)),
        f"    a = tl.load(a_rows[:, None] + ({a_depth})[None, :],",
        f"                mask=(row < {m})[:, None] & (k < {depth})[None, :], other=0.0){wide}",
        f"    b = tl.load(({b_depth})[:, None] + b_columns[None, :],",
        f"                mask=(k < {depth})[:, None] & (column < {n})[None, :], other=0.0){wide}",
        '    total = tl.dot(a, b, total, input_precision="ieee")',
        f"place = (batch * {m} + row[:, None]) * {n} + column[None, :]",
        f"rounded = total.to({ELEMENTS[made.result.type.dtype.name]})",
        f"tl.store({out} + place, rounded, mask={inside})",
    ]
    extent = made.batch.size * down * across
    work = made.depth.size * SIDE
    call = builder.call("matmul_tile_program", "item", extent, lines, [instruction], work=work)
    return tile_call(call, _WARPS, _STAGES)


def _vector(place: str, index: str) -> str:
    """An operand's part of an index as a vector, where it does not move along the axis either."""
    return f"{index} * 0" if place == "0" else place

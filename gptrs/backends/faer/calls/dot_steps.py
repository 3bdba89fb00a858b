"""Steps of products with one column: the rows of matrices times vectors, read where they lie.

A step computes the dot products of a batch (`gptrs.kernels.gemm.dot`), and a second one adds up the
segments of long rows. Callers: `gptrs.backends.faer.calls.unpacked_product` for f32, and
`gptrs.backends.faer.calls.tiled_product` for other real numbers.
"""

from __future__ import annotations

from dataclasses import replace

from gptrs.backends.faer.calls.arguments import Arguments, Grid, grids
from gptrs.backends.faer.calls.base import Binder, Word, kernel
from gptrs.backends.faer.calls.contraction import ProductEpilogue
from gptrs.ir.dims import DimLike
from gptrs.ir.program import Value
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.dot import (
    DOT_ARGUMENTS,
    SEGMENT,
    dot_kernel,
    dot_segments,
    dot_totals_kernel,
)
from gptrs.kernels.gemm.number_types import NumberTypes
from gptrs.kernels.gemm.product import Product

BYTES_PER_NS = 10.0


def compile_dots(isa: Isa, types: NumberTypes, depth: DimLike, product: Product) -> None:
    """Compile the kernels of `bind_dots` for any size."""
    kernel(dot_kernel, isa, product, types)
    if not isinstance(depth, int) or depth > SEGMENT:
        kernel(dot_totals_kernel, isa, product, types)


def bind_dots(
    b: Binder, core: Arguments, product: Product, epilogue: ProductEpilogue, result: Value
) -> None:
    """Add the steps of a product with one column, whose rows and vectors are contiguous."""
    types = replace(core.types, group=1)
    for grid in grids(b, core):
        _bind_grid(b, replace(core, types=types), product, epilogue, result, grid)


def _bind_grid(
    b: Binder,
    core: Arguments,
    product: Product,
    epilogue: ProductEpilogue,
    result: Value,
    grid: Grid,
) -> None:
    rows, depth = b.size(core.rows), b.size(core.depth)
    count, segments, first = grid.matrices * rows, dot_segments(depth), grid.first * rows
    words: dict[str, Word] = {"rows": rows, "depth": depth, "segments": segments}
    words |= {"a": b.address(core.a.value, grid.a), "x": b.address(core.b.value, grid.b)}
    words |= {"c": b.address(result, first), "lda": b.size(core.a.outer)} | grid.words()
    words |= column_words(epilogue, b, first, count)
    for i, axis in enumerate(grid.axes):
        words |= {f"a_step{i}": axis.a, f"x_step{i}": axis.b}
    if segments > 1:
        words["totals"] = b.scratch(8 * count * segments)
    block = [words.get(name, 0) for name in DOT_ARGUMENTS]
    time = core.types.stored_bytes * count * depth / BYTES_PER_NS
    b.step(kernel(dot_kernel, b.isa, product, core.types), block, count * segments, time)
    if segments > 1:
        time = 8 * count * segments / BYTES_PER_NS
        b.step(kernel(dot_totals_kernel, b.isa, product, core.types), block, count, time)


def column_words(
    epilogue: ProductEpilogue, b: Binder, first_row: int, rows: int
) -> dict[str, Word]:
    """The argument words of the epilogue of a product with one column, which is treated as a row
    where the residual is contiguous."""
    words = epilogue.words(b, first_row)
    if epilogue.residual is None or words["ldr"] == 1:
        return words | {"by_rows": 1, "ldc": rows, "ldr": rows}
    return words | {"by_rows": 0, "ldc": 1}

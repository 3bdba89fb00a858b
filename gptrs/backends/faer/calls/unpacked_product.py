"""Matrix products without packing: one column (GEMV), few rows or few columns.

Such a product takes as long as its matrix takes to be read from memory, so packing would not pay.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as cartesian
from math import prod
from typing import Any

from gptrs.backends.faer.calls.base import PIECES, Address, Binder, kernel
from gptrs.backends.faer.calls.contraction import Contraction, Operand, ProductEpilogue
from gptrs.ir.dims import DimLike
from gptrs.ir.program import Value
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.gemm.dot import (
    DOT_ARGUMENTS,
    SEGMENT,
    SHORTEST,
    dot_kernel,
    dot_segments,
    dot_totals_kernel,
)
from gptrs.kernels.gemm.gemv import GEMV_ARGUMENTS, MOST_VECTORS, gemv_kernel
from gptrs.kernels.gemm.gemv_transposed import gemv_transposed_kernel
from gptrs.kernels.gemm.product import Product

BYTES_PER_NS = 10.0
MOST_PRODUCTS = 1024
"""The largest batch: each of its products has steps of its own."""


_IN_BATCHES = 128 * KB
"""Smaller matrices of a batch are multiplied by one step."""


def _at_most(value: DimLike, most: int) -> bool:
    """Whether a dimension may be at most ``most`` at some size."""
    return not isinstance(value, int) or value <= most


def compile_column(core: Contraction, isa: Isa, product: Product) -> None:
    """Compile the kernels of `bind_column` for any size."""
    if core.a.transposed:
        kernel(gemv_kernel, isa, product, short=True)
        return
    if not core.batch and _at_most(core.depth, SHORTEST - 1):
        kernel(gemv_transposed_kernel, isa, product)
    if core.batch or not isinstance(core.depth, int) or core.depth >= SHORTEST:
        kernel(dot_kernel, isa, product)
        if not isinstance(core.depth, int) or core.depth > SEGMENT:
            kernel(dot_totals_kernel, isa, product)


def compile_few(core: Contraction, isa: Isa, product: Product) -> None:
    """Compile the kernels of `bind_few` for any size."""
    few_rows = _at_most(core.rows, MOST_VECTORS)
    if few_rows and core.b.transposed:
        kernel(gemv_kernel, isa, product)
    if (few_rows and not core.b.transposed) or _at_most(core.columns, MOST_VECTORS):
        kernel(gemv_transposed_kernel, isa, product)


def are_many(core: Contraction) -> bool:
    """Whether there may be many rows and many columns, for which `bind_few` declines."""
    few = [isinstance(n, int) and n <= MOST_VECTORS for n in (core.rows, core.columns)]
    return not any(few)


def positions(b: Binder, core: Contraction) -> list[tuple[int, int]] | None:
    """The first elements of A and B for each product of a batch; None for too many products."""
    extents = [b.size(n) for n in core.batch]
    count = 1
    for extent in extents:
        count *= extent
    if count > MOST_PRODUCTS:
        return None
    starts = ([*map(b.size, (o.matrix.offset, *o.batch))] for o in (core.a, core.b))
    (a, *a_strides), (w, *b_strides) = starts
    return [
        (a + _dot(place, a_strides), w + _dot(place, b_strides))
        for place in cartesian(*map(range, extents))
    ]


def _dot(place: Sequence[int], strides: Sequence[int]) -> int:
    return sum(i * s for i, s in zip(place, strides, strict=True))


def bind_few(
    b: Binder, core: Contraction, product: Product, epilogue: ProductEpilogue, result: Value
) -> bool:
    """Add the steps of products with few rows or few columns; False where both are many, and for a
    batch of small matrices: each product has steps of its own."""
    rows, columns, depth = map(b.size, (core.rows, core.columns, core.depth))
    count = prod(map(b.size, core.batch))
    small = 4 * depth * max(rows, columns) < _IN_BATCHES or count > MOST_PRODUCTS
    if min(rows, columns) > MOST_VECTORS or (count > 1 and small):
        return False
    places = positions(b, core)
    for number, (a, w) in enumerate(places or ()):
        words = epilogue.words(b, number * rows)
        words |= {"c": b.address(result, number * rows * columns), "ldc": columns}
        sides = (core.a, a), (core.b, w)
        if rows <= MOST_VECTORS:
            words["by_rows"] = 1
        else:
            sides = sides[1], sides[0]
        _gemv(b, core, product, words, *sides)
    return True


def _gemv(
    b: Binder,
    core: Contraction,
    product: Product,
    words: dict[str, int | Address],
    vectors: tuple[Operand, int],
    matrix: tuple[Operand, int],
    **options: Any,
) -> None:
    """Add a step for the product of vectors and a matrix, each an operand and its first element."""
    (x, x_start), (w, start) = vectors, matrix
    sizes = [b.size(core.rows), b.size(core.columns)]
    count, outputs = sizes if x is core.a else reversed(sizes)
    depth, stride = b.size(core.depth), b.size(x.matrix.stride)
    item = _item(b, outputs, _WIDE if w.transposed else 1)
    block: dict[str, int | Address] = dict.fromkeys(GEMV_ARGUMENTS, 0)
    block |= {"x": b.address(x.value, x_start), "matrix": b.address(w.value, start)}
    block |= {"vectors": count, "depth": depth, "outputs": outputs, "item": item}
    block |= {"x_step": 1, "x_depth": stride} if x.transposed else {"x_step": stride, "x_depth": 1}
    block |= {"ldm": b.size(w.matrix.stride)} | words
    build = gemv_kernel if w.transposed else gemv_transposed_kernel
    time = 4 * depth * outputs / BYTES_PER_NS
    code = kernel(build, b.isa, product, **options)
    b.step(code, [*block.values()], -(-outputs // item), time)


_WIDE = 1024
"""The least columns of a matrix [K, N] per thread: long contiguous reads are faster."""


def _item(b: Binder, outputs: int, least: int) -> int:
    """The number of outputs of a work item: whole vector registers, and at least ``least`` if that
    leaves an item for each thread."""
    several = min(b.threads * PIECES, max(b.threads, outputs // least))
    pieces = several if b.threads > 1 else 1
    return max(1, -(-outputs // (pieces * b.isa.lanes))) * b.isa.lanes


def _column_words(
    epilogue: ProductEpilogue, b: Binder, first_row: int, rows: int
) -> dict[str, Any]:
    """The argument words of the epilogue of a product with one column, which is treated as a row
    where the residual is contiguous."""
    words = epilogue.words(b, first_row)
    if epilogue.residual is None or words["ldr"] == 1:
        return words | {"by_rows": 1, "ldc": rows, "ldr": rows}
    return words | {"by_rows": 0, "ldc": 1}


def bind_column(
    b: Binder, core: Contraction, product: Product, epilogue: ProductEpilogue, result: Value
) -> bool:
    """Add the steps of products with one column; False where the batch is too large."""
    rows, depth = b.size(core.rows), b.size(core.depth)
    alone = not core.batch and depth < SHORTEST
    if not core.a.transposed and not alone and _bind_dots(b, core, product, epilogue, result):
        return True
    places = positions(b, core)
    for number, (a, x) in enumerate(places or ()):
        words = _column_words(epilogue, b, number * rows, rows)
        words["c"] = b.address(result, number * rows)
        if core.a.transposed or alone:
            options = {"short": True} if core.a.transposed else {}
            _gemv(b, core, product, words, (core.b, x), (core.a, a), **options)
        else:
            _dots(b, core, product, words, (a, x), (1, 0, 0))
    return places is not None


def _bind_dots(
    b: Binder, core: Contraction, product: Product, epilogue: ProductEpilogue, result: Value
) -> bool:
    """Add one step for a whole batch, if its matrices and its vectors are evenly spaced."""
    extents = [b.size(n) for n in core.batch]
    steps = [_even_step(extents, [b.size(s) for s in o.batch]) for o in (core.a, core.b)]
    a_step, x_step = steps
    if a_step is None or x_step is None:
        return False
    count = 1
    for extent in extents:
        count *= extent
    words = _column_words(epilogue, b, 0, count * b.size(core.rows))
    words["c"] = b.address(result)
    starts = b.size(core.a.matrix.offset), b.size(core.b.matrix.offset)
    _dots(b, core, product, words, starts, (count, a_step, x_step))
    return True


def _even_step(extents: Sequence[int], strides: Sequence[int]) -> int | None:
    """The constant distance of consecutive positions; None if there is none."""
    axes = [(n, s) for n, s in zip(extents, strides, strict=True) if n != 1]
    step, count = axes[-1][1] if axes else 0, 1
    for extent, stride in reversed(axes):
        if stride != step * count:
            return None
        count *= extent
    return step


def _dots(
    b: Binder,
    core: Contraction,
    product: Product,
    words: dict[str, int | Address],
    starts: tuple[int, int],
    batch: tuple[int, int, int],
) -> None:
    """Add steps for the dot products of the rows of a batch: its count, and the distances of
    matrices and of vectors."""
    (count, a_step, x_step), (a, x) = batch, starts
    rows, depth = b.size(core.rows), b.size(core.depth)
    segments = dot_segments(depth)
    block: dict[str, int | Address] = dict.fromkeys(DOT_ARGUMENTS, 0)
    block |= {"a": b.address(core.a.value, a), "x": b.address(core.b.value, x)}
    block |= {"rows": rows, "depth": depth, "segments": segments}
    block |= {"lda": b.size(core.a.matrix.stride), "a_step": a_step, "x_step": x_step}
    if segments > 1:
        block["totals"] = b.scratch(8 * count * rows * segments)
    block |= words
    operands = [*block.values()]
    extent, time = count * rows * segments, 4 * count * rows * depth / BYTES_PER_NS
    b.step(kernel(dot_kernel, b.isa, product), operands, extent, time)
    if segments > 1:
        time = 8 * count * rows * segments / BYTES_PER_NS
        b.step(kernel(dot_totals_kernel, b.isa, product), operands, count * rows, time)

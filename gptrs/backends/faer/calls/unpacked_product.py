"""Matrix products without packing: one column (GEMV), few rows or few columns.

Such a product takes as long as its matrix takes to be read from memory, so packing would not pay.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as cartesian
from math import prod
from typing import Any

from gptrs.backends.faer.calls.arguments import as_arguments
from gptrs.backends.faer.calls.base import PIECES, Address, Binder, kernel
from gptrs.backends.faer.calls.contraction import Contraction, Operand, ProductEpilogue
from gptrs.backends.faer.calls.dot_steps import (
    BYTES_PER_NS,
    bind_dots,
    column_words,
    compile_dots,
)
from gptrs.backends.machine import MACHINE
from gptrs.ir.dims import DimLike, same
from gptrs.ir.program import Value
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.gemm.dot import SHORTEST
from gptrs.kernels.gemm.gemv import GEMV_ARGUMENTS, MOST_VECTORS, gemv_kernel
from gptrs.kernels.gemm.gemv_transposed import gemv_transposed_kernel
from gptrs.kernels.gemm.narrow import (
    MOST,
    NARROW_ARGUMENTS,
    most_depth,
    narrow_product_kernel,
    narrow_rows,
)
from gptrs.kernels.gemm.number_types import PLAIN
from gptrs.kernels.gemm.product import Product

MOST_PRODUCTS = 1024
"""The largest batch: each of its products has steps of its own."""


_IN_BATCHES = 128 * KB
"""Smaller matrices of a batch are multiplied by one step."""


def _at_most(value: DimLike, most: int) -> bool:
    """Whether a dimension may be at most ``most`` at some size."""
    return not isinstance(value, int) or value <= most


def compile_column(core: Contraction, isa: Isa, product: Product) -> None:
    """Compile the kernels of `bind_column` for any size."""
    if (sizes := _narrow(core, isa)) is not None:
        kernel(narrow_product_kernel, isa, product, *sizes)
    if core.a.transposed:
        kernel(gemv_kernel, isa, product, short=True)
        return
    if not core.batch and _at_most(core.depth, SHORTEST - 1):
        kernel(gemv_transposed_kernel, isa, product)
    if core.batch or not isinstance(core.depth, int) or core.depth >= SHORTEST:
        compile_dots(isa, PLAIN, core.depth, product)


def compile_few(core: Contraction, isa: Isa, product: Product) -> None:
    """Compile the kernels of `bind_few` for any size."""
    if (sizes := _narrow(core, isa)) is not None:
        kernel(narrow_product_kernel, isa, product, *sizes)
    few_rows = _at_most(core.rows, MOST_VECTORS)
    if few_rows and core.b.transposed:
        kernel(gemv_kernel, isa, product)
    if (few_rows and not core.b.transposed) or _at_most(core.columns, MOST_VECTORS):
        kernel(gemv_transposed_kernel, isa, product)


def _narrow(core: Contraction, isa: Isa) -> tuple[int, int] | None:
    """Depth and columns, if `narrow_product_kernel` multiplies many rows."""
    depth, columns = core.depth, core.columns
    if not isinstance(depth, int) or not isinstance(columns, int) or core.batch:
        return None
    fits = 0 < depth <= most_depth(isa) and 0 < columns <= MOST and not core.a.transposed
    return (depth, columns) if fits and same(core.a.matrix.stride, depth) else None


def are_many(core: Contraction) -> bool:
    """Whether there may be many rows and many columns, for which `bind_few` declines."""
    few = [isinstance(n, int) and n <= MOST_VECTORS for n in (core.rows, core.columns)]
    return not any(few)


def positions(b: Binder, core: Contraction) -> list[tuple[int, int]]:
    """The first elements of A and B for each product of a batch."""
    extents = [b.size(n) for n in core.batch]
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
    if _bind_narrow(b, core, product, epilogue, result):
        return True
    small = 4 * depth * max(rows, columns) < _IN_BATCHES or count > MOST_PRODUCTS
    if min(rows, columns) > MOST_VECTORS or (count > 1 and small):
        return False
    for number, (a, w) in enumerate(positions(b, core)):
        words = epilogue.words(b, number * rows)
        words |= {"c": b.address(result, number * rows * columns), "ldc": columns}
        sides = (core.a, a), (core.b, w)
        if rows <= MOST_VECTORS:
            words["by_rows"] = 1
        else:
            sides = sides[1], sides[0]
        _gemv(b, core, product, words, *sides)
    return True


def _bind_narrow(
    b: Binder, core: Contraction, product: Product, epilogue: ProductEpilogue, result: Value
) -> bool:
    """Add the step of a product of many short rows and a small matrix; False for any other."""
    rows, columns, depth = map(b.size, (core.rows, core.columns, core.depth))
    beside = epilogue.residual is None or b.size(epilogue.residual[1].stride) == columns
    if _narrow(core, b.isa) is None or rows < narrow_rows(b.isa) or not beside:
        return False
    stride = b.size(core.b.matrix.stride)
    block: dict[str, int | Address] = dict.fromkeys(NARROW_ARGUMENTS, 0)
    words = epilogue.words(b, 0)
    block |= {name: words[name] for name in ("bias", "residual")}
    block["a"] = b.address(core.a.value, core.a.matrix.offset)
    block["b"] = b.address(core.b.value, core.b.matrix.offset)
    block |= {"c": b.address(result), "rows": rows}
    block |= {"b_depth": stride if core.b.transposed else 1}
    block |= {"b_column": 1 if core.b.transposed else stride}
    time = MACHINE.traffic(4 * rows * depth, 4 * rows * columns)
    code = kernel(narrow_product_kernel, b.isa, product, depth, columns)
    b.step(code, [*block.values()], -(-rows // narrow_rows(b.isa)), time)
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


def bind_column(
    b: Binder, core: Contraction, product: Product, epilogue: ProductEpilogue, result: Value
) -> None:
    """Add the steps of products with one column."""
    rows, depth = b.size(core.rows), b.size(core.depth)
    if epilogue.residual is None and _bind_narrow(b, core, product, epilogue, result):
        return
    if not core.a.transposed and (core.batch or depth >= SHORTEST):
        bind_dots(b, as_arguments(core), product, epilogue, result)
        return
    options = {"short": True} if core.a.transposed else {}
    for number, (a, x) in enumerate(positions(b, core)):
        words = column_words(epilogue, b, number * rows, rows)
        words["c"] = b.address(result, number * rows)
        _gemv(b, core, product, words, (core.b, x), (core.a, a), **options)

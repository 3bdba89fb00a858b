"""GEMV and small products on unpacked matrices: bits, edges and splits, at every vector level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs.kernels.compiler import isa
from gptrs.kernels.gemm import dot, gemv
from gptrs.kernels.gemm.gemv_transposed import gemv_transposed_kernel
from gptrs.kernels.gemm.product import Product
from tests.kernels.gemm.test_matmul import (
    GUARD,
    Array,
    bits,
    blocked,
    call,
    elementwise,
    even,
    kernel,
    ld,
    matrix,
    short,
)


def run(level: isa.Isa, x: Array, b: Array, *, transposed: bool = False, **more: Any) -> Array:
    """x·b by `gemv_kernel`, or with b = matrix.T by `gemv_transposed_kernel`; ``by_rows`` is how C
    lies, which has guards around it, and is given back as x·b is."""
    (vectors, depth), outputs, margin = x.shape, b.shape[1], 3
    by_rows = more.get("by_rows", True)
    product: Product = more.get("product", Product())
    residual: Array | int = more.get("residual", 0)
    build = gemv_transposed_kernel if transposed else gemv.gemv_kernel
    size = (vectors, outputs) if by_rows else (outputs, vectors)
    held = np.full((size[0] + 2, size[1] + 2 * margin), GUARD)
    c = held[1:-1, margin : margin + size[1]]
    source = b.T if transposed else b
    item = more.get("item", level.lanes)
    words = [x, source, c, more.get("bias", 0), residual, vectors, depth, outputs]
    words += [s // 4 for s in x.strides] + [ld(source), ld(c)]
    words += [0 if isinstance(residual, int) else ld(residual), int(by_rows), item]
    extent = -(-outputs // item)
    call(kernel(build, level, product), words, *reversed(even(extent, more.get("parts", 1))))
    inside = c.copy()
    c[:] = GUARD
    assert (held == GUARD).all(), "written outside C"
    return inside if by_rows else inside.T


def columns_first(a: Array) -> Array:
    """The same matrix whose columns follow each other, with gaps between them."""
    held = np.full((a.shape[1], a.shape[0] + 2), np.nan, np.float32)
    held[:, :-2] = a.T
    return held[:, :-2].T


@pytest.mark.slow
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 7, 8, 77, 4096, 4103, 5500])
def test_the_order_is_that_of_other_products(level: isa.Isa, transposed: bool, depth: int) -> None:
    columns = 2 * level.lanes + 3
    b = short((depth, columns), 1)
    given = columns_first(b) if transposed else np.pad(b, ((0, 0), (0, 2)))[:, :columns]
    for vectors in (1, 3, 9) if depth > 100 else (1, 2, 3, 4, 5, 8, 9, 17):
        x = short((vectors, depth), vectors)
        expected = bits(blocked(x, b))
        for by_rows in (True, False):
            found = run(level, x, given, transposed=transposed, by_rows=by_rows)
            np.testing.assert_array_equal(bits(found), expected)
            found = run(level, columns_first(x), given, transposed=transposed, by_rows=by_rows)
            np.testing.assert_array_equal(bits(found), expected)


@pytest.mark.parametrize("transposed", [False, True])
def test_bits_do_not_depend_on_vectors_and_splits(level: isa.Isa, transposed: bool) -> None:
    b = matrix(130, 9 * level.lanes - 2, 1)
    given, x = columns_first(b) if transposed else b, matrix(8, 130, 2)
    expected = bits(run(level, x, given, transposed=transposed))
    for vectors in range(1, 9):
        for item, parts in ((1, 1), (1, 3), (2, 2), (100, 1)):
            more = {"item": item * level.lanes, "parts": parts}
            found = run(level, x[:vectors], given, transposed=transposed, **more)
            np.testing.assert_array_equal(bits(found), expected[:vectors])


def test_a_matrix_wider_than_a_window(level: isa.Isa) -> None:
    x, b = short((2, 19), 1), short((19, 9001), 2)
    np.testing.assert_array_equal(run(level, x, b, item=16384), blocked(x, b))


@pytest.mark.slow
@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("transposed", [False, True])
def test_what_follows(level: isa.Isa, transposed: bool, by_rows: bool) -> None:
    x, b = matrix(3, 45, 1), matrix(45, 2 * level.lanes + 1, 2)
    given = columns_first(b) if transposed else b
    size = (3, b.shape[1]) if by_rows else (b.shape[1], 3)
    bias, residual = matrix(1, size[1], 3)[0], matrix(*size, 4, pad=2)
    plain = run(level, x, given, transposed=transposed)
    plain = plain if by_rows else plain.T
    activated = elementwise(level, "gelu_tanh", np.ascontiguousarray(plain + bias))
    more = {"bias": bias, "residual": residual, "product": Product(activation="gelu_tanh")}
    found = run(level, x, given, transposed=transposed, by_rows=by_rows, **more)
    expected = activated + residual
    np.testing.assert_array_equal(bits(found), bits(expected if by_rows else expected.T))


def dots(level: isa.Isa, a: Array, x: Array, *, parts: int = 1) -> Array:
    """a [batch, rows, depth] · x [batch, depth], both kernels as a plan runs them."""
    batch, rows, depth = a.shape
    segments = dot.dot_segments(depth)
    c, totals = np.full(batch * rows + 1, GUARD), np.full(batch * rows * segments, np.nan)
    a_step, lda, _ = (stride // 4 for stride in a.strides)
    words = [a, x, totals, c, 0, 0, rows, depth, segments, lda, 1, 0, 1]
    words += [1, batch, 0, 0, a_step, 0, 0, x.strides[0] // 4]
    ranges = even(batch * rows * segments, parts)
    call(kernel(dot.dot_kernel, level, Product()), words, *reversed(ranges))
    if segments > 1:
        last = kernel(dot.dot_totals_kernel, level, Product())
        call(last, words, *reversed(even(batch * rows, parts)))
    assert c[-1] == GUARD
    return c[:-1].reshape(batch, rows)


@pytest.mark.parametrize("depth", [0, 1, 31, 32, 33, 1023, 1024, 1025, 3000, dot.SEGMENT + 5])
def test_dots(level: isa.Isa, depth: int) -> None:
    """The rounded sum: sums of such numbers are exact."""
    a = (np.random.default_rng(0).integers(-64, 65, (2, 5, depth)) / 64).astype(np.float32)
    x = (np.random.default_rng(1).integers(-64, 65, (2, depth)) / 64).astype(np.float32)
    exact = np.einsum("brk,bk->br", a.astype(np.float64), x.astype(np.float64))
    for parts in (1, 3):
        np.testing.assert_array_equal(dots(level, a, x, parts=parts), exact.astype(np.float32))


def test_dots_of_a_row_depend_on_nothing_else(level: isa.Isa) -> None:
    for depth in (100, 2500, dot.SEGMENT + 70):
        a, x = matrix(6, depth, 1, pad=3)[None], matrix(1, depth, 2)
        expected = dots(level, a, x)
        for parts in (2, 3, 6):
            np.testing.assert_array_equal(dots(level, a, x, parts=parts), expected)
        for rows in range(1, 6):
            np.testing.assert_array_equal(dots(level, a[:, :rows], x), expected[:, :rows])
        longer = np.concatenate([a, np.zeros((1, 6, 1500), np.float32)], axis=2)
        again = dots(level, longer, np.pad(x, ((0, 0), (0, 1500)), constant_values=3))
        np.testing.assert_array_equal(again, expected)


def test_levels_that_multiply_and_add_in_one_have_the_same_dots() -> None:
    a, x = matrix(3, 5000, 1)[None], matrix(1, 5000, 2)
    found = [dots(level, a, x) for level in isa.host_levels() if level.fma]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])

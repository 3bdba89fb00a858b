"""GEMM kernels: bits, edges, splits and layouts, at every vector level."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import Kernel, compile_ir
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.gemm import blocked as blocked_gemm
from gptrs.kernels.gemm import packed_gemv, packing
from gptrs.kernels.gemm.blocked import Blocking
from gptrs.kernels.gemm.product import BLOCK, FIRST_BLOCK, Product
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.kernels.vector_math import ACTIVATIONS, elementwise_kernel

Array = NDArray[Any]

GUARD = np.float32(-7.25)


_texts: dict[tuple[object, ...], KernelText] = {}


def kernel(build: Callable[..., KernelText], *arguments: object) -> Kernel:
    key = (build, *arguments)
    if key not in _texts:
        _texts[key] = build(*arguments)
    return compile_ir(*_texts[key])


def call(function: Kernel, words: Iterable[Array | int], *ranges: tuple[int, int]) -> None:
    block = np.array([w if isinstance(w, int) else w.ctypes.data for w in words], np.int64)
    for first, last in ranges:
        function(block.ctypes.data, first, last)


def even(extent: int, parts: int) -> list[tuple[int, int]]:
    edges = [extent * i // parts for i in range(parts + 1)]
    return list(pairwise(edges))


def matrix(rows: int, columns: int, seed: int = 0, *, pad: int = 0) -> Array:
    """Normal numbers, with ``pad`` more columns (of NaN) in memory, at an odd address."""
    held = np.full(rows * (columns + pad) + 1, np.nan, np.float32)[1:]
    view = held.reshape(rows, columns + pad)[:, :columns]
    view[:] = np.random.default_rng(seed).standard_normal((rows, columns))
    return view


def ld(a: Array) -> int:
    return a.strides[0] // a.itemsize


def bits(a: Array) -> Array:
    return np.ascontiguousarray(a).view(np.int32)


def pack(level: isa.Isa, b: Array, weights: WeightType = "f32") -> Array:
    panels = packing.panel_count(level, b.shape[1])
    out = np.full((panels, b.shape[0], level.tile_columns), 9, b.dtype)
    packer = kernel(packing.pack_columns_kernel, level, weights)
    call(packer, (b, out, *b.shape, ld(b), b.shape[0]), (0, panels))
    return out


def pack_rows(level: isa.Isa, a: Array, tile: int, weights: WeightType = "f32") -> Array:
    tiles = -(-a.shape[0] // tile)
    out = np.full((tiles, a.shape[1], tile), 9, a.dtype)
    packer = kernel(packing.pack_rows_kernel, level, tile, weights)
    call(packer, (a, out, *a.shape, ld(a), tile), (0, tiles))
    return out


def pack_tiles(level: isa.Isa, a: Array, height: int) -> Array:
    """Tiles that begin ``height`` rows apart."""
    tiles = -(-a.shape[0] // height)
    out = np.full((tiles, a.shape[1], level.tile_rows), np.nan, a.dtype)
    packer = kernel(packing.pack_rows_kernel, level, level.tile_rows)
    call(packer, (a, out, *a.shape, ld(a), height), (0, tiles))
    return out


class Result:
    """A guarded C, and what is needed to compute it by either kernel."""

    def __init__(self, level: isa.Isa, a: Array, panels: Array, columns: int, **more: Any) -> None:
        self.level, self.a, self.panels, self.columns = level, a, panels, columns
        self.product: Product = more.get("product", Product())
        self.bias: Array | int = more.get("bias", 0)
        self.factor: Array | int = more.get("factor", 0)
        self.residual: Array | int = more.get("residual", 0)

    def _run(self, build: Any, a: Array, extent: int, blocks: Blocking, parts: int) -> Array:
        (rows, depth), columns, margin = self.a.shape, self.columns, 3
        held = np.full((rows + 2, columns + 2 * margin), GUARD)
        c = held[1:-1, margin : margin + columns]
        several = depth > FIRST_BLOCK
        totals = np.full((rows, ld(c)) if several else 0, np.nan)
        beside = self.factor, self.residual
        words = [a, self.panels, c, self.bias, *beside, totals if several else 0]
        words += [rows, depth, columns]
        strides = [0 if isinstance(each, int) else ld(each) for each in beside]
        words += [ld(self.a), ld(c), *strides, *blocks]
        function = kernel(build, self.level, self.product)
        call(function, words, *reversed(even(extent, parts)))
        inside = c.copy()
        c[:] = GUARD
        assert (held == GUARD).all(), "written outside C"
        return inside

    def tiles(self, blocks: Blocking | None = None, parts: int = 1) -> Array:
        rows, depth = self.a.shape
        blocks = blocks or blocked_gemm.blocking(self.level, rows, depth)
        packed = pack_tiles(self.level, self.a, blocks.height)
        extent = blocked_gemm.blocked_gemm_extent(self.level, self.columns, blocks)
        return self._run(blocked_gemm.blocked_gemm_kernel, packed, extent, blocks, parts)

    def rows(self, parts: int = 1) -> Array:
        extent = packing.panel_count(self.level, self.columns)
        return self._run(packed_gemv.packed_gemv_kernel, self.a, extent, Blocking(0, 0, 0), parts)


def chain(a: Array, b: Array) -> Array:
    """The order rule, for numbers whose products are exact in f32 and whose sums are in f64."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        term = a[:, k : k + 1].astype(np.float64) * b[k].astype(np.float64)
        total = (total + term).astype(np.float32)
    return total


def short(shape: tuple[int, int], seed: int) -> Array:
    """Multiples of 2⁻¹² up to 1: products have 24 bits, and a sum of 300 of them 33."""
    numbers = np.random.default_rng(seed).integers(-4096, 4097, shape)
    return (numbers / 4096).astype(np.float32)


@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (7, 33), (131, 67), (300, 129)])
def test_both_kernels_keep_the_order(level: isa.Isa, depth: int, columns: int) -> None:
    b = short((depth, columns), 1)
    panels = pack(level, b)
    for rows in (1, 2, 3, 4, 5, 13, 29):
        a = short((rows, depth), rows)
        expected, result = bits(chain(a, b)), Result(level, a, panels, columns)
        np.testing.assert_array_equal(bits(result.rows()), expected)
        np.testing.assert_array_equal(bits(result.tiles()), expected)


def test_bits_are_the_same_for_every_number_of_rows(level: isa.Isa) -> None:
    depth, columns = 77, 2 * level.tile_columns + 5
    panels = pack(level, matrix(depth, columns, 1))
    a = matrix(40, depth, 2, pad=3)
    expected = bits(Result(level, a, panels, columns).rows())
    for rows in range(1, 41):
        result = Result(level, a[:rows], panels, columns)
        np.testing.assert_array_equal(bits(result.tiles()), expected[:rows])
        np.testing.assert_array_equal(bits(result.rows()), expected[:rows])


def test_bits_do_not_depend_on_blocks_and_splits(level: isa.Isa) -> None:
    rows, depth, columns = 3 * level.tile_rows + 1, 83, 5 * level.tile_columns - 3
    panels = pack(level, matrix(depth, columns, 1))
    result = Result(level, matrix(rows, depth, 2), panels, columns)
    expected = bits(result.tiles(Blocking(depth, level.tile_rows, 4)))
    for depth_block in (1, 3, 64, 83, 1000):
        for height, row_blocks in ((level.tile_rows, 1), (level.tile_rows, 4), (3, 2), (1, 9)):
            for parts in (1, 2, 3, 7, 20):
                found = result.tiles(Blocking(depth_block, height, row_blocks), parts)
                np.testing.assert_array_equal(bits(found), expected)
    for parts in (1, 2, 3, 5):
        np.testing.assert_array_equal(bits(result.rows(parts)), expected)


def blocked(a: Array, b: Array) -> Array:
    """The order rule of any depth, for such numbers."""
    edges = [0, *range(FIRST_BLOCK, a.shape[1], BLOCK), a.shape[1]]
    blocks = [chain(a[:, i:j], b[i:j]).astype(np.float64) for i, j in pairwise(edges)]
    return sum(blocks[1:], blocks[0]).astype(np.float32)


@pytest.mark.parametrize("depth", [4096, 4097, 4608, 5500])
def test_the_order_of_deep_products(level: isa.Isa, depth: int) -> None:
    columns = level.tile_columns + 3
    b = short((depth, columns), 1)
    panels = pack(level, b)
    for rows in (1, 3, level.tile_rows + 2):
        a = short((rows, depth), rows)
        expected, result = bits(blocked(a, b)), Result(level, a, panels, columns)
        np.testing.assert_array_equal(bits(result.rows(2)), expected)
        np.testing.assert_array_equal(bits(result.tiles(parts=2)), expected)
        other = Blocking(1000, max(1, level.tile_rows - 1), 1)
        np.testing.assert_array_equal(bits(result.tiles(other)), expected)


@pytest.mark.parametrize("depth", [0, 1, 2, 260])
@pytest.mark.parametrize("rows", [1, 4, 17])
def test_edges(level: isa.Isa, rows: int, depth: int) -> None:
    w = level.tile_columns
    for columns in (1, level.lanes - 1, w - 1, w, w + 1, 9 * w + level.lanes):
        a, b = matrix(rows, depth, 1, pad=2), matrix(depth, columns, 2, pad=5)
        result = Result(level, a, pack(level, b), columns)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        # Higham, Accuracy and Stability of Numerical Algorithms, (3.5): γₖ·|A|·|B|
        bound = (depth + 1) * 2.0**-24 * (np.abs(a) @ np.abs(b)) * 1.01
        blocks = blocked_gemm.blocking(level, rows, 100, row_blocks=2)
        for found in (result.rows(), result.tiles(blocks)):
            assert (np.abs(found - exact) <= bound).all()


def test_nothing_to_do(level: isa.Isa) -> None:
    for rows, columns in ((0, 5), (3, 0), (0, 0)):
        a, b = matrix(rows, 4), matrix(4, columns)
        result = Result(level, a, pack(level, b), columns)
        assert result.rows().shape == result.tiles().shape == (rows, columns)


def elementwise(level: isa.Isa, function: str, x: Array) -> Array:
    y = np.empty_like(x)
    call(kernel(elementwise_kernel, level, function), (x, y), (0, x.size))
    return y


@pytest.mark.parametrize("activation", [None, "gelu_tanh"])
@pytest.mark.parametrize("depth", [0, 45])
def test_what_follows_the_product(level: isa.Isa, activation: str | None, depth: int) -> None:
    columns = 2 * level.tile_columns + level.lanes + 1
    panels = pack(level, matrix(depth, columns, 1))
    bias = matrix(1, columns, 3)[0]
    residual, factor = (matrix(30, columns, seed, pad=seed - 2) for seed in (4, 5))
    product = Product(activation=activation)
    for rows in (1, 3, 30):
        a = matrix(rows, depth, rows)
        plain = Result(level, a, panels, columns).rows()
        for given in ((), ("bias",), ("factor",), ("residual",), ("bias", "factor", "residual")):
            expected = plain + bias if "bias" in given else plain
            if activation is not None:
                expected = elementwise(level, activation, expected)
            expected = expected * factor[:rows] if "factor" in given else expected
            expected = expected + residual[:rows] if "residual" in given else expected
            operands = {"bias": bias, "factor": factor, "residual": residual}
            more = {name: operands[name] for name in given}
            result = Result(level, a, panels, columns, product=product, **more)
            found = result.tiles(Blocking(20, level.tile_rows, 1), 3)
            np.testing.assert_array_equal(bits(result.rows(2)), bits(expected))
            np.testing.assert_array_equal(bits(found), bits(expected))


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation: str) -> None:
    level = isa.current()
    a, b = matrix(5, 20, 1), matrix(20, 50, 2)
    panels = pack(level, b)
    expected = elementwise(level, activation, Result(level, a, panels, 50).rows())
    result = Result(level, a, panels, 50, product=Product(activation=activation))
    np.testing.assert_array_equal(bits(result.tiles()), bits(expected))
    np.testing.assert_array_equal(bits(result.rows()), bits(expected))


@pytest.mark.parametrize("weights", ["f16", "bf16"])
def test_narrow_weights(level: isa.Isa, weights: WeightType) -> None:
    """The bits of the f32 product with weights made wide before."""
    kind: Any = np.float16 if weights == "f16" else ml_dtypes.bfloat16
    depth, columns = 40, 3 * level.tile_columns - 1
    b = matrix(depth, columns, 1).astype(kind)
    # The ends of the format: subnormal and large numbers, and infinity
    b[0, :6] = np.array([6e-8, -5e-7, 6.1e-5, 65504, -np.inf, -0.0]).astype(kind)
    narrow = pack(level, b.view(np.uint16), weights)
    wide = pack(level, b.astype(np.float32))
    for rows in (1, 5, 33):
        a = matrix(rows, depth, 2)
        expected = bits(Result(level, a, wide, columns).rows())
        result = Result(level, a, narrow, columns, product=Product(weights))
        np.testing.assert_array_equal(bits(result.rows()), expected)
        np.testing.assert_array_equal(bits(result.tiles()), expected)


def test_every_float16(level: isa.Isa) -> None:
    halves = np.arange(2**16, dtype=np.uint16).reshape(1, -1)
    one = np.ones((1, 1), np.float32)
    panels = pack(level, halves, "f16")
    found = Result(level, one, panels, 2**16, product=Product("f16")).rows()
    expected = halves.view(np.float16).astype(np.float32)
    expected[expected == 0] = 0  # as 0 + 1·(−0) is
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(bits(found[number]), bits(expected[number]))
    assert np.isnan(found[~number]).all()


def test_nan_and_infinity_pass(level: isa.Isa) -> None:
    a, b = np.ones((9, 30), np.float32), np.ones((30, 40), np.float32)
    a[2, 7], b[3, 5], b[4, 39] = np.nan, np.inf, -np.inf
    result = Result(level, a, pack(level, b), 40)
    expected = np.full((9, 40), np.float32(30))
    expected[:, 5], expected[:, 39], expected[2] = np.inf, -np.inf, np.nan
    np.testing.assert_array_equal(result.rows(), expected)
    np.testing.assert_array_equal(result.tiles(), expected)


def packed(a: Array, tile: int) -> Array:
    """[rows, depth] as tiles [⌈rows/tile⌉, depth, tile], with zeros for missing rows."""
    (rows, depth), tiles = a.shape, -(-a.shape[0] // tile)
    full = np.zeros((tiles * tile, depth), a.dtype)
    full[:rows] = a
    return np.ascontiguousarray(full.reshape(tiles, tile, depth).transpose(0, 2, 1))


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["f32", "bf16"])
def test_layouts(level: isa.Isa, weights: WeightType) -> None:
    w, kind = level.tile_columns, np.int32 if weights == "f32" else np.uint16
    for rows in (1, w - 1, w, 2 * w + 3):
        for depth in (0, 1, level.lanes - 1, level.lanes, 2 * level.lanes, 41):
            a = np.arange(1, rows * (depth + 1) + 1).astype(kind).reshape(rows, depth + 1)[:, 1:]
            for tile in (level.tile_rows, w):
                found = pack_rows(level, a, tile, weights)
                np.testing.assert_array_equal(found, packed(a, tile))
            found = pack(level, np.ascontiguousarray(a.T), weights)
            np.testing.assert_array_equal(found, packed(a, w))


@pytest.mark.parametrize("by_rows", [True, False])
def test_packing_in_parts(level: isa.Isa, by_rows: bool) -> None:
    """Parts in any order give the same, and nothing is written behind the last tile."""
    tile = level.tile_rows if by_rows else level.tile_columns
    a = matrix(19 * level.tile_columns + 1, 37, 1)
    source = a if by_rows else np.ascontiguousarray(a.T)
    if by_rows:
        packer, last = kernel(packing.pack_rows_kernel, level, tile), tile
    else:
        packer, last = kernel(packing.pack_columns_kernel, level), len(source)
    expected = packed(a, tile)
    for parts in (1, 3, 8):
        out = np.full(expected.size + 64, GUARD)
        words = (source, out, *source.shape, ld(source), last)
        call(packer, words, *reversed(even(len(expected), parts)))
        np.testing.assert_array_equal(out[: expected.size], expected.reshape(-1))
        assert (out[expected.size :] == GUARD).all()


def test_packing_some_rows_at_a_time(level: isa.Isa) -> None:
    b = np.random.default_rng(0).standard_normal((37, 9 * level.tile_columns + 3), np.float32)
    panels = packing.panel_count(level, b.shape[1])
    out = np.full((panels, len(b), level.tile_columns), GUARD)
    packer = kernel(packing.pack_columns_kernel, level)
    for first in (0, 16, 32):
        part = b[first : first + 16]
        words = (part, out[0, first:], *part.shape, ld(part), len(b))
        call(packer, words, (0, 1), (1, panels))
    np.testing.assert_array_equal(out.reshape(-1), packed(b.T, level.tile_columns).reshape(-1))


def test_packing_nothing(level: isa.Isa) -> None:
    """Nothing is read or written: both pointers are 0."""
    for tile in (level.tile_rows, level.tile_columns):
        packer = kernel(packing.pack_rows_kernel, level, tile)
        call(packer, (0, 0, 0, 7, 7, tile), (0, 0))
        call(packer, (0, 0, 2 * tile + 1, 0, 7, tile), (0, 3))
    packer = kernel(packing.pack_columns_kernel, level)
    call(packer, (0, 0, 7, 0, 7, 7), (0, 0))
    call(packer, (0, 0, 0, 2 * level.tile_columns + 1, 7, 0), (0, 3))


@pytest.mark.parametrize("step", [0, -1, 3])
def test_packing_any_leading_dimension(level: isa.Isa, step: int) -> None:
    """Rows in reverse, far apart, or one row for all."""
    a = np.random.default_rng(0).standard_normal((70, 21), np.float32)
    rows = np.broadcast_to(a[0], (70, 21)) if step == 0 else a[::step]
    found = pack_rows(level, rows, level.tile_columns)
    np.testing.assert_array_equal(found, packed(rows, level.tile_columns))
    np.testing.assert_array_equal(pack(level, rows), packed(rows.T, level.tile_columns))


def test_blocking() -> None:
    for level in isa.ISAS.values():
        for rows in (1, 8, 100, 3000):
            for depth in (0, 1, 768, 50257):
                depth_block, height, row_blocks = blocked_gemm.blocking(level, rows, depth)
                assert depth_block >= 1
                assert 1 <= height <= level.tile_rows
                tiles = -(-rows // height)
                assert tiles == -(-rows // level.tile_rows), "no more tiles than needed"
                assert 1 <= row_blocks <= tiles
        assert blocked_gemm.blocking(level, 512, 768, row_blocks=9).row_blocks >= 9
        assert blocked_gemm.blocking(level, 3, 768, row_blocks=9).row_blocks == 1
        assert blocked_gemm.blocking(level, 0, 768).row_blocks == 0
        assert 1 <= packed_gemv.packed_gemv_limit(level, Product()) <= level.tile_rows
    assert blocked_gemm.blocking(isa.ISAS["avx2"], 8, 768)[1:] == (4, 1), "not 6 and 2"

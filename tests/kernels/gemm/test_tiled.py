"""Tiled products of any element type: layouts, packing, edges, splits, at every level."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gptrs.kernels.compiler import isa
from gptrs.kernels.gemm import dot
from gptrs.kernels.gemm.mirror import mirror_blocks, mirror_kernel
from gptrs.kernels.gemm.number_types import INTEGERS, NumberTypes, number_types
from gptrs.kernels.gemm.pack_operand import pack_operand_kernel
from gptrs.kernels.gemm.product import FIRST_BLOCK, Product
from gptrs.kernels.gemm.tiled import tiled_product_kernel
from tests.kernels.gemm.test_matmul import Array, bits, blocked, call, even, kernel, short

DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "si8": np.int8,
    "ui8": np.uint8,
    "si16": np.int16,
    "ui16": np.uint16,
    "si32": np.int32,
    "ui32": np.uint32,
    "si64": np.int64,
    "ui64": np.uint64,
    "cf32": np.complex64,
    "cf64": np.complex128,
    "i32": np.int32,
    "i64": np.int64,
}
SHAPES = [
    (1, 1, 1),
    (3, 3, 3),
    (5, 0, 7),
    (8, 8, 8),
    (13, 29, 17),
    (33, 70, 67),
    (16, 5, 1),
    (205, 5, 7),
]


def types_of(stored: str, through: str = "", result: str = "", group: int = 1) -> NumberTypes:
    found = number_types(stored, through or stored, result or through or stored)
    assert found is not None
    return replace(found, group=group)


def name_of(types: NumberTypes, name: str) -> str:
    return "c" + name if types.parts == 2 else name


def numbers(shape: tuple[int, ...], name: str, seed: int) -> Array:
    """Small whole numbers, or any integers: sums of both are exact, or wrap."""
    random = np.random.default_rng(seed)
    if name in INTEGERS:
        limits = np.iinfo(DTYPES[name])
        return random.integers(limits.min, limits.max, shape, DTYPES[name], endpoint=True)
    real = random.integers(-8, 9, shape).astype(np.float64)
    imaginary = random.integers(-8, 9, shape) * 1j if name.startswith("c") else 0
    return (real + imaginary).astype(DTYPES[name])


def laid(a: Array, layout: str) -> Array:
    """The matrix with its last axis contiguous, its first one, or neither."""
    if layout == "rows":
        return np.ascontiguousarray(np.pad(a, ((0, 0), (0, 0), (0, 2))))[:, :, : a.shape[2]]
    if layout == "columns":
        return laid(a.transpose(0, 2, 1), "rows").transpose(0, 2, 1)
    held = np.zeros((a.shape[0], 2 * a.shape[1], 3 * a.shape[2]), a.dtype)
    held[:, ::2, ::3] = a
    return held[:, ::2, ::3]


def units(a: Array) -> list[int]:
    return [stride // a.itemsize for stride in a.strides]


def packed(level: isa.Isa, types: NumberTypes, a: Array, *, left: bool, parts: int) -> Array:
    """The tiles of a batch of [outer, depth]."""
    batch, outer, depth = a.shape
    tile = types.rows(level) if left else types.width(level) // types.parts
    tiles, held = -(-outer // tile), -(-depth // types.group)
    name = name_of(types, types.sums)
    out = np.zeros((batch * tiles, held * tile + types.tail), DTYPES[name])
    step, *strides = units(a)
    words = [a, out, outer, depth, *strides, tiles, 0, 0, 0, 0, step]
    code = kernel(pack, level, types, tile, left)
    call(code, words, *even(batch * tiles, parts))
    return out


def pack(level: isa.Isa, types: NumberTypes, tile: int, left: bool) -> Any:
    return pack_operand_kernel(level, types, tile, left=left)


def multiplied(level: isa.Isa, types: NumberTypes, a: Array, b: Array, **more: Any) -> Array:
    """a [batch, rows, depth] · b [batch, depth, columns], packed or where they lie."""
    (batch, rows, depth), columns, parts = a.shape, b.shape[2], types.parts
    tile, width = types.rows(level), types.width(level) // parts
    splits, held = more.get("splits", 1), -(-depth // types.group)
    row_blocks, column_blocks = more.get("blocks", (1, 1))
    if more.get("pack_a", True):
        a = packed(level, types, a, left=True, parts=splits)
        left = [a.shape[1], 1, tile, a.size // batch]
    else:
        step, row, k = units(a)
        left = [tile * row, row, k, step]
    if more.get("pack_b", True):
        b = packed(level, types, b.transpose(0, 2, 1), left=False, parts=splits)
        right = [b.shape[1], width, b.size // batch]
    else:
        step, k, one = units(b)
        assert one == 1 or columns <= 1 or not b.size
        right = [width, k, step]
    shape = (batch, rows, columns)
    c = np.full(shape, 99, DTYPES[name_of(types, types.sums)])
    out = c if types.copies else np.zeros(shape, DTYPES[name_of(types, types.result)])
    totals = np.full((*shape, parts), np.nan) if depth > FIRST_BLOCK else 0
    words = [a, b, c, 0 if types.copies else out, totals, 0, 0, rows, held, columns * parts]
    words += [n * parts for n in (*left[:3], *right[:2])]
    words += [0, more.get("depth_block", 1024), row_blocks, column_blocks]
    words += [more.get("triangle", 0), 0, 0]
    words += [0, 0, left[3] * parts, 0, 0, right[2] * parts]
    code = kernel(tiled_product_kernel, level, types, Product())
    call(code, words, *reversed(even(batch * row_blocks * column_blocks, splits)))
    return out.view(DTYPES[name_of(types, types.result)]) if types.copies else out


def expected(types: NumberTypes, a: Array, b: Array) -> Array:
    if types.is_integer:
        wide = DTYPES[types.through]
        with np.errstate(all="ignore"):
            return np.matmul(a.astype(wide), b.astype(wide)).astype(DTYPES[types.result])
    exact = np.complex128 if types.parts == 2 else np.float64
    return np.matmul(a.astype(exact), b.astype(exact)).astype(DTYPES[name_of(types, types.result)])


TYPES = {
    "f32": types_of("f32"),
    "f64": types_of("f64"),
    "f16": types_of("f16"),
    "bf16": types_of("bf16"),
    "bf16 as f32": types_of("bf16", "bf16", "f32"),
    "f32 in f64": types_of("f32", "f64"),
    "f64 in f32": types_of("f64", "f32"),
    "cf32": types_of("cf32"),
    "cf64": types_of("cf64"),
    "cf32 in cf64": types_of("cf32", "cf64"),
    **{name: types_of(name) for name in ("si8", "ui8", "si16", "ui16", "si32", "ui32")},
    "si64": types_of("si64"),
    "ui64": types_of("ui64"),
    "si8 in si32": types_of("si8", "si32"),
    "ui8 in si32": types_of("ui8", "si32"),
    "si8 in si64": types_of("si8", "si64"),
    "si64 in si8": types_of("si64", "si8"),
    "si8 as si32": types_of("si8", "si8", "si32"),
    "ui16 in ui64": types_of("ui16", "ui64"),
}
QUICK = ("f32", "f64", "bf16", "cf32", "si8", "si8 in si32", "si64")


def check(level: isa.Isa, types: NumberTypes, stored: str, layouts: tuple[str, str]) -> None:
    for seed, (rows, depth, columns) in enumerate(SHAPES):
        a = laid(numbers((2, rows, depth), stored, seed), layouts[0])
        b = laid(numbers((2, depth, columns), stored, seed + 9), layouts[1])
        wanted = expected(types, a, b)
        found = multiplied(level, types, a, b)
        np.testing.assert_array_equal(found, wanted)
        more = {"blocks": (2, 2), "splits": 3, "depth_block": 8}
        np.testing.assert_array_equal(multiplied(level, types, a, b, **more), wanted)
        if types.reads and layouts[1] == "rows":
            for pack_a in (False, True):
                given = {"pack_a": pack_a, "pack_b": False} | more
                np.testing.assert_array_equal(multiplied(level, types, a, b, **given), wanted)


def has_half(level: isa.Isa, types: NumberTypes) -> bool:
    return level.half or types.result != "f16"


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_values_in_every_layout(level: isa.Isa, name: str) -> None:
    types, stored = TYPES[name], name.split()[0]
    if not has_half(level, types):
        pytest.skip("no instruction rounds to f16")
    for left in ("rows", "columns", "neither"):
        for right in ("rows", "columns", "neither"):
            check(level, types, stored, (left, right))


@pytest.mark.parametrize("name", QUICK)
def test_values(level: isa.Isa, name: str) -> None:
    check(level, TYPES[name], name.split()[0], ("rows", "columns"))


@pytest.mark.parametrize("name", ["f32", "f64", "cf32"])
def test_panels_beyond_the_cache(level: isa.Isa, name: str) -> None:
    """Of them each is read by all tiles before the next one is."""
    a, b = numbers((1, 30, 1030), name, 0), numbers((1, 1030, 70), name, 1)
    types = TYPES[name]
    for pack_b in (False, True):
        given = {"pack_b": pack_b, "blocks": (2, 2), "splits": 3}
        found = multiplied(level, types, a, b, **given)
        np.testing.assert_array_equal(found, expected(types, a, b))


@pytest.mark.parametrize("name", ["f32", "f64", "si64"])
def test_one_row_reads_b_where_it_lies(level: isa.Isa, name: str) -> None:
    types = TYPES[name]
    for depth, columns in ((0, 70), (5, 67), (27, 96), (4100, 35)):
        a, b = numbers((2, 1, depth), name, 1), numbers((2, depth, columns), name, 2)
        more = {"pack_b": False, "blocks": (1, 2), "splits": 3, "depth_block": 4096}
        wanted = expected(types, a, b)
        np.testing.assert_array_equal(multiplied(level, types, a, b, **more), wanted)


def dots(level: isa.Isa, types: NumberTypes, a: Array, x: Array) -> Array:
    """a [batch, rows, depth] · x [batch, depth], rows contiguous: both kernels, in two ranges."""
    batch, rows, depth = a.shape
    segments, out = dot.dot_segments(depth), np.zeros((batch, rows), DTYPES[types.result])
    totals = np.zeros(batch * rows * segments)
    a_step, lda, _ = units(a)
    words = [a, x, totals, out, 0, 0, rows, depth, segments, lda, 0, 0, 0]
    words += [1, batch, 0, 0, a_step, 0, 0, units(x)[0]]
    ranges = even(batch * rows * segments, 2)
    call(kernel(dot.dot_kernel, level, Product(), types), words, *reversed(ranges))
    if segments > 1:
        last = kernel(dot.dot_totals_kernel, level, Product(), types)
        call(last, words, *even(batch * rows, 2))
    return out


@pytest.mark.parametrize("name", [name for name in TYPES if not name.startswith("cf")])
def test_dots(level: isa.Isa, name: str) -> None:
    types, stored = TYPES[name], name.split()[0]
    if not has_half(level, types):
        pytest.skip("no instruction rounds to f16")
    for depth in (0, 1, 31, 40, 1100, dot.SEGMENT + 5):
        rows = 7 if depth < 2000 else 2
        a = laid(numbers((2, rows, depth), stored, 1), "rows")
        x = numbers((2, depth), stored, 2)
        wanted = expected(types, a, x[:, :, None])[:, :, 0]
        np.testing.assert_array_equal(dots(level, types, a, x), wanted)


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_rows_from_several_streams_have_the_same_dots(level: isa.Isa, name: str) -> None:
    types, x = TYPES[name], numbers((1, 4096), name, 2)
    a = np.zeros((1, dot.IN_CACHE // (4096 * types.stored_bytes) + 3, 4096), DTYPES[name])
    a[:, :7] = numbers((1, 7, 4096), name, 1)
    np.testing.assert_array_equal(dots(level, types, a, x)[:, :7], dots(level, types, a[:, :7], x))


def groups(level: isa.Isa) -> list[tuple[str, str, int]]:
    """Products of narrow integers that this level has instructions for, and this CPU: LLVM stops
    the process where an instruction that is named is not one of the CPU's."""
    if level.vector_bits < 256 or level not in isa.host_levels():
        pytest.skip("no instruction multiplies groups")
    found = [("si8", "si32", 2), ("ui8", "ui32", 2), ("si16", "si16", 2), ("ui16", "ui16", 2)]
    found += [("si16", "si32", 2), ("si8", "si8", 2)]
    if level.vector_bits == 512 and isa.host()[2].get("avx512vnni", False):
        found += [("si8", "si32", 4), ("si8", "si8", 4)]
    return found


@pytest.mark.slow
def test_groups_of_narrow_integers(level: isa.Isa) -> None:
    for stored, through, group in groups(level):
        types = types_of(stored, through, group=group)
        for layouts in (("rows", "rows"), ("columns", "columns"), ("neither", "rows")):
            check(level, types, stored, layouts)


@pytest.mark.parametrize("factor", [0.0, 1e-20, 1e-39, 1e-45, math.inf, math.nan])
def test_pairs_of_bf16_have_the_bits_of_f32(level: isa.Isa, factor: float) -> None:
    """One row of A and one column of B are small: their products are subnormal, or of elements
    that are; or they are no numbers, and so are some of their products."""
    if level.vector_bits < 512 or not isa.host()[2].get("avx512bf16", False):
        pytest.skip("no instruction multiplies pairs of bf16")
    random, rows = np.random.default_rng(3), level.tile_rows
    pairs, single = types_of("bf16", "bf16", "f32", group=2), types_of("bf16", "bf16", "f32")
    for depth, columns in ((1, 5), (70, 67), (4101, 40), (4700, 33)):
        a = random.standard_normal((1, rows + 5, depth)).astype(DTYPES["bf16"])
        b = random.standard_normal((1, depth, columns)).astype(DTYPES["bf16"])
        a[:, 3] *= DTYPES["bf16"](factor)
        b[:, :, -1] *= DTYPES["bf16"](factor)
        wanted = multiplied(level, single, a, b)
        for layout in ("rows", "columns"):
            given = laid(a, layout), laid(b, layout)
            found = multiplied(level, pairs, *given, blocks=(2, 2), splits=3, depth_block=40)
            if math.isnan(factor):  # which NaN is not said
                np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
            else:
                np.testing.assert_array_equal(bits(found), bits(wanted))


def test_integers_at_their_limits(level: isa.Isa) -> None:
    for stored, through, group in groups(level):
        types, low = types_of(stored, through, group=group), np.iinfo(DTYPES[stored]).min
        a = np.full((1, 15, 33), low, DTYPES[stored])
        b = np.full((1, 33, 40), low, DTYPES[stored])
        np.testing.assert_array_equal(multiplied(level, types, a, b), expected(types, a, b))


@pytest.mark.parametrize("size", [1, 8, 27, 64])
def test_halves_are_mirrored(level: isa.Isa, size: int) -> None:
    for bits_of_element, name in ((8, "si8"), (32, "f32"), (64, "f64")):
        x = numbers((2, size, size), name, size)
        lower, blocks = np.tril(x), mirror_blocks(size)
        code = kernel(mirror_kernel, level, bits_of_element)
        call(code, [lower, size, blocks], *reversed(even(2 * blocks, 3)))
        np.testing.assert_array_equal(lower, np.tril(x) + np.tril(x, -1).transpose(0, 2, 1))


def test_a_triangle_of_tiles(level: isa.Isa) -> None:
    a = numbers((2, 70, 30), "f32", 1)
    more = {"triangle": 1, "blocks": (2, 2), "splits": 3}
    found = multiplied(level, TYPES["f32"], a, a.transpose(0, 2, 1), **more)
    wanted = expected(TYPES["f32"], a, a.transpose(0, 2, 1))
    np.testing.assert_array_equal(np.tril(found), np.tril(wanted))
    assert (found == 99).any()  # tiles that were left out


@pytest.mark.parametrize("depth", [7, 300, 4096, 4103, 5500])
def test_f32_has_the_order_of_other_products(level: isa.Isa, depth: int) -> None:
    a, b = short((17, depth), 1), short((depth, 2 * level.tile_columns + 3), 2)
    wanted = bits(blocked(a, b))
    for pack_a in (False, True):
        for pack_b in (False, True):
            more = {"pack_a": pack_a, "pack_b": pack_b, "blocks": (2, 3), "splits": 4}
            found = multiplied(level, TYPES["f32"], a[None], b[None], **more)
            np.testing.assert_array_equal(bits(found[0]), wanted)


def test_deep_f64(level: isa.Isa) -> None:
    a, b = numbers((1, 3, 9000), "f64", 1), numbers((1, 9000, 5), "f64", 2)
    types = TYPES["f64"]
    np.testing.assert_array_equal(multiplied(level, types, a, b), expected(types, a, b))


@pytest.mark.parametrize("name", ["f32", "f64", "bf16"])
def test_special_values(level: isa.Isa, name: str) -> None:
    a, b = numbers((1, 9, 6), name, 1), numbers((1, 6, 40), name, 2)
    a[0, 2, 3], a[0, 4, 1], b[0, 5, 7] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        wanted = expected(TYPES[name], a, b)
    found = multiplied(level, TYPES[name], a, b)
    np.testing.assert_array_equal(found.astype("f8"), wanted.astype("f8"))

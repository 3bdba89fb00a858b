"""Gather of rows and scatter of blocks, at every vector level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.driver.step_table import Status
from gptrs.kernels.gemm import packing
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.kernels.rowwise import gather_scatter

Array = NDArray[Any]

GUARD = np.float32(-7.25)
CODE = 77
INDICES = [np.int32, np.int64]
KINDS: dict[WeightType, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def sample(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def call(text: KernelText, words: Sequence[Array | int], *ranges: tuple[int, int]) -> None:
    values = [w if isinstance(w, int) else w.ctypes.data for w in words]
    block = np.array(values, np.int64)
    for first, last in ranges:
        compile_ir(*text)(block.ctypes.data, first, last)


def pack(level: isa.Isa, table: Array, weights: WeightType = "f32") -> Array:
    """``table`` [V, D] as the panels [⌈V/w⌉, D, w] of a product's weight."""
    count, width = table.shape
    tile = level.tile_columns
    panels = np.full((packing.panel_count(level, count), width, tile), 9, table.dtype)
    text = packing.pack_rows_kernel(level, tile, weights)
    call(text, (table, panels, count, width, width, tile), (0, len(panels)))
    return panels


def take(
    text: KernelText,
    source: Array,
    shape: tuple[int, int],
    ids: Array,
    *,
    ld: int = 0,
    ranges: Sequence[tuple[int, int]] = (),
) -> tuple[Array, Status]:
    """The rows that the kernel takes, and its status; rows that it leaves alone hold `GUARD`."""
    status = Status()
    held = np.full((len(ids) + 2, shape[1] + 5), GUARD)
    result = held[1:-1, : shape[1]]
    words = [source, ids, result, status.address, CODE, *shape, ld, shape[1] + 5, ids.itemsize]
    call(text, words, *(ranges or [(0, len(ids))]))
    found = result.copy()
    result[:] = GUARD
    assert (held == GUARD).all(), "written outside the rows"
    return found, status


def check_take(level: isa.Isa, table: Array, ids: Array, weights: WeightType) -> None:
    """Both kernels against ``table``, in parts and in any order."""
    (count, width), wanted = table.shape, table[ids].astype(np.float32)
    parts = [(7, 19), (0, 3), (3, 3), (3, 7)]
    wide = np.full((count, width + 2), np.nan, table.dtype)
    wide[:, :width] = table
    plain, packed = (
        gather_scatter.take_kernel(level, weights),
        gather_scatter.take_panels_kernel(level, weights),
    )
    for found, status in (
        take(plain, table, table.shape, ids, ld=width),
        take(plain, wide, table.shape, ids, ld=width + 2, ranges=parts),
        take(packed, pack(level, table, weights), table.shape, ids, ranges=parts),
    ):
        np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))
        assert status.failure() is None


@pytest.mark.parametrize("weights", get_args(WeightType))
@pytest.mark.parametrize("shape", [(1, 1), (50, 7), (131, 64), (33, 100)])
def test_take(level: isa.Isa, weights: WeightType, shape: tuple[int, int]) -> None:
    table = sample(*shape).astype(KINDS[weights])
    for index in INDICES:
        ids = np.random.default_rng(2).integers(0, shape[0], 19).astype(index)
        ids[:2] = 0, shape[0] - 1
        check_take(level, table, ids, weights)


@pytest.mark.parametrize("weights", ["f16", "bf16"])
def test_take_the_ends_of_a_format(level: isa.Isa, weights: WeightType) -> None:
    """Zeros, subnormal and large numbers and infinities, in whole vectors and after them."""
    ends = [0.0, -0.0, 6e-8, -5e-7, 6.1e-5, 65504, np.inf, -np.inf, 1, -3.5, 1e-7]
    table = np.resize(np.array(ends, np.float32), (5, 23)).astype(KINDS[weights])
    check_take(level, table, np.arange(19) % 5, weights)


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("packed", [False, True])
def test_an_index_out_of_range(level: isa.Isa, index: type[np.signedinteger], packed: bool) -> None:
    shape = (20, 9)
    table = sample(*shape)
    build = gather_scatter.take_panels_kernel if packed else gather_scatter.take_kernel
    source = pack(level, table) if packed else table
    limits = np.iinfo(index)
    for wrong in (-1, 20, 31, limits.min, limits.max, limits.max - 19):
        ids = np.array([3, 19, wrong, 0, wrong], index)
        found, status = take(build(level), source, shape, ids, ld=9)
        failure = status.failure()
        assert failure is not None
        assert (failure.code, failure.index) == (CODE, 2), "the first of this range"
        np.testing.assert_array_equal(found[[0, 1, 3]], table[[3, 19, 0]])
        assert (found[[2, 4]] == GUARD).all()


def test_the_first_failure_stays(level: isa.Isa) -> None:
    ids = np.array([0, 5, 9], np.int32)
    ranges = [(2, 3), (0, 2)]
    _, status = take(
        gather_scatter.take_kernel(level), sample(4, 3), (4, 3), ids, ld=3, ranges=ranges
    )
    failure = status.failure()
    assert failure is not None
    assert failure.index == 2


BLOCKS = [
    ((1, 1, 1, 1), (1, 1, 1, 1)),
    ((2, 3, 4, 20), (2, 3, 9, 20)),
    ((1, 2, 1, 64), (2, 5, 7, 64)),
    ((2, 2, 3, 5), (4, 2, 3, 11)),
    ((1, 2, 2, 3, 5), (3, 4, 2, 3, 11)),
]


def update(
    level: isa.Isa,
    source: Array,
    destination: Array,
    start: Sequence[int],
    pointed: dict[int, Any] | None = None,
) -> None:
    """Copy, with the start of the axes in ``pointed`` in memory, as an integer of that type.

    Axes are counted from the last of four on; there may be one before.
    """
    axes = gather_scatter.UPDATE_AXES
    source, destination = (a[(None,) * (axes - a.ndim)] for a in (source, destination))
    start = (*[0] * (axes - len(start)), *start)
    pointed = {axis + axes - 4: kind for axis, kind in (pointed or {}).items()}
    held = {axis: np.array(start[axis], kind) for axis, kind in pointed.items()}
    starts = [held.get(axis, at) for axis, at in enumerate(start)]
    sizes = [held[axis].itemsize if axis in held else 0 for axis in range(axes)]
    words = [source, destination, *starts, *sizes, *source.shape, *destination.shape]
    for a in (source, destination):
        assert a.strides[-1] == a.itemsize
        words += [s // a.itemsize for s in a.strides[:-1]]
    extent = gather_scatter.update_extent(source.shape)
    cut = extent // 3
    text = gather_scatter.update_kernel(level, WIDTHS[source.itemsize])
    call(text, words, (cut, extent), (0, cut), (cut, cut))


WIDTHS: dict[int, Literal[1, 2, 4, 8]] = {1: 1, 2: 2, 4: 4, 8: 8}
POINTED: list[dict[int, Any]] = [
    {},
    {2: np.int32},
    {2: np.int64},
    {0: np.int64, 1: np.int32, 2: np.int32, 3: np.int64},
]


@pytest.mark.parametrize(("size", "extent"), BLOCKS)
@pytest.mark.parametrize("pointed", POINTED)
def test_update(
    level: isa.Isa, size: tuple[int, ...], extent: tuple[int, ...], pointed: dict[int, Any]
) -> None:
    source, before = sample(*size), sample(*extent) + 10
    for start in [(0, 0, 0, 0), (1, 0, 2, 3), (-5, 99, 2**31 - 1, -(2**31)), (0, 3, 6, 6)]:
        start = (*[2] * (len(size) - 4), *start)
        given = ptir.tensor(before), ptir.tensor(source)
        wanted = ptir.dynamic_update_slice(*given, start).numpy()
        found = before.copy()
        update(level, source, found, start, pointed)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_update_copies_bits(level: isa.Isa, kind: type[np.unsignedinteger]) -> None:
    """Every pattern of bits of every width, and nothing around the block."""
    rng, limit = np.random.default_rng(0), np.iinfo(kind).max
    for length in (1, 15, 64, 147):
        source = rng.integers(0, limit, (1, 2, 3, length), kind, endpoint=True)
        found = np.full((2, 4, 5, length + 2), 77, kind)
        wanted = found.copy()
        wanted[1:, 1:3, 2:, 1:-1] = source
        update(level, source, found, (1, 1, 2, 1), {2: np.int64})
        np.testing.assert_array_equal(found, wanted)


def test_update_with_strides(level: isa.Isa) -> None:
    """A cache [B, H, T, D] from tokens [B, S, 3, H, D]; the gaps between its rows stay."""
    tokens = sample(2, 4, 3, 5, 9)
    source = tokens[:, :, 1].transpose(0, 2, 1, 3)
    held = np.full((2, 5, 7, 12), GUARD)
    update(level, source, held[..., 1:10], (0, 0, 2, 0), {2: np.int32})
    np.testing.assert_array_equal(held[:, :, 2:6, 1:10], source)
    held[:, :, 2:6, 1:10] = GUARD
    assert (held == GUARD).all()


def test_update_far_starts(level: isa.Isa) -> None:
    source, before = sample(1, 2, 3, 4), sample(1, 2, 8, 4)
    for at, place in [(2**63 - 1, 5), (-(2**63), 0)]:
        found = before.copy()
        update(level, source, found, (0, 0, at, 0), {2: np.int64})
        np.testing.assert_array_equal(found[:, :, place : place + 3], source)

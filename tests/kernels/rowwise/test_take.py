"""Gather of rows of a table, packed or not, at every vector level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.driver.step_table import Status
from gptrs.kernels.gemm import packing
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.kernels.rowwise.take import take_kernel, take_panels_kernel

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
        take_kernel(level, weights),
        take_panels_kernel(level, weights),
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
    build = take_panels_kernel if packed else take_kernel
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
    _, status = take(take_kernel(level), sample(4, 3), (4, 3), ids, ld=3, ranges=ranges)
    failure = status.failure()
    assert failure is not None
    assert failure.index == 2

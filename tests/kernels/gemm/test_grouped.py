"""Grouped GEMM: groups of any size get the bits of the product with their matrix alone, at every
vector level, however the extents are split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs.kernels.compiler import isa
from gptrs.kernels.driver.step_table import Status
from gptrs.kernels.gemm import grouped
from gptrs.kernels.gemm.blocked import blocked_gemm_kernel, blocking
from gptrs.kernels.gemm.packed_gemv import packed_gemv_kernel, packed_gemv_limit
from gptrs.kernels.gemm.packing import pack_rows_kernel
from gptrs.kernels.gemm.product import FIRST_BLOCK, Product
from tests.kernels.gemm.test_matmul import (
    GUARD,
    Result,
    bits,
    call,
    even,
    kernel,
    matrix,
    pack_rows,
)

Array = NDArray[Any]
SIZES = [  # pairs, groups, columns, depth, ids a row of x
    (2, 8, 64, 32, 2),
    (6, 3, 17, 5, 1),
    (70, 4, 33, 16, 2),
    (90, 2, 48, 40, 3),
    (40, 3, 7, FIRST_BLOCK + 8, 1),
    (24, 300, 1, 9, 4),
]


def sorted_pairs(level: isa.Isa, ids: Array, groups: int) -> tuple[Array, Array, Status]:
    starts, order = np.full(groups + 2, -1), np.full(len(ids), -1)
    status = Status()
    words = (ids, starts, order, len(ids), groups, ids.itemsize, status.address, 7)
    call(kernel(grouped.group_rows_kernel, level), words, (0, 1))
    return starts, order, status


def grouped_product(
    level: isa.Isa, x: Array, ids: Array, weight: Array, share: int, parts: int, block_tiles: int
) -> Array:
    """The steps of a plan, each split into so many ranges."""
    (groups, columns, depth), pairs = weight.shape, len(ids)
    starts, order, _ = sorted_pairs(level, ids, groups)
    panels = pack_rows(level, weight.reshape(-1, depth), level.tile_columns)
    a = np.full((pairs, depth), np.nan, np.float32)
    words: list[Any] = [x, order, a, depth, depth, share]
    call(kernel(grouped.gather_rows_kernel, level), words, *reversed(even(pairs, parts)))
    few, height = packed_gemv_limit(level, Product()), level.tile_rows
    most = pairs // height + min(groups, pairs // (few + 1))
    tiles = np.full((most + 1, depth, height), np.nan, np.float32)
    pack = kernel(pack_rows_kernel, level, height).address
    words = [a, tiles, starts, pack, depth, groups, few, height]
    call(kernel(grouped.pack_groups_kernel, level), words, *reversed(even(most, parts)))
    ldc = columns + grouped.slack(level, columns)
    c = np.full((pairs, ldc), np.nan, np.float32)
    totals = np.full((pairs, ldc), np.nan) if depth > FIRST_BLOCK else 0
    result = np.full((pairs + 2, columns), GUARD)
    gemv, gemm = (
        kernel(each, level, Product()) for each in (packed_gemv_kernel, blocked_gemm_kernel)
    )
    words = [a, tiles, panels, c, totals, result[1:], starts, order, gemv.address, gemm.address]
    words += [depth, columns, ldc, groups, few, height]
    words += [blocking(level, pairs, depth).depth_block, block_tiles]
    extent = grouped.grouped_extent(level, columns)
    call(kernel(grouped.grouped_gemm_kernel, level), words, *reversed(even(extent, parts)))
    assert (result[[0, -1]] == GUARD).all()
    return result[1:-1]


@pytest.mark.parametrize("level", isa.host_levels(), ids=lambda level: level.name)
@pytest.mark.parametrize("size", SIZES)
def test_every_group_is_as_its_product_alone(level: isa.Isa, size: tuple[int, ...]) -> None:
    pairs, groups, columns, depth, share = size
    random = np.random.default_rng(pairs)
    ids = random.integers(0, groups, pairs) % random.integers(1, groups + 1)  # some have no rows
    x = np.ascontiguousarray(matrix(-(-pairs // share), depth, 1))
    weight = np.ascontiguousarray(matrix(groups * columns, depth, 2)).reshape(
        groups, columns, depth
    )
    found = [
        grouped_product(level, x, ids, weight, share, parts, tiles)
        for parts, tiles in ((1, 99), (3, 1), (2, 2))
    ]
    for group in set(ids.tolist()):
        panels = pack_rows(level, weight[group], level.tile_columns)
        rows = np.flatnonzero(ids == group)
        expected = Result(level, x[rows // share], panels, columns).rows()
        for each in found:
            np.testing.assert_array_equal(bits(each[rows]), bits(expected))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_pairs_are_sorted_by_group(dtype: Any) -> None:
    ids = np.array([2, 0, 2, 1, 0, 2], dtype)
    starts, order, status = sorted_pairs(isa.current(), ids, 4)
    assert starts[:5].tolist() == [0, 2, 3, 6, 6]
    assert order.tolist() == [1, 4, 3, 0, 2, 5]
    assert status.failure() is None


@pytest.mark.parametrize("wrong", [-1, 3, 2**31 - 1])
def test_an_id_without_a_group_is_reported(wrong: int) -> None:
    _, _, status = sorted_pairs(isa.current(), np.array([0, wrong, 2, wrong], np.int32), 3)
    failure = status.failure()
    assert failure is not None
    assert (failure.code, failure.index) == (7, 1)

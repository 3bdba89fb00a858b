"""Rows taken by index and blocks put into place, at every vector level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.kernels import isa, packing, rows
from gptrs.kernels.compile import compile_ir
from gptrs.kernels.driver import Status
from gptrs.kernels.emit import KernelText

Array = NDArray[Any]

# A level's own instructions where this CPU has them; else its code on the best of this CPU's.
HERE = [level.name for level in isa.host_levels()]
LEVELS = [(name if name in HERE else HERE[0], name) for name in isa.ISAS]
GUARD = np.float32(-7.25)
CODE = 77


@pytest.fixture(params=LEVELS, ids=lambda level: f"{level[1]}-on-{level[0]}")
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> isa.Isa:
    target, shape = request.param
    monkeypatch.setenv("GPTRS_ISA", target)
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
    return isa.ISAS[shape]


def sample(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def call(text: KernelText, words: Sequence[Array | int], *ranges: tuple[int, int]) -> None:
    values = [w if isinstance(w, int) else w.ctypes.data for w in words]
    block = np.array(values, np.int64)
    for first, last in ranges:
        compile_ir(*text)(block.ctypes.data, first, last)


def pack(level: isa.Isa, table: Array) -> Array:
    """``table`` [V, D] as the panels [⌈V/w⌉, D, w] of a product's weight."""
    count, width = table.shape
    tile = level.tile_columns
    panels = np.full((packing.panel_count(level, count), width, tile), 9, np.float32)
    text = packing.pack_rows_kernel(level, tile)
    call(text, (table, panels, count, width, width), (0, len(panels)))
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
    words = [source, ids, result, status.address, CODE, *shape, ld, shape[1] + 5]
    call(text, words, *(ranges or [(0, len(ids))]))
    found = result.copy()
    result[:] = GUARD
    assert (held == GUARD).all(), "written outside the rows"
    return found, status


@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("shape", [(1, 1), (50, 7), (131, 64), (33, 100)])
def test_take(level: isa.Isa, index: rows.Index, shape: tuple[int, int]) -> None:
    table = sample(*shape)
    kind = np.int32 if index == "i32" else np.int64
    ids = np.random.default_rng(2).integers(0, shape[0], 19).astype(kind)
    ids[:2] = 0, shape[0] - 1
    wanted = ptir.embedding(ptir.tensor(table), ptir.tensor(ids)).numpy()
    found, status = take(rows.take_kernel(level, index), table, shape, ids, ld=shape[1])
    np.testing.assert_array_equal(found, wanted)
    assert status.failure() is None
    wide = np.full((shape[0], shape[1] + 2), np.nan, np.float32)
    wide[:, : shape[1]] = table
    parts = [(7, 19), (0, 3), (3, 3), (3, 7)]
    text = rows.take_kernel(level, index)
    found, _ = take(text, wide, shape, ids, ld=shape[1] + 2, ranges=parts)
    np.testing.assert_array_equal(found, wanted)
    text = rows.take_panels_kernel(level, index)
    found, status = take(text, pack(level, table), shape, ids, ranges=parts)
    np.testing.assert_array_equal(found, wanted)
    assert status.failure() is None


@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("packed", [False, True])
def test_an_index_out_of_range(level: isa.Isa, index: rows.Index, packed: bool) -> None:
    shape = (20, 9)
    table = sample(*shape)
    build = rows.take_panels_kernel if packed else rows.take_kernel
    source = pack(level, table) if packed else table
    kind = np.int32 if index == "i32" else np.int64
    limits = np.iinfo(kind)
    for wrong in (-1, 20, 31, limits.min, limits.max, limits.max - 19):
        ids = np.array([3, 19, wrong, 0, wrong], kind)
        found, status = take(build(level, index), source, shape, ids, ld=9)
        failure = status.failure()
        assert failure is not None
        assert (failure.code, failure.index) == (CODE, 2), "the first of this range"
        np.testing.assert_array_equal(found[[0, 1, 3]], table[[3, 19, 0]])
        assert (found[[2, 4]] == GUARD).all()


def test_the_first_failure_stays(level: isa.Isa) -> None:
    ids = np.array([0, 5, 9], np.int32)
    ranges = [(2, 3), (0, 2)]
    _, status = take(rows.take_kernel(level), sample(4, 3), (4, 3), ids, ld=3, ranges=ranges)
    failure = status.failure()
    assert failure is not None
    assert failure.index == 2


BLOCKS = [
    ((1, 1, 1, 1), (1, 1, 1, 1)),
    ((2, 3, 4, 20), (2, 3, 9, 20)),
    ((1, 2, 1, 64), (2, 5, 7, 64)),
    ((2, 2, 3, 5), (4, 2, 3, 11)),
]


def update(
    level: isa.Isa,
    source: Array,
    destination: Array,
    start: Sequence[int],
    dynamic: Sequence[int],
    index: rows.Index = "i32",
) -> None:
    kind = np.int32 if index == "i32" else np.int64
    held = np.array(start, kind)
    starts = [
        held.ctypes.data + axis * held.itemsize if axis in dynamic else at
        for axis, at in enumerate(start)
    ]
    words: list[Array | int] = [source, destination, *starts, *source.shape, *destination.shape]
    for a in (source, destination):
        assert a.strides[3] == 4
        words += [s // 4 for s in a.strides[:3]]
    extent = rows.update_extent(source.shape)
    cut = extent // 3
    call(rows.update_kernel(level, dynamic, index), words, (cut, extent), (0, cut), (cut, cut))


@pytest.mark.parametrize(("size", "extent"), BLOCKS)
@pytest.mark.parametrize("dynamic", [(), (2,), (0, 1, 2, 3)], ids=str)
def test_update(
    level: isa.Isa, size: tuple[int, ...], extent: tuple[int, ...], dynamic: tuple[int, ...]
) -> None:
    source, before = sample(*size), sample(*extent) + 10
    for start in [(0, 0, 0, 0), (1, 0, 2, 3), (-5, 99, 2**31 - 1, -(2**31)), (0, 3, 6, 6)]:
        given = ptir.tensor(before), ptir.tensor(source)
        wanted = ptir.dynamic_update_slice(*given, start).numpy()
        for index in ("i32", "i64"):
            found = before.copy()
            update(level, source, found, start, dynamic, index)
            np.testing.assert_array_equal(found, wanted)


def test_update_with_strides(level: isa.Isa) -> None:
    """A cache [B, H, T, D] from tokens [B, S, 3, H, D]; the gaps between its rows stay."""
    tokens = sample(2, 4, 3, 5, 9)
    source = tokens[:, :, 1].transpose(0, 2, 1, 3)
    held = np.full((2, 5, 7, 12), GUARD)
    update(level, source, held[..., 1:10], (0, 0, 2, 0), (2,))
    np.testing.assert_array_equal(held[:, :, 2:6, 1:10], source)
    held[:, :, 2:6, 1:10] = GUARD
    assert (held == GUARD).all()


def test_update_far_starts(level: isa.Isa) -> None:
    source, before = sample(1, 2, 3, 4), sample(1, 2, 8, 4)
    for at, place in [(2**63 - 1, 5), (-(2**63), 0)]:
        found = before.copy()
        update(level, source, found, (0, 0, at, 0), (2,), "i64")
        np.testing.assert_array_equal(found[:, :, place : place + 3], source)

"""Both drivers: order of steps, chunking and failures. No test asserts a speed."""

# llvmlite has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import ctypes
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gptrs.errors import ArgumentError
from gptrs.kernels.driver import current
from gptrs.kernels.driver.control_block import MAX_CHUNKS
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.driver import Driver
from gptrs.kernels.driver.pool_driver import PoolDriver
from gptrs.kernels.driver.step_table import Failure, Status, Step, StepTable, cuts
from gptrs.kernels.driver.worker_pool import build_pool_ir
from tests.support.steps import Chain, callback, kernels, needs_pool


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_step_sees_all_of_the_step_before(driver: Driver, threads: int) -> None:
    chain = Chain()
    for _ in range(100):
        chain.run(driver, threads, times=100 if driver.name == "pool" else 10)


@needs_pool
def test_changing_the_thread_count_from_run_to_run(pool: PoolDriver) -> None:
    chain = Chain()
    for _ in range(300):
        for threads in (2, 1, 4, 3, 8, 2):
            chain.run(pool, threads)


@pytest.mark.slow
@given(extent=st.integers(0, 500), chunks=st.integers(1, 70), threads=st.integers(0, 9))
@hypothesis_settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("name", [pytest.param("pool", marks=needs_pool), "numba"])
def test_chunks_cover_the_extent_once(name: str, extent: int, chunks: int, threads: int) -> None:
    runner = current._driver(name)  # pyright: ignore[reportPrivateUsage]
    visits, ends = np.zeros((2, extent + 1), np.int64)
    block = np.array([visits.ctypes.data, ends.ctypes.data], np.int64)
    table = StepTable([Step(kernels()["visit"], block.ctypes.data, extent, chunks)])
    assert runner.run(table, Status(), threads=threads) is None
    assert visits.tolist() == [1] * extent + [0]
    found = [(int(i), int(ends[i])) for i in np.flatnonzero(ends)]
    assert found == cuts(extent, chunks)


@given(extent=st.integers(0, 10**15), chunks=st.integers(1, 200))
def test_cuts_are_contiguous_and_even(extent: int, chunks: int) -> None:
    ranges = cuts(extent, chunks)
    assert len(ranges) == min(extent, chunks)
    assert [first for first, _ in ranges] == [0, *(last for _, last in ranges)][: len(ranges)]
    assert sum(last - first for first, last in ranges) == extent
    lengths = {last - first for first, last in ranges}
    assert not lengths or max(lengths) - min(lengths) <= 1
    # A thread takes a run of them, which has its share of the longer ones.
    count = len(ranges)
    assert all(
        first * count <= i * extent < (first + 1) * count for i, (first, _) in enumerate(ranges)
    )


@needs_pool
def test_the_largest_number_of_chunks(pool: PoolDriver) -> None:
    chain = Chain(steps=2, length=MAX_CHUNKS + 5, chunks=MAX_CHUNKS)
    chain.run(pool, 4, times=3)


@needs_pool
@pytest.mark.parametrize("threads", [2, 3])
def test_the_caller_begins_at_the_front_and_workers_in_the_middle(
    pool: PoolDriver, threads: int
) -> None:
    """So that what lies side by side stays with one of two threads."""
    taken: list[tuple[int, int]] = []

    @ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)
    def note(_block: int, first: int, _last: int) -> None:
        taken.append((threading.get_native_id(), first))
        time.sleep(0.001)  # so that others have their turn

    address = ctypes.cast(note, ctypes.c_void_p).value
    assert address
    table, mine = StepTable([Step(address, 0, 40, 20)]), threading.get_native_id()
    for _ in range(5):
        taken.clear()
        assert pool.run(table, Status(), threads=threads) is None
        by_caller = [first for thread, first in taken if thread == mine]
        by_workers = [first for thread, first in taken if thread != mine]
        order = [*range(0, 20, 2), *range(38, 18, -2)]  # the second half from its end
        assert by_caller == order[: len(by_caller)]
        assert sorted(by_workers) == sorted(order[len(by_caller) :])
        if threads == 2:
            assert by_workers == order[: len(by_caller) - 1 : -1]


@pytest.mark.parametrize(
    "step", [Step(0, 0, 1), Step(1, 0, -1), Step(1, 0, 1, 0), Step(1, 0, 1, MAX_CHUNKS + 1)]
)
def test_a_step_that_cannot_run_is_refused(step: Step) -> None:
    with pytest.raises(ArgumentError, match="step 0: expected"):
        StepTable([step])


@pytest.mark.slow
def test_part_of_a_table(driver: Driver) -> None:
    visits, ends = np.zeros((2, 4), np.int64)
    block = np.array([visits.ctypes.data, ends.ctypes.data], np.int64)
    table, status = StepTable([Step(kernels()["visit"], block.ctypes.data, 3, 2)] * 4), Status()
    driver.run(table, status, threads=2, first=1, last=3)
    driver.run(table, status, threads=2, first=3)
    driver.run(table, status, threads=2, first=2, last=2)
    assert visits.tolist() == [3, 3, 3, 0]
    with pytest.raises(ArgumentError, match="steps 3 to 5 of a table with 4"):
        driver.run(table, status, threads=2, first=3, last=5)


@pytest.mark.parametrize("chunks", [1, 4])
def test_a_failure_stops_the_plan(driver: Driver, chunks: int) -> None:
    status = Status()
    visits, ends = np.zeros((2, 100), np.int64)
    seen = np.array([visits.ctypes.data, ends.ctypes.data], np.int64)
    fails = np.array([status.address, 7, 42], np.int64)
    visit = Step(kernels()["visit"], seen.ctypes.data, 100, chunks)
    fail = Step(kernels()["fail"], fails.ctypes.data, 100, chunks)
    table = StepTable([visit, fail, visit])
    for _ in range(20):
        visits[:] = 0
        assert driver.run(table, status, threads=3) == Failure(step=1, code=7, index=42)
        assert visits.tolist() == [1] * 100
    fails[2] = 1000  # in no chunk: all is well again
    assert driver.run(table, status, threads=3) is None
    assert status.failure() is None


def test_one_of_many_failures_is_reported_whole(driver: Driver) -> None:
    status = Status()
    blocks = np.array([[status.address, 10 + i, i] for i in range(40)], np.int64)
    rows = [Step(kernels()["fail"], block.ctypes.data, 1) for block in blocks]
    assert driver.run(StepTable(rows), status, threads=2) == Failure(0, 10, 0)
    calls: list[int] = []

    def failing(block: int, first: int, last: int) -> None:
        calls.append(first)
        fail = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(kernels()["fail"])
        fail(blocks[first].ctypes.data, first, last)

    with callback(failing) as address:
        found = driver.run(StepTable([Step(address, 0, 40, 40)]), status, threads=3)
    assert sorted(calls) == list(range(40))
    assert found is not None
    assert found.code == found.index + 10


def test_a_failure_from_numba_code(driver: Driver) -> None:
    from numba import cfunc

    from gptrs.kernels.driver.prange import store_failure

    def fail(block: int, first: int, last: int) -> None:
        if first <= 3 < last:
            store_failure(block, 5, 3)

    kernel: Any = cfunc("void(int64,int64,int64)")(fail)
    status = Status()
    table = StepTable([Step(kernel.address, status.address, 9, 3)])
    assert driver.run(table, status, threads=2) == Failure(0, 5, 3)


def test_one_driver_for_threads_that_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    makes = current._make_driver  # pyright: ignore[reportPrivateUsage]
    begun: list[str] = []

    def make(name: str) -> Driver:
        begun.append(name)
        time.sleep(0.05)  # long enough for another thread to ask
        return makes(name)

    monkeypatch.setattr(current, "_made", dict[str, Driver]())
    monkeypatch.setattr(current, "_make_driver", make)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(current_driver) for _ in range(4)]
        found = {id(each.result()) for each in asked}
    assert (len(found), len(begun)) == (1, 1)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_pool_compiles_for(machine: str) -> None:
    text = build_pool_ir(machine)
    assert text == build_pool_ir(machine)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module: Any = llvm.parse_assembly(text)
    module.verify()
    target: Any = llvm.Target.from_triple(f"{machine}-linux-gnu")
    assembly = str(target.create_target_machine(opt=3).emit_assembly(module))
    if machine == "aarch64":  # the order of memory is spelt out, not left to x86
        assert {"ldar", "stlr", "ldaxr"} <= set(assembly.split())

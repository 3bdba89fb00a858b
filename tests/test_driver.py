"""Order, cuts, failures and company of the two drivers. No test asserts a speed."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, cast

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from llvmlite import ir

from gptrs.errors import ArgumentError
from gptrs.kernels import driver as driver_module
from gptrs.kernels.driver import (
    Driver,
    Failure,
    PoolDriver,
    Status,
    Step,
    StepTable,
    current_driver,
    cuts,
    emit_failure,
)
from gptrs.kernels.pool import MAX_CHUNKS, build_pool_ir, supported

# llvmlite has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

needs_pool = pytest.mark.skipif(not supported(), reason="needs a futex")
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

KERNELS = """
; arguments: source, target, length n.  target[i] = 3 source[n - 1 - i] + i
define void @mirror(i64 %block, i64 %first, i64 %last) {
entry:
  %words = inttoptr i64 %block to ptr
  %at1 = getelementptr i64, ptr %words, i64 1
  %at2 = getelementptr i64, ptr %words, i64 2
  %source = load ptr, ptr %words
  %target = load ptr, ptr %at1
  %n = load i64, ptr %at2
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %below = sub i64 %n, %i
  %j = sub i64 %below, 1
  %from = getelementptr i64, ptr %source, i64 %j
  %x = load i64, ptr %from
  %x3 = mul i64 %x, 3
  %y = add i64 %x3, %i
  %to = getelementptr i64, ptr %target, i64 %i
  store i64 %y, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %loop, label %end
end:
  ret void
}

; arguments: visits, ends.  visits[i] += 1 for each element, ends[first] = last
define void @visit(i64 %block, i64 %first, i64 %last) {
entry:
  %words = inttoptr i64 %block to ptr
  %at1 = getelementptr i64, ptr %words, i64 1
  %visits = load ptr, ptr %words
  %ends = load ptr, ptr %at1
  %end0 = getelementptr i64, ptr %ends, i64 %first
  store i64 %last, ptr %end0
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %visits, i64 %i
  %seen = load i64, ptr %at
  %seen1 = add i64 %seen, 1
  store i64 %seen1, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


def _fail_kernel() -> str:
    """fail: arguments status, code, index; fails in the chunk that holds the index."""
    word = ir.IntType(64)
    module: Any = ir.Module("fail")
    function: Any = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * 3), "fail")
    builder: Any = ir.IRBuilder(function.append_basic_block())
    block, first, last = function.args
    words = builder.inttoptr(block, word.as_pointer())
    status, code, index = (
        builder.load(builder.gep(words, [ir.Constant(word, i)])) for i in range(3)
    )
    inside = builder.and_(
        builder.icmp_signed("<=", first, index), builder.icmp_signed("<", index, last)
    )
    with builder.if_then(inside):
        emit_failure(builder, status, code, index)
    builder.ret_void()
    return str(module)


@cache
def kernels() -> dict[str, int]:
    """The addresses of this file's kernels; what is linked stays, as the cache holds it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    jit: Any = llvm.create_lljit_compiler()
    library: Any = llvm.JITLibraryBuilder().add_ir(KERNELS).add_ir(_fail_kernel())
    names = ("mirror", "visit", "fail")
    for name in names:
        library.export_symbol(name)
    linked: Any = library.link(jit, "test_driver")
    addresses = {name: int(linked[name]) for name in names}
    linked.detach()
    jit.detach()
    return addresses


class Chain:
    """Two buffers and a table of steps, each of which mirrors all that the one before wrote."""

    def __init__(self, steps: int = 8, length: int = 61, chunks: int = 5) -> None:
        self.buffers = np.zeros((2, length), np.int64)
        self.expected = self.buffers[0].copy()
        at = [row.ctypes.data for row in self.buffers]
        self.blocks = np.array([[*at, length], [*at[::-1], length]], np.int64)
        rows = [
            Step(kernels()["mirror"], self.blocks[i % 2].ctypes.data, length, chunks)
            for i in range(steps)
        ]
        self.table, self.status = StepTable(rows), Status()

    def run(self, driver: Driver, threads: int, times: int = 1) -> None:
        """Run the chain, and the same in NumPy; the results stay equal to the last bit."""
        ramp = np.arange(len(self.expected))
        for _ in range(times):
            assert driver.run(self.table, self.status, threads=threads) is None
            for _ in range(self.table.count):
                self.expected = 3 * self.expected[::-1] + ramp
        assert np.array_equal(self.buffers[0], self.expected)


@pytest.fixture(params=[pytest.param("pool", marks=needs_pool), "numba"])
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setenv("GPTRS_DRIVER", cast(str, request.param))
    chosen = current_driver()
    assert chosen.name == request.param
    return chosen


@pytest.fixture
def pool() -> Generator[PoolDriver]:
    """A pool of the test's own."""
    made = PoolDriver()
    yield made
    made.close()


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


@given(extent=st.integers(0, 500), chunks=st.integers(1, 70), threads=st.integers(0, 9))
@hypothesis_settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("name", [pytest.param("pool", marks=needs_pool), "numba"])
def test_chunks_cover_the_extent_once(name: str, extent: int, chunks: int, threads: int) -> None:
    runner = driver_module._driver(name)  # pyright: ignore[reportPrivateUsage]
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


@needs_pool
def test_the_largest_number_of_chunks(pool: PoolDriver) -> None:
    chain = Chain(steps=2, length=MAX_CHUNKS + 5, chunks=MAX_CHUNKS)
    chain.run(pool, 4, times=3)


@needs_pool
@pytest.mark.parametrize("threads", [2, 3])
def test_the_caller_begins_at_the_front_and_workers_at_the_end(
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
        assert by_caller == list(range(0, 2 * len(by_caller), 2))
        assert sorted(by_workers) == list(range(2 * len(by_caller), 40, 2))
        if threads == 2:
            assert by_workers == sorted(by_workers, reverse=True)


@pytest.mark.parametrize(
    "step", [Step(0, 0, 1), Step(1, 0, -1), Step(1, 0, 1, 0), Step(1, 0, 1, MAX_CHUNKS + 1)]
)
def test_a_step_that_cannot_run_is_refused(step: Step) -> None:
    with pytest.raises(ArgumentError, match="step 0: expected"):
        StepTable([step])


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


class callback:  # noqa: N801
    """A Python function as a kernel, alive inside the block."""

    def __init__(self, function: Callable[[int, int, int], None]) -> None:
        self._native = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(function)

    def __enter__(self) -> int:
        return ctypes.cast(self._native, ctypes.c_void_p).value or 0

    def __exit__(self, *_: object) -> None:
        pass


def test_a_failure_from_numba_code(driver: Driver) -> None:
    from numba import cfunc

    from gptrs.kernels.prange import store_failure

    def fail(block: int, first: int, last: int) -> None:
        if first <= 3 < last:
            store_failure(block, 5, 3)

    kernel: Any = cast(Any, cfunc)("void(int64,int64,int64)")(fail)
    status = Status()
    table = StepTable([Step(kernel.address, status.address, 9, 3)])
    assert driver.run(table, status, threads=2) == Failure(0, 5, 3)


@pytest.mark.parametrize("callers", [2, 8])
def test_many_python_threads_on_one_driver(driver: Driver, callers: int) -> None:
    errors: list[BaseException] = []

    def work(index: int) -> None:
        try:
            Chain(length=40 + index).run(driver, threads=1 + index % 4, times=1600 // callers)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_second_caller_does_not_wait(driver: Driver) -> None:
    """The first caller's kernel ends only when the second caller's whole run has ended."""
    entered, finished = threading.Event(), threading.Event()
    waited: list[bool] = []

    def hold(_block: int, first: int, _last: int) -> None:
        if first == 0:
            entered.set()
            waited.append(finished.wait(30))

    with callback(hold) as address:
        table = StepTable([Step(address, 0, 2, 2)])
        first = threading.Thread(target=driver.run, args=(table, Status()), kwargs={"threads": 2})
        first.start()
        assert entered.wait(30)
        Chain().run(driver, threads=2, times=5)
        finished.set()
        first.join()
    assert waited == [True]


def _child(run: Callable[[], None]) -> int:
    """Run in a forked child; its exit code, 0 if nothing was raised."""
    pid = os.fork()
    if pid == 0:
        try:
            run()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_forks_while_other_threads_run_plans(driver: Driver) -> None:
    stop, errors = threading.Event(), list[BaseException]()

    def work() -> None:
        chain = Chain()
        try:
            while not stop.is_set():
                chain.run(driver, threads=3)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    mine = Chain()
    for _ in range(8):
        mine.run(driver, 2)
        assert _child(lambda: mine.run(driver, threads=3, times=50)) == 0
        mine.run(driver, 2)
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors


def _in_another_process(name: str) -> None:
    os.environ["GPTRS_DRIVER"] = name
    Chain().run(current_driver(), threads=3, times=50)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(driver: Driver, method: str) -> None:
    chain = Chain()
    chain.run(driver, 3)
    context: Any = multiprocessing.get_context(method)
    children = [context.Process(target=_in_another_process, args=(driver.name,)) for _ in range(2)]
    for child in children:
        child.start()
    chain.run(driver, 3, times=50)
    for child in children:
        child.join(60)
        assert child.exitcode == 0


@needs_pool
def test_workers_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_function: int, _argument: int) -> bool:
        return False

    monkeypatch.setattr(driver_module, "_start_thread", refuse)
    Chain().run(PoolDriver(), threads=4, times=20)


def _workers() -> list[Path]:
    tasks = Path("/proc/self/task").iterdir()
    return [task for task in tasks if (task / "comm").read_text().strip() == "gptrs-worker"]


@needs_pool
def test_close_ends_the_workers_and_a_later_run_starts_new_ones() -> None:
    before = len(_workers())
    pool, chain = PoolDriver(), Chain()
    for _ in range(3):
        chain.run(pool, threads=4, times=3)
        assert len(_workers()) == before + 3
        pool.close()
        deadline = time.monotonic() + 30
        while len(_workers()) > before and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(_workers()) == before


def _blocked_signals(worker: Path) -> set[int]:
    lines = (worker / "status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigBlk"))
    return {number for number in range(1, 65) if mask >> number - 1 & 1}


@needs_pool
def test_workers_leave_signals_to_python(pool: PoolDriver) -> None:
    Chain().run(pool, threads=2)
    deadline = time.monotonic() + 30
    for worker in _workers():
        # While it starts, a thread blocks everything. A fault must leave its trace.
        while signal.SIGSEGV in _blocked_signals(worker) and time.monotonic() < deadline:
            time.sleep(0.001)
        blocked = _blocked_signals(worker)
        assert {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD} <= blocked
        assert not {signal.SIGSEGV, signal.SIGFPE} & blocked


def _python(script: str, **environment: str) -> str:
    """What ``script`` prints, after this file's `Chain` and `PoolDriver` are in its names."""
    head = (
        "import ctypes, os, sys, threading, time\n"
        "from test_driver import *\n"
        "from gptrs.kernels.threads import available_cores, thread_count\n"
        "chain = Chain()\n"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", head + script],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_pool
@pytest.mark.parametrize("workers_are", ["spinning", "asleep", "working", "called"])
def test_the_interpreter_ends_while_workers(workers_are: str) -> None:
    scripts = {
        "spinning": "chain.run(current_driver(), 4)",
        "asleep": "chain.run(current_driver(), 4); time.sleep(0.1)",
        "working": """
def forever():
    while True:
        chain.run(current_driver(), 4)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
""",
        "called": """
with callback(lambda *_: None) as address:
    current_driver().run(StepTable([Step(address, 0, 4, 4)] * 100), Status(), threads=4)
""",
    }
    for _ in range(2):
        assert _python(scripts[workers_are] + "\nprint('end')") == "end\n"


@needs_pool
def test_an_idle_pool_uses_no_cpu() -> None:
    script = """
chain.run(current_driver(), 4, times=10)
time.sleep(0.1)
before = time.process_time()
time.sleep(0.5)
print(time.process_time() - before)
"""
    assert float(_python(script)) < 0.05


@needs_pool
def test_a_change_of_affinity() -> None:
    script = """
chain.run(current_driver(), 4, times=10)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
assert available_cores() == 1
chain.run(current_driver(), 4, times=10)
chain.run(current_driver(), thread_count(), times=10)
chain.run(PoolDriver(), 4, times=10)
"""
    _python(script, GPTRS_NUM_THREADS="")


@needs_pool
def test_a_fork_that_python_does_not_know_of() -> None:
    script = """
chain.run(current_driver(), 4, times=10)
pid = ctypes.PyDLL(None).fork()
chain.run(current_driver(), 4, times=10)
if pid == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    _python(script)


def test_numba_with_its_workqueue() -> None:
    script = """
import numba
test_many_python_threads_on_one_driver(current_driver(), 4)
test_forks_while_other_threads_run_plans(current_driver())
print(numba.threading_layer(), numba.get_num_threads())
"""
    found = _python(
        script, GPTRS_DRIVER="numba", NUMBA_THREADING_LAYER="workqueue", NUMBA_NUM_THREADS="3"
    )
    assert found.split() == ["workqueue", "3"]


def test_one_driver_for_threads_that_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    makes = driver_module._make_driver  # pyright: ignore[reportPrivateUsage]
    begun: list[str] = []

    def make(name: str) -> Driver:
        begun.append(name)
        time.sleep(0.05)  # long enough for another thread to ask
        return makes(name)

    monkeypatch.setattr(driver_module, "_made", dict[str, Driver]())
    monkeypatch.setattr(driver_module, "_make_driver", make)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(current_driver) for _ in range(4)]
        found = {id(each.result()) for each in asked}
    assert (len(found), len(begun)) == (1, 1)


def test_numba_is_imported_for_its_driver_alone() -> None:
    if supported():
        script = "chain.run(current_driver(), 2); print('numba' in sys.modules)"
        assert _python(script, GPTRS_DRIVER="") == "False\n"


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

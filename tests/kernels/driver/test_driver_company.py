"""Drivers with Python threads, forks, other processes, and the end of the interpreter."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs.kernels.driver import pool_driver
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.driver import Driver
from gptrs.kernels.driver.pool_driver import PoolDriver
from gptrs.kernels.driver.step_table import Status, Step, StepTable
from gptrs.kernels.driver.worker_pool import supported
from tests.support import ROOT
from tests.support.steps import Chain, callback, kernels, needs_pool

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@pytest.mark.alone
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


def test_several_threads_run_parts_of_one_table(driver: Driver) -> None:
    """What one of them is given is not overwritten by what another one is."""
    callers, times = 4, 300
    visits, ends = np.zeros((2, callers, 3), np.int64)
    blocks = [np.array([v.ctypes.data, e.ctypes.data]) for v, e in zip(visits, ends, strict=True)]
    table = StepTable([Step(kernels()["visit"], block.ctypes.data, 3, 1) for block in blocks])

    def work(index: int) -> None:
        status = Status()
        for _ in range(times):
            driver.run(table, status, threads=1 + index % 2, first=index, last=index + 1)

    with ThreadPoolExecutor(callers) as pool:
        for each in [pool.submit(work, index) for index in range(callers)]:
            each.result()
    assert visits.tolist() == [[times] * 3] * callers


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


@pytest.mark.slow
@pytest.mark.alone
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


@pytest.mark.slow
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

    monkeypatch.setattr(pool_driver, "_start_thread", refuse)
    Chain().run(PoolDriver(), threads=4, times=20)


def _workers() -> list[Path]:
    def name(task: Path) -> str:
        try:
            return (task / "comm").read_text().strip()
        except OSError:  # the thread has ended meanwhile
            return ""

    return [task for task in Path("/proc/self/task").iterdir() if name(task) == "gptrs-worker"]


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
        "from tests.kernels.driver.test_driver_company import *\n"
        "from gptrs.kernels.driver.threads import available_cores, thread_count\n"
        "chain = Chain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + script],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.alone
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


@pytest.mark.alone
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.alone
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


@pytest.mark.slow
def test_fused_loops_with_workqueue() -> None:
    """Parallel functions of Numba's own: one thread at a time, and no child launches them."""
    script = """
from gptrs import ptir
from gptrs.kernels.driver import prange

loop = ptir.jit(lambda x: ptir.tanh(x * 2.5) + x.sum(-1, keepdims=True))
x = np.linspace(-2, 2, 60000, dtype=np.float32).reshape(300, 200)
expected = loop(x).numpy()
assert len(prange._compiled) == 1

def check(_):
    return all(np.array_equal(loop(x).numpy(), expected) for _ in range(50))

with ThreadPoolExecutor(4) as threads:
    assert all(threads.map(check, range(4)))
pid = os.fork()
if pid == 0:
    os._exit(not check(0))
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    layer = {"NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"}
    _python(script, GPTRS_DRIVER="numba", GPTRS_NUM_THREADS="2", **layer)


@pytest.mark.slow
def test_numba_is_imported_for_its_driver_alone() -> None:
    if supported():
        script = "chain.run(current_driver(), 2); print('numba' in sys.modules)"
        assert _python(script, GPTRS_DRIVER="") == "False\n"

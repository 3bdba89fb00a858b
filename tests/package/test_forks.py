"""Forks while other threads hold locks: the child finds them free and all state consistent."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
import pytest
from numba.core.compiler_lock import (  # pyright: ignore[reportMissingTypeStubs]
    global_compiler_lock,
)

from gptrs import locks, parameter_cache, ptir
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array, Type, as_dtype
from gptrs.kernels.compiler import loaded_object
from gptrs.kernels.compiler.cache_key import Code
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.compiler.loaded_object import Library
from gptrs.locks import cached_property, new_lock, no_fork
from tests.support import ROOT
from tests.support.kernels import DOUBLE_IR

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

X = np.arange(6, dtype=np.float32)


def child(run: Callable[[], object]) -> int:
    """Run in a forked child, which a signal ends if it hangs; its exit code, 0 if all was well."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(30)
            run()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Inside:
    """A place where a thread of this process stays, and a child of it goes on."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.entered, self.left = threading.Event(), threading.Event()

    def stay(self) -> None:
        if os.getpid() == self.process:
            self.entered.set()
            assert self.left.wait(60)


@contextmanager
def a_thread_in(inside: Inside, run: Callable[[], object]) -> Generator[None]:
    """A block while another thread runs, and has come as far as ``inside``."""
    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert inside.entered.wait(60)
        yield
    finally:
        inside.left.set()
        thread.join()


def free(lock: Any, seconds: float = 30) -> bool:
    """Whether another thread gets it within some ``seconds``."""
    found: list[bool] = []

    def try_it() -> None:
        found.append(lock.acquire(timeout=seconds))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.slow
def test_a_lock_of_another_thread_is_free() -> None:
    lock, inside = new_lock(), Inside()

    def hold() -> None:
        with lock:
            inside.stay()

    def enter() -> None:
        with lock:
            pass

    with a_thread_in(inside, hold):
        assert child(enter) == 0
    assert child(enter) == 0


def test_a_lock_of_the_thread_that_forks_stays_its_own() -> None:
    lock = new_lock()

    def leave() -> None:
        assert not free(lock, 0.1)
        lock.release()
        assert free(lock)

    with lock:
        assert child(leave) == 0
    assert free(lock)


def test_a_cached_property_that_another_thread_computes() -> None:
    inside = Inside()

    class Slow:
        @cached_property
        def value(self) -> int:
            inside.stay()
            return 3

    def compute() -> None:
        assert Slow().value == 3

    with a_thread_in(inside, lambda: Slow().value):
        assert child(compute) == 0


LOCKS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"}


@pytest.mark.slow
def test_there_are_no_other_locks() -> None:
    """What makes one, by the names that a file imports or uses."""
    allowed = {"locks.py": {"RLock", "cached_property"}, "shield.py": {"Lock"}}
    allowed |= {"weight_residency.py": {"RLock"}}  # as a type, and so is the next one
    allowed |= {name: {"cached_property"} for name in ("object_graph.py", "outer_state.py")}
    for path in (ROOT / "gptrs").rglob("*.py"):
        found: set[str] = set()
        text = path.read_text()
        for node in ast.walk(ast.parse(text if "threading" in text or "functools" in text else "")):
            if isinstance(node, ast.ImportFrom) and node.module in ("threading", "functools"):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found |= {node.attr} if node.value.id in ("threading", "functools") else set()
        assert found & (LOCKS | {"cached_property"}) <= allowed.get(path.name, set()), path


def test_modules_are_imported_late_under_the_lock_of_forks() -> None:
    """A child could not finish a module that another thread of its parent was importing."""
    imported_already = {"layout.py", "user_kernels.py"}
    of_one_thread = {"patterns.py", "torch_models.py"}
    for path in (ROOT / "gptrs").rglob("*.py"):
        if path.name not in {"locks.py"} | imported_already | of_one_thread:
            assert "import_module" not in path.read_text(), path


WAITED_FOR: dict[str, Any] = {
    "no_fork": no_fork,
    "llvmlite": llvm.ffi.lib._lock,  # pyright: ignore
    "numba": global_compiler_lock,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WAITED_FOR)
def test_a_fork_waits(name: str) -> None:
    lock, entered, ended = WAITED_FOR[name], threading.Event(), list[bool]()

    def hold() -> None:
        with lock:
            entered.set()
            time.sleep(0.2)
            ended.append(True)

    def enter() -> None:
        assert ended
        with lock:
            pass

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(30)
    assert child(enter) == 0
    thread.join()
    assert child(enter) == 0


def test_a_lock_that_is_imported_while_a_fork_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fork waits for `no_fork`, and then for the lock of the module imported meanwhile."""
    lock, entered = threading.RLock(), threading.Event()
    monkeypatch.setattr(locks, "_of_others", [("a_late_module", "a_lock")])

    def hold() -> None:
        with no_fork:
            entered.set()
            time.sleep(0.2)
            lock.acquire()
            monkeypatch.setitem(sys.modules, "a_late_module", SimpleNamespace(a_lock=lock))
        time.sleep(0.2)
        lock.release()

    def enter() -> None:
        assert lock.acquire(timeout=5)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(30)
    assert child(enter) == 0
    thread.join()
    assert free(lock)


def test_a_handler_that_raises_while_a_fork_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python drops the exception and forks. The other locks are held, and all let go."""
    inside, dropped = Inside(), list[object]()

    def hold() -> None:
        with no_fork:
            inside.stay()

    def alarm(_signal: int, _frame: object) -> None:
        inside.left.set()
        raise TimeoutError

    def note(what: sys.UnraisableHookArgs) -> None:
        dropped.append(what.exc_type)

    def enter() -> None:
        with global_compiler_lock:  # pyright: ignore[reportUnknownMemberType]
            pass

    monkeypatch.setattr(sys, "unraisablehook", note)
    before = signal.signal(signal.SIGALRM, alarm)
    try:
        with a_thread_in(inside, hold):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            assert child(enter) == 0
    finally:
        signal.signal(signal.SIGALRM, before)
    assert dropped == [TimeoutError]
    assert all(free(getattr(lock, "_lock", lock)) for lock in (no_fork, global_compiler_lock))


def test_a_thread_that_traces() -> None:
    inside = Inside()

    @ptir.jit
    def function(x: Any) -> Any:
        inside.stay()
        return x + 1

    def call() -> None:
        np.testing.assert_array_equal(function(X).numpy(), X + 1)

    with a_thread_in(inside, call):
        assert child(call) == 0


@pytest.mark.slow
def test_a_thread_that_writes_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
    monkeypatch.setattr(loaded_object, "_libraries", dict[str, Library]())
    inside = Inside()

    def build() -> KernelText:
        inside.stay()
        return KernelText(DOUBLE_IR, "double")

    code = Code("builder", "of a test", ("double",), build_text=build)

    def ask() -> None:
        assert loaded_object.library(code).addresses["double"]

    with a_thread_in(inside, ask):
        assert child(ask) == 0


class Slow:
    """Gives parameters, and the one called "slow" after a while."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside

    def load(self, name: str) -> Array:
        if name == "slow":
            self._inside.stay()
        return np.full((64, 64) if name == "slow" else (128, 64), 2, np.float32)


def test_a_thread_that_loads_weights() -> None:
    """The child loads them itself, and gives back what the thread had loaded before."""
    inside = Inside()
    f32 = as_dtype("f32")
    large = Parameter.from_source("large", Type((128, 64), f32), Slow(inside))
    slow = Parameter.from_source("slow", Type((64, 64), f32), Slow(inside))
    x = np.ones((5, 128), np.float32)

    @ptir.jit(backend="faer")
    def function(x: Any, weights: Any) -> Any:
        return (x @ weights[0]) @ weights[1]

    def call() -> None:
        np.testing.assert_array_equal(function(x, (large, slow)).numpy(), np.float32(2**15))

    def held() -> set[str]:
        return {form.name for form in parameter_cache.forms()} & {"large", "slow"}

    def give_back() -> None:
        assert held() == {"large"}
        parameter_cache.release()
        assert not held()
        call()
        assert held() == {"large", "slow"}

    with a_thread_in(inside, call):
        assert child(give_back) == 0
        parameter_cache.release()
        assert held() == {"large"}, "the thread of this process needs it"


FIRST_KERNEL = """
import os, signal, sys, threading, numpy, gptrs
assert "logging" not in sys.modules
x = numpy.ones(4, numpy.float32)
function = gptrs.ptir.jit(lambda x: gptrs.ptir.tanh(x) * 3)
thread = threading.Thread(target=function, args=(x,))
thread.start()
alive = True
while alive:
    alive = thread.is_alive()
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        function(x)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""


@pytest.mark.slow
def test_a_thread_that_imports_numba(tmp_path: Path) -> None:
    """It uses `logging` then, which has fork hooks with a lock of its own."""
    command = [sys.executable, "-W", "ignore", "-c", FIRST_KERNEL]
    environment = {**os.environ, "GPTRS_CACHE_DIR": str(tmp_path), "GPTRS_BACKEND": "faer"}
    subprocess.run(command, env=environment, check=True, timeout=120)


@pytest.mark.slow
@pytest.mark.alone
def test_400_forks_under_load(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.forking", "400"]
    environment = {**os.environ, "GPTRS_CACHE_DIR": str(tmp_path), "GPTRS_BACKEND": "faer"}
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")

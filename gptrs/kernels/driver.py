"""Plans are run here: a table of native kernels, walked without coming back to Python.

A kernel is a native function `void(intp arguments, intp first, intp last)`: the address of a block
of 64-bit words whose meaning it knows, and a half-open range of its parallel extent. A *step* is a
kernel with its block, its extent and the number of chunks that the extent is cut into (`cuts`).
Steps run in order: all chunks of one end before the next starts, and what they wrote is seen by it.
Chunks of one step run in any order, on any thread.

A kernel cannot raise. One that can fail finds the address of the plan's `Status` in its block:
`emit_failure` stores a code there, and the plan stops after that step.

Two drivers run plans: `PoolDriver` (pool.py) and `PrangeDriver` (prange.py), see `current_driver`.
"""

from __future__ import annotations

import ctypes
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, final

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from gptrs import settings
from gptrs.errors import ArgumentError, SettingError
from gptrs.kernels.compile import compile_functions
from gptrs.kernels.pool import build_pool_ir, supported
from gptrs.kernels.pool_block import BLOCK_WORDS, MAX_CHUNKS, Word
from gptrs.kernels.shield import shielded
from gptrs.kernels.threads import MAX_THREADS
from gptrs.locks import late_import_that_logs, new_lock, tell_children

# llvmlite has no types: its values are Any here and stay in this file.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false


class Step(NamedTuple):
    """One row of a step table: two addresses, the extent, and how many chunks it is cut into.

    One chunk runs in the calling thread and wakes nobody. A step without extent is skipped.
    """

    kernel: int
    arguments: int
    extent: int
    chunks: int = 1


@final
class StepTable:
    """Steps in the form that drivers read: int64 [steps, 4] in C order.

    Whoever makes the table keeps kernels and argument blocks alive. `words` may be changed between
    runs, at its place. Raises `ArgumentError` for a step that no driver could run.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        rows = list(steps)
        for i, step in enumerate(rows):
            if step.kernel == 0 or step.extent < 0 or not 1 <= step.chunks <= MAX_CHUNKS:
                raise ArgumentError(
                    f"step {i}: expected a kernel, an extent of at least 0 and 1 to {MAX_CHUNKS}"
                    f" chunks, got {step}"
                )
        flat = [word for step in rows for word in step]  # nested, NumPy takes ten times as long
        self.words: NDArray[np.int64] = np.array(flat, np.int64).reshape(len(rows), 4)
        self.address: int = self.words.ctypes.data
        self.count: int = len(rows)
        self._order: tuple[tuple[int, ...], int, object] | None = None

    def order(self, *words: int) -> tuple[tuple[int, ...], int, object]:
        """The address of an array of this table's address and these words, between those and the
        array itself: mostly what the last run of the table was given.

        A function of C takes longer with each argument, as long as all of this with five.
        """
        order = self._order
        if order is None or order[0] != words:
            array = np.array([self.address, *words], np.int64)
            self._order = order = words, array.ctypes.data, array
        return order


@dataclass(frozen=True, slots=True)
class Failure:
    """The first failure that a run met: its step, the kernel's code, the element or row."""

    step: int
    code: int
    index: int


@final
class Status:
    """Where kernels report failures: the words step, code and index.

    Code 0 means that all is well. A kernel that fails exchanges code 0 for its own by one
    compare-exchange; who succeeds stores the index, others keep quiet. Then the kernel returns; its
    result does not matter. The driver clears the code when it starts and stores the step when it
    stops. If several chunks fail, one of them is reported. One status serves one run at a time.
    """

    def __init__(self) -> None:
        self.words: NDArray[np.int64] = np.zeros(3, np.int64)
        self.address: int = self.words.ctypes.data

    def failure(self) -> Failure | None:
        """What the last run met."""
        step, code, index = self.words.tolist()
        return Failure(step, code, index) if code else None


def emit_failure(builder: Any, status: Any, code: Any, index: Any) -> None:
    """Store ``code`` (not 0) and ``index`` in the status at address ``status``, if it is the first.

    ``builder`` is an llvmlite ``IRBuilder``, the others are its i64 values.
    """
    word = status.type
    zero, one, two = (ir.Constant(word, value) for value in range(3))
    words = builder.inttoptr(status, word.as_pointer())
    exchange = builder.cmpxchg(builder.gep(words, [one]), zero, code, "monotonic", "monotonic")
    with builder.if_then(builder.extract_value(exchange, 1), likely=False):
        builder.store(index, builder.gep(words, [two]))


def cuts(extent: int, chunks: int) -> list[tuple[int, int]]:
    """The ranges that a step's extent is cut into; they depend on nothing else.

    No more than there are elements; the first ``extent % chunks`` are longer by one.
    """
    if extent <= 0:
        return []
    chunks = max(1, min(chunks, extent, MAX_CHUNKS))
    length, longer = divmod(extent, chunks)
    firsts = [i * length + min(i, longer) for i in range(chunks)]
    return list(zip(firsts, [*firsts[1:], extent], strict=True))


class Driver(ABC):
    """Runs step tables. One driver may be called by many Python threads at once."""

    name: str

    def __init__(self) -> None:
        tell_children(self)

    def run(
        self,
        table: StepTable,
        status: Status,
        *,
        threads: int,
        first: int = 0,
        last: int | None = None,
    ) -> Failure | None:
        """Run the steps ``first`` to ``last`` (all) on at most ``threads`` threads.

        The GIL is released meanwhile. A failed step ends the run; its failure is returned.
        Raises `ArgumentError` for steps outside the table.
        """
        if last is None:
            last = table.count
        if not 0 <= first <= last <= table.count:
            raise ArgumentError(f"steps {first} to {last} of a table with {table.count}")
        if self._walk(table, first, last, status, threads) < 0:
            return None
        return status.failure()

    @abstractmethod
    def _walk(
        self, table: StepTable, first: int, last: int, status: Status, threads: int
    ) -> int: ...

    @abstractmethod
    def after_fork(self) -> None:
        """Called in a forked child, whose only thread is the one that forked."""


class _Native(NamedTuple):
    """The pool's functions: `run` and `stop` to call, `work` to start a thread with."""

    run: Any
    stop: Any
    work: int


@cache
def _native() -> _Native:
    word, nothing = ctypes.c_ssize_t, None
    calls = ("syscall", "sched_yield")
    address = compile_functions(build_pool_ir, ("run", "stop", "work"), calls)
    return _Native(
        # CFUNCTYPE releases the GIL during the call.
        ctypes.CFUNCTYPE(word, word, word)(address["run"]),
        ctypes.CFUNCTYPE(nothing, word)(address["stop"]),
        address["work"],
    )


def _new_block() -> int:
    """Zeroed words that are never freed, as a late worker may look at them at any time."""
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    block = prototype(("PyMem_RawCalloc", ctypes.pythonapi))(BLOCK_WORDS + 16, 8)
    if not block:
        raise MemoryError
    return block + -block % 128


@final
class PoolDriver(Driver):
    """Worker threads of our own, made by the first run that has use for them.

    They are native threads: a Python thread would have to take the GIL to start, show up in
    ``threading.enumerate()`` and be traced. They are detached, block the signals that Python
    handles, and hold no Python object, so that the interpreter ends as if they were not there.
    """

    name = "pool"

    def __init__(self) -> None:
        super().__init__()
        self._native = _native()
        self._lock = new_lock()
        self._fresh()

    def after_fork(self) -> None:
        self._fresh()

    def _fresh(self) -> None:
        self._block = _new_block()
        self._threads = 1  # that the workers suffice for, the caller among them
        self._workers = 0

    def _walk(self, table: StepTable, first: int, last: int, status: Status, threads: int) -> int:
        if threads > self._threads:
            self._grow(threads)
        order = table.order(first, last, status.address, threads)  # kept here: a run may replace it
        return self._native.run(self._block, order[1])

    def _grow(self, threads: int) -> None:
        """Start the workers that are missing. If the system refuses, others do their work."""
        with self._lock:
            self._threads = max(threads, self._threads)
            # A new thread inherits the mask. A fault in a kernel must still leave its trace.
            faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - faults)
            try:
                for _ in range(self._workers, min(threads, MAX_THREADS) - 1):
                    self._workers += _start_thread(self._native.work, self._block)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close(self) -> None:
        """Let the workers end, and wait for that; a later run starts new ones.

        For a program that must have one thread only, say before it forks.
        """
        with self._lock:
            workers, block = self._workers, self._block
            words = (ctypes.c_int64 * BLOCK_WORDS).from_address(block)
            self._fresh()
            while words[Word.LEFT] < workers:
                self._native.stop(block)
                time.sleep(0.0005)


def _start_thread(function: int, argument: int) -> bool:
    """Start a detached native thread; false if the system has none to give."""
    process, thread = ctypes.CDLL(None), ctypes.c_size_t()
    entry, given = ctypes.c_void_p(function), ctypes.c_void_p(argument)
    if process.pthread_create(ctypes.byref(thread), None, entry, given) != 0:
        return False
    process.pthread_setname_np(thread, b"gptrs-worker")
    process.pthread_detach(thread)
    return True


def current_driver() -> Driver:
    """The driver that ``GPTRS_DRIVER`` names, or the best one here; the same object each time."""
    name = settings.driver()
    if name not in _made:
        _made[name] = _driver(name or ("pool" if supported() else "numba"))
    return _made[name]


_made: dict[str, Driver] = {}  # by what GPTRS_DRIVER says
_making = new_lock()  # the first plans may run in several threads at once


def _driver(name: str) -> Driver:
    with _making:
        if name not in _made:
            _made[name] = _make_driver(name)
        return _made[name]


def _make_driver(name: str) -> Driver:
    if name == "pool":
        if not supported():
            problem = "GPTRS_DRIVER='pool': the pool needs a futex (Linux on 64-bit x86 or Arm)"
            raise SettingError(problem, fix="unset GPTRS_DRIVER or set it to numba")
        return PoolDriver()
    return shielded(_prange_driver)


def _prange_driver() -> Driver:
    with late_import_that_logs():  # Numba takes 0.4 s to import and is of use to this driver alone
        from gptrs.kernels.prange import PrangeDriver

    return PrangeDriver()

"""The pool driver: native worker threads that execute step tables (Linux on 64-bit x86 and Arm).

Starts the threads when a run first needs them and stops them (`close`); their code is LLVM IR, of
`gptrs.kernels.driver.worker_pool`. After a fork the child has a new control block and no workers.
"""

from __future__ import annotations

import ctypes
import signal
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, final

import numpy as np

from gptrs.kernels.compiler.compile import compile_functions
from gptrs.kernels.driver.control_block import BLOCK_WORDS, Word
from gptrs.kernels.driver.driver import Driver, NativeDriver
from gptrs.kernels.driver.repetition import Repetition
from gptrs.kernels.driver.step_table import Status, StepTable
from gptrs.kernels.driver.threads import MAX_THREADS
from gptrs.kernels.driver.worker_pool import build_pool_ir
from gptrs.locks import new_lock


class _Native(NamedTuple):
    """The pool's functions: `run`, `repeat`, `stop` and `ticks` to call, `work` to start a thread
    with."""

    run: Any
    repeat: Any
    stop: Any
    ticks: Any
    work: int
    addresses: Mapping[str, int]


@cache
def _native() -> _Native:
    word, nothing = ctypes.c_ssize_t, None
    calls = ("syscall", "sched_yield", "pthread_self", "clock_gettime")
    names = ("run", "repeat", "stop", "ticks", "work")
    address = compile_functions(build_pool_ir, names, calls)
    return _Native(
        # CFUNCTYPE releases the GIL during the call.
        ctypes.CFUNCTYPE(word, word, word)(address["run"]),
        ctypes.CFUNCTYPE(word, word, word)(address["repeat"]),
        ctypes.CFUNCTYPE(nothing, word)(address["stop"]),
        ctypes.PYFUNCTYPE(word)(address["ticks"]),
        address["work"],
        address,
    )


def _new_block() -> int:
    """Zeroed memory for a control block, never freed, as a late worker may read it at any time."""
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
        self._native = _native()
        self._lock = new_lock()
        self._words = np.zeros(2, np.int64)  # block and threads, for native code
        self._buffer = 0  # of a recording
        self._fresh()
        super().__init__()  # last: a child calls `after_fork` of what is registered

    def native(self) -> NativeDriver:
        address = self._native.addresses
        words = self._words.ctypes.data
        return NativeDriver(address["run"], words, address["repeat"], address["ticks"])

    def record(self, buffer: int) -> None:
        with self._lock:
            self._buffer = buffer
            ctypes.c_int64.from_address(self._block + 8 * Word.RECORDING).value = buffer

    def ticks(self) -> int:
        return self._native.ticks()

    def after_fork(self) -> None:
        self._buffer = 0
        self._fresh()

    def _fresh(self) -> None:
        self._block = _new_block()
        self._threads = 1  # that the workers suffice for, the caller among them
        self._workers = 0
        self._words[:] = self._block, 1
        ctypes.c_int64.from_address(self._block + 8 * Word.RECORDING).value = self._buffer

    def _run_steps(
        self, table: StepTable, first: int, last: int, status: Status, threads: int
    ) -> int:
        if threads > self._threads:
            self._grow(threads)
        order = table.order(first, last, status.address, threads)  # kept here: a run may replace it
        return self._native.run(self._block, order[1])

    def repeat(self, repetition: Repetition, first: int, last: int) -> int:
        if (threads := repetition.threads) > self._threads:
            self._grow(threads)
        return self._native.repeat(self._block, repetition.order(first, last))

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
            self._words[1] = self._threads

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

"""Recording of timestamps: when each step of a table started and ended, on which thread.

While the word RECORDING of a pool's control block holds the address of a buffer, each run of a step
table appends a record of its own, and each thread one for the chunks that it ran of a step; a run
without one reads that word once. The buffer, in words of 64 bits:

    0 NEXT, words taken (atomic) | 1 CAPACITY | 2 WRITERS, runs in progress | 3 LOST, runs without
    room | 8..15 where lost records go | from 16 on: records
    run:     RUN | size << 8    table   first    thread   threads   ticks before and after each step
    chunks:  CHUNKS | size << 8 arguments worker thread   chunks    ticks before, after

A record is a range of words of its own, taken by one atomic addition; words that are never written
are 0. Ticks are those of the CPU's counter (TSC), a third of the time that the clock of the system
takes, and of that clock where there is none; `Recording` compares the two and gives ns of
`time.perf_counter_ns`.

The memory of a buffer is reserved and not committed: a page is there once it is written to.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from gptrs.kernels.driver.control_block import I64, VOID, WORDS, PoolCode, i64
from gptrs.locks import new_lock

NEXT, CAPACITY, WRITERS, LOST, _NOWHERE, FIRST = 0, 1, 2, 3, 8, 16
RUN, CHUNKS = 1, 2
RUN_WORDS, CHUNK_WORDS = 5, 7
"""Words of a record of a run before its ticks, and of a whole record of chunks."""
_BYTES = 1 << 28


class Stamps:
    """Writes into functions of ``module``, for ``machine``, what a recording takes."""

    def __init__(self, module: Any, machine: str) -> None:
        kind = ir.FunctionType(I64, [])
        self._counter: Any = (
            # The TSC. On Arm it counts cycles, which only the kernel may.
            ir.Function(module, kind, "llvm.readcyclecounter")
            if machine == "x86_64"
            else _clock(module)
        )
        self._thread: Any = ir.Function(module, kind, "pthread_self")
        self.chunks = self._emit_chunks(module)
        code = PoolCode(module, "ticks", I64, public=True)
        code.ret(self.ticks(code))

    def ticks(self, code: PoolCode) -> Any:
        """The counter now."""
        return code.call(self._counter, [])

    def take(self, code: PoolCode, buffer: Any, size: Any) -> tuple[Any, Any]:
        """A range of ``size`` words, and 1; where there is no room, words that nobody reads, and
        0. The number of lost records is raised then."""
        start = code.atomic_rmw("add", code.word(buffer, NEXT), size, "monotonic")
        fits = code.icmp_unsigned("<=", code.add(start, size), code.get(buffer, CAPACITY))
        lost = code.zext(code.not_(fits), I64)
        code.atomic_rmw("add", code.word(buffer, LOST), lost, "monotonic")
        place = code.select(fits, start, i64(_NOWHERE))
        return code.gep(buffer, [place]), code.zext(fits, I64)

    def write_run(
        self, code: PoolCode, buffer: Any, order: tuple[Any, Any, Any, Any]
    ) -> tuple[Any, Any]:
        """Begin the record of a run of (table, first, last, threads): where its ticks go, and how
        many words further the next one."""
        table, first, last, threads = order
        code.atomic_rmw("add", code.word(buffer, WRITERS), i64(1), "monotonic")
        size = code.add(code.sub(last, first), i64(RUN_WORDS + 1))
        record, step = self.take(code, buffer, size)
        head = code.or_(i64(RUN), code.shl(size, i64(8)))
        for place, word in enumerate((head, table, first, code.call(self._thread, []), threads)):
            code.put(word, record, place)
        ticks = code.gep(record, [i64(RUN_WORDS)])
        code.store(self.ticks(code), ticks)
        return ticks, step

    def end_run(self, code: PoolCode, buffer: Any) -> None:
        """End the record of a run."""
        code.atomic_rmw("sub", code.word(buffer, WRITERS), i64(1), "release")

    def _emit_chunks(self, module: Any) -> Any:
        """chunks(buffer, arguments, worker, count, before): append the record of the chunks that
        this thread ran of a step."""
        code = PoolCode(module, "record_chunks", VOID, WORDS, *[I64] * 4)
        buffer, arguments, worker, count, before = code.arguments
        record, _ = self.take(code, buffer, i64(CHUNK_WORDS))
        head, thread = i64(CHUNKS | CHUNK_WORDS << 8), code.call(self._thread, [])
        words = (head, arguments, worker, thread, count, before, self.ticks(code))
        for place, word in enumerate(words):
            code.put(word, record, place)
        code.ret_void()
        return code.made


def _clock(module: Any) -> Any:
    """clock() -> the system's clock in ns."""
    kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32), WORDS])
    get = ir.Function(module, kind, "clock_gettime")
    code = PoolCode(module, "clock", I64)
    time = code.alloca(I64, 2)
    code.call(get, [ir.Constant(ir.IntType(32), 1), time])  # CLOCK_MONOTONIC
    code.ret(code.add(code.mul(code.get(time, 0), i64(10**9)), code.get(time, 1)))
    return code.made


class Run(NamedTuple):
    """A run of a table's steps from ``first`` on; ``ns`` before the first and after each."""

    table: int
    first: int
    thread: int
    """As `threading.get_ident` names it."""
    threads: int
    """The most that its steps may run on."""
    ns: NDArray[np.float64]


class Chunks(NamedTuple):
    """The chunks of a step, which has its argument block at ``arguments``, that one thread ran."""

    arguments: int
    worker: int
    """The number of the worker; 0 is the calling thread."""
    thread: int
    chunks: int
    start: float
    end: float


class Recording:
    """A buffer, and the conversion of its ticks to ns of `time.perf_counter_ns`."""

    def __init__(self, ticks: Callable[[], int]) -> None:
        """``ticks`` is the counter of the driver that writes to `address`."""
        self._memory = _take()
        self.words: NDArray[np.int64] = np.frombuffer(self._memory, np.int64)
        self.words[NEXT], self.words[CAPACITY] = FIRST, len(self.words)
        self.address: int = self.words.ctypes.data
        self._ticks = ticks
        self._start = _origins.setdefault(ticks, _calibrate(ticks))

    def close(self) -> None:
        """Give the memory to the next recording, unless a run still writes to it. The driver has
        been told before."""
        if not self.words[WRITERS]:
            self.words = np.zeros(FIRST, np.int64)
            _give(self._memory)

    @property
    def lost(self) -> int:
        """How many records had no room."""
        return int(self.words[LOST])

    @property
    def position(self) -> int:
        """Where the next record begins."""
        return min(int(self.words[NEXT]), len(self.words))

    def records(self, first: int = FIRST) -> Iterator[Run | Chunks]:
        """The records from a `position` on. A run that failed, or goes on, has ns 0 for the steps
        that it did not end."""
        t0, n0 = self._start
        t1, n1 = _calibrate(self._ticks)
        scale = (n1 - n0) / max(t1 - t0, 1)
        words, end = self.words.data, self.position
        while first < end and (head := words[first]):
            size, kind = head >> 8, head & 255
            if first + size > end:  # one without room, which is the last
                return
            if kind == RUN:
                ticks = self.words[first + RUN_WORDS : first + size]
                ns = np.where(ticks != 0, (ticks - t0) * scale + n0, 0.0)
                table, begin, thread, threads = words[first + 1 : first + RUN_WORDS]
                yield Run(table, begin, thread, threads, ns)
            else:
                _, arguments, worker, thread, count, before, after = words[first : first + size]
                before, after = ((tick - t0) * scale + n0 for tick in (before, after))
                yield Chunks(arguments, worker, thread, count, before, after)
            first += size


@contextmanager
def recorded_run(
    buffer: int, table: int, first: int, last: int, threads: int
) -> Generator[Callable[[], None]]:
    """The record of a run in Python; the function is to be called after each step."""
    size = last - first + 1 + RUN_WORDS
    header = (ctypes.c_int64 * FIRST).from_address(buffer)
    with _spare_lock:  # in place of an atomic addition
        start, header[NEXT] = header[NEXT], header[NEXT] + size
        fits = start + size <= header[CAPACITY]
        header[LOST] += not fits
        header[WRITERS] += 1
    record = (ctypes.c_int64 * size).from_address(buffer + 8 * start) if fits else [0] * size
    record[:RUN_WORDS] = RUN | size << 8, table, first, get_ident(), threads
    places = iter(range(RUN_WORDS, size))

    def stamp() -> None:
        record[next(places)] = time.perf_counter_ns()

    stamp()
    try:
        yield stamp
    finally:
        with _spare_lock:
            header[WRITERS] -= 1


_origins: dict[object, tuple[int, float]] = {}  # by counter: ticks and ns of the first look
_spare: list[mmap.mmap] = []
_spare_lock = new_lock()


def _calibrate(ticks: Callable[[], int]) -> tuple[int, float]:
    """The counter and the clock at one moment, the closest of a few looks."""
    looks: list[tuple[int, int, float]] = []
    for _ in range(5):
        before, tick, after = time.perf_counter_ns(), ticks(), time.perf_counter_ns()
        looks.append((after - before, tick, (before + after) / 2))
    _, tick, ns = min(looks)
    return tick, ns


def _take() -> mmap.mmap:
    """Zeros. They are never unmapped: a run that started late may still write."""
    with _spare_lock:
        if _spare:
            return _spare.pop()
    if sys.platform != "linux":
        return mmap.mmap(-1, _BYTES)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    memory = mmap.mmap(-1, _BYTES, flags=flags)
    _forever.append(memory)
    return memory


_forever: list[mmap.mmap] = []


def _give(memory: mmap.mmap) -> None:
    with suppress(AttributeError, OSError):  # a system without it: the memory is not used again
        memory.madvise(mmap.MADV_DONTNEED)
        with _spare_lock:
            _spare.append(memory)

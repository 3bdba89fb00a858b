"""Measurement of this machine's limits: multiply-adds in registers, and reading from memory.

Two kernels run on the driver, as steps of plans do:

    peak:  for turn in first..last:  acc[i] = acc[i]·x + x    the accumulators of a GEMM tile
    read:  for line in first..last:  sum[s] += data[s, line]  for 8 streams s, a cache line each

The best of several runs counts: other processes only add time. One thread is measured in CPU time,
which they disturb less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from gptrs.backends.host import caches
from gptrs.debug.machine_limits import Limits
from gptrs.errors import ArgumentError
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import Kernel, compile_ir
from gptrs.kernels.compiler.ir_builder import F32, Function, KernelText, i64
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.step_table import Status, Step, StepTable

# llvmlite has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

Told = Callable[[str, float], None]
"""Called with what is being measured, and the part of all that is done, 0 to 1."""

_STREAMS = 8
_LINE = 64  # bytes, of a cache line
_LEAST_BYTES, _MOST_BYTES = 2**28, 2**30  # to read
_TIMES_CACHE = 4  # the array that is read over the last cache
_TURNS = 2_000_000  # multiply-adds of each accumulator and run, on each thread: some 20 ms
_SECONDS = 0.6  # of each measurement


def measure_limits(
    counts: list[int], *, most_bytes: int = _MOST_BYTES, told: Told = lambda what, part: None
) -> list[Limits]:
    """The limits on each of these numbers of threads, in about a second each.

    The array that is read has four times the bytes of the last cache, at least 256 MB and at most
    1 GiB, and no more than ``most_bytes``. It lies where the first thread of the process puts it:
    on machines with several memory nodes that is one of them. Raises `ArgumentError` where no
    memory is left for it.
    """
    measurements: list[tuple[str, Run]] = []
    data = _data(most_bytes)
    for threads in counts:
        name = f"{threads} thread{'s' * (threads != 1)}"
        measurements += [(f"multiply-adds, {name}", Peak(threads))]
        measurements += [(f"memory, {name}", Reading(threads, data))]
    best: list[float] = []
    for done, (what, run) in enumerate(measurements):
        best.append(0.0)
        for part, rate in _rates(run):
            best[-1] = max(best[-1], rate)
            told(what, (done + part) / len(measurements))
    today = date.today().isoformat()
    pairs = zip(counts, best[::2], best[1::2], strict=True)
    return [Limits(threads, gflops, gbytes, today) for threads, gflops, gbytes in pairs]


def _rates(run: Run) -> Iterator[tuple[float, float]]:
    """The part of `_SECONDS` that has gone, and the rate of each of at least three runs."""
    clock = time.thread_time if run.threads == 1 else time.perf_counter
    start, runs = time.perf_counter(), 0
    run.seconds(clock)  # wakes threads and raises clocks
    while runs < 3 or time.perf_counter() < start + _SECONDS:
        rate, runs = run.rate(clock), runs + 1
        yield min(1.0, (time.perf_counter() - start) / _SECONDS), rate


class Run:
    """One kernel over an extent that every thread gets the same part of."""

    work: float
    """10⁹ operations or bytes of a run."""

    def __init__(self, kernel: Kernel, block: NDArray[np.int64], extent: int, threads: int) -> None:
        self.keep = kernel, block
        self.table = StepTable([Step(kernel.address, block.ctypes.data, extent, threads)])
        self.threads, self.status = threads, Status()

    def seconds(self, clock: Callable[[], float]) -> float:
        """How long a run takes."""
        start = clock()
        current_driver().run(self.table, self.status, threads=self.threads)
        return clock() - start

    def rate(self, clock: Callable[[], float]) -> float:
        """10⁹ operations or bytes a second."""
        return self.work / max(self.seconds(clock), 1e-9)


class Peak(Run):
    """Nothing but multiply-adds of f32 in registers."""

    def __init__(self, threads: int) -> None:
        level = isa.current()
        self.out = np.zeros(level.tile_rows * level.tile_columns, np.float32)
        block = np.array([self.out.ctypes.data], np.int64)
        turns = _TURNS * threads
        super().__init__(compile_ir(*peak_kernel(level)), block, turns, threads)
        self.work = 2e-9 * turns * self.out.size


class Reading(Run):
    """Reading ``data``, ones of f32, with eight streams a thread."""

    def __init__(self, threads: int, data: NDArray[np.float32]) -> None:
        lines = data.nbytes // (_STREAMS * _LINE)
        self.data, self.out = data, np.zeros(lines * _LINE // 4, np.float32)
        block = np.array([data.ctypes.data, self.out.ctypes.data, lines], np.int64)
        super().__init__(compile_ir(*read_kernel(isa.current())), block, lines, threads)
        self.work = 1e-9 * _STREAMS * _LINE * lines


def streamed(size: int) -> NDArray[np.float32]:
    """Ones of about ``size`` bytes, for `Reading`."""
    lines = size // (_STREAMS * _LINE) | 3  # no power of two: streams would share sets of a cache
    return np.ones(_STREAMS * lines * _LINE // 4, np.float32)


def _data(most: int) -> NDArray[np.float32]:
    """What is read: larger than the caches, where there is memory for it."""
    size = _TIMES_CACHE * max(caches().values(), default=0)
    size = min(max(size, _LEAST_BYTES), _MOST_BYTES, most)
    with suppress(MemoryError):
        return streamed(size)
    raise ArgumentError(
        f"there is no memory for the {size} bytes that are read to measure bandwidth",
        fix="end other programs, or raise the limit of the control group",
    )


def peak_kernel(level: isa.Isa) -> KernelText:
    """A loop of nothing but independent multiply-adds, as many as a tile has. It reads and writes
    zeros, so that values stay normal."""
    module = ir.Module("peak")
    f = Function.kernel(module, level, "peak")
    address, first, last = f.arguments
    out = f.argument_block(address, ("out",), ())["out"]
    factor = f.splat(f.read(out, F32))
    sums = [factor] * (level.tile_rows * level.tile_vectors)
    for i in range(len(sums)):  # different starts, so that they are not merged
        sums[i] = f.fadd(sums[i], ir.Constant(f.vector, [float(i)] * level.lanes))
    with f.loop(first, last, carried=sums) as loop:
        loop.values = [f.multiply_add(value, factor, factor) for value in loop.values]
    for i, value in enumerate(loop.values):
        f.write(value, f.at(out, i64(i * level.lanes)))
    f.ret_void()
    return KernelText(str(module), "peak")


def read_kernel(level: isa.Isa) -> KernelText:
    """Reads the lines ``first`` to ``last`` of each stream, each stream in order."""
    module = ir.Module("read")
    f = Function.kernel(module, level, "read")
    address, first, last = f.arguments
    given = f.argument_block(address, ("data", "out"), ("stream",))  # the stream's length in lines
    floats = _LINE // 4
    starts = [
        f.at(given["data"], f.mul(i64(number * floats), given["stream"]))
        for number in range(_STREAMS)
    ]
    zeros: list[Any] = [ir.Constant(f.vector, None)] * _STREAMS
    with f.loop(first, last, carried=zeros) as loop:
        for lane in range(0, floats, level.lanes):
            at = f.add(f.mul(loop.index, i64(floats)), i64(lane))
            read = [f.read(f.at(start, at)) for start in starts]
            pairs = zip(loop.values, read, strict=True)
            loop.values = [f.fadd(total, value) for total, value in pairs]
    total = loop.values[0]
    for value in loop.values[1:]:
        total = f.fadd(total, value)
    f.write(total, f.at(given["out"], f.mul(first, i64(floats))))  # one line for each range
    f.ret_void()
    return KernelText(str(module), "read")

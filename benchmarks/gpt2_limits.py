"""Limits of the machine, measured beside the model: read bandwidth and multiply-adds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from benchmarks.gpt2_directory import prefill_flops, step_bytes
from benchmarks.matmul import peak_kernel
from gptrs import settings
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import Kernel, compile_ir
from gptrs.kernels.compiler.ir_builder import Function, KernelText, i64
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.step_table import Status, Step, StepTable
from gptrs_bench.ours import OurText
from gptrs_bench.turns import Clock, Measurement, in_turn

# llvmlite has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

STREAMS = 8
LINE = 64  # bytes, of a cache line
STREAM_LINES = 2**20 + 67  # no power of two, which would send all streams to one set of a cache
READ_BYTES = STREAMS * STREAM_LINES * LINE  # about as many as a decode step reads
PEAK_TURNS = 2_000_000


def read_kernel(level: isa.Isa) -> KernelText:
    """Reads the lines ``first`` to ``last`` of each stream, each stream in order."""
    module = ir.Module("read")
    f = Function.kernel(module, level, "read")
    address, first, last = f.arguments
    given = f.argument_block(address, ("data", "out"), ("stream",))  # the stream's length in lines
    floats = LINE // 4
    starts = [
        f.at(given["data"], f.mul(i64(number * floats), given["stream"]))
        for number in range(STREAMS)
    ]
    zeros = [ir.Constant(f.vector, None)] * STREAMS
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


class Limit:
    """One kernel over an extent that every thread gets the same part of."""

    def __init__(self, kernel: Kernel, block: NDArray[np.int64], extent: int, threads: int) -> None:
        self.keep = kernel, block
        self.table = StepTable([Step(kernel.address, block.ctypes.data, extent, threads)])
        self.threads, self.status = threads, Status()

    def seconds(self, clock: Clock) -> float:
        start = clock()
        current_driver().run(self.table, self.status, threads=self.threads)
        return clock() - start


class Reading(Limit):
    """Reading memory with eight streams a thread."""

    def __init__(self, threads: int) -> None:
        self.data = np.ones(READ_BYTES // 4, np.float32)
        self.out = np.zeros(STREAM_LINES * LINE // 4, np.float32)
        block = np.array([self.data.ctypes.data, self.out.ctypes.data, STREAM_LINES], np.int64)
        super().__init__(compile_ir(*read_kernel(isa.current())), block, STREAM_LINES, threads)
        self.seconds(time.perf_counter)
        read: float = self.out.sum(dtype=np.float64)
        assert read == self.data.size, "the kernel did not read everything"

    def rate(self, clock: Clock) -> float:
        """GB/s."""
        return 1e-9 * READ_BYTES / self.seconds(clock)


class Peak(Limit):
    """Nothing but multiply-adds in registers."""

    def __init__(self, threads: int) -> None:
        level = isa.current()
        self.out = np.zeros(level.tile_rows * level.tile_columns, np.float32)
        block = np.array([self.out.ctypes.data], np.int64)
        turns = PEAK_TURNS * threads
        super().__init__(compile_ir(*peak_kernel(level)), block, turns, threads)
        self.work = 2e-9 * turns * self.out.size

    def rate(self, clock: Clock) -> float:
        """GFLOP/s."""
        return self.work / self.seconds(clock)


def measure_limits(
    directory: Path,
    rounds: int,
    threads: int,
    clock: Clock,
    decode: Callable[[Any], float],
    prefill: Callable[[Any], float],
    prompt: int,
) -> list[Measurement]:
    """Reading and decoding, multiply-adds and a prefill of ``prompt`` tokens, in turn."""
    ours, reading, peak = OurText(directory), Reading(threads), Peak(threads)
    turns: dict[str, Callable[[], float]] = {
        "read": lambda: median(reading.rate(clock) for _ in range(3)),
        "decode": lambda: decode(ours),
        "peak": lambda: median(peak.rate(clock) for _ in range(3)),
        "prefill": lambda: 1e-6 * prefill_flops(prompt) / prefill(ours),
    }
    found = in_turn(turns, rounds)

    def share(mine: list[float], limit: str) -> dict[str, list[float]]:
        return {"ours": [100 * some / most for some, most in zip(mine, found[limit], strict=True)]}

    is_compressed = settings.compressed_weights() and bool(isa.current().lookup)
    stored, held = (
        [1e-9 * step_bytes(compressed=compressed) * rate for rate in found["decode"]]
        for compressed in (False, is_compressed)
    )
    bandwidth = {"ours, as held": held, "ours, in f32": stored, "eight streams": found["read"]}
    flops = {"ours": found["prefill"], "FMA peak": found["peak"]}
    return [
        Measurement("decode, weights read", threads, "GB/s", bandwidth),
        Measurement("decode, of bandwidth, as held", threads, "%", share(held, "read")),
        Measurement("decode, of bandwidth, in f32", threads, "%", share(stored, "read")),
        Measurement(f"prefill {prompt}, work", threads, "GFLOP/s", flops),
        Measurement(f"prefill {prompt}, of peak", threads, "%", share(found["prefill"], "peak")),
    ]

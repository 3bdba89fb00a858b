"""Causal attention against torch's scaled_dot_product_attention, interleaved, medians.

    python -m benchmarks.attention [--threads 1 2] [--heads 12 32] [--size 64] [--json FILE]

A line is one layer's softmax(q·kᵀ/√D)·v with ``new`` queries that stand at the end of ``keys``
keys: a prefill where both are equal, else new tokens with a cache. Caches take turns, so that they
come from memory as in a model. Rates count what queries see. Torch is the faster of a mask of
booleans and one of numbers where it needs one. One thread is measured in CPU time, which other
processes disturb less; several in wall-clock time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.matmul import CHUNKS_PER_THREAD, FROM_MEMORY, peak, words
from benchmarks.report import kernel_machine, write_json
from benchmarks.spinning import restart_with
from gptrs.kernels.attention.blocks import Head
from gptrs.kernels.attention.kernel import (
    attention_extent,
    attention_kernel,
    attention_time,
    row_block_for,
)
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.step_table import Status, Step, StepTable
from gptrs_bench.processes import OMP_SPIN

Array = NDArray[Any]
Call = Callable[[], object]

HEADS = (12, 32)
SIZES = (32, 64, 80, 128)
LENGTHS = (1, 16, 64, 128, 512, 1024)
CACHES = (64, 512, 1024, 4096)
NEW = (1, 16)
SECONDS = 0.6
ROUND_SECONDS = 2e-4  # calls shorter than this are repeated, so that the clock is seldom read
PIECE_NS = 4000  # as plans are cut: no thread gets pieces smaller than this


class Case(NamedTuple):
    """A shape; keys and values have ``groups`` heads."""

    heads: int
    groups: int
    new: int
    keys: int
    size: int

    @property
    def work(self) -> float:
        """GFLOP: multiplications and additions of the two products."""
        seen = sum(self.keys - self.new + i + 1 for i in range(self.new))
        return 4e-9 * self.heads * self.size * seen

    @property
    def cache_gb(self) -> float:
        """GB of keys and values."""
        return 8e-9 * self.groups * self.keys * self.size


class Line(NamedTuple):
    """One measurement; ``spread`` is the interquartile range of the ratio."""

    threads: int
    heads: int
    groups: int
    new: int
    keys: int
    size: int
    microseconds: float
    gflops: float
    share_of_peak: float
    cache_gb_s: float
    torch_gflops: float
    times_torch: float
    spread: float


def operands(case: Case, copies: int) -> list[tuple[Array, Array, Array]]:
    """q [H, S, D], k and v [G, T, D] of every layer."""
    rng = np.random.default_rng(0)
    heads, groups, new, keys, size = case
    shapes = [(heads, new, size), (groups, keys, size), (groups, keys, size)]
    made = [[rng.standard_normal((1, *s), np.float32) for s in shapes] for _ in range(copies)]
    return [(q, k, v) for q, k, v in made]


class Ours:
    """Calls of the kernel as a plan has them, a table of steps for each of the layers."""

    def __init__(self, case: Case, layers: list[tuple[Array, Array, Array]], threads: int) -> None:
        level, (heads, groups, new, keys, size) = isa.current(), case
        head = Head(size, causal=True, start=True, length=True)
        kernel = compile_ir(*attention_kernel(level, head))
        self.result = np.empty((new, heads, size), np.float32)
        integers = [np.array([n], np.int32) for n in (0, keys)]
        shared = heads // groups
        block = row_block_for(level, size, 1, groups, shared, new, threads)
        sizes = [groups, shared, new, keys, block, 0]
        strides = [0, new * size, size, *[0, keys * size, size] * 2, 0, size, heads * size, 0, 0]
        extent = attention_extent(1, groups, shared, new, block)
        pieces = int(attention_time(1, heads, groups, new, keys, size) / PIECE_NS)
        chunks = max(1, min(extent, CHUNKS_PER_THREAD * threads, pieces)) if threads > 1 else 1
        self.keep: list[Any] = [kernel, integers]
        self.calls: list[Call] = []
        driver = current_driver()
        for arrays in layers:
            given = words(*arrays, self.result, *integers, *sizes, *strides)
            table = StepTable([Step(kernel.address, given.ctypes.data, extent, chunks)])
            self.keep += [given, arrays]
            status = Status()
            self.calls.append(
                lambda table=table, status=status: driver.run(table, status, threads=threads)
            )


def torch_calls(case: Case, layers: list[tuple[Array, Array, Array]]) -> list[list[Call]]:
    """The ways to ask torch, each with one call for every layer."""
    functions: Any = torch  # its types are partly unknown
    attend = functions.nn.functional.scaled_dot_product_attention
    options: list[dict[str, Any]] = [{}]
    if case.new == case.keys:
        options = [{"is_causal": True}]
    elif case.new > 1:
        last = torch.arange(case.keys - case.new, case.keys)[:, None]
        seen = torch.arange(case.keys)[None] <= last
        numbers = torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)
        options = [{"attn_mask": seen}, {"attn_mask": numbers}]
    gqa = {"enable_gqa": True} if case.heads != case.groups else {}
    given: list[Any] = [[functions.from_numpy(a) for a in arrays] for arrays in layers]

    def calls(option: dict[str, Any]) -> list[Call]:
        return [lambda qkv=qkv: attend(*qkv, **option, **gqa) for qkv in given]

    return [calls(option) for option in options]


def measure(threads: int, case: Case, top: float, seconds: float) -> Line:
    """Ours and torch's in turn; the ratio is the median of the rounds' ratios."""
    rotate = case.new < case.keys
    copies = min(48, 1 + int(FROM_MEMORY / (1e9 * case.cache_gb))) if rotate else 1
    layers = operands(case, copies)
    ours = Ours(case, layers, threads)
    ways: list[list[Call]] = [ours.calls, *torch_calls(case, layers)]
    clock = time.thread_time if threads == 1 else time.perf_counter
    times: list[list[float]] = [[] for _ in ways]
    repeats = [0] * len(ways)
    begin = time.perf_counter()
    while len(times[0]) < 5 or (time.perf_counter() - begin < seconds and len(times[0]) < 500):
        for i, way in enumerate(ways):
            start = clock()
            for _ in range(max(1, repeats[i])):
                for call in way:
                    call()
            passed = (clock() - start) / max(1, repeats[i])
            if repeats[i]:
                times[i].append(passed / copies)
            repeats[i] = repeats[i] or 1 + int(ROUND_SECONDS / passed)
    expected: Any = ways[1][-1]()
    ours.calls[-1]()
    found = ours.result.swapaxes(0, 1)
    np.testing.assert_allclose(found, expected.numpy()[0], rtol=0, atol=1e-5)
    mine, best = median(times[0]), min(times[1:], key=median)
    ratios = sorted(theirs / own for own, theirs in zip(times[0], best, strict=True))
    spread = ratios[len(ratios) * 3 // 4] - ratios[len(ratios) // 4]
    rates = (case.work / mine, case.work / mine / top / threads, case.cache_gb / mine)
    return Line(
        threads, *case, 1e6 * mine, *rates, case.work / median(best), median(ratios), spread
    )


def cases(options: argparse.Namespace) -> list[Case]:
    """Prefills, then caches."""
    kinds = [(h, h) for h in options.heads] + ([(32, 8)] if 32 in options.heads else [])
    lengths = [(n, n) for n in options.lengths]
    lengths += [(new, keys) for keys in options.caches for new in options.new]
    return [Case(*h, *n, size) for size in options.size for h in kinds for n in lengths]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--heads", type=int, nargs="+", default=HEADS)
    parser.add_argument("--size", type=int, nargs="+", default=SIZES)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--caches", type=int, nargs="*", default=CACHES)
    parser.add_argument("--new", type=int, nargs="*", default=NEW)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--omp-spin", default=OMP_SPIN, help="turns that torch's threads spin")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    restart_with(options.omp_spin)
    top = peak(isa.current())
    about = kernel_machine(top)
    print(f"{about['level']}, {about['cpu']}: {top:.1f} GFLOP/s peak of one thread")
    print(
        "threads heads groups  new  keys size        µs  GFLOP/s  of peak  cache GB/s   torch"
        "  × torch  ±"
    )
    lines: list[Line] = []
    with torch.inference_mode():
        for threads in options.threads:
            torch.set_num_threads(threads)
            for case in cases(options):
                line = measure(threads, case, top, options.seconds)
                lines.append(line)
                print(
                    f"{line.threads:7} {line.heads:5} {line.groups:6} {line.new:4} {line.keys:5} "
                    f"{line.size:4} {line.microseconds:9.1f} {line.gflops:8.1f} "
                    f"{line.share_of_peak:8.0%} {line.cache_gb_s:11.1f} {line.torch_gflops:7.1f} "
                    f"{line.times_torch:8.2f}  {line.spread:.2f}",
                    flush=True,
                )
    behind = [line for line in lines if line.times_torch < 1]
    print(f"{len(lines)} lines, behind torch in {len(behind)}")
    write_json(options.json, about, lines=[line._asdict() for line in lines])


if __name__ == "__main__":
    main()

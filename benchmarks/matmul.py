"""Matrix products against torch on equal threads, interleaved calls, medians.

    python -m benchmarks.matmul [--threads 1 2] [--rows 1 4 512] [--omp-spin 10000] [--json FILE]

A line is C[M, N] = A[M, K]·B[K, N]. Ours includes packing A for each call; B is packed before and,
from 1 MB on, compressed, as weights are. Torch is the faster of `torch.mm` on B[K, N] and `linear`
on B[N, K]. Up to 64 rows, several weights take turns, so that they come from memory as in a model.
One thread is measured in CPU time, which other processes disturb less; several in wall-clock time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.report import kernel_machine, write_json
from benchmarks.spinning import restart_with
from gptrs.backends.faer.calls.packing import product_panels
from gptrs.backends.faer.packed_weights import pack
from gptrs.debug.measure_limits import peak_kernel
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.step_table import Status, Step, StepTable
from gptrs.kernels.gemm import packing
from gptrs.kernels.gemm.blocked import blocked_gemm_extent, blocked_gemm_kernel, blocking
from gptrs.kernels.gemm.packed_gemv import packed_gemv_kernel, packed_gemv_limit
from gptrs.kernels.gemm.product import Product
from gptrs_bench.processes import OMP_SPIN

Array = NDArray[Any]

SQUARE = [(n, n, n) for n in (256, 512, 1024, 2048, 4096)]
WEIGHTS = [(768, 768), (768, 2304), (768, 3072), (3072, 768), (768, 50257)]  # of GPT-2
ROWS = (1, 4, 8, 14, 64, 512)
FROM_MEMORY = 128 * 2**20  # bytes of weights that take turns: several times a large L3
LEAST_TURN = 2**28  # multiply-adds: some milliseconds
SECONDS = 1.0
CHUNKS_PER_THREAD = 4


class Line(NamedTuple):
    """One measurement; rates count the product alone."""

    threads: int
    m: int
    k: int
    n: int
    epilogue: str
    gflops: float
    share_of_peak: float
    weights_gb_s: float
    torch_gflops: float
    times_torch: float


def aligned(size: int, kind: Any = np.float32) -> Array:
    """Zeros at the beginning of a cache line."""
    held = np.zeros(size + 64, kind)
    start = -held.ctypes.data % 64 // held.itemsize
    return held[start : start + size]


def words(*values: Array | int) -> Array:
    return np.array([v if isinstance(v, int) else v.ctypes.data for v in values], np.int64)


def peak(level: isa.Isa) -> float:
    """GFLOP/s of one thread's multiply-adds."""
    kernel, turns = compile_ir(*peak_kernel(level)), 1_000_000
    out = aligned(level.tile_rows * level.tile_columns)
    block, times = words(out), []
    for _ in range(9):
        start = time.thread_time()
        kernel(block.ctypes.data, 0, turns)
        times.append(time.thread_time() - start)
    return 2e-9 * turns * out.size / median(times)


class Ours:
    """Calls of our product as a plan has them: a table of steps for each of the weights."""

    def __init__(self, a: Array, weights: list[Array], product: Product, bias: Array | int):
        level, (m, k), n = isa.current(), a.shape, weights[0].shape[1]
        form = product_panels(True, "f32", k, n)
        product = replace(product, compressed=form.compressed)
        self.result = np.empty((m, n), np.float32)
        few = m <= packed_gemv_limit(level, product)
        build = packed_gemv_kernel if few else blocked_gemm_kernel
        kernel = compile_ir(*build(level, product))
        pack_a = compile_ir(*packing.pack_rows_kernel(level, level.tile_rows))
        blocks = blocking(level, m, k, compressed=product.compressed)
        extent = packing.panel_count(level, n) if few else blocked_gemm_extent(level, n, blocks)
        tiles = -(-m // blocks.height)
        packed_a = aligned(tiles * k * level.tile_rows)
        self.keep: list[Any] = [a, packed_a, bias, pack_a, kernel]
        self.steps: list[tuple[list[Step], Status]] = []
        for weight in weights:
            packed = pack(weight, form, level)
            given = (a if few else packed_a, packed, self.result, bias, 0, 0)
            block = words(*given, m, k, n, k, n, 0, *blocks)
            a_block = words(a, packed_a, m, k, k, blocks.height)
            self.keep += [packed, block, a_block]
            steps = [Step(kernel.address, block.ctypes.data, extent)]
            if not few:
                steps.insert(0, Step(pack_a.address, a_block.ctypes.data, tiles))
            self.steps.append((steps, Status()))

    def calls(self, threads: int) -> list[Callable[[], object]]:
        driver, chunks = current_driver(), threads * CHUNKS_PER_THREAD if threads > 1 else 1
        tables = [
            (StepTable(step._replace(chunks=chunks) for step in steps), status)
            for steps, status in self.steps
        ]
        return [
            lambda table=table, status=status: driver.run(table, status, threads=threads)
            for table, status in tables
        ]


def torch_calls(a: Array, weights: list[Array], bias: Array, gelu: bool) -> list[list[Any]]:
    """The ways to ask torch, each with one call for every one of the weights."""
    left, right = torch.from_numpy(a), [torch.from_numpy(w) for w in weights]
    turned = [w.T.contiguous() for w in right]
    if gelu:
        add, act = torch.from_numpy(bias), torch.nn.functional.gelu
        linear = torch.nn.functional.linear
        return [[lambda w=w: act(linear(left, w, add), approximate="tanh") for w in turned]]
    return [
        [lambda w=w: torch.mm(left, w) for w in right],
        [lambda w=w: torch.nn.functional.linear(left, w) for w in turned],
    ]


def measure(
    threads: int, shape: tuple[int, int, int], rotate: bool, gelu: bool, top: float
) -> Line:
    """Ours and torch's in turn; the ratio is the median of the rounds' ratios.

    A turn of two threads takes some milliseconds: at its beginning they wake each other up, and may
    find the other's threads still waiting for work on their cores.
    """
    (m, k, n), rng = shape, np.random.default_rng(0)
    copies = min(24, -(-FROM_MEMORY // (4 * k * n))) if rotate else 1
    a, bias = rng.standard_normal((m, k), np.float32), rng.standard_normal(n, np.float32)
    weights = [rng.standard_normal((k, n), np.float32) for _ in range(copies)]
    product = Product(activation="gelu_tanh" if gelu else None)
    ours = Ours(a, weights, product, bias if gelu else 0)
    ways: list[list[Any]] = [ours.calls(threads), *torch_calls(a, weights, bias, gelu)]
    clock = time.thread_time if threads == 1 else time.perf_counter
    turns = 1 if threads == 1 else -(-LEAST_TURN // (copies * m * k * n))
    times: list[list[float]] = [[] for _ in ways]
    begin = time.perf_counter()
    while len(times[0]) < 5 or (time.perf_counter() - begin < SECONDS and len(times[0]) < 200):
        for way, found in zip(ways, times, strict=True):
            start = clock()
            for _ in range(turns):
                for call in way:
                    call()
            found.append((clock() - start) / (copies * turns))
    expected = ways[1][-1]().numpy()
    np.testing.assert_allclose(ours.result, expected, rtol=1e-3, atol=1e-3 * k**0.5)
    work, mine = 2e-9 * m * k * n, median(times[0])
    best = min(times[1:], key=median)
    ratio = median(theirs / own for own, theirs in zip(times[0], best, strict=True))
    rates = (work / mine, work / mine / top / threads, 4e-9 * k * n / mine, work / median(best))
    return Line(threads, m, k, n, "bias gelu" if gelu else "", *rates, ratio)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--square", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--omp-spin", default=OMP_SPIN, help="turns that torch's threads spin")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    restart_with(options.omp_spin)
    top = peak(isa.current())
    about = kernel_machine(top)
    print(f"{about['level']}, {about['cpu']}: {top:.1f} GFLOP/s peak of one thread")
    print("threads     M     K      N  epilogue   GFLOP/s  of peak  weights GB/s   torch  × torch")
    lines: list[Line] = []
    jobs = [(shape, False, False) for shape in SQUARE if options.square]
    jobs += [((m, *w), m <= 64, False) for w in WEIGHTS for m in options.rows]
    jobs += [((m, 768, 3072), m <= 64, True) for m in options.rows]
    for threads in options.threads:
        torch.set_num_threads(threads)
        for job in jobs:
            lines.append(line := measure(threads, *job, top))
            print(
                f"{line.threads:7} {line.m:5} {line.k:5} {line.n:6}  {line.epilogue:9} "
                f"{line.gflops:8.1f} {line.share_of_peak:8.0%} {line.weights_gb_s:13.1f} "
                f"{line.torch_gflops:7.1f} {line.times_torch:8.2f}",
                flush=True,
            )
    write_json(options.json, about, lines=[line._asdict() for line in lines])


if __name__ == "__main__":
    main()

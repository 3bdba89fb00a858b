"""Products of arguments against NumPy and torch: vectors, few rows and few columns, in f32.

    python -m benchmarks.products [--threads 1 2] [--omp-spin 10000] [--json FILE]

A line is a call of `ptir.jit(lambda a, b: a @ b)` (".T" is inside of it), of arrays that are not
packed before. All sides take turns; ratios are medians of the rounds' ratios. One thread is
measured in CPU time, which other processes disturb less; several in wall-clock time. GB/s are of
both operands. The error is the largest of a result's, against float64, over the largest result.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.report import write_json
from benchmarks.spinning import restart_with
from gptrs import ptir
from gptrs_bench.machine import machine
from gptrs_bench.processes import OMP_SPIN

Array = NDArray[Any]
Product = Callable[[Any, Any], Any]

SIDE = 4096
SECONDS = 1.0
LEAST_TURN = 20e-3  # seconds: at its beginning, threads of another side may still spin
WAYS: dict[str, Product] = {
    "a @ b": lambda a, b: a @ b,
    "a.T @ b": lambda a, b: a.T @ b,
    "a @ b.T": lambda a, b: a @ b.T,
}


class Line(NamedTuple):
    """One measurement."""

    threads: int
    case: str
    microseconds: float
    gb_s: float
    times_numpy: float
    times_torch: float
    error: float
    numpy_error: float


def cases() -> Iterator[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
    """A name, one of the `WAYS`, and two shapes."""
    for n in (10**3, 10**4, 10**5, 10**6, 10**7):
        yield f"dot of {n}", "a @ b", (n,), (n,)
    square, vector = (SIDE, SIDE), (SIDE,)
    yield "matrix, vector", "a @ b", square, vector
    yield "matrix.T, vector", "a.T @ b", square, vector
    yield "vector, matrix", "a @ b", vector, square
    yield "vector, matrix.T", "a @ b.T", vector, square
    for count in (1, 2, 3, 4, 8):
        yield f"{count} rows, matrix", "a @ b", (count, SIDE), square
        yield f"{count} rows, matrix.T", "a @ b.T", (count, SIDE), square
    for count in (2, 4, 8):
        yield f"matrix, {count} columns", "a @ b", square, (SIDE, count)
    yield "64 columns of 10^6, vector", "a @ b", (10**6, 64), (64,)
    yield "batch of 256, 64 x 64, vector", "a @ b", (256, 64, 64), (256, 64, 1)


def measure(threads: int, name: str, way: str, *shapes: tuple[int, ...]) -> Line:
    """Ours, NumPy's and torch's calls in turn."""
    rng, product = np.random.default_rng(0), WAYS[way]
    a, b = (rng.random(shape, np.float32) for shape in shapes)
    ours = ptir.jit(product)
    tensors, others = (ptir.tensor(a), ptir.tensor(b)), (torch.from_numpy(a), torch.from_numpy(b))
    sides: list[Callable[[], Any]] = [
        lambda: ours(*tensors),
        lambda: product(a, b),
        lambda: product(*others),
    ]
    exact = product(a.astype(np.float64), b.astype(np.float64))
    largest = np.abs(exact).max()
    errors = [np.abs(np.asarray(side()) - exact).max() / largest for side in sides[:2]]
    clock = time.thread_time if threads == 1 else time.perf_counter
    begin = time.perf_counter()
    sides[0]()
    turns = 1 + int(LEAST_TURN / (time.perf_counter() - begin))
    times: list[list[float]] = [[] for _ in sides]
    begin = time.perf_counter()
    while len(times[0]) < 9 or time.perf_counter() - begin < SECONDS:
        for side, found in zip(sides, times, strict=True):
            start = clock()
            for _ in range(turns):
                side()
            found.append((clock() - start) / turns)
    mine, theirs = times[0], times[1:]
    ratios = [median(t / m for m, t in zip(mine, other, strict=True)) for other in theirs]
    taken = median(mine)
    return Line(
        threads, name, 1e6 * taken, 4e-9 * (a.size + b.size) / taken, *ratios, *map(float, errors)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--omp-spin", default=OMP_SPIN, help="turns that torch's threads spin")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    restart_with(options.omp_spin)
    print("threads  case                                  µs    GB/s  × NumPy  × torch    error")
    lines: list[Line] = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        os.environ["GPTRS_NUM_THREADS"] = str(threads)
        with threadpool_limits(threads, user_api="blas"):
            for case in cases():
                lines.append(line := measure(threads, *case))
                print(
                    f"{threads:7}  {line.case:30} {line.microseconds:9.1f} {line.gb_s:7.1f}"
                    f" {line.times_numpy:8.2f} {line.times_torch:8.2f}  {line.error:.1e}"
                    f" (NumPy {line.numpy_error:.1e})",
                    flush=True,
                )
    write_json(options.json, machine(["numpy", "torch"]), lines=[line._asdict() for line in lines])


if __name__ == "__main__":
    main()

"""concat, pad and tile against NumPy and torch on equal threads, interleaved calls, medians.

    python -m benchmarks.blocks [--threads 1 2] [--rounds 60] [--omp-spin 10000] [--json FILE]

Calls of `ptir.jit`; results are new arrays on all sides. One thread is measured in CPU time, which
other processes disturb less; several in wall-clock time. NumPy has one thread.
"""

# The lambdas are called with arrays: what they take and return is not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.report import write_json
from benchmarks.spinning import restart_with
from gptrs import ptir
from gptrs.kernels.compiler import isa
from gptrs.kernels.driver.threads import limit_threads
from gptrs_bench.processes import OMP_SPIN

Call = Callable[[], Any]
Shape = tuple[int, ...]

CONCATS: list[tuple[list[Shape], int]] = [
    ([(1_000_000, 3), (1_000_000, 5)], 1),
    ([(1_000_000, 1)] * 3, 1),
    ([(1000, 1000)] * 2, 0),
    ([(1000, 1000)] * 2, 1),
    ([(64, 1000)] * 16, 1),
]
PADS: list[tuple[Shape, Shape, Shape]] = [
    ((1000, 1000), (1, 1), (1, 1)),
    ((1_000_000, 3), (0, 1), (0, 1)),
    ((8, 3, 224, 224), (0, 0, 3, 3), (0, 0, 3, 3)),
    ((8, 56, 56, 64), (0, 1, 1, 0), (0, 1, 1, 0)),
]
TILES: list[tuple[Shape, Shape]] = [((1000, 100), (1, 10)), ((1000, 1000), (2, 1))]
LEAST_TURN = 1e-3  # seconds


class Line(NamedTuple):
    """One measurement; ratios are medians of the rounds' ratios."""

    threads: int
    what: str
    microseconds: float
    times_numpy: float
    times_torch: float


def concat(shapes: list[Shape], axis: int) -> tuple[str, list[Call]]:
    xs = [np.random.default_rng(0).standard_normal(shape, np.float32) for shape in shapes]
    theirs = [torch.from_numpy(x) for x in xs]

    def joined(*xs: Any) -> Any:
        return ptir.concat(xs, axis=axis)

    join = ptir.jit(joined)
    kinds = dict.fromkeys(str(list(shape)) for shape in shapes)
    what = f"concat {' and '.join(kinds)}, {len(shapes)} in all, axis {axis}"
    numpy, other = lambda: np.concatenate(xs, axis), lambda: torch.cat(theirs, axis)
    return what, [lambda: join(*xs).numpy(), numpy, other]


def pad(shape: Shape, low: Shape, high: Shape) -> tuple[str, list[Call]]:
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    widths, given = list(zip(low, high, strict=True)), torch.from_numpy(x)
    flat = [width for pair in reversed(widths) for width in pair]  # the last axis first
    around = ptir.jit(lambda x: ptir.pad(x, low=low, high=high))
    numpy, other = lambda: np.pad(x, widths), lambda: torch.nn.functional.pad(given, flat)
    return f"pad {list(shape)} by {widths}", [lambda: around(x).numpy(), numpy, other]


def tile(shape: Shape, reps: Shape) -> tuple[str, list[Call]]:
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    given, repeat = torch.from_numpy(x), ptir.jit(lambda x: ptir.tile(x, reps=reps))
    numpy, other = lambda: np.tile(x, reps), lambda: torch.tile(given, reps)
    return f"tile {list(shape)} by {list(reps)}", [lambda: repeat(x).numpy(), numpy, other]


def cases() -> Iterator[tuple[str, list[Call]]]:
    """What is measured, each by ours, NumPy and torch."""
    yield from (concat(*case) for case in CONCATS)
    yield from (pad(*case) for case in PADS)
    yield from (tile(*case) for case in TILES)


def measure(threads: int, what: str, ways: list[Call], rounds: int) -> Line:
    """All ways in turn."""
    expected = np.asarray(ways[1]())
    for way in (ways[0], ways[2]):
        np.testing.assert_array_equal(np.asarray(way()), expected)
    clock = time.thread_time if threads == 1 else time.perf_counter
    start = time.perf_counter()
    ways[1]()
    turns = int(LEAST_TURN / (time.perf_counter() - start)) + 1
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, found in zip(ways, times, strict=True):
            start = clock()
            for _ in range(turns):
                way()
            found.append((clock() - start) / turns)
    ours, *others = times
    ratios = [median(b / a for a, b in zip(ours, other, strict=True)) for other in others]
    return Line(threads, what, 1e6 * median(ours), *ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--omp-spin", default=OMP_SPIN, help="turns that torch's threads spin")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    restart_with(options.omp_spin)
    print("threads       µs  × NumPy  × torch")
    lines: list[Line] = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        with limit_threads(threads):
            for what, ways in cases():
                lines.append(line := measure(threads, what, ways, options.rounds))
                ratios = f"{line.times_numpy:8.2f} {line.times_torch:8.2f}"
                print(
                    f"{line.threads:7} {line.microseconds:8.0f} {ratios}  {line.what}", flush=True
                )
    about = {"level": isa.current().name, "cpu": isa.host()[1]}
    write_json(options.json, about, lines=[line._asdict() for line in lines])


if __name__ == "__main__":
    main()

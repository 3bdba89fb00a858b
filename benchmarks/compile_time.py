"""Latency of a first call per instruction, for programs of several shapes.

    python -m benchmarks.compile_time [--json FILE]

Cold: an empty kernel folder. Warm: another function with the same program, its kernels compiled.
Tracing, passes, fusion, compilation, binding and the call itself count; importing Numba does not,
as it takes the same for any program. CPU time of one process, which compiles all by itself.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report import write_json
from gptrs import ptir
from gptrs_bench.machine import machine

Function = Callable[[Any], Any]


class Line(NamedTuple):
    """One program: milliseconds for each of its instructions."""

    program: str
    instructions: int
    cold_ms: float
    warm_ms: float
    kernels: int


def many_results(count: int) -> Function:
    return lambda x: [x * float(i) for i in range(count)]


def distinct_results(count: int) -> Function:
    steps = (ptir.exp, ptir.tanh, ptir.neg, abs, ptir.sin, ptir.floor, ptir.sign, ptir.cos)

    def function(x: Any) -> Any:
        rng, found = np.random.default_rng(0), list[Any]()
        for _ in range(count):
            value = x
            for step in rng.integers(0, len(steps), 5):
                value = steps[step](value)
            found.append(value)
        return found

    return function


def rounds(count: int) -> Function:
    def function(x: Any) -> Any:
        for _ in range(count):
            y = ptir.exp(x * 0.5) + 1.0
            x = y / y.sum(-1, keepdims=True) - x
        return x

    return function


def chain(count: int) -> Function:
    def function(x: Any) -> Any:
        for i in range(count):
            x = ptir.tanh(x) * 1.5 if i % 2 else x + 0.25
        return x

    return function


def fan_out(count: int) -> Function:
    def function(x: Any) -> Any:
        y = total = ptir.exp(x)
        for i in range(count):
            total = total + ptir.sin(y * float(i))
        return total

    return function


PROGRAMS: dict[str, Function] = {
    "1000 results": many_results(1000),
    "300 results, no two alike": distinct_results(300),
    "100 rounds of ops and sums": rounds(100),
    "300 rounds of ops and sums": rounds(300),
    "a chain of 500": chain(500),
    "a chain of 13334": chain(13334),
    "a fan-out to 200": fan_out(200),
}


def measured(name: str, function: Function) -> Line:
    """A first call with an empty kernel folder, and one with kernels on disk."""
    x = np.random.default_rng(0).random((8, 2000), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GPTRS_CACHE_DIR"] = folder
        jitted = [ptir.jit(lambda x: function(x)) for _ in range(2)]
        seconds = [_first_call(each, x) for each in jitted]
        report = jitted[0].explain(x).report
    count = report.instructions()
    cold, warm = (1e3 * taken / count for taken in seconds)
    return Line(name, count, cold, warm, len(report.kernels))


def _first_call(jitted: Any, x: Any) -> float:
    start = time.process_time()
    jitted(x)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    path: Path | None = parser.parse_args().json
    os.environ["GPTRS_COMPILE_PROCESSES"] = "0"
    import_module("gptrs.kernels.compiler.numba_lowering")  # and so Numba
    print(f"{'program':28}{'instructions':>13}{'cold ms':>9}{'warm ms':>9}{'kernels':>9}")
    lines: list[Line] = []
    for name, function in PROGRAMS.items():
        lines.append(line := measured(name, function))
        print(f"{name:28}{line.instructions:13}{line.cold_ms:9.2f}{line.warm_ms:9.2f}", end="")
        print(f"{line.kernels:9}")
    about = machine(["numpy", "numba", "llvmlite"])
    write_json(path, about, lines=[line._asdict() for line in lines])


if __name__ == "__main__":
    main()

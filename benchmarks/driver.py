"""Overhead of a plan's step besides its kernel, for both drivers.

    python benchmarks/driver.py                      both, on 1, 2 and 4 threads
    python benchmarks/driver.py --driver pool --json

Timings are medians; on a machine with other work take them as ratios.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any

import llvmlite.binding as llvm
import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.driver import Driver
from gptrs.kernels.driver.step_table import Status, Step, StepTable
from gptrs.kernels.driver.threads import available_cores

# llvmlite has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

KERNELS = """
define void @empty(i64 %block, i64 %first, i64 %last) {
  ret void
}

; a chain of multiplications that cannot be shortened; its end is written to block[first]
define void @busy(i64 %block, i64 %first, i64 %last) {
entry:
  %words = inttoptr i64 %block to ptr
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %x = phi i64 [ 1, %entry ], [ %y, %loop ]
  %m = mul i64 %x, 6364136223846793005
  %y = xor i64 %m, %i
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %loop, label %end
end:
  %at = getelementptr i64, ptr %words, i64 %first
  store i64 %y, ptr %at
  ret void
}
"""


def kernels() -> tuple[int, int]:
    """The addresses of the kernel that does nothing and of the one that is busy."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    jit: Any = llvm.create_lljit_compiler()
    library: Any = llvm.JITLibraryBuilder().add_ir(KERNELS)
    linked: Any = library.export_symbol("empty").export_symbol("busy").link(jit, "kernels")
    linked.detach()
    jit.detach()
    return linked["empty"], linked["busy"]


def median(run: Callable[[], object], repeats: int, idle: float = 0.0) -> float:
    """Seconds that ``run`` takes, each time after ``idle`` seconds of sleep."""
    run()
    taken: list[float] = []
    for _ in range(repeats):
        if idle:
            time.sleep(idle)
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def measure(driver: Driver, threads: list[int], repeats: int) -> dict[str, float]:
    """Costs by name; the unit is the name's last word, and `x` is a ratio."""
    empty, busy = kernels()
    status, words = Status(), np.zeros(1 << 16, np.int64)
    costs: dict[str, float] = {}

    def steps(kernel: int, count: int, extent: int, chunks: int) -> StepTable:
        return StepTable([Step(kernel, words.ctypes.data, extent, chunks)] * count)

    def run(table: StepTable, count: int) -> Callable[[], object]:
        return lambda: driver.run(table, status, threads=count)

    costs["launch from Python us"] = median(run(steps(empty, 0, 1, 1), 1), 20 * repeats) * 1e6
    costs["serial step ns"] = median(run(steps(empty, 1000, 64, 1), 1), repeats) * 1e6
    for count in threads:
        table = steps(empty, 200, 64, max(2, count))
        costs[f"parallel step, {count} threads us"] = median(run(table, count), repeats) / 2e-4
    for count in threads[1:]:
        one = steps(empty, 1, 64, count)
        cost = median(run(one, count), max(3, repeats // 4), idle=0.02)
        costs[f"step after 20 ms idle, {count} threads us"] = cost * 1e6
    table = steps(busy, 20, 60_000, 8)
    alone = median(run(table, 1), max(3, repeats // 4))
    costs["work of the busy step us"] = alone / 20 * 1e6
    for count in threads[1:]:
        together = median(run(table, count), max(3, repeats // 4))
        costs[f"speed-up of the busy step, {count} threads x"] = alone / together
    return costs


def main(
    driver: Annotated[list[str] | None, typer.Option(help="pool or numba; may be repeated")] = None,
    threads: Annotated[list[int] | None, typer.Option(help="1 2 4 unless told")] = None,
    repeats: Annotated[int, typer.Option(min=3, help="runs that a median is of")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    results: dict[str, dict[str, float]] = {}
    for name in driver or ["pool", "numba"]:
        os.environ["GPTRS_DRIVER"] = name
        start = time.perf_counter()
        chosen = current_driver()
        made = {"making the driver ms": (time.perf_counter() - start) * 1e3}
        results[name] = made | measure(chosen, threads or [1, 2, 4], repeats)
    if as_json:
        print(json.dumps({"cores": available_cores(), "drivers": results}, indent=2))
        return
    table = Table("", *results, title=f"{available_cores()} cores; medians")
    for cost in next(iter(results.values())):
        name, unit = cost.rsplit(" ", 1)
        table.add_row(
            f"{name} [{unit}]".replace("[", r"\["), *(f"{r[cost]:.2f}" for r in results.values())
        )
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)

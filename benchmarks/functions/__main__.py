"""Everyday functions: ours beside NumPy, torch (eager), JAX (jit) and, for loops, Numba.

    python -m benchmarks.functions [--threads 1 2] [--family NAME ...] [--case TEXT ...] [--quick]
                                   [--json FILE]

Each case is compared with NumPy's result and then timed, all sides in turns of random order in one
process, whose threads have as many cores as are measured. Peers that are not installed have empty
columns; JAX is in none of the extras but ``peers``. ``--list`` names families and their cases.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from os import environ
from pathlib import Path
from typing import Any

from benchmarks.functions import report
from benchmarks.functions.case import Case
from benchmarks.functions.measure import Line, measure
from benchmarks.functions.table import all_cases
from benchmarks.report import write_json
from gptrs.isolated import start_python
from gptrs_bench.machine import machine
from gptrs_bench.processes import on_cores, thread_settings

SECONDS, TURN = 0.3, 2e-3  # of a case; of the turn of one side
QUICK = 0.25  # of both
LIMIT = 120.0  # seconds after which a case is given up


def main() -> None:
    """Measure the cases in child processes: one that ends itself ends one case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--family", nargs="+", help="all unless told")
    parser.add_argument("--case", nargs="+", metavar="TEXT", help="those whose name has a TEXT")
    parser.add_argument("--quick", action="store_true", help="a quarter of the time, noisier")
    parser.add_argument("--list", action="store_true", help="name the cases, measure nothing")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", type=int, nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = all_cases()
    if unknown := set(options.family or ()) - {case.family for case in cases}:
        parser.error(f"no family {', '.join(sorted(unknown))}")
    if options.child is not None:
        _measure_here(cases, options.child, options.threads[0], options.quick)
        return
    wanted = [
        number
        for number, case in enumerate(cases)
        if not options.family or case.family in options.family
        if not options.case or any(text in str(case) for text in options.case)
    ]
    if not wanted:
        parser.error("no case is called so: --list names them")
    if options.list:
        if sys.platform != "win32":  # ends quietly when its reader does: `--list | head`
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for number in wanted:
            print(f"{cases[number].family:16} {cases[number]}")
        return
    lines: list[Line] = []
    for threads in options.threads:
        print(report.head(threads), flush=True)
        for line in _measure_on(threads, cases, wanted, options.quick):
            lines.append(line)
            print(report.row(line), flush=True)
    for threads in options.threads:
        print(report.summary([line for line in lines if line.threads == threads], threads))
    about: dict[str, Any] = machine(["torch", "jax"])
    write_json(options.json, about, lines=[asdict(line) for line in lines])


def _measure_on(threads: int, cases: list[Case], wanted: list[int], quick: bool) -> Iterator[Line]:
    """Lines as a child prints them; after a case in which it ended, another goes on."""
    left = list(wanted)
    while left:
        arguments = ["-m", "benchmarks.functions", "--threads", str(threads)]
        arguments += ["--quick"] * quick + ["--child", *map(str, left)]
        env = environ | thread_settings(threads)
        with on_cores(threads):
            child: Any = start_python(*arguments, env=env, stdout=subprocess.PIPE, text=True)
        with child:
            while left:
                timer = threading.Timer(LIMIT, child.kill)
                timer.start()
                text = child.stdout.readline()
                timer.cancel()
                if not text:
                    break
                left.pop(0)
                yield Line(**json.loads(text))
        if left:
            case = cases[left.pop(0)]
            reason = f"the process ended with {child.returncode}"
            yield Line(case.family, str(case), threads, failed={"ours": reason})


def _measure_here(cases: list[Case], numbers: list[int], threads: int, quick: bool) -> None:
    """One line of JSON for each case."""
    from benchmarks.functions import sides

    peers = sides.installed()
    for name in peers:
        sides.prepare(name, threads)
    part = QUICK if quick else 1.0
    for number in numbers:
        line = measure(cases[number], peers, threads, part * SECONDS, part * TURN)
        print(json.dumps(asdict(line)), flush=True)


if __name__ == "__main__":
    sys.exit(main())

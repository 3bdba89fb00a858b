"""First calls of everyday functions: ours cold and warm, beside torch.compile's.

    python -m benchmarks.functions.first_calls [--family NAME ...] [--rounds N] [--json FILE]

One case of each family, of its middle size. Every first call has a process of its own, in which the
library is imported before the clock starts; what the library imports later counts. Cold: no kernel
was ever compiled (an empty folder; torch.compile's likewise). Warm: another process has compiled
this program before. Python's own compiled files are kept from a call that is not counted on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.functions import sides
from benchmarks.functions.case import Case
from benchmarks.functions.report import mean
from benchmarks.functions.table import all_cases
from benchmarks.report import write_json
from gptrs.isolated import start_python
from gptrs_bench.machine import machine

SIDES = ("ours", *(["torch"] if find_spec("torch") else []))
LIMIT = 120.0  # seconds of a process
_FOLDERS = "GPTRS_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"


@dataclass(frozen=True)
class Line:
    """The first calls of a case, in ms; None where torch.compile fails, has no such case, or takes
    longer than `LIMIT`."""

    family: str
    name: str
    cold: float
    warm: float
    torch_cold: float | None
    torch_warm: float | None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--family", nargs="+", help="all unless told")
    parser.add_argument("--rounds", type=int, default=1, help="the median of so many")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=2, metavar=("SIDE", "CASE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = all_cases()
    if options.child is not None:
        side, number = options.child
        print(json.dumps(first_call(side, cases[int(number)])))
        return
    print(f"{'first call, ms':44}{'cold':>9}{'warm':>9}{'compile':>9}{'warm':>9}   cold / compile")
    lines: list[Line] = []
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as bytecode:
        os.environ["PYTHONPYCACHEPREFIX"] = bytecode
        _measured(cases[0], 0, 1)
        for number in chosen(cases, options.family):
            lines.append(line := _measured(cases[number], number, options.rounds))
            print(_row(line), flush=True)
    print(summary(lines))
    write_json(options.json, machine(["torch"]), lines=[asdict(line) for line in lines])


def chosen(cases: Sequence[Case], families: Sequence[str] | None) -> list[int]:
    """The number of the middle case of each family's first function."""
    found: list[int] = []
    for family in families or dict.fromkeys(case.family for case in cases):
        numbers = [n for n, case in enumerate(cases) if case.family == family]
        if not numbers:
            raise SystemExit(f"no family {family}; --list of benchmarks.functions names them")
        alike = [n for n in numbers if cases[n].name == cases[numbers[0]].name]
        found.append(alike[len(alike) // 2])
    return found


def _measured(case: Case, number: int, rounds: int) -> Line:
    ours = _cold_and_warm("ours", number, rounds)
    compared = "torch" in SIDES and case.torch is not None
    torch = _cold_and_warm("torch", number, rounds) if compared else None
    assert ours is not None
    return Line(case.family, str(case), *ours, *(torch or (None, None)))


def _cold_and_warm(side: str, number: int, rounds: int) -> tuple[float, float] | None:
    """Medians in ms, of processes that share a folder in pairs; None where the side fails."""
    taken: list[tuple[float, float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            run = partial(_in_a_process, side, number, dict.fromkeys(_FOLDERS, folder))
            try:
                taken.append((run(), run()))
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
                if side == "ours":
                    raise
                return None
    cold, warm = zip(*taken, strict=True)
    return median(cold), median(warm)


def _in_a_process(side: str, number: int, settings: dict[str, str]) -> float:
    """The ms of a first call."""
    arguments = "-m", __spec__.name, "--child", side, str(number)
    options: Any = {"env": os.environ | settings, "stdout": subprocess.PIPE, "text": True}
    with start_python(*arguments, **options) as process:
        try:
            printed, _ = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return 1e3 * json.loads(printed)


def first_call(side: str, case: Case) -> float:
    """Seconds."""
    arguments = case.arguments()
    if side == "torch":
        import torch

        call: Any = sides.peer("torch", case, arguments)
        call = partial(torch.compile(call.func), *call.args)  # pyright: ignore
    else:
        call = sides.ours(case, arguments)
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _row(line: Line) -> str:
    figures = (line.cold, line.warm, line.torch_cold, line.torch_warm)
    times = "".join(f"{'':9}" if figure is None else f"{figure:9.0f}" for figure in figures)
    ratio = f"{line.cold / line.torch_cold:14.2f}" if line.torch_cold else ""
    return f"{f'{line.family}: {line.name}':44}{times}{ratio}"


def summary(lines: Sequence[Line]) -> str:
    ratios = [line.cold / line.torch_cold for line in lines if line.torch_cold]
    slow = [line for line in lines if line.warm > 50]
    return (
        f"cold / torch.compile cold, geometric mean {mean(ratios):.2f}, at most "
        f"{max(ratios, default=0):.2f}; warm: median {median(line.warm for line in lines):.0f} ms, "
        f"{len(slow)} of {len(lines)} above 50 ms"
    )


if __name__ == "__main__":
    sys.exit(main())

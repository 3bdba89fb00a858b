"""Run the suite of the array API standard: ``python -m tests.array_api SUITE``, or
``make array-api SUITE=path``.

SUITE is a checkout of https://github.com/data-apis/array-api-tests with its submodule; its
``requirements.txt`` names what it needs. All of it runs twice, as calls come and compiled. The exit
code is 1 where a test fails that `deviations` does not list.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.array_api.deviations import DEVIATIONS, reason_of

ROOT = Path(__file__).resolve().parents[2]
VERSION = "2024.12"
MODULES = {"eager": "gptrs.ptir", "compiled": "tests.array_api.compiled"}


@dataclass
class Run:
    """What one run of the suite found."""

    way: str
    counts: Counter[str] = field(default_factory=Counter[str])
    known: dict[str, str] = field(default_factory=dict[str, str])
    unknown: dict[str, str] = field(default_factory=dict[str, str])
    """The last line of the error by the test's id."""

    def add(self, test: dict[str, Any]) -> None:
        """Count one test of the report."""
        outcome, name = test["outcome"], test["nodeid"]
        failed = outcome in ("failed", "error")
        self.counts["failed" if failed else outcome] += 1
        if failed:
            reason = reason_of(name, DEVIATIONS)
            (self.known if reason else self.unknown)[name] = reason or _error(test)

    @property
    def share(self) -> float:
        """Passed tests among those that ran."""
        passed = self.counts["passed"]
        return passed / max(passed + self.counts["failed"], 1)


def _error(test: dict[str, Any]) -> str:
    stages = (test.get(stage, {}).get("crash", {}) for stage in ("setup", "call", "teardown"))
    text = next((crash["message"] for crash in stages if crash), "")
    return text.strip().splitlines()[0] if text.strip() else "no message"


def run(suite: Path, way: str, options: list[str]) -> Run:
    """Run the suite in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no"]
        command += ["--disable-deadline", "--json-report", f"--json-report-file={report}", *options]
        chosen = any(option.startswith("array_api_tests") for option in options)
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        subprocess.run(
            [*command, *([] if chosen else ["array_api_tests"])],
            cwd=suite,
            check=False,
            stdout=sys.stderr,
            env={
                **os.environ,
                "PYTHONPATH": paths,
                "ARRAY_API_TESTS_MODULE": MODULES[way],
                "ARRAY_API_TESTS_VERSION": VERSION,
            },
        )
        if not report.exists():
            raise SystemExit(f"{suite}: the suite did not run; it needs its requirements.txt")
        tests = json.loads(report.read_text())["tests"]
    found = Run(way)
    for test in tests:
        found.add(test)
    return found


def table(runs: list[Run]) -> Table:
    """The counts of each run."""
    made = Table("calls", "passed", "failed", "of them known", "skipped", "share")
    for each in runs:
        numbers = [each.counts["passed"], each.counts["failed"], len(each.known)]
        numbers.append(each.counts["skipped"])
        made.add_row(each.way, *map(str, numbers), f"{each.share:.1%}")
    return made


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.array_api", description=__doc__)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--ways", nargs="+", choices=MODULES, default=list(MODULES))
    arguments, options = parser.parse_known_args()
    runs = [run(arguments.suite, way, options) for way in arguments.ways]
    console = Console()
    for each in runs:
        for name, error in each.unknown.items():
            console.print(f"{each.way}: {name}\n    {error}", markup=False, highlight=False)
    console.print(table(runs))
    return int(any(each.unknown for each in runs))


if __name__ == "__main__":
    sys.exit(main())

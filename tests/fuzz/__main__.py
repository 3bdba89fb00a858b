"""The long run: ``python -m tests.fuzz --count 20000 --seed 1``, or ``make fuzz N=20000 SEED=1``.

Programs run in batches, each in a process of its own: its memory and its compiled kernels go with
it, and a crash names the program that crashed. The exit code is 1 where any two ways differ. A run
that is interrupted or terminated prints what its batches found.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.fuzz.compare import Tally
from tests.fuzz.replay import text_of
from tests.fuzz.search import DisagreementError, Search

_BATCH = 250
_CACHE_BYTES = 64 * 2**20
_SECONDS = 3600  # a batch that takes longer hangs


@dataclass
class Summary:
    """What all batches found."""

    seed: int
    programs: int = 0
    seconds: float = 0.0
    instructions: Counter[str] = field(default_factory=Counter[str])
    tally: Tally = field(default_factory=Tally)
    mismatches: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """What was found, and the file with the program."""

    def add(self, batch: dict[str, Any]) -> None:
        self.programs += batch["programs"]
        self.instructions.update(batch["instructions"])
        for name in (f.name for f in fields(Tally)):
            setattr(self.tally, name, getattr(self.tally, name) + batch["tally"][name])

    def json(self) -> dict[str, Any]:
        """All of it, for other programs to read."""
        counts = {"instructions": dict(self.instructions), "tally": asdict(self.tally)}
        return {**vars(self), **counts, "ok": not self.mismatches}

    def table(self) -> Table:
        table = Table("what", "count", title=f"seed {self.seed}, {self.seconds:.0f} s")
        rows = {
            "programs": self.programs,
            **{f"  {k}": n for k, n in self.instructions.most_common()},
        }
        names = {
            "comparisons": "comparisons",
            "exact": "elements with equal bits",
            "bounded": "elements within an error bound",
            "unknown": "elements that rounding decides",
            "extreme": "elements that imprecise rewrites leave open",
            "raised": "errors that were expected",
        }
        rows |= {names[name]: number for name, number in asdict(self.tally).items()}
        for name, number in {**rows, "mismatches": len(self.mismatches)}.items():
            table.add_row(name, f"{number:,}")
        return table


def worker(count: int, seed: int, folder: Path, backend: str) -> None:
    """Run a batch, and print what it found as JSON."""
    search = Search()
    failure: dict[str, str] | None = None
    try:
        search.run(count, seed, current=folder / "current.py", backend=backend)
    except DisagreementError:
        assert search.failure is not None
        example, mismatch = search.failure
        path = folder / f"mismatch_{seed}.py"
        path.write_text(text_of(example, mismatch, f"python -m tests.fuzz, batch {seed}", backend))
        failure = {"what": str(mismatch), "file": str(path)}
    found = {
        "programs": search.programs,
        "instructions": search.instructions,
        "tally": asdict(search.tally),
        "failure": failure,
    }
    print(json.dumps(found))


def _batch(count: int, seed: int, folder: Path, summary: Summary, backend: str) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--worker", "--count", str(count)]
    command += ["--seed", str(seed), "--folder", str(folder), "--backend", backend]
    env = {"GPTRS_CACHE_DIR": str(folder / "kernels"), "GPTRS_CACHE_BYTES": str(_CACHE_BYTES)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, env={**os.environ, **env}
        )
        found = cast("dict[str, Any]", json.loads(done.stdout.splitlines()[-1]))
    except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
        path = folder / f"crash_{seed}.py"
        path.write_text((folder / "current.py").read_text())
        said = getattr(error, "stderr", None) or locals().get("done")
        told = f"the process ended without an answer: {str(said)[-2000:]}"
        summary.mismatches.append({"what": told, "file": str(path)})
        return
    summary.add(found)
    if found["failure"] is not None:
        summary.mismatches.append(found["failure"])


def main() -> int:
    """Run as many programs as asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Run random programs."
    )
    parser.add_argument("--count", type=int, default=20000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other programs")
    parser.add_argument("--batch", type=int, default=_BATCH, help="how many in one process")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--folder", type=Path, help="where failing programs and kernels go")
    parser.add_argument("--backend", default="faer", help="the backend beside the reference")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.count, options.seed, options.folder, options.backend)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="gptrs-fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    summary = run(options.count, options.seed, folder, options.backend, options.batch)
    if options.json:
        print(json.dumps(summary.json()))
    return 1 if summary.mismatches else 0


def run(count: int, seed: int, folder: Path, backend: str = "faer", batch: int = _BATCH) -> Summary:
    """Run ``count`` programs in batches, with a bar, and print a table at the end."""
    console = Console(stderr=True)
    summary = Summary(seed)
    begin = time.perf_counter()
    columns = (
        *(TextColumn("programs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()),
        TextColumn("{task.fields[found]} mismatches"),
    )
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("programs", total=count, found=0)
            for number, first in enumerate(range(0, count, batch)):
                size = min(batch, count - first)
                _batch(size, seed * 10**6 + number, folder, summary, backend)
                progress.update(task, advance=size, found=len(summary.mismatches))
                summary.seconds = time.perf_counter() - begin
    finally:  # an interrupted run tells what it found
        console.print(summary.table())
        for mismatch in summary.mismatches:
            console.print(mismatch["what"], markup=False)
            console.print(f"  run it again: python {mismatch['file']}", markup=False)
    return summary


if __name__ == "__main__":
    sys.exit(main())

"""The long run: ``python -m tests.fuzz_files --count 100000 --seed 1``, or
``make fuzz-files N=100000 SEED=1``.

Files are opened in batches, each in a process of its own whose memory is limited: a crash names
the change that made it. The exit code is 1 where a file was neither read nor refused as it should.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.fuzz_files.kinds import KINDS
from tests.fuzz_files.search import Finding, Search

_BATCH = 1000
_SECONDS = 600  # a batch that takes longer hangs where Python cannot stop it
_MOST_MEMORY = 4 * 2**30  # bytes of addresses: libraries have most of them


@dataclass
class Summary:
    """What all batches found."""

    seed: int
    changes: int = 0
    seconds: float = 0.0
    read: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    findings: list[Finding] = field(default_factory=list[Finding])
    repeated: int = 0

    def add(self, batch: dict[str, Any]) -> None:
        self.read.update(batch["read"])
        self.refused.update(batch["refused"])
        self.repeated += batch["repeated"]
        for found in batch["findings"]:
            self.keep(Finding(**found))

    def keep(self, finding: Finding) -> None:
        """Add it unless another one has its cause."""
        if any((f.kind, f.cause) == (finding.kind, finding.cause) for f in self.findings):
            self.repeated += 1
        else:
            self.findings.append(finding)

    def json(self) -> dict[str, Any]:
        """All of it, for other programs to read."""
        findings = [asdict(finding) for finding in self.findings]
        return {**vars(self), "findings": findings, "ok": not self.findings}

    def table(self) -> Table:
        title = f"seed {self.seed}: {self.changes:,} changes in {self.seconds:.0f} s"
        table = Table("kind", "read", "refused", "findings", title=title)
        wrong = Counter(finding.kind for finding in self.findings)
        for kind in sorted(KINDS):
            table.add_row(kind, *(f"{n[kind]:,}" for n in (self.read, self.refused, wrong)))
        total = (sum(n.values()) for n in (self.read, self.refused, wrong))
        table.add_row("all", *(f"{n:,}" for n in total))
        return table


def worker(first: int, count: int, seed: int, folder: Path) -> None:
    """Open a batch, and print what was found as JSON."""
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, most))
    search = Search(seed, folder)
    search.run(first, first + count, current=folder / "current")
    counts = {"read": search.read, "refused": search.refused, "repeated": search.repeated}
    print(json.dumps({**counts, "findings": [asdict(found) for found in search.findings]}))


def _batch(first: int, count: int, folder: Path, summary: Summary) -> None:
    while count > 0:
        command = [sys.executable, "-m", "tests.fuzz_files", "--worker", "--first", str(first)]
        command += ["--count", str(count), "--seed", str(summary.seed), "--folder", str(folder)]
        said = f"no end after {_SECONDS} s"
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
            said = f"exit code {done.returncode}: {done.stderr[-1000:].strip()}"
            summary.add(cast("dict[str, Any]", json.loads(done.stdout.splitlines()[-1])))
        except (subprocess.TimeoutExpired, IndexError, ValueError):
            number = _crash(folder, said, summary)
            first, count = number + 1, count - (number + 1 - first)
        else:
            return


def _crash(folder: Path, said: str, summary: Summary) -> int:
    """Keep the files of the change that ended the process. Returns its number."""
    current = folder / "current"
    if not current.exists():
        raise SystemExit(f"no file was opened: {said}")
    number = int(current.read_text())
    current.unlink()
    place = folder / f"crash_{summary.seed}_{number}"
    kind = Search(summary.seed, folder).folder_of(number, place)
    what = f"the process ended without an answer, {said}"
    summary.keep(Finding(kind, number, what, said[:40], str(place)))
    return number


def run(first: int, count: int, seed: int, folder: Path) -> Summary:
    """Open ``count`` changed files in batches, with a bar, and print a table at the end."""
    console, summary, begin = Console(stderr=True), Summary(seed), time.perf_counter()
    columns = (
        *(TextColumn("files"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()),
        TextColumn("{task.fields[found]} findings"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("files", total=count, found=0)
        for start in range(first, first + count, _BATCH):
            size = min(_BATCH, first + count - start)
            _batch(start, size, folder, summary)
            progress.update(task, advance=size, found=len(summary.findings))
            summary.changes += size
            summary.seconds = time.perf_counter() - begin
    console.print(summary.table())
    for finding in summary.findings:
        console.print(f"{finding.kind} {finding.number}: {finding.what}", markup=False)
        console.print(f"  its files: {finding.place}", markup=False)
    return summary


def main() -> int:
    """Open as many changed files as asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz_files", description="Open files that are changed at random."
    )
    parser.add_argument("--count", type=int, default=100000, help="how many changes")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other changes")
    parser.add_argument("--first", type=int, default=0, help="the number of the first change")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--folder", type=Path, help="where files go that are findings")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.first, options.count, options.seed, options.folder)
        return 0
    folder = options.folder or Path(tempfile.mkdtemp(prefix="gptrs-fuzz-files-"))
    folder.mkdir(parents=True, exist_ok=True)
    summary = run(options.first, options.count, options.seed, folder)
    if options.json:
        print(json.dumps(summary.json()))
    return 1 if summary.findings else 0


if __name__ == "__main__":
    sys.exit(main())

"""``gptrs bisect``: binary search for the rewrite that makes a command fail.

Runs the command with different GPTRS_FUEL and reads GPTRS_FUEL_LOG (`gptrs.debug.fuel`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from gptrs import settings
from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass


def bisect(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...", help="What to run, after --; it exits with 0 where all is well."
        ),
    ],
    low: Annotated[int, typer.Option(min=0, help="With this many rewrites it succeeds.")] = 0,
    high: Annotated[
        int | None, typer.Option(min=1, help="With this many it fails, else with all of them.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show what COMMAND prints.")] = False,
) -> None:
    """Find the rewrite that makes COMMAND fail, by running it with more or less GPTRS_FUEL.

    gptrs bisect -- python check.py
    """
    if high is not None and high <= low:
        raise typer.BadParameter(f"--high is {high}, expected more than --low, which is {low}")
    with tempfile.TemporaryDirectory(prefix="gptrs-bisect-") as folder:
        runs = _Runs(command, Path(folder), verbose)
        found = _search(runs, low, high)
        last = found.last() or [{"number": found.fuel}]
    if as_json:
        report = {"guilty": found.fuel, "runs": runs.count, "rewrites": last}
        typer.echo(json.dumps(report, ensure_ascii=False))
        return
    for rewrite in last:
        typer.echo(_described(rewrite))
    few, name = found.fuel - 1, settings.fuel.name
    typer.echo(f"\n{name}={few} succeeds, {name}={found.fuel} fails ({runs.count} runs)")


@dataclass(frozen=True)
class _Run:
    """One run of the command: its fuel, exit status and log."""

    fuel: int
    status: int
    log: tuple[dict[str, Any], ...]

    @property
    def good(self) -> bool:
        return self.status == 0

    @property
    def applied(self) -> int:
        """The number of applied rewrites, of the process with the most."""
        return max((row["total"] for row in self.log), default=0)

    def last(self) -> list[dict[str, Any]]:
        """The last rewrite of each process that used up its fuel."""
        return [row["last"] for row in self.log if "last" in row]


class _Runs:
    def __init__(self, command: Sequence[str], folder: Path, verbose: bool) -> None:
        self._command = command
        self._folder = folder
        self._output = sys.stderr if verbose else subprocess.DEVNULL
        self.count = 0

    def run(self, fuel: int) -> _Run:
        """Run the command with at most ``fuel`` rewrites in each process; -1: all."""
        self.count += 1
        log = self._folder / f"{self.count}.jsonl"
        given = {settings.fuel.name: str(fuel), settings.fuel_log.name: str(log)}
        start = perf_counter()
        try:
            done = subprocess.run(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env=os.environ | given,
                check=False,
            )
        except OSError as error:
            raise ArgumentError(
                f"COMMAND {self._command[0]!r} cannot be run: {error.strerror}",
                fix="give a program and its arguments: gptrs bisect -- python check.py",
            ) from None
        seconds = perf_counter() - start
        amount = "every rewrite" if fuel < 0 else f"{fuel} rewrites"
        typer.echo(f"with {amount}: {_ending(done.returncode)} ({seconds:.1f} s)", err=True)
        rows = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return _Run(fuel, done.returncode, tuple(map(json.loads, rows)))


def _ending(status: int) -> str:
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return "succeeds" if status == 0 else f"fails with exit status {status}"


def _search(runs: _Runs, low: int, high: int | None) -> _Run:
    """The run with the fewest rewrites that fails. Raises `ArgumentError` if there is none."""
    bad = runs.run(-1 if high is None else high)
    if bad.good:
        raise ArgumentError(
            f"the command succeeds with {'every rewrite' if high is None else f'{high} rewrites'}",
            fix="give a command that exits with another status than 0 when results are wrong",
        )
    if bad.applied == 0:
        raise ArgumentError(
            "the command applies no rewrite",
            fix="give one that traces and runs programs, and that keeps its environment variables",
        )
    if not runs.run(low).good:
        raise ArgumentError(
            f"the command fails with {low} rewrites too, so that none of the others is to blame",
            fix="give a smaller --low"
            if low
            else "look for another cause: GPTRS_BACKEND=reference",
        )
    if high is None:
        bad = runs.run(bad.applied)
        if bad.good:
            raise _unsteady(bad.fuel)
    while bad.fuel - low > 1:
        middle = runs.run((low + bad.fuel) // 2)
        if middle.good:
            low = middle.fuel
        else:
            bad = middle
    return bad


def _unsteady(fuel: int) -> ArgumentError:
    return ArgumentError(
        f"the command failed with every rewrite, but succeeds with {fuel}, as many as it applied",
        fix="make it do the same in every run: one thread, a fixed seed",
    )


def _described(rewrite: dict[str, Any]) -> str:
    """A rewrite, and what it changed."""
    text = f"rewrite {rewrite['number']}: {rewrite.get('rewrite') or 'unknown'}"
    if name := rewrite.get("pass"):
        text += f", in the pass {name}"
    if program := rewrite.get("program"):
        text += f", of the program {program}"
    if where := rewrite.get("where"):
        text += f"\n  at {where}"
    if error := rewrite.get("error"):
        text += f"\n{error}"
    if diff := rewrite.get("diff"):
        text += f"\n\n{diff}"
    return text

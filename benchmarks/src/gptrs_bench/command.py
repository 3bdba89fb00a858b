"""``gptrs bench`` after its options are read: run the comparisons, print and write the results."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from gptrs.cli import interrupt
from gptrs.errors import ArgumentError
from gptrs_bench.machine import machine
from gptrs_bench.peers import packages
from gptrs_bench.plan import Run
from gptrs_bench.results import Excluded, Result, as_csv, as_json
from gptrs_bench.suite import read_suite
from gptrs_bench.tables import print_result, showing_progress


def read_runs(
    model: str, random: Path | None, suite: Path | None, fields: dict[str, Any]
) -> list[Run]:
    """The comparisons that the options ask for. Raises `typer.BadParameter` and `LoadError`."""
    if suite is not None:
        if model or random is not None:
            raise typer.BadParameter("give a model, --random or --suite, one of them")
        return read_suite(suite, fields)
    try:
        return [Run(model=model, random=random, **fields)]
    except ArgumentError as error:
        fix = f"; {error.fix}" if error.fix else ""
        raise typer.BadParameter(f"{error.problem}{fix}") from None


def measure_runs(runs: list[Run], *, as_json: bool, as_csv: bool, out: Path | None) -> None:
    """Measure ``runs`` and print what is found, as tables, JSON or CSV; also into the file ``out``.

    Raises `typer.Exit` with 1 where a side gave something else than ours.
    """
    report = _Report(runs, as_json=as_json, as_csv=as_csv, out=out)
    report.begin()
    with showing_progress(), closing(_measured(runs)) as found:
        for part in found:
            interrupt.check()
            report.add(part)
    report.end()


def _measured(runs: list[Run]) -> Generator[Result | Excluded]:
    from gptrs_bench.measure import measure  # loads the models of gptrs

    for run in runs:
        yield from measure(run)


class _Report:
    """Results as they come: printed at once as tables, or at the end; written to a file each time,
    so that nothing measured is lost."""

    def __init__(self, runs: list[Run], *, as_json: bool, as_csv: bool, out: Path | None) -> None:
        self.runs, self.as_json, self.as_csv, self.out = runs, as_json, as_csv, out
        self.about: dict[str, Any] = {}
        self.results: list[Result] = []
        self.excluded: list[Excluded] = []

    def begin(self) -> None:
        """Say what machine this is."""
        self.about = machine(packages({name for run in self.runs for name in run.against}))
        if not (self.as_json or self.as_csv):
            versions = (f"{name} {version}" for name, version in self.about["versions"].items())
            typer.echo(f"{self.about['cpu']}, {self.about['cores']} cores; {', '.join(versions)}")

    def add(self, part: Result | Excluded) -> None:
        if isinstance(part, Result):
            self.results.append(part)
            if not (self.as_json or self.as_csv):
                print_result(part)
        else:
            self.excluded.append(part)
            typer.echo(str(part), err=True)
        if self.out is not None:
            self.out.write_text(self._text(self.out.suffix == ".json"), encoding="utf-8")

    def end(self) -> None:
        """Print what was not printed; exit with 1 where a side gave something else than ours."""
        if self.as_json or self.as_csv:
            typer.echo(self._text(self.as_json), nl=False)
        if any(each.is_wrong for each in self.excluded):
            raise typer.Exit(1)

    def _text(self, is_json: bool) -> str:
        if is_json:
            return json.dumps(as_json(self.about, self.results, self.excluded)) + "\n"
        return as_csv(self.results)

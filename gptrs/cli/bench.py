"""``gptrs bench``: how fast a model is, beside other libraries."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from gptrs.cli import interrupt
from gptrs.cli.comparison import print_result, showing_progress
from gptrs.errors import ArgumentError

if TYPE_CHECKING:
    from gptrs.bench.plan import Run
    from gptrs.bench.results import Excluded, Result

_NUMBERS = ("--threads", "--bench-tokens", "--batch")
_ENDINGS = (".json", ".csv")


class NumbersCommand(TyperCommand):
    """A command some of whose options take several numbers: ``--threads 1 2``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _joined(args))


def _joined(args: list[str]) -> list[str]:
    """``args`` with numbers that follow one of `_NUMBERS` joined by commas into its value."""
    made: list[str] = []
    is_open = False  # whether the last of ``made`` is such a value, or the name of its option
    for arg in args:
        is_number = re.fullmatch(r"\d+(,\d+)*", arg) is not None
        if is_open and is_number and made[-1] not in _NUMBERS:
            made[-1] += f",{arg}"
        else:
            is_open = arg.split("=")[0] in _NUMBERS or (is_open and is_number)
            made.append(arg)
    return made


def bench(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A Hugging Face directory, a checkpoint, or a model that ships with gptrs.",
        ),
    ] = "",
    random: Annotated[
        Path | None,
        typer.Option(
            metavar="CONFIG.json", help="Random weights for this configuration instead of a model."
        ),
    ] = None,
    suite: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Several comparisons, as JSON or YAML: a list of objects whose fields are named"
            " like these options (bench_tokens). What they leave out is as the options say.",
        ),
    ] = None,
    threads: Annotated[
        list[str] | None,
        typer.Option(metavar="N ...", help="Numbers of threads, one after the other; all cores."),
    ] = None,
    bench_tokens: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N ...",
            help="Of language models: lengths of prompts, and numbers of tokens to decode after a"
            " prompt of 16; 64.",
        ),
    ] = None,
    batch: Annotated[
        list[str] | None, typer.Option(metavar="N ...", help="Of image models: images at once; 1.")
    ] = None,
    modes: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Of prefill, decode (language models), latency (image models), and start (from"
            " starting Python to the first token or the first image); all.",
        ),
    ] = "",
    against: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Of torch, compile, onnxruntime, openvino, llama_cpp, ctranslate2, jax: those that"
            ' are installed are measured beside; "" for nobody.',
        ),
    ] = "torch",
    rounds: Annotated[int, typer.Option(min=1, help="How often each side has its turn.")] = 7,
    backend: Annotated[str, typer.Option(help="Our backend, else GPTRS_BACKEND.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a line of CSV a side.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the results to this .json or .csv file."),
    ] = None,
) -> None:
    """Measure a model beside other libraries, which take turns; results are compared before.

    gptrs bench stories --threads 1 2 --bench-tokens 1 64 --against torch,onnxruntime,openvino
    """
    if as_json and as_csv:
        raise typer.BadParameter("give --json or --csv, not both")
    if out is not None and (out.suffix not in _ENDINGS or not out.parent.is_dir()):
        raise typer.BadParameter(f"--out is {out}, expected a .json or .csv file in a folder")
    fields = {
        "threads": _numbers("--threads", threads),
        "bench_tokens": _numbers("--bench-tokens", bench_tokens),
        "batch": _numbers("--batch", batch),
        "modes": tuple(filter(None, modes.split(","))),
        "against": tuple(filter(None, against.split(","))),
        "rounds": rounds,
        "backend": backend,
    }
    runs = _runs(model, random, suite, fields)
    report = _Report(runs, as_json=as_json, as_csv=as_csv, out=out)
    report.begin()
    with showing_progress(), closing(_measured(runs)) as found:
        for part in found:
            interrupt.check()
            report.add(part)
    report.end()


def _numbers(option: str, given: list[str] | None) -> tuple[int, ...]:
    """The numbers of an option that may be repeated, each time with some between commas."""
    parts = [part for each in given or () for part in each.split(",")]
    for wrong in [part for part in parts if not part.isdecimal()][:1]:
        raise typer.BadParameter(f"{option} has {wrong!r}, expected integers from 1 up")
    return tuple(map(int, parts))


def _runs(model: str, random: Path | None, suite: Path | None, fields: dict[str, Any]) -> list[Run]:
    from gptrs.bench.plan import Run  # the engine loads after the options are known to be good
    from gptrs.bench.suite import read_suite

    if suite is not None:
        if model or random is not None:
            raise typer.BadParameter("give a model, --random or --suite, one of them")
        return read_suite(suite, fields)
    try:
        return [Run(model=model, random=random, **fields)]
    except ArgumentError as error:
        fix = f"; {error.fix}" if error.fix else ""
        raise typer.BadParameter(f"{error.problem}{fix}") from None


def _measured(runs: list[Run]) -> Generator[Result | Excluded]:
    from gptrs.bench.measure import measure

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
        from gptrs.bench.machine import machine
        from gptrs.bench.peers import packages

        self.about = machine(packages({name for run in self.runs for name in run.against}))
        if not (self.as_json or self.as_csv):
            versions = (f"{name} {version}" for name, version in self.about["versions"].items())
            typer.echo(f"{self.about['cpu']}, {self.about['cores']} cores; {', '.join(versions)}")

    def add(self, part: Result | Excluded) -> None:
        from gptrs.bench.results import Result

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
        from gptrs.bench.results import as_csv, as_json

        if is_json:
            return json.dumps(as_json(self.about, self.results, self.excluded)) + "\n"
        return as_csv(self.results)

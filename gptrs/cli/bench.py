"""``gptrs bench``: measure a model beside other libraries, by the package `gptrs_bench`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from gptrs.cli.model_argument import ModelOption, either
from gptrs.cli.shell_completion import complete_backend, complete_model
from gptrs.extras import needed_for

_CHECKOUT = Path(__file__).parents[2] / "benchmarks" / "src"
_NUMBERS = ("--threads", "-t", "--bench-tokens", "--batch")
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
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A Hugging Face directory, a checkpoint, or a model that ships with gptrs.",
            autocompletion=complete_model,
        ),
    ] = None,
    model_option: ModelOption = None,
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
        typer.Option(
            "--threads",
            "-t",
            metavar="N ...",
            help="Numbers of threads, one after the other; all cores.",
        ),
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
    backend: Annotated[
        str,
        typer.Option(help="Our backend, else GPTRS_BACKEND.", autocompletion=complete_backend),
    ] = "",
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
    given = either(model, model_option) or ""
    _prefer_checkout()
    fields = {
        "threads": _numbers("--threads", threads),
        "bench_tokens": _numbers("--bench-tokens", bench_tokens),
        "batch": _numbers("--batch", batch),
        "modes": tuple(filter(None, modes.split(","))),
        "against": tuple(filter(None, against.split(","))),
        "rounds": rounds,
        "backend": backend,
    }
    with needed_for("gptrs bench"):
        # The engine, which loads after the options are known to be good.
        from gptrs_bench.command import measure_runs, read_runs
    runs = read_runs(given, random, suite, fields)
    measure_runs(runs, as_json=as_json, as_csv=as_csv, out=out)


def _numbers(option: str, given: list[str] | None) -> tuple[int, ...]:
    """The numbers of an option that may be repeated, each time with some between commas."""
    parts = [part for each in given or () for part in each.split(",")]
    for wrong in [part for part in parts if not part.isdecimal()][:1]:
        raise typer.BadParameter(f"{option} has {wrong!r}, expected integers from 1 up")
    return tuple(map(int, parts))


def _prefer_checkout() -> None:
    """Import `gptrs_bench` from the checkout that this package lies in, if it does: not installed,
    or beside another checkout that is."""
    if (_CHECKOUT / "gptrs_bench").is_dir() and sys.path[0] != str(_CHECKOUT):
        sys.path.insert(0, str(_CHECKOUT))

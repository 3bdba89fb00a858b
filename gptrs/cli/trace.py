"""``gptrs trace``: compare every layer of a model with torch's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptrs.cli.model_argument import (
    AsJson,
    ModelName,
    ModelOption,
    RandomConfig,
    either,
    numbers,
    opened,
    print_table,
    said,
    shape_words,
)
from gptrs.cli.running import Backend, Threads

if TYPE_CHECKING:
    from gptrs.parity.blame import Blame
    from gptrs.parity.trace import Row, Trace

_HEADS = ("layer", "class", "shape", "max abs", "max rel", "cosine", "")


def trace(
    model: ModelName = None,
    model_option: ModelOption = None,
    config: RandomConfig = None,
    stop: Annotated[
        bool,
        typer.Option("--stop-on-first-mismatch", help="Print no layer after the first difference."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what layers give to this tensor archive (.gten), as gptrs/NAME and"
            " torch/NAME.",
        ),
    ] = None,
    as_json: AsJson = False,
    backend: Backend = None,
    threads: Threads = 0,
) -> None:
    """Compare what each layer gives with transformers' model of the same files, in order.

    Of the first layer that differs it says what is to blame.

    gptrs trace stories --stop-on-first-mismatch
    """
    if out is not None and not out.parent.is_dir():
        raise typer.BadParameter(f"{out.parent} is no folder; make it, or name another")
    model = either(model, model_option)
    with opened(model, config, backend, threads) as handle:
        from gptrs.parity.trace import trace_layers  # it loads torch

        done = trace_layers(handle)
    if out is not None:
        _write(out, done)
    last = len(done.rows) if done.first is None or not stop else done.rows.index(done.first) + 1
    name = said(model, config)
    if as_json:
        report = _report(name, done, done.rows[:last])
        typer.echo(json.dumps(report, ensure_ascii=False, allow_nan=False))
    else:
        print_table(_HEADS, map(_row, done.rows[:last]), (3, 4, 5))
        typer.echo(f"\n{name}: {_verdict(done)}")
    if done.first is not None:
        raise typer.Exit(1)


def _write(out: Path, done: Trace) -> None:
    from gptrs.formats.archive import write_archive

    sides = {f"gptrs/{row.layer}": row.found for row in done.rows}
    write_archive(out, sides | {f"torch/{row.layer}": row.expected for row in done.rows})


def _row(row: Row) -> tuple[str, ...]:
    shape = shape_words(row.found.shape)
    verdict = "agrees" if row.agrees else "differs"
    if row.difference is None:
        verdict = f"torch's is {shape_words(row.expected.shape)}"
    return row.layer, row.kind, shape, *numbers(row.difference), verdict


def _verdict(done: Trace) -> str:
    left_out = ""
    if done.left_out:
        left_out = f"\nnot compared, for {done.torch_name} has none: {', '.join(done.left_out)}"
    if done.first is None or done.blame is None:
        return f"all {len(done.rows)} agree with {done.torch_name}{left_out}"
    found = "".join(f"\n  {line}" for line in done.blame.lines())
    return f"{done.first.layer} is the first that differs from {done.torch_name}{found}{left_out}"


def _report(name: str, done: Trace, rows: tuple[Row, ...]) -> dict[str, Any]:
    layers = [
        {
            "layer": row.layer,
            "class": row.kind,
            "shape": list(row.found.shape),
            **({} if row.difference is None else row.difference.as_json()),
            "agrees": row.agrees,
        }
        for row in rows
    ]
    return {
        "model": name,
        "torch": done.torch_name,
        "agrees": done.first is None,
        "layers": layers,
        "left_out": list(done.left_out),
        "first": None if done.first is None else done.first.layer,
        "blame": None if done.blame is None else _blame(done.blame),
    }


def _blame(blame: Blame) -> dict[str, Any]:
    deviation = blame.deviation
    return {
        "verdict": blame.verdict,
        "backend": blame.backend,
        "taken": None if blame.taken is None else blame.taken.as_json(),
        "alone": None if blame.alone is None else blame.alone.as_json(),
        "weights": list(blame.weights),
        "deviation": None
        if deviation is None
        else {
            "kind": deviation.kind,
            "name": deviation.name,
            "text": deviation.text,
            "where": None if deviation.where is None else str(deviation.where),
            **deviation.difference.as_json(),
        },
    }

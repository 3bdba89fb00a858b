"""``gptrs view``: the program of a model as an HTML page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gptrs.byte_sizes import size_text
from gptrs.cli.model_argument import (
    AsJson,
    ModelName,
    ModelOption,
    RandomConfig,
    either,
    opened,
    said,
)
from gptrs.cli.running import Backend, Threads
from gptrs.errors import ArgumentError


def view(
    model: ModelName = None,
    model_option: ModelOption = None,
    config: RandomConfig = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="Where to write the page, else MODEL.html here; .json for Model Explorer, .dot"
            " for Graphviz.",
        ),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Rows of text, or images, at once.")] = 1,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens in a row; without it 64, if that many fit.")
    ] = None,
    decode: Annotated[
        bool, typer.Option("--decode", help="The step that gives one more token after these.")
    ] = False,
    as_json: AsJson = False,
    backend: Backend = None,
    threads: Threads = 0,
) -> None:
    """Write the program of a model, its passes and its plan as one HTML page for a browser.

    The page needs no network. A model whose lowering fails is drawn up to there.

    gptrs view stories --out stories.html
    """
    model = either(model, model_option)
    target = out or Path(f"{Path(said(model, config)).stem or 'model'}.html")
    if not target.parent.is_dir():
        raise typer.BadParameter(f"{target.parent} is no folder; make it, or name another")
    with opened(model, config, backend, threads) as handle:
        try:
            found = handle.view(batch=batch, tokens=tokens, decode=decode)
        except ArgumentError as error:
            raise typer.BadParameter(str(error)) from None
        found.save(target)
    stages = found.document["stages"]
    counts = [len(stage["body"]) for stage in stages]
    plan = found.document["plan"]
    steps = 0 if plan is None else len(plan["steps"])
    size = target.stat().st_size
    if as_json:
        error = None if found.error is None else str(found.error)
        told = {"file": str(target), "bytes": size, "instructions": counts, "steps": steps}
        typer.echo(json.dumps(told | {"error": error}, ensure_ascii=False))
    else:
        ways = f"{counts[0]} instructions, {counts[-1]} after passes, " if counts else ""
        typer.echo(f"{target}: {ways}{steps} steps, {size_text(size)}")
        if found.error is not None:
            typer.echo(f"error: {found.error}", err=True)
    if found.error is not None:
        raise typer.Exit(1)

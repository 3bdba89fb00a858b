"""``gptrs export``: write weights that another framework saved as a model, or a model as C."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gptrs.byte_sizes import size_text
from gptrs.cli.convert import (
    SHARD_SIZE,
    Destination,
    Dtype,
    Force,
    NamesOf,
    ShardSize,
    bytes_of,
    report,
)
from gptrs.cli.progress import progress
from gptrs.errors import ArgumentError
from gptrs.formats.kinds import Format


class Source(StrEnum):
    """Who saved the weights."""

    TORCH = "torch"


class Target(StrEnum):
    """What is written: a `Format`, or C."""

    DIRECTORY = Format.DIRECTORY.value
    CHECKPOINT = Format.CHECKPOINT.value
    SAFETENSORS = Format.SAFETENSORS.value
    ARCHIVE = Format.ARCHIVE.value
    C = "c"


def export(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC",
            help="A state dict saved as .safetensors, with names of transformers or torchvision,"
            " or a directory that save_pretrained wrote; for --to c, any language model.",
        ),
    ],
    destination: Destination,
    by: Annotated[Source, typer.Option("--from", help="Who saved SRC.")] = Source.TORCH,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The config.json of SRC; without it, the one beside SRC. Torchvision's names need"
            " none.",
        ),
    ] = None,
    to: Annotated[
        Target | None,
        typer.Option(
            metavar="FORMAT",
            help=f"What to write, whatever DST ends in: {', '.join(Target)}; c is a folder with a"
            " program in C that continues text.",
        ),
    ] = None,
    dtype: Dtype = None,
    shard_size: ShardSize = SHARD_SIZE,
    force: Force = False,
    names: NamesOf = None,
    context: Annotated[
        int | None,
        typer.Option(help="Of --to c: the most tokens of a text; the model's context by default."),
    ] = None,
) -> None:
    """Write weights of torch as a model, which they are checked to be; or a model as C.

    gptrs export --from torch resnet50.safetensors resnet50.gchk
    gptrs export --to c stories stories-c
    """
    if to is Target.C:
        _export_c(source, destination, context, dtype, force=force)
        return
    if context is not None:
        raise ArgumentError("--context is an option of --to c", fix="leave it out")
    most = bytes_of(shard_size)
    from gptrs.loading.export import export_file  # loads after the options are known to be good

    with progress():
        done = export_file(
            Path(source),
            destination,
            config=config,
            to=None if to is None else to.value,
            dtype=None if dtype is None else dtype.value,
            shard_size=most,
            force=force,
            names=names,
        )
    report(destination, done)


def _export_c(
    source: str, destination: Path, context: int | None, dtype: Dtype, *, force: bool
) -> None:
    """Write the language model ``source`` as C."""
    if dtype is not None:
        raise ArgumentError(
            "--dtype is no option of --to c", fix="gptrs convert the model to this dtype first"
        )
    from gptrs.loading.c_export import export_c  # loads after the options are known to be good
    from gptrs.loading.load import load

    with progress():
        done = export_c(load(source), destination, context=context, force=force)
    name = done.program.name
    typer.echo(f"{destination}: {name}.c, {size_text(done.weights_bytes)} of weights")
    typer.echo(f"make -C {destination}, then ./{name} [-n COUNT] ID... in it")

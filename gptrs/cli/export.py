"""``gptrs export``: write weights that another framework saved as a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gptrs.cli.convert import (
    SHARD_SIZE,
    Destination,
    Dtype,
    Force,
    NamesOf,
    ShardSize,
    Target,
    bytes_of,
    report,
)
from gptrs.cli.progress import progress


class Source(StrEnum):
    """Who saved the weights."""

    TORCH = "torch"


def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="A state dict saved as .safetensors, with names of transformers or torchvision,"
            " or a directory that save_pretrained wrote.",
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
    to: Target = None,
    dtype: Dtype = None,
    shard_size: ShardSize = SHARD_SIZE,
    force: Force = False,
    names: NamesOf = None,
) -> None:
    """Write weights of torch as a model, which they are checked to be.

    gptrs export --from torch resnet50.safetensors resnet50.gchk
    """
    most = bytes_of(shard_size)
    from gptrs.loading.export import export_file  # loads after the options are known to be good

    with progress():
        done = export_file(
            source,
            destination,
            config=config,
            to=to,
            dtype=None if dtype is None else dtype.value,
            shard_size=most,
            force=force,
            names=names,
        )
    report(destination, done)

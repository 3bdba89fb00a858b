"""``gptrs export``: write weights that another framework saved as a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gptrs.cli.convert import Floats, bytes_of, report
from gptrs.cli.progress import progress
from gptrs.runtime.formats import Format


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
    destination: Annotated[
        Path,
        typer.Argument(
            metavar="DST",
            help="Where to write: .gchk is a checkpoint, .gten an archive, .safetensors one file,"
            " no ending a Hugging Face directory.",
        ),
    ],
    by: Annotated[Source, typer.Option("--from", help="Who saved SRC.")] = Source.TORCH,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The config.json of SRC; without it, the one beside SRC. Torchvision's names need"
            " none.",
        ),
    ] = None,
    to: Annotated[Format | None, typer.Option(help="What to write, whatever DST ends in.")] = None,
    dtype: Annotated[
        Floats | None, typer.Option(help="Convert floats; without it they stay as they are.")
    ] = None,
    shard_size: Annotated[
        str, typer.Option(metavar="SIZE", help="The most that a file of a directory has: 500MB.")
    ] = "5GB",
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> None:
    """Write weights of torch as a model, which they are checked to be.

    gptrs export --from torch resnet50.safetensors resnet50.gchk
    """
    most = bytes_of(shard_size)
    from gptrs.runtime.export import export_file  # loads after the options are known to be good

    with progress():
        done = export_file(
            source,
            destination,
            config=config,
            to=to,
            dtype=None if dtype is None else dtype.value,
            shard_size=most,
            force=force,
        )
    report(destination, done)

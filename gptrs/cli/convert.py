"""``gptrs convert``: write a model in another format."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from gptrs.byte_sizes import read_size, size_text
from gptrs.cli.progress import progress
from gptrs.cli.shell_completion import complete_model
from gptrs.formats.kinds import Format, Names

if TYPE_CHECKING:
    from gptrs.loading.convert import Converted


class Floats(StrEnum):
    """What floats become."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"


Destination: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="DST",
        help="Where to write: .gchk is a checkpoint, .gten an archive, .safetensors one file,"
        " no ending a Hugging Face directory.",
    ),
]
Target: TypeAlias = Annotated[
    Format | None,
    typer.Option(
        metavar="FORMAT",
        help=f"What to write, whatever DST ends in: {', '.join(Format)}.",
    ),
]
Dtype: TypeAlias = Annotated[
    Floats | None, typer.Option(help="Convert floats; without it they stay as they are.")
]
ShardSize: TypeAlias = Annotated[
    str, typer.Option(metavar="SIZE", help="The most that a file of a directory has: 500MB.")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
NamesOf: TypeAlias = Annotated[
    Names | None,
    typer.Option(
        "--names",
        metavar="WHOSE",
        help="Whose names and configuration a checkpoint of a GPT-2 has, other than SRC's: gpt.rs.",
    ),
]
SHARD_SIZE = "5GB"


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC",
            help="A Hugging Face directory, a checkpoint (GPTRSCHK), a tensor archive (GPTRSTEN),"
            " a .safetensors file, or a model that ships with gptrs.",
            autocompletion=complete_model,
        ),
    ],
    destination: Destination,
    to: Target = None,
    dtype: Dtype = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The config.json of a SRC that has no configuration."),
    ] = None,
    shard_size: ShardSize = SHARD_SIZE,
    force: Force = False,
    names: NamesOf = None,
) -> None:
    """Write a model in another format: directory, checkpoint, safetensors file or tensor archive.

    gptrs convert path/to/gpt2 gpt2.gchk --dtype bf16
    """
    most = bytes_of(shard_size)
    from gptrs.ir.types import as_dtype  # loads after the options are known to be good
    from gptrs.loading.convert import convert as write

    with progress():
        done = write(
            source,
            destination,
            to=to,
            dtype=None if dtype is None else as_dtype(dtype.value),
            config=config,
            shard_size=most,
            force=force,
            names=names,
        )
    report(destination, done)


def report(destination: Path, done: Converted) -> None:
    """Print what was written, what was left out, and what to know of it."""
    copied = "".join(f", {name}" for name in done.copied)
    typer.echo(f"{destination}: {done.count} tensors, {size_text(done.size)}{copied}")
    if done.left_out:
        typer.echo(
            f"left out {len(done.left_out)} that the model does not read, such as"
            f" {done.left_out[0]!r}",
            err=True,
        )
    if done.note:
        typer.echo(f"note: {done.note}", err=True)


def bytes_of(size: str) -> int:
    """``"500MB"`` in bytes."""
    try:
        return read_size(size)
    except ValueError:
        raise typer.BadParameter(
            f"--shard-size is {size!r}, expected a size such as 500MB or 2GiB"
        ) from None

"""Shared options ``--profile`` and ``--profile-out``: where the time went."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Profiling: TypeAlias = Annotated[
    bool, typer.Option("--profile", help="Print at the end which kernels took how long.")
]
ProfileOut: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the profile: trace.json for Perfetto, flame.speedscope.json, steps.jsonl.",
    ),
]
_ENDINGS = (".json", ".jsonl")


@contextmanager
def profiling(wanted: bool, out: Path | None) -> Generator[None]:
    """Profile the block as the options say: a table on stderr, a file."""
    if out is not None and out.suffix not in _ENDINGS:
        raise typer.BadParameter(
            f"--profile-out {out.name}: use trace.json, flame.speedscope.json or steps.jsonl"
        )
    if out is not None and not out.parent.is_dir():
        raise typer.BadParameter(f"{out.parent} is no folder; make it, or name another")
    if not wanted and out is None:
        yield
        return
    from gptrs.debug.profile.recorder import profile  # loads after the options are known to be good

    with profile() as found:
        yield
    if out is not None:
        found.save(out)
    if wanted:
        typer.echo(f"\n{found}", err=True)

"""Shared options ``--dump-dir`` and ``--dump-mode``: programs written to a folder."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from gptrs import settings
from gptrs.errors import ArgumentError


class DumpMode(StrEnum):
    """How much is written of each program."""

    ALL = "all"
    COMPILE = "compile"


DumpDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Write programs, plans and kernels here, else where GPTRS_DUMP says."),
]
DumpModeName: TypeAlias = Annotated[
    DumpMode | None,
    typer.Option(
        help="all: after every pass that changed it; compile: the first and the last form."
    ),
]


@contextmanager
def dumping(folder: Path | None, mode: DumpMode | None) -> Generator[None]:
    """Write programs as the options ``--dump-dir`` and ``--dump-mode`` say inside the block.

    Raises `ArgumentError` for a folder that cannot be made, before anything runs.
    """
    if folder is None and mode is not None:
        if not (known := settings.dump()):
            raise typer.BadParameter("--dump-mode says how: add --dump-dir or GPTRS_DUMP for where")
        folder = Path(known)
    if folder is None:
        yield
        return
    from gptrs.debug.dump import dump_to  # the engine loads after the options are known to be good

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(
            f"--dump-dir {str(folder)!r} cannot be made: {error.strerror}",
            fix="give a folder that can be written to",
        ) from None
    with dump_to(folder, "all" if mode is None else mode.value):
        yield

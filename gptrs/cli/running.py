"""Shared options of subcommands that run models: backend and threads."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Backend: TypeAlias = Annotated[
    str | None, typer.Option(help="The backend to run on, else GPTRS_BACKEND.")
]
Threads: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Threads to use; 0: GPTRS_NUM_THREADS, else all cores.")
]

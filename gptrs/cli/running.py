"""Shared options of subcommands that run models: backend and threads."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from gptrs.cli.shell_completion import complete_backend

Backend: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="The backend to run on, else GPTRS_BACKEND.", autocompletion=complete_backend
    ),
]
Threads: TypeAlias = Annotated[
    int,
    typer.Option(
        "--threads", "-t", min=0, help="Threads to use; 0: GPTRS_NUM_THREADS, else all cores."
    ),
]

"""Shared options of subcommands that run models: backend, threads, KV cache."""

from __future__ import annotations

from enum import StrEnum
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


class CacheDtype(StrEnum):
    """The dtype of keys and values."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"


KvCache: TypeAlias = Annotated[
    CacheDtype | None,
    typer.Option(
        "--kv-cache",
        help="The dtype of keys and values of earlier tokens; 16 bits halve the cache.",
    ),
]

"""Shared arguments and tables of validate, trace and view: a model, or a configuration alone."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from gptrs import settings
from gptrs.cli.progress import progress
from gptrs.cli.shell_completion import complete_model

if TYPE_CHECKING:
    from gptrs.debug.numeric_diff.difference import Difference

ModelName: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="A Hugging Face directory, a checkpoint, a file of torchvision's weights, or a model"
        " that ships with gptrs.",
        autocompletion=complete_model,
    ),
]
ModelOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="The model, as an option.",
        autocompletion=complete_model,
    ),
]
RandomConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--random",
        metavar="CONFIG.json",
        help="Instead of MODEL: random weights for this configuration.",
    ),
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of a table.")
]


def either(argument: str | None, option: str | None) -> str | None:
    """The model of the argument or of `ModelOption`. Raises a usage error where both are given."""
    if argument is not None and option is not None:
        raise typer.BadParameter("give MODEL or --model, not both")
    return argument if option is None else option


def needed(model: str | None) -> str:
    """``model``. Raises a usage error where there is none."""
    if model is None:
        raise typer.BadParameter("give a model: as an argument, or by --model")
    return model


@contextmanager
def opened(
    model: str | None,
    config: Path | None,
    backend: str | None,
    threads: int,
    kv_cache: str | None = None,
) -> Generator[Any]:
    """The model, by name or by configuration, on the backend and threads of the options, with KV
    caches of this dtype.

    A progress bar is shown inside the block.
    """
    if (model is None) == (config is None):
        raise typer.BadParameter("give MODEL or --random CONFIG.json, one of them")
    from gptrs import ptir  # the engine loads after the options are known to be good
    from gptrs.loading.load import load
    from gptrs.loading.random_model import write_random_model
    from gptrs.loading.threads import limit_threads

    with ExitStack() as stack:
        stack.enter_context(limit_threads(threads or settings.num_threads()))
        stack.enter_context(ptir.backend(backend or settings.backend()))
        if config is not None:
            folder = stack.enter_context(TemporaryDirectory(prefix="gptrs-"))
            model = str(Path(folder) / config.stem)
            write_random_model(config, Path(model))
        assert model is not None
        stack.enter_context(progress())
        yield load(model, kv_cache_dtype=kv_cache)


def said(model: str | None, config: Path | None) -> str:
    """The name of the model in the output."""
    return str(config if model is None else model)


def print_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int]
) -> None:
    """Print a table, the columns ``numbers`` aligned to the right; without a width limit where the
    output is no terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*heads, box=None, header_style="bold")
    for column in numbers:
        table.columns[column].justify = "right"
    for row in rows:
        table.add_row(*map(Text, row))  # plain text, without rich's markup
    Console(width=None if sys.stdout.isatty() else 10_000, highlight=False).print(table)


def shape_words(shape: Sequence[int]) -> str:
    """``[1,16,48]``."""
    return f"[{','.join(map(str, shape))}]"


def numbers(difference: Difference | None) -> tuple[str, str, str]:
    """Largest errors and cosine, in words."""
    if difference is None:
        return "", "", ""
    apart, relative = difference.max_abs, difference.max_rel
    return f"{apart:.2e}", f"{relative:.2e}", f"{difference.cosine:.8f}"

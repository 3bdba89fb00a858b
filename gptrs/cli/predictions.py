"""Output of predictions: the likeliest classes or tokens, as tables or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import typer

from gptrs.cli.names import printable
from gptrs.errors import PtirError
from gptrs.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from gptrs.ir.types import Array


class Choice(NamedTuple):
    """A class or a token, how it is spelt where that is known, and its probability."""

    number: int
    name: str | None
    probability: float


@dataclass(frozen=True)
class Predictions:
    """The likeliest choices for each input, likeliest first."""

    inputs: list[str]
    choices: list[list[Choice]]
    number: str
    """The heading of the index of a choice: ``class`` or ``id``."""
    name: str | None
    """The heading of the name of a choice: ``label`` or ``token``; None without names."""
    quoted: bool = False
    """Names are quoted in tables: spaces at their ends count."""


def likeliest_choices(
    inputs: Sequence[str], logits: Array, count: int, spell: Callable[[int], str | None]
) -> list[list[Choice]]:
    """The ``count`` likeliest choices for each row of ``logits`` [inputs, choices].

    Raises `PtirError` naming the input whose logits are no distribution.
    """
    from gptrs.text.logprobs import likeliest  # the engine is loaded by now

    made: list[list[Choice]] = []
    for name, row in zip(inputs, logits, strict=True):
        try:
            top = likeliest(row, count)
        except PtirError as error:
            error.context.append(name)
            raise
        made.append([Choice(i, spell(i), likely) for i, likely in top])
    return made


def print_json(told: Predictions) -> None:
    """Print an object a line for each input."""
    for name, choices in zip(told.inputs, told.choices, strict=True):
        top = [
            {told.number: each.number}
            | ({told.name: each.name} if told.name else {})
            | {"probability": each.probability}
            for each in choices
        ]
        text = json.dumps({"input": name, "top": top}, ensure_ascii=False, allow_nan=False)
        # Half of a surrogate pair becomes its escape, which JSON can have.
        typer.echo(text.encode(errors="backslashreplace").decode())


def print_tables(told: Predictions) -> None:
    """Print a table for each input, under its name where there are several."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False)
    for number, (name, choices) in enumerate(zip(told.inputs, told.choices, strict=True)):
        if len(told.inputs) > 1:
            typer.echo("\n" * (number > 0) + name)
        table = Table(box=None, header_style="bold")
        table.add_column(told.number, justify="right")
        if told.name:
            table.add_column(told.name)
        table.add_column("probability", justify="right")
        for each in choices:
            row = [str(each.number), f"{each.probability:.4f}"]
            if each.name is not None:
                row[1:1] = [repr(each.name) if told.quoted else printable(each.name)]
            table.add_row(*map(Text, row))  # plain text, without rich's markup
        console.print(table)

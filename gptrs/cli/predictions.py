"""How what a model predicts is printed: its likeliest classes or tokens, as tables or as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray


@dataclass(frozen=True)
class Predictions:
    """Logits [inputs, choices], what the inputs are called and how a choice is spelt."""

    inputs: list[str]
    logits: NDArray[Any]
    number: str
    """What the index of a choice is called: ``class`` or ``id``."""
    name: str
    """What a choice is called: ``label`` or ``token``."""
    spell: Callable[[int], str]

    def likeliest(self, count: int) -> Iterator[tuple[str, list[tuple[int, float]]]]:
        """Each input with its ``count`` likeliest choices and their probabilities."""
        from gptrs.text.logprobs import token_logprobs  # the engine is loaded by now

        for name, row in zip(self.inputs, self.logits, strict=True):
            top = token_logprobs(row, 0, min(count, row.size)).top
            yield name, [(choice, float(np.exp(logprob))) for choice, logprob in top]


def print_json(told: Predictions, count: int) -> None:
    """Print an object a line for each input."""
    for name, top in told.likeliest(count):
        choices = [
            {told.number: choice, told.name: told.spell(choice), "probability": _known(likely)}
            for choice, likely in top
        ]
        line = {"input": name, "top": choices}
        typer.echo(json.dumps(line, ensure_ascii=False, allow_nan=False))


def print_tables(told: Predictions, count: int) -> None:
    """Print a table for each input, under its name where there are several."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False)
    for number, (name, top) in enumerate(told.likeliest(count)):
        if len(told.inputs) > 1:
            typer.echo("\n" * (number > 0) + name)
        table = Table(told.number, told.name, "probability", box=None, header_style="bold")
        for column in (table.columns[0], table.columns[2]):
            column.justify = "right"
        for choice, likely in top:
            spelt = Text(told.spell(choice))  # as it is: not rich's markup
            table.add_row(str(choice), spelt, f"{likely:.4f}")
        console.print(table)


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None  # JSON has no NaN

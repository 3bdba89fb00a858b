"""Output of completed texts: plain text, a table of log-probabilities, or JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from gptrs.text.completion import Completion
    from gptrs.text.logprobs import TokenLogprobs

Spell = Callable[[int], str]


def print_json(
    prompts: Sequence[str],
    completions: Sequence[Completion],
    spell: Spell,
    stats: dict[str, float] | None,
) -> None:
    """Print an object a line for each completion; ``stats`` of the run are in the last one."""
    lines = [_line(*each, spell) for each in zip(prompts, completions, strict=True)]
    if stats is not None:
        lines[-1]["stats"] = stats
    for line in lines:
        typer.echo(json.dumps(line, ensure_ascii=False, allow_nan=False))


def print_texts(prompts: Sequence[str], completions: Sequence[Completion], spell: Spell) -> None:
    """Print each text, an empty line between two, and its tokens if it has log-probabilities."""
    for number, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        typer.echo("\n" * (number > 0) + prompt + completion.text)
        if completion.logprobs is not None:
            _print_table(completion.logprobs, spell)


def _line(prompt: str, completion: Completion, spell: Spell) -> dict[str, Any]:
    line: dict[str, Any] = {
        "prompt": prompt,
        "text": completion.text,
        "finish_reason": completion.finish_reason,
    }
    if completion.logprobs is not None:
        line["logprobs"] = [_entry(token, spell) for token in completion.logprobs]
    return line


def _entry(told: TokenLogprobs, spell: Spell) -> dict[str, Any]:
    top = [_likely(token, logprob, spell) for token, logprob in told.top]
    return _likely(told.token, told.logprob, spell) | {"top": top}


def _likely(token: int, logprob: float, spell: Spell) -> dict[str, Any]:
    known = logprob if math.isfinite(logprob) else None  # JSON has no -inf
    return {"id": token, "token": spell(token), "logprob": known}


def _print_table(tokens: tuple[TokenLogprobs, ...], spell: Spell) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("id", "token", "logprob", "likeliest", box=None, header_style="bold")
    for column in (table.columns[0], table.columns[2]):
        column.justify = "right"
    for told in tokens:
        likeliest = ", ".join(f"{spell(token)!r} {logprob:.3f}" for token, logprob in told.top)
        token = Text(repr(spell(told.token)))  # as it is: not rich's markup
        table.add_row(str(told.token), token, f"{told.logprob:.3f}", Text(likeliest))
    Console(soft_wrap=True).print(table)

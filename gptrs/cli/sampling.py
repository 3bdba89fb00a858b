"""Shared options of token sampling and of the end of a text."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from gptrs.cli.shell_completion import complete_model

MaxTokens: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        "-n",
        min=0,
        help="At most this many new tokens; else as many as the context allows.",
    ),
]
Temperature: TypeAlias = Annotated[float, typer.Option(min=0, help="0 is greedy.")]
TopK: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Choose among the k likeliest tokens.")
]
TopP: TypeAlias = Annotated[
    float | None, typer.Option(help="Choose among the likeliest tokens of this total share.")
]
MinP: TypeAlias = Annotated[
    float | None,
    typer.Option(help="Choose among tokens at least this share as likely as the likeliest."),
]
RepetitionPenalty: TypeAlias = Annotated[
    float, typer.Option(help="Above 1: tokens of the prompt and the text become less likely.")
]
PresencePenalty: TypeAlias = Annotated[
    float, typer.Option(help="Lower the logits of tokens of the new text by this.")
]
FrequencyPenalty: TypeAlias = Annotated[
    float, typer.Option(help="Lower them by this for each time that they occur in it.")
]
LogitBias: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ID=NUMBER",
        help="Add to the logit of a token id; -inf bans it; may be given several times.",
    ),
]
Logprobs: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0, help="Print how likely each token was, beside this many likeliest ones, at the end."
    ),
]
ContextShift: TypeAlias = Annotated[
    bool,
    typer.Option("--context-shift", help="When the context is full drop its older half, go on."),
]
PromptLookup: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1, help="Guess up to so many tokens from the text before: the same text, faster."
    ),
]
Draft: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="A smaller model with the same tokens that guesses ahead: the same text, faster.",
        autocompletion=complete_model,
    ),
]
DraftTokens: TypeAlias = Annotated[
    int, typer.Option(min=1, help="How many tokens --draft guesses at a time.")
]
PrefillChunk: TypeAlias = Annotated[
    int,
    typer.Option(min=1, help="Read so many tokens of a prompt at once: fewer take less memory."),
]
Seed: TypeAlias = Annotated[int | None, typer.Option(help="Makes sampling repeatable.")]
Stop: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help="End before this text; may be given several times."),
]
IgnoreEos: TypeAlias = Annotated[
    bool, typer.Option("--ignore-eos", help="An end-of-text token is one like any other.")
]


def read_logit_bias(entries: list[str] | None) -> dict[int, float]:
    """``["5=-inf", "7=2.5"]`` as a mapping. Raises a usage error for anything else."""
    bias: dict[int, float] = {}
    for entry in entries or ():
        token, _, added = entry.partition("=")
        try:
            bias[int(token)] = float(added)
        except ValueError:
            raise typer.BadParameter(
                f"--logit-bias is {entry!r}, expected ID=NUMBER; pass as in 50256=-inf"
            ) from None
    return bias

"""Checks of prompts and options against a model's vocabulary and context, before it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gptrs.errors import ArgumentError
from gptrs.text.options import GenerationOptions


def checked_prompts(prompts: Sequence[Sequence[int]], vocab_size: int) -> list[list[int]]:
    """The token ids of each prompt.

    Raises ArgumentError unless it is a non-empty list of lists of ids below ``vocab_size``.
    """
    if len(prompts) == 0:
        raise ArgumentError("prompts is empty, expected one or more", fix="pass [prompt]")
    return [
        _checked(prompt, f"prompts[{row}]", vocab_size).tolist()
        for row, prompt in enumerate(prompts)
    ]


def _checked(prompt: Sequence[int], name: str, vocab_size: int) -> NDArray[np.int64]:
    try:
        ids = np.asarray(prompt)
    except ValueError:  # lists of different lengths inside
        ids = np.empty((len(prompt), 0))
    if ids.ndim != 1 or (ids.size > 0 and ids.dtype.kind not in "iu"):
        raise ArgumentError(
            f"{name} has {ids.ndim} dimensions and elements of {ids.dtype}, "
            "expected a list of token ids",
            fix="encode text first; a single prompt is passed as [prompt]",
        )
    if ids.size == 0:
        raise ArgumentError(
            f"{name} is empty, expected one or more token ids",
            fix="begin with the end-of-text token for text out of nothing",
        )
    for wrong in ids[(ids < 0) | (ids >= vocab_size)][:1]:
        raise ArgumentError(
            f"{name} holds the token id {wrong}, expected ids from 0 to {vocab_size - 1}",
            fix="encode the text with the tokenizer of this model",
        )
    return ids.astype(np.int64)


def check_room(longest: int, options: GenerationOptions, context: int) -> None:
    """Raise ArgumentError if the ``longest`` prompt and the text do not fit the ``context``; if it
    shifts, the prompt must fit."""
    if options.context_shift and context < 2:
        raise ArgumentError(
            f"option context_shift is True for a context of {context}, expected 2 tokens or more",
            fix="leave it out: there is no older half to drop",
        )
    room = context - longest
    limit = None if options.context_shift else options.max_tokens
    if room >= 0 and (limit is None or limit <= room):
        return
    fixes = [f"ask for max_tokens={room} or less"] if room > 0 else []
    if (shorter := context - (limit or 0)) > 0:
        fixes.append(f"shorten the prompt to {shorter} tokens or less")
    if room >= 0:
        fixes.append("drop the oldest tokens as the text goes on with context_shift=True")
    asked = "" if limit is None else f" and max_tokens is {limit}"
    raise ArgumentError(
        f"the longest prompt has {longest} tokens{asked}, "
        f"expected at most {context} in all, the model's context length",
        fix=", or ".join(fixes),
    )


def check_bias(options: GenerationOptions, vocab_size: int) -> None:
    """Raise ArgumentError if ``logit_bias`` names an id outside the vocabulary, or bans it all."""
    for wrong in [token for token in options.logit_bias if token >= vocab_size][:1]:
        raise ArgumentError(
            f"option logit_bias names the token id {wrong}, expected ids from 0 to"
            f" {vocab_size - 1}",
            fix="look ids up with the tokenizer of this model",
        )
    if sum(added == -math.inf for added in options.logit_bias.values()) == vocab_size:
        raise ArgumentError(
            f"option logit_bias bans all {vocab_size} tokens, expected one or more to be left",
            fix="leave one out",
        )


def refuse_logprobs(options: GenerationOptions, gives: str) -> None:
    """Raise ArgumentError if log-probabilities are asked of a function that ``gives`` none."""
    if options.logprobs is not None:
        raise ArgumentError(
            f"option logprobs is {options.logprobs}, and {gives}",
            fix="call generate_logprobs or complete, or leave it out",
        )

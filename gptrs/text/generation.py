"""Generation loop: prefill of the prompts in chunks, then one decode call per token for all rows.

Rows are left-padded into one batch with a KV cache of fixed capacity. A finished row continues with
padding tokens until all rows have finished. A context shift drops the older half of a row and
prefills the rest again. Prefill and decode calls emit events with their times. The guards of the
model's jitted call are evaluated once per text (``ptir.assume_unchanged``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs import events
from gptrs.errors import ArgumentError, PtirError
from gptrs.jit.fast_path.assume_unchanged import assume_unchanged
from gptrs.lazy_dataclass import dataclass
from gptrs.text.causal_model import CausalModel
from gptrs.text.logprobs import TokenLogprobs, token_logprobs
from gptrs.text.options import GenerationOptions
from gptrs.text.prefill import prefill
from gptrs.text.prompts import check_bias, check_room, checked_prompts, refuse_logprobs
from gptrs.text.sampling import Sampler
from gptrs.text.speculation import cut, proposer_of

Eos = int | Collection[int] | None


@dataclass(frozen=True)
class Prefilled:
    """Event: the prefill of ``tokens`` prompt tokens took ``seconds``."""

    tokens: int
    seconds: float


@dataclass(frozen=True)
class Decoded:
    """Event: the decode step of ``tokens`` rows took ``seconds``; 0 for one that was guessed, and
    checked in the call before."""

    tokens: int
    seconds: float


def generate_tokens(
    model: CausalModel,
    prompts: Sequence[Sequence[int]],
    options: GenerationOptions,
    *,
    eos: Eos,
) -> Iterator[list[int | None]]:
    """New tokens of every prompt, step by step: one id per row, None for rows that have finished.

    A row finishes at an end-of-text token (``eos``), which is not yielded, after
    ``options.max_tokens``, or at the end of the context: a row gets the tokens it would get alone.
    Stop strings are text: ``stream_text`` and ``complete`` look for them.
    Raises ArgumentError at the call when prompts or options do not suit the model.
    """
    refuse_logprobs(options, "generate_tokens gives ids alone")
    rows = begin_rows(model, prompts, options)
    steps = take_steps(model, rows, options, end_tokens(eos, options))
    return ([row.latest for row in rows] for _ in steps)


def generate_logprobs(
    model: CausalModel,
    prompts: Sequence[Sequence[int]],
    options: GenerationOptions,
    *,
    eos: Eos,
) -> Iterator[list[TokenLogprobs | None]]:
    """The tokens of ``generate_tokens`` with ``options.logprobs``, which must be given.

    Raises as ``generate_tokens`` does.
    """
    if options.logprobs is None:
        raise ArgumentError(
            "option logprobs is None, expected an integer from 0 up",
            fix="say how many likeliest tokens to report, or call generate_tokens",
        )
    rows = begin_rows(model, prompts, options)
    steps = take_steps(model, rows, options, end_tokens(eos, options))
    return ([row.logprobs for row in rows] for _ in steps)


@dataclass
class Row:
    """A text being continued; ``latest`` is the token of this step, None when there is none."""

    number: int
    ids: list[int]  # prompt and text, without what a context shift dropped
    running: bool = True
    ended: bool = False  # by an end-of-text token
    latest: int | None = None
    logprobs: TokenLogprobs | None = None  # of the latest token, if asked for

    def take(self, token: int, ends: frozenset[int], logprobs: TokenLogprobs | None) -> None:
        """Append ``token``, or finish if it is an end-of-text token."""
        if token in ends:
            self.ended, self.running = True, False
            self.rest()
            return
        self.latest, self.logprobs = token, logprobs
        self.ids.append(token)

    def rest(self) -> None:
        """Record that this step has no token."""
        self.latest = self.logprobs = None


def begin_rows(
    model: CausalModel, prompts: Sequence[Sequence[int]], options: GenerationOptions
) -> list[Row]:
    """A row for each of the ``prompts``. Raises ArgumentError as ``generate_tokens`` does."""
    ids = checked_prompts(prompts, model.vocab_size)
    check_room(max(map(len, ids)), options, model.context_length)
    check_bias(options, model.vocab_size)
    return [Row(number, row) for number, row in enumerate(ids)]


def take_steps(
    model: CausalModel, rows: list[Row], options: GenerationOptions, ends: frozenset[int]
) -> Iterator[None]:
    """Decode until no row is running; each step gives every running row one token.

    Model calls are in `assume_unchanged`: a change of the model meanwhile may take effect in the
    next text only.
    """
    sampler, unchanged = Sampler(options, [row.ids for row in rows]), assume_unchanged()
    context, limit = model.context_length, options.max_tokens
    done = 0  # steps; a row that is running got a token in each
    batch = rows
    while batch:
        if options.context_shift:
            for row in batch:
                if len(row.ids) == context:
                    del row.ids[: context // 2]
        room = context - max(len(row.ids) for row in batch)
        new = room if limit is None else min(room, limit - done)
        for _ in _continue(model, batch, sampler, options, new, ends, unchanged):
            done += 1
            yield
        # The longest row has now filled the context, if there was no limit before.
        for row in batch:
            full = len(row.ids) == context and not options.context_shift
            row.running = row.running and not full and done != limit
            row.rest()
        batch = [row for row in rows if row.running]


def _continue(
    model: CausalModel,
    batch: list[Row],
    sampler: Sampler,
    options: GenerationOptions,
    new: int,
    ends: frozenset[int],
    unchanged: assume_unchanged,
) -> Iterator[None]:
    """At most ``new`` tokens for each row of ``batch``, one at a time, until none is running."""
    if new == 0:
        return
    tokens, starts = _left_padded([row.ids for row in batch])
    capacity = tokens.shape[1] + new
    cache = model.init_cache(starts, capacity)
    proposer = proposer_of(options, model, cache, starts, capacity)
    began = perf_counter()

    def read(part: NDArray[np.int64], cache: Any) -> tuple[NDArray[Any], Any]:
        return _next_logits(model, part, cache, unchanged)

    logits, cache = prefill(model, tokens, cache, options.prefill_chunk, read)
    if events.listening():
        events.emit(Prefilled(sum(len(row.ids) for row in batch), perf_counter() - began))
    length, left = tokens.shape[1], new
    guesses = np.empty((len(batch), 0), np.int64)
    while True:
        for step in range(logits.shape[1]):  # after the latest token, and after each guess
            if step and events.listening():
                events.emit(Decoded(len(batch), 0.0))
            _sample(batch, logits[:, step], sampler, options, ends)
            left -= 1
            if not any(row.running for row in batch):
                return
            yield
            # The consumer may have stopped rows meanwhile, at a stop string.
            if left == 0 or not any(row.running for row in batch):
                return
            if step < guesses.shape[1] and not _are_right(guesses[:, step], batch):
                cache = cut(cache, length - guesses.shape[1] + step)
                length += step - guesses.shape[1]
                break
        # A finished row continues with the padding token; its logits are not used.
        column = np.array([[0 if row.latest is None else row.latest] for row in batch], np.int64)
        began = perf_counter()
        if proposer is not None:
            guesses = proposer.guesses(
                [row.ids if row.running else None for row in batch], left - 1
            )
        fed = np.concatenate([column, np.maximum(guesses, 0)], 1)
        logits, cache = _next_logits(model, fed, cache, unchanged, every=bool(guesses.size))
        length += fed.shape[1]
        if events.listening():
            events.emit(Decoded(len(batch), perf_counter() - began))


def _sample(
    batch: list[Row],
    logits: NDArray[Any],
    sampler: Sampler,
    options: GenerationOptions,
    ends: frozenset[int],
) -> None:
    """The next token of each running row, by its logits [vocab]."""
    count = options.logprobs
    for row, likely in zip(batch, logits, strict=True):
        if not row.running:
            row.rest()
            continue
        token = sampler.sample(likely, row.number)
        row.take(token, ends, None if count is None else token_logprobs(likely, token, count))


def _are_right(guesses: NDArray[np.int64], batch: list[Row]) -> bool:
    """Whether the latest token of each running row was guessed."""
    pairs = zip(guesses, batch, strict=True)
    return all(guess == row.latest for guess, row in pairs if row.running)


def _next_logits(
    model: CausalModel,
    tokens: NDArray[np.int64],
    cache: Any,
    unchanged: assume_unchanged,
    *,
    every: bool = False,
) -> tuple[NDArray[Any], Any]:
    """The logits [batch, n, vocab] of what follows the last of the ``tokens`` (n is 1), or every
    one, and the new cache."""
    with unchanged:
        result, cache = model(tokens, cache, logits="all" if every else "last")
    logits, count = np.asarray(result), tokens.shape[1] if every else 1
    if logits.ndim != 3 or logits.shape[:2] != (len(tokens), count):
        raise PtirError(
            f"the model's logits have shape {logits.shape}, expected"
            f" [{len(tokens)}, {count}, vocab]",
            fix="let the model's __call__ honour logits='all' and 'last'",
        )
    return logits, cache


def _left_padded(prompts: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The prompts in one array [batch, longest], each at the right end, and where each begins."""
    longest = max(map(len, prompts))
    tokens = np.zeros((len(prompts), longest), np.int64)
    for row, prompt in zip(tokens, prompts, strict=True):
        row[longest - len(prompt) :] = prompt
    return tokens, np.array([longest - len(prompt) for prompt in prompts], np.int32)


def end_tokens(eos: Eos, options: GenerationOptions) -> frozenset[int]:
    """The tokens that end a text."""
    if eos is None or options.ignore_eos:
        return frozenset()
    return frozenset(eos if isinstance(eos, Collection) else (eos,))

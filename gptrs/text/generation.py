"""Text from a model: one call over the prompts, then one token of every row at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gptrs import events
from gptrs.errors import ArgumentError, PtirError
from gptrs.text.sampling import GenerationOptions, Sampler
from gptrs.text.streaming import TextStream
from gptrs.text.tokenizer import Tokenizer

Eos = int | Collection[int] | None


class CausalModel(Protocol):
    """What generation needs of a model."""

    @property
    def context_length(self) -> int:
        """How many tokens a row can hold."""
        ...

    @property
    def vocab_size(self) -> int:
        """Token ids are below this."""
        ...

    def init_cache(self, starts: NDArray[np.int32], capacity: int) -> Any:
        """An empty cache of ``capacity`` columns; row b's tokens begin at column ``starts[b]``."""
        ...

    def __call__(
        self,
        tokens: NDArray[np.int64],
        cache: Any = None,
        *,
        logits: Literal["all", "last"] = "all",
    ) -> tuple[Any, Any]:
        """Logits [batch, sequence or 1, vocab] after ``tokens`` int64 [batch, sequence], and the
        cache that holds them too; the one passed in is donated: it must not be used again."""
        ...


@dataclass(frozen=True)
class Prefilled:
    """The prompts went through the model: ``tokens`` of them in ``seconds``."""

    tokens: int
    seconds: float


@dataclass(frozen=True)
class Decoded:
    """One more column went through the model: ``tokens`` rows in ``seconds``."""

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
    rows = [_checked(prompt, f"prompts[{row}]", model) for row, prompt in enumerate(prompts)]
    if not rows:
        raise ArgumentError("prompts is empty, expected one or more", fix="pass [prompt]")
    _check_room(max(map(len, rows)), options, model.context_length)
    texts = [_Row(number, row.tolist()) for number, row in enumerate(rows)]
    return _steps(model, texts, options, _ends(eos, options))


def stream_text(
    model: CausalModel,
    tokenizer: Tokenizer,
    prompt_ids: Sequence[int],
    options: GenerationOptions,
    eos: Eos,
) -> Iterator[str]:
    """The text that follows ``prompt_ids``, in pieces as they become certain, none empty.

    The pieces joined are what ``complete`` returns. Raises as ``generate_tokens`` does.
    """
    steps = generate_tokens(model, [prompt_ids], options, eos=eos)
    return _pieces(steps, TextStream(tokenizer, options.stop))


def complete(
    model: CausalModel,
    tokenizer: Tokenizer,
    prompts_ids: Sequence[Sequence[int]],
    options: GenerationOptions,
    eos: Eos,
) -> list[str]:
    """The text that follows each prompt, up to its own end of text or stop string.

    Raises as ``generate_tokens`` does.
    """
    steps = generate_tokens(model, prompts_ids, options, eos=eos)
    streams = [TextStream(tokenizer, options.stop) for _ in prompts_ids]
    texts: list[list[str]] = [[] for _ in streams]
    for step in steps:
        running = False
        for token, stream, pieces in zip(step, streams, texts, strict=True):
            if token is not None:
                pieces.append(stream.push(token))
                running = running or not stream.stopped
        if not running:
            break
    return [
        "".join([*pieces, stream.flush()]) for pieces, stream in zip(texts, streams, strict=True)
    ]


def _pieces(steps: Iterator[list[int | None]], stream: TextStream) -> Iterator[str]:
    for (token,) in steps:
        if token is not None and (piece := stream.push(token)):
            yield piece
        if stream.stopped:
            return
    if rest := stream.flush():
        yield rest


@dataclass
class _Row:
    """A text being continued; ``latest`` is the token of this step, None when there is none."""

    number: int
    ids: list[int]
    running: bool = True
    latest: int | None = None

    def take(self, token: int, ends: frozenset[int]) -> None:
        self.running = token not in ends
        self.latest = token if self.running else None
        if self.running:
            self.ids.append(token)


def _steps(
    model: CausalModel, rows: list[_Row], options: GenerationOptions, ends: frozenset[int]
) -> Iterator[list[int | None]]:
    sampler = Sampler(options, len(rows))
    batch = rows
    while batch:
        longest = max(len(row.ids) for row in batch)
        room = model.context_length - longest
        new = room if options.max_tokens is None else options.max_tokens
        for _ in _continue(model, batch, sampler, new, ends):
            yield [row.latest for row in rows]
        # Without a limit the longest row has now filled the context; the others go on without it.
        for row in batch:
            full = options.max_tokens is not None or len(row.ids) >= model.context_length
            row.running = row.running and not full
            row.latest = None
        batch = [row for row in rows if row.running]


def _continue(
    model: CausalModel, batch: list[_Row], sampler: Sampler, new: int, ends: frozenset[int]
) -> Iterator[None]:
    """At most ``new`` tokens for each row of ``batch``, one at a time, until none is running."""
    if new == 0:
        return
    tokens, starts = _left_padded([row.ids for row in batch])
    cache = model.init_cache(starts, tokens.shape[1] + new)
    began = perf_counter()
    logits, cache = _next_logits(model, tokens, cache)
    if events.listening():
        events.emit(Prefilled(sum(len(row.ids) for row in batch), perf_counter() - began))
    for left in reversed(range(new)):
        for row, likely in zip(batch, logits, strict=True):
            if row.running:
                row.take(sampler.sample(likely, row.number), ends)
        if not any(row.running for row in batch):
            return
        yield
        if left == 0:
            return
        # A finished row goes on with the padding token: nobody looks at what follows.
        column = np.array([[0 if row.latest is None else row.latest] for row in batch], np.int64)
        began = perf_counter()
        logits, cache = _next_logits(model, column, cache)
        if events.listening():
            events.emit(Decoded(len(batch), perf_counter() - began))


def _next_logits(
    model: CausalModel, tokens: NDArray[np.int64], cache: Any
) -> tuple[NDArray[Any], Any]:
    """The logits [batch, vocab] of the tokens that follow ``tokens``, and the new cache."""
    result, cache = model(tokens, cache, logits="last")
    logits = np.asarray(result)
    if logits.ndim != 3 or logits.shape[:2] != (len(tokens), 1):
        raise PtirError(
            f"the model's logits have shape {logits.shape}, expected [{len(tokens)}, 1, vocab]",
            fix="let the model's __call__ honour logits='last'",
        )
    return logits[:, 0], cache


def _left_padded(prompts: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The prompts in one array [batch, longest], each at the right end, and where each begins."""
    longest = max(map(len, prompts))
    tokens = np.zeros((len(prompts), longest), np.int64)
    for row, prompt in zip(tokens, prompts, strict=True):
        row[longest - len(prompt) :] = prompt
    return tokens, np.array([longest - len(prompt) for prompt in prompts], np.int32)


def _checked(prompt: Sequence[int], name: str, model: CausalModel) -> NDArray[np.int64]:
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
    for wrong in ids[(ids < 0) | (ids >= model.vocab_size)][:1]:
        raise ArgumentError(
            f"{name} holds the token id {wrong}, expected ids from 0 to {model.vocab_size - 1}",
            fix="encode the text with the tokenizer of this model",
        )
    return ids.astype(np.int64)


def _check_room(longest: int, options: GenerationOptions, context: int) -> None:
    room = context - longest
    wanted = room if options.max_tokens is None else options.max_tokens
    if room >= 0 and wanted <= room:
        return
    fixes = [f"ask for max_tokens={room} or less"] if room > 0 else []
    if (shorter := context - max(wanted, 0)) > 0:
        fixes.append(f"shorten the prompt to {shorter} tokens or less")
    asked = "" if options.max_tokens is None else f" and max_tokens is {wanted}"
    raise ArgumentError(
        f"the longest prompt has {longest} tokens{asked}, "
        f"expected at most {context} in all, the model's context length",
        fix=", or ".join(fixes),
    )


def _ends(eos: Eos, options: GenerationOptions) -> frozenset[int]:
    if eos is None or options.ignore_eos:
        return frozenset()
    return frozenset(eos if isinstance(eos, Collection) else (eos,))

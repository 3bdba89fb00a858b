"""Text completion: whole texts for a batch of prompts, or a stream of pieces for one.

Combines the token loop (`gptrs.text.generation`) with incremental detokenization and stop strings
(`gptrs.text.streaming`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from gptrs import events
from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass
from gptrs.text.causal_model import CausalModel
from gptrs.text.generation import (
    Eos,
    Row,
    begin_rows,
    end_tokens,
    generate_tokens,
    take_steps,
)
from gptrs.text.logprobs import TokenLogprobs
from gptrs.text.options import GenerationOptions
from gptrs.text.prompts import refuse_logprobs
from gptrs.text.streaming import TextStream
from gptrs.text.tokenizer import Tokenizer

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Completion:
    """The text that follows a prompt, and its tokens.

    ``tokens`` end before an end-of-text token, and with the token that completes a stop string.
    ``finish_reason`` is ``"stop"`` after one of these two, ``"length"`` if ``max_tokens`` or the
    context ended the text. ``logprobs`` has an entry for each token, None if not asked for.
    """

    text: str
    tokens: tuple[int, ...]
    finish_reason: FinishReason
    logprobs: tuple[TokenLogprobs, ...] | None = None


def stream_text(
    model: CausalModel,
    tokenizer: Tokenizer,
    prompt_ids: Sequence[int],
    options: GenerationOptions,
    eos: Eos,
) -> Iterator[str]:
    """The text that follows ``prompt_ids``, in pieces as they become certain, none empty.

    The pieces joined are the text of ``complete``. Raises as ``generate_tokens`` does.
    """
    refuse_logprobs(options, "stream_text gives text alone")
    steps = generate_tokens(model, [prompt_ids], options, eos=eos)
    return _pieces(steps, TextStream(tokenizer, options.stop))


def complete(
    model: CausalModel,
    tokenizer: Tokenizer,
    prompts_ids: Sequence[Sequence[int]],
    options: GenerationOptions,
    eos: Eos,
) -> list[Completion]:
    """What follows each prompt, up to its own end of text or stop string.

    Raises as ``generate_tokens`` does, and when nothing could ever end the text.
    """
    rows, ends = begin_rows(model, prompts_ids, options), end_tokens(eos, options)
    if options.context_shift and options.max_tokens is None and not ends and not options.stop:
        raise ArgumentError(
            "option context_shift is True and nothing ends the text, expected max_tokens, stop or"
            " an end-of-text token",
            fix="pass max_tokens, or stream the text",
        )
    outputs = [_Output(TextStream(tokenizer, options.stop)) for _ in rows]
    with events.working("generating", options.max_tokens or 0, "tokens") as work:
        for _ in take_steps(model, rows, options, ends):
            work.done += 1
            for row, output in zip(rows, outputs, strict=True):
                output.take(row)
    return [output.completion(row, options) for row, output in zip(rows, outputs, strict=True)]


def _pieces(steps: Iterator[list[int | None]], stream: TextStream) -> Iterator[str]:
    for (token,) in steps:
        if token is not None and (piece := stream.push(token)):
            yield piece
        if stream.stopped:
            return
    if rest := stream.flush():
        yield rest


class _Output:
    """A completion that grows with the steps of its row, and ends the row at a stop string."""

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream
        self._pieces: list[str] = []
        self._tokens: list[int] = []
        self._logprobs: list[TokenLogprobs] = []

    def take(self, row: Row) -> None:
        if row.latest is None:
            return
        self._pieces.append(self._stream.push(row.latest))
        self._tokens.append(row.latest)
        if row.logprobs is not None:
            self._logprobs.append(row.logprobs)
        row.running = not self._stream.stopped

    def completion(self, row: Row, options: GenerationOptions) -> Completion:
        text = "".join([*self._pieces, self._stream.flush()])
        return Completion(
            text,
            tuple(self._tokens),
            "stop" if row.ended or self._stream.stopped else "length",
            None if options.logprobs is None else tuple(self._logprobs),
        )

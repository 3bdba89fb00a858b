"""A conversation in ``gptrs chat``: its messages, and its answers on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import field
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import typer

from gptrs import events
from gptrs.cli import interrupt
from gptrs.cli.progress import progress
from gptrs.cli.times import Times
from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from gptrs.loading.language_model import Session
    from gptrs.text.chat import ChatCompletion, ChatStream

Message = dict[str, Any]


@dataclass
class Conversation:
    """Messages so far, and how the next one is answered."""

    model: Session
    system: str | None = None
    thinking: str = "hide"
    template: str | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    messages: list[Message] = field(default_factory=list[Message])
    stats: bool = False
    interactive: bool = False
    left_out: int = 0
    """How many of the oldest messages the context has no room for."""

    def asked(self, messages: Any, others: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The arguments of `LanguageModel.chat` for ``messages``, with ``others`` in place of those
        of the conversation."""
        begin = messages[0] if isinstance(messages, list) and messages else None  # pyright: ignore[reportUnknownVariableType]
        first = cast("Message", begin).get("role") if isinstance(begin, dict) else None
        return {
            "messages": messages,
            "system": None if first in ("system", "developer") else self.system,
            "thinking": self.thinking,
            "chat_template": self.template,
            **self.options,
            **(others or {}),
        }

    def say(self, text: str) -> None:
        """Answer ``text`` on the terminal. What was asked is forgotten where there is no answer.

        Raises `PtirError` for messages that cannot be answered.
        """
        messages = [*self.messages, {"role": "user", "content": text}]
        result = self._answer(self._recent(messages))
        if result.message["content"] or not self.interactive:
            self.messages = [*messages, result.message]

    def retry(self) -> None:
        """Answer the latest message again. Raises `ArgumentError` if there is none."""
        last = self._last_turn()
        if last is None:
            raise ArgumentError("there is no message to answer again", fix="write one")
        text, self.messages = self.messages[last]["content"], self.messages[:last]
        self.say(text)

    def undo(self) -> None:
        """Forget the latest message and its answer."""
        self.messages = self.messages[: self._last_turn() or 0]

    def _last_turn(self) -> int | None:
        turns = [n for n, message in enumerate(self.messages) if message["role"] == "user"]
        return turns[-1] if turns else None

    def _recent(self, messages: list[Message]) -> list[Message]:
        """The latest of ``messages`` that the context has room for. When it is full, so many are
        left out that half of it is free: it is read anew then."""
        context = self.model.module.context_length
        room = self.options.get("max_tokens") or min(64, context // 4)
        self.left_out = before = min(self.left_out, len(messages) - 1)
        if self._length(messages[before:]) + room <= context:
            return messages[before:]
        turns = [n for n, message in enumerate(messages) if message["role"] == "user"]
        for turn in turns:
            if turn > before:
                self.left_out = turn
                if self._length(messages[turn:]) + room <= max(context // 2, room + 1):
                    break
        if self.left_out > before:
            note(f"(the context is full: the oldest {self.left_out} messages are left out)")
        return messages[self.left_out :]

    def _length(self, messages: list[Message]) -> int:
        asked = self.asked(messages)
        names = ("messages", "system", "thinking", "chat_template")
        text = self.model.chat_prompt(**{name: asked[name] for name in names})
        return len(self.model.tokenizer.encode(text, add_special=False))

    def _answer(self, messages: list[Message]) -> ChatCompletion:
        times, began = Times(), perf_counter()
        asked = self.asked(messages)
        if self.thinking == "hide" and self.interactive:
            asked["thinking"] = "show"  # to say that it thinks
        from gptrs.text.prefill import Prefilling  # the engine is there by now

        def between_chunks(event: object) -> None:
            if isinstance(event, Prefilling) and stopped():
                raise KeyboardInterrupt

        with (
            interrupt.stoppable() if self.interactive else nullcontext(lambda: False) as stopped,
            events.listen(times.hear),
            events.listen(between_chunks),
            progress() as end_progress,
        ):
            stream = self.model.chat(stream=True, **asked)
            try:
                self._show(stream, stopped, end_progress)
            except KeyboardInterrupt:
                if not self.interactive:
                    raise
                interrupt.forget()
                stream.close()
            result = stream.result
        if not result.message["content"].endswith("\n"):
            _write("\n")
        if self.stats:
            _tell_times(result, times, perf_counter() - began)
        return result

    def _show(
        self, stream: ChatStream, stopped: Callable[[], bool], end_progress: Callable[[], None]
    ) -> None:
        thinking = False
        for piece in stream:
            end_progress()
            if piece.kind == "reasoning" and self.thinking == "hide":
                if not thinking:
                    note("(thinking)")
            elif piece.kind == "reasoning":
                _write(("" if thinking else "<think>\n") + piece, dim=True)
            else:
                if thinking and self.thinking != "hide":
                    _write("\n</think>\n\n", dim=True)
                _write(piece)
            thinking = piece.kind == "reasoning"
            if stopped():
                stream.close()
                break
        end_progress()


def _tell_times(result: ChatCompletion, times: Times, seconds: float) -> None:
    rate = times.report()["decode_rate"]
    new = result.prompt_tokens - result.cached_tokens
    said = f"{result.completion_tokens} tokens"
    if rate:
        said += f", {rate:.1f} tokens/s"
    said += f"; {new} of {result.prompt_tokens} tokens read in {times.prefill_seconds:.2f} s"
    note(f"[{said}; {seconds:.2f} s in all]")


def note(text: str) -> None:
    """Print ``text`` beside the answers."""
    typer.secho(text, err=True, dim=True)


def _write(text: str, *, dim: bool = False) -> None:
    if dim and sys.stdout.isatty():
        text = typer.style(text, dim=True)
    sys.stdout.write(text)
    sys.stdout.flush()

"""Chats: messages → an answer of the model, whole or in pieces, in the forms of the OpenAI API.

messages → `chat_template` → tokens → `generation` → `reply` (thoughts apart) → `ChatCompletion`.
`gptrs.loading.language_model` puts a `ChatModel` together.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any, Literal, cast

from gptrs.errors import ArgumentError, PtirError
from gptrs.lazy_dataclass import dataclass
from gptrs.text.causal_model import CausalModel
from gptrs.text.chat_template import ChatTemplate
from gptrs.text.generation import begin_rows, end_tokens, take_steps
from gptrs.text.messages import Message, checked_messages, checked_tools
from gptrs.text.options import GenerationOptions
from gptrs.text.prompts import refuse_logprobs
from gptrs.text.reply import Kind, Piece, Reply, marks_of
from gptrs.text.session import PrefixCache
from gptrs.text.tokenizer import Tokenizer
from gptrs.text.tool_calls import CallSplitter, tool_names

Thinking = Literal["hide", "show", "off"]
_THINKING = {
    "hide": "thoughts are only in reasoning_content",
    "show": "thoughts are streamed too",
    "off": "the template is told to have the model not think",
}
_OBJECT = "chat.completion"


class ChatPiece(str):
    """A piece of an answer: text, which is part of its content or of what the model thought."""

    kind: Kind

    def __new__(cls, text: str, kind: Kind) -> ChatPiece:
        made = super().__new__(cls, text)
        made.kind = kind
        return made


@dataclass(frozen=True)
class ChatCompletion:
    """An answer to messages.

    ``message`` has the role assistant, the ``content`` and, if the model thought, the
    ``reasoning_content``; if tools were given and it calls some, ``tool_calls``. It can be appended
    to the messages as it is. ``finish_reason`` is ``"stop"``, ``"tool_calls"``, or ``"length"`` if
    ``max_tokens`` or the context ended the answer. Of ``prompt_tokens``, ``cached_tokens`` were in
    the cache of a session.
    """

    message: Message
    finish_reason: Literal["stop", "length", "tool_calls"]
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    model: str
    id: str
    created: int  # seconds since 1970

    @property
    def text(self) -> str:
        """The content of the message."""
        return self.message["content"]

    def as_dict(self) -> dict[str, Any]:
        """The object ``chat.completion`` of the OpenAI API."""
        choice = {
            "index": 0,
            "message": self.message,
            "logprobs": None,
            "finish_reason": self.finish_reason,
        }
        return {
            "id": self.id,
            "object": _OBJECT,
            "created": self.created,
            "model": self.model,
            "choices": [choice],
            "usage": {
                "prompt_tokens": self.prompt_tokens,
                "completion_tokens": self.completion_tokens,
                "total_tokens": self.prompt_tokens + self.completion_tokens,
                "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            },
        }


@dataclass(frozen=True)
class ChatModel:
    """What a chat takes: the model with its tokenizer, its template, what ends a text, and the
    options of its makers."""

    model: CausalModel
    tokenizer: Tokenizer
    template: ChatTemplate
    eos: tuple[int, ...]
    defaults: Mapping[str, Any]
    name: str
    ends: frozenset[int] = field(init=False)
    """The tokens that end an answer: those that end a text, the template's ``eos_token``, and the
    special token that the template puts behind an answer."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", self._find_ends())

    def _find_ends(self) -> frozenset[int]:
        found = set(self.eos)
        named = self.template.special_tokens.get("eos_token")
        if named is not None and (token := self.tokenizer.token_id(named)) is not None:
            found.add(token)
        with suppress(PtirError):  # a template may want other messages than these
            messages = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
            after = self.template.render(messages).rpartition("2")[2]
            ids = self.tokenizer.encode(after, add_special=False)
            if ids and self.tokenizer.is_special(ids[0]):
                found.add(ids[0])
        return frozenset(found)

    def prompt(self, asked: ChatRequest) -> str:
        """The text of the messages, which an answer follows. Raises `ArgumentError` for tools that
        the template has no place for: the model would never see them."""
        if asked.tools and not self.template.reads_tools:
            raise ArgumentError(
                f"{self.template.place}: the template does not read tools, and"
                f" {len(asked.tools)} are given",
                fix="leave tools out, or pass a chat_template that shows them to the model",
            )
        return self.template.render(
            asked.messages,
            tools=asked.tools,
            add_generation_prompt=not asked.continued,
            continue_final_message=asked.continued,
            **asked.variables,
        )

    def options(self, given: Mapping[str, Any], prompt: int) -> GenerationOptions:
        """The ``given`` options over those of the makers, for a prompt of so many tokens. The
        makers' ``max_tokens`` is cut to what the context has room for."""
        chosen = {**self.defaults, **given}
        if "max_tokens" not in given and chosen.get("max_tokens") is not None:
            room = max(self.model.context_length - prompt, 0)
            if not chosen.get("context_shift"):
                chosen["max_tokens"] = min(chosen["max_tokens"], room)
        known = GenerationOptions.__dataclass_fields__
        if unknown := sorted(set(chosen) - set(known)):
            raise ArgumentError(f"unknown option {unknown[0]!r}", fix=f"use: {', '.join(known)}")
        options = GenerationOptions(**chosen)
        refuse_logprobs(options, "chat gives messages alone")
        return options


@dataclass(frozen=True)
class ChatRequest:
    """What is asked: checked messages and tools, and how to answer."""

    messages: list[Message]
    tools: list[Any] | None = None
    thinking: Thinking = "hide"
    continued: bool = False
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])


def chat_request(
    messages: object,
    *,
    tools: object = None,
    system: str | None = None,
    thinking: object = "hide",
    continue_final_message: bool = False,
    template_variables: Mapping[str, Any] | None = None,
) -> ChatRequest:
    """Check what is asked. Raises `ArgumentError` that names what is wrong."""
    if thinking not in _THINKING:
        raise ArgumentError(
            f"thinking is {thinking!r}, expected one of {', '.join(map(repr, _THINKING))}",
            fix="; ".join(f"{name!r}: {meaning}" for name, meaning in _THINKING.items()),
        )
    if template_variables is not None and not isinstance(template_variables, Mapping):
        raise ArgumentError(
            f"template_variables is a {type(template_variables).__name__}, expected a mapping",
            fix='pass {"enable_thinking": False} or the like',
        )
    variables = {**({"enable_thinking": False} if thinking == "off" else {})}
    return ChatRequest(
        checked_messages(messages, system=system),
        checked_tools(tools),
        cast("Thinking", thinking),
        continue_final_message,
        variables | dict(template_variables or {}),
    )


class ChatStream(Iterator[ChatPiece]):
    """The pieces of an answer as they become certain; afterwards `result` is the whole, with the
    calls of tools, which are in no piece.

    ``prompt`` is the text that the model reads. `close` ends the answer; what there is of it is the
    result then.
    """

    def __init__(self, chat: ChatModel, asked: ChatRequest, options: Mapping[str, Any]) -> None:
        self.prompt = chat.prompt(asked)
        self._ids = chat.tokenizer.encode(self.prompt, add_special=False)
        settled = chat.options(options, len(self._ids))
        marks = marks_of(chat.template.source)
        thinking = self.prompt.rstrip().endswith(marks[0])
        self._reply = Reply(chat.tokenizer, settled.stop, marks, thinking=thinking)
        (self._row,) = rows = begin_rows(chat.model, [self._ids], settled)
        ends = end_tokens(chat.ends, settled)
        self._steps = take_steps(chat.model, rows, settled, ends)
        self._calls = CallSplitter(tool_names(asked.tools))
        self._chat, self._asked = chat, asked
        self._said: dict[Kind, list[str]] = {"content": [], "reasoning": []}
        self._count = 0
        self._stopped = False
        self._result: ChatCompletion | None = None
        self._pieces = self._run()

    def __iter__(self) -> ChatStream:
        return self

    def __next__(self) -> ChatPiece:
        return next(self._pieces)

    @property
    def result(self) -> ChatCompletion:
        """The answer; generates the rest of it if it was not read to its end."""
        if self._result is None:
            self._result = self._finish()
        return self._result

    def _finish(self) -> ChatCompletion:
        for _ in self._pieces:
            pass
        content, thoughts = ("".join(self._said[kind]) for kind in ("content", "reasoning"))
        message: Message = {"role": "assistant", "content": content}
        if thoughts:
            message["reasoning_content"] = thoughts
        if calls := self._calls.calls:
            message["tool_calls"] = calls
        model = self._chat.model
        ended = self._row.ended or self._reply.stopped or self._stopped
        stop = "tool_calls" if calls else "stop"
        return ChatCompletion(
            message,
            stop if ended else "length",
            len(self._ids),
            self._count,
            model.reused if isinstance(model, PrefixCache) else 0,
            self._chat.name,
            f"chatcmpl-{uuid.uuid4().hex[:24]}",
            int(time.time()),
        )

    def close(self) -> None:
        """End the answer here."""
        self._stopped = True
        self._pieces.close()
        for _ in self._rest():
            pass

    def _run(self) -> Generator[ChatPiece]:
        for _ in self._steps:
            if self._row.latest is None:
                continue
            self._count += 1
            yield from self._kept(self._reply.push(self._row.latest))
            self._row.running = not self._reply.stopped
        yield from self._rest()

    def _rest(self) -> Iterator[ChatPiece]:
        """What was held back, at the end."""
        yield from self._kept(self._reply.flush())
        yield from self._noted([Piece(self._calls.flush(), "content")])

    def _kept(self, pieces: list[Piece]) -> Iterator[ChatPiece]:
        """``pieces`` without calls of tools."""
        return self._noted(
            [
                Piece(self._calls.push(text), kind) if kind == "content" else Piece(text, kind)
                for text, kind in pieces
            ]
        )

    def _noted(self, pieces: list[Piece]) -> Iterator[ChatPiece]:
        """``pieces`` noted, and those of them that are asked for."""
        for text, kind in pieces:
            self._said[kind].append(text)
        for text, kind in pieces:
            if text and (kind == "content" or self._asked.thinking == "show"):
                yield ChatPiece(text, kind)

"""A conversation in ``gptrs chat``: its messages, its answers on the terminal, its commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import typer

from gptrs import events
from gptrs.cli import interrupt
from gptrs.cli.names import printable
from gptrs.cli.progress import progress
from gptrs.cli.times import Times
from gptrs.errors import ArgumentError, PtirError

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
        last = next((n for n in reversed(range(len(self.messages))) if _is_user(self, n)), None)
        if last is None:
            raise ArgumentError("there is no message to answer again", fix="write one")
        text, self.messages = self.messages[last]["content"], self.messages[:last]
        self.say(text)

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
            _note(f"(the context is full: the oldest {self.left_out} messages are left out)")
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
        with (
            interrupt.stoppable() if self.interactive else nullcontext(lambda: False) as stopped,
            events.listen(times.hear),
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
                    _note("(thinking)")
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


def _is_user(talk: Conversation, number: int) -> bool:
    return talk.messages[number]["role"] == "user"


@dataclass(frozen=True)
class Command:
    """A command: what it is given, what it does, and the function that does it. That returns
    whether the conversation ends."""

    names: tuple[str, ...]
    takes: str
    does: str
    run: Callable[[Conversation, str], bool | None]


def run_command(talk: Conversation, line: str) -> bool:
    """Run the command in ``line``, which begins with ``/``. Returns whether that ends it all.

    Raises `ArgumentError` for one that there is not, and as the command does.
    """
    name, _, rest = line.strip().partition(" ")
    for command in COMMANDS:
        if name in command.names:
            return bool(command.run(talk, rest.strip()))
    raise ArgumentError(f"there is no command {printable(name)}", fix="/help lists all of them")


def _help(talk: Conversation, _: str) -> None:
    rows = [(f"{' '.join(c.names)} {c.takes}".strip(), c.does) for c in COMMANDS]
    rows += [
        ('"""', "begins and ends a text of several lines; so does \\ at the end of each but one"),
        ("Ctrl-C", "stops an answer"),
        ("Ctrl-D", "ends"),
    ]
    width = max(len(name) for name, _ in rows)
    for name, does in rows:
        _note(f"{name:{width}}  {does}")


def _clear(talk: Conversation, _: str) -> None:
    talk.messages, talk.left_out = [], 0


def _system(talk: Conversation, text: str) -> None:
    if text:
        talk.system = None if text in ('""', "none") else text
        return
    _note("there is no system prompt" if talk.system is None else talk.system)


def _retry(talk: Conversation, _: str) -> None:
    talk.retry()


def _undo(talk: Conversation, _: str) -> None:
    last = next((n for n in reversed(range(len(talk.messages))) if _is_user(talk, n)), None)
    talk.messages = talk.messages[: last or 0]


def _history(talk: Conversation, _: str) -> None:
    for message in talk.messages:
        _note(f"{message['role']}: {message['content']}")


def _tokens(talk: Conversation, _: str) -> None:
    used, most = len(talk.model.tokens), talk.model.module.context_length
    _note(f"{used} of {most} tokens of the context, {len(talk.messages)} messages")


def _save(talk: Conversation, file: str) -> None:
    from gptrs.formats.atomic_write import atomic_write

    path = _path(file, "/save")
    saved = {
        "model": talk.model.place.name,
        "system": talk.system,
        "messages": talk.messages,
    }
    with atomic_write(path) as written:
        written.write(json.dumps(saved, ensure_ascii=False, indent=1).encode() + b"\n")
    _note(f"{len(talk.messages)} messages are in {path}")


def _load(talk: Conversation, file: str) -> None:
    from gptrs.formats.json_files import read_json
    from gptrs.text.messages import checked_messages

    path = _path(file, "/load")
    data = read_json(path)
    messages, system = data.get("messages"), data.get("system")
    if system is not None and not isinstance(system, str):
        raise ArgumentError(f"{path}: system is no text", fix="write a text, or null")
    talk.messages, talk.left_out = checked_messages(messages) if messages else [], 0
    talk.system = system
    _note(f"{len(talk.messages)} messages of {path}")


def _set(talk: Conversation, text: str) -> None:
    from gptrs.text.options import GenerationOptions

    if not text:
        for name, value in {**talk.model.generation_defaults, **talk.options}.items():
            _note(f"{name} {value}")
        return
    name, _, written = text.partition(" ")
    if name not in GenerationOptions.__dataclass_fields__:
        known = ", ".join(GenerationOptions.__dataclass_fields__)
        raise ArgumentError(f"there is no option {printable(name)}", fix=f"use: {known}")
    if not written.strip():
        talk.options.pop(name, None)
        return
    try:
        value: object = json.loads(written)
    except ValueError:
        value = written
    GenerationOptions(**{name: cast("Any", value)})
    talk.options[name] = value


def _think(talk: Conversation, how: str) -> None:
    if how not in ("show", "hide", "off"):
        raise ArgumentError(
            f"/think is {printable(how)!r}, expected show, hide or off", fix="write /think show"
        )
    talk.thinking = how


def _quit(talk: Conversation, _: str) -> bool:
    return True


COMMANDS = (
    Command(("/help", "/?"), "", "list the commands", _help),
    Command(("/clear",), "", "forget the messages", _clear),
    Command(("/system",), "[TEXT]", "set the system prompt; none removes it", _system),
    Command(("/retry", "/regen"), "", "answer the latest message again", _retry),
    Command(("/undo",), "", "forget the latest message and its answer", _undo),
    Command(("/history",), "", "print the messages", _history),
    Command(("/tokens",), "", "how much of the context is used", _tokens),
    Command(("/set",), "[OPTION [VALUE]]", "an option of sampling: /set temperature 0.7", _set),
    Command(("/think",), "show|hide|off", "what becomes of the model's thoughts", _think),
    Command(("/save",), "FILE", "write the messages as JSON", _save),
    Command(("/load",), "FILE", "read messages that were saved", _load),
    Command(("/quit", "/exit", "/bye"), "", "end", _quit),
)


def _path(file: str, command: str) -> Path:
    if not file:
        raise ArgumentError(f"{command} has no file", fix=f"write {command} FILE")
    return Path(file).expanduser()


def _tell_times(result: ChatCompletion, times: Times, seconds: float) -> None:
    rate = times.report()["decode_rate"]
    new = result.prompt_tokens - result.cached_tokens
    said = f"{result.completion_tokens} tokens"
    if rate:
        said += f", {rate:.1f} tokens/s"
    said += f"; {new} of {result.prompt_tokens} tokens read in {times.prefill_seconds:.2f} s"
    _note(f"[{said}; {seconds:.2f} s in all]")


def tell_error(error: PtirError) -> None:
    """Print ``error`` and go on."""
    typer.echo(f"error: {error}", err=True)


def _note(text: str) -> None:
    typer.secho(text, err=True, dim=True)


def _write(text: str, *, dim: bool = False) -> None:
    if dim and sys.stdout.isatty():
        text = typer.style(text, dim=True)
    sys.stdout.write(text)
    sys.stdout.flush()

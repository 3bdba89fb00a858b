"""Commands in ``gptrs chat``: what begins with a slash, in one table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from gptrs.cli.conversation import Conversation, note
from gptrs.cli.names import printable
from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass


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
        note(f"{name:{width}}  {does}")


def _clear(talk: Conversation, _: str) -> None:
    talk.messages, talk.left_out = [], 0


def _system(talk: Conversation, text: str) -> None:
    if text:
        talk.system = None if text in ('""', "none") else text
        return
    note("there is no system prompt" if talk.system is None else talk.system)


def _retry(talk: Conversation, _: str) -> None:
    talk.retry()


def _undo(talk: Conversation, _: str) -> None:
    talk.undo()


def _history(talk: Conversation, _: str) -> None:
    for message in talk.messages:
        note(f"{message['role']}: {message['content']}")


def _tokens(talk: Conversation, _: str) -> None:
    used, most = len(talk.model.tokens), talk.model.module.context_length
    note(f"{used} of {most} tokens of the context, {len(talk.messages)} messages")


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
    note(f"{len(talk.messages)} messages are in {path}")


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
    note(f"{len(talk.messages)} messages of {path}")


def _set(talk: Conversation, text: str) -> None:
    from gptrs.text.options import GenerationOptions

    if not text:
        for name, value in {**talk.model.generation_defaults, **talk.options}.items():
            note(f"{name} {value}")
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

"""Messages of the OpenAI API: checks, and the plain form in which chat templates read them.

A message is a mapping with a ``role`` and a ``content``: text, or a list of parts
``{"type": "text", "text": ...}``. Assistants may have ``tool_calls`` and ``reasoning_content``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from gptrs.errors import ArgumentError
from gptrs.text.function_schema import function_schema

Message: TypeAlias = dict[str, Any]

REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names of what an assistant thought, the usual one first."""
_DEEPEST = 64
_EXAMPLE = '[{"role": "user", "content": "Hello"}]'


def checked_messages(messages: object, *, system: str | None = None) -> list[Message]:
    """Copies of ``messages`` in JSON's types, after one with the ``system`` prompt if given.

    Entries that are None are left out, arguments of tool calls become objects, and what an
    assistant thought has all its names. Raises `ArgumentError` naming the message.
    """
    if not _is_list(messages):
        raise ArgumentError(
            f"messages is a {type(messages).__name__}, expected a list of messages",
            fix=f"pass {_EXAMPLE}",
        )
    found = [_checked(each, n) for n, each in enumerate(cast("Iterable[object]", messages))]
    if not found:
        raise ArgumentError("messages is empty, expected one or more", fix=f"pass {_EXAMPLE}")
    if system is None:
        return found
    if not isinstance(system, str):
        raise ArgumentError(
            f"system is a {type(system).__name__}, expected text", fix="pass a string"
        )
    if found[0]["role"] in ("system", "developer"):
        raise ArgumentError(
            f"system is given, and messages[0] has the role {found[0]['role']!r}, expected one",
            fix="leave one of them out",
        )
    return [{"role": "system", "content": system}, *found]


def checked_tools(tools: object) -> list[Any] | None:
    """``tools`` in JSON's types, functions by their schemas; None if there are none.

    Raises `ArgumentError` naming the tool.
    """
    if tools is None:
        return None
    if not _is_list(tools):
        raise ArgumentError(
            f"tools is a {type(tools).__name__}, expected a list of tools",
            fix='pass [{"type": "function", "function": {"name": ..., "parameters": {...}}}]',
        )
    found: list[Any] = []
    for number, tool in enumerate(cast("Iterable[object]", tools)):
        if callable(tool):
            tool = function_schema(tool)
        if not isinstance(tool, Mapping):
            raise ArgumentError(
                f"tools[{number}] is a {type(tool).__name__}, expected a mapping or a function",
                fix="describe the function by a JSON schema, as the OpenAI API takes it",
            )
        found.append(plain(cast("object", tool), f"tools[{number}]"))
    return found or None


def with_text(messages: list[Message]) -> list[Message]:
    """``messages`` whose parts are one text each, a line for each part."""
    made: list[Message] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            parts = cast("list[dict[str, str]]", content)
            message = message | {"content": "\n".join(part["text"] for part in parts)}
        made.append(message)
    return made


def plain(value: object, where: str, depth: int = 0) -> Any:
    """A copy of ``value`` in JSON's types. Raises `ArgumentError` naming ``where`` for others."""
    if depth > _DEEPEST:
        raise ArgumentError(f"{where} has more than {_DEEPEST} levels", fix="make it flat")
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, str | bytes | int | float):
        kinds = (str, int, float)
        for kind in kinds:
            if isinstance(value, kind):
                return kind(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {str(name): plain(each, f"{where}[{name!r}]", depth + 1) for name, each in items}
    if isinstance(value, list | tuple):
        inner = enumerate(cast("list[object]", value))
        return [plain(each, f"{where}[{n}]", depth + 1) for n, each in inner]
    raise ArgumentError(
        f"{where} is a {type(value).__name__}, expected what JSON has",
        fix="pass text, numbers, True, False, None, lists and dicts",
    )


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _checked(given: object, number: int) -> Message:
    where = f"messages[{number}]"
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{where} is a {type(given).__name__}, expected a mapping with role and content",
            fix=f"pass {_EXAMPLE}",
        )
    copied: Message = plain(cast("object", given), where)
    message = {name: value for name, value in copied.items() if value is not None}
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise ArgumentError(
            f"{where} has the role {role!r}, expected system, user, assistant or tool",
            fix=f"pass {_EXAMPLE}",
        )
    _check_content(message, where)
    if "tool_calls" in message:
        message["tool_calls"] = _tool_calls(message["tool_calls"], where)
    for thought in [message[name] for name in REASONING if name in message][:1]:
        message |= {"thinking": thought} | message | {"reasoning_content": thought}
    return message


def _check_content(message: Message, where: str) -> None:
    if "content" not in message:
        if message["role"] == "assistant" and "tool_calls" in message:
            return
        raise ArgumentError(f"{where} has no content, expected text", fix='add "content": "..."')
    content = message["content"]
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise ArgumentError(
            f"{where} has a {type(content).__name__} as content, expected text or a list of parts",
            fix='pass "content": "..."',
        )
    for number, part in enumerate(cast("list[object]", content)):
        fields = cast("dict[str, object]", part) if isinstance(part, dict) else {}
        kind = fields.get("type", "text" if "text" in fields else None)
        if kind != "text" or not isinstance(fields.get("text"), str):
            raise ArgumentError(
                f"{where}: part {number} of the content is of type {kind!r}, expected text alone",
                fix='pass {"type": "text", "text": "..."}: models here read no pictures or sounds',
            )


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def _tool_calls(calls: object, where: str) -> list[Any]:
    """Tool calls whose arguments are objects: the OpenAI API has them as JSON text."""
    if not isinstance(calls, list):
        raise ArgumentError(
            f"{where}: tool_calls is a {type(calls).__name__}, expected a list",
            fix='pass [{"type": "function", "function": {"name": ..., "arguments": ...}}]',
        )
    for call in cast("list[Any]", calls):
        function: Any = cast("Message", call).get("function", call) if _is_dict(call) else None
        if not _is_dict(function) or not isinstance(function.get("name"), str):
            raise ArgumentError(
                f"{where}: tool_calls holds {call!r:.80}, expected a function with a name",
                fix='pass [{"type": "function", "function": {"name": ..., "arguments": ...}}]',
            )
        arguments = cast("Message", function).get("arguments")
        if isinstance(arguments, str):
            try:
                read: object = json.loads(arguments)
            except (ValueError, RecursionError):
                continue  # text that a model wrote: the template shows it as it is
            if isinstance(read, dict):
                function["arguments"] = read
    return cast("list[Any]", calls)

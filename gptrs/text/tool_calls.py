"""Calls of tools in the answer of a model → ``tool_calls`` of the OpenAI API.

Two forms are known: objects between ``<tool_call>`` and ``</tool_call>`` (Qwen, Hermes), and an
answer that is one object or a list of them (Llama 3, Mistral, after a special token). An object has
a ``name``, which must be that of a tool, and ``arguments`` or ``parameters``.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection
from typing import Any, cast

from gptrs.text.streaming import certain_length

_MARK = "<tool_call>"
_BLOCK = re.compile(_MARK + r"(.*?)(?:</tool_call>|\Z)", re.DOTALL)


def tool_names(tools: Collection[Any] | None) -> frozenset[str]:
    """The names of ``tools``, which are mappings in the form of the OpenAI API or functions."""
    functions = (tool.get("function", tool) for tool in tools or ())
    return frozenset(
        str(cast("dict[str, Any]", function)["name"])
        for function in functions
        if isinstance(function, dict) and "name" in function
    )


class CallSplitter:
    """Divides a growing answer into its text and the calls of tools called ``names``.

    Text is held back from what may begin a call on, with the space before it: to the end, as only
    then it is certain that it is one.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._text = ""  # so far
        self._held = ""
        self._calling = False
        self.calls: list[dict[str, Any]] = []
        """The calls of the answer, after `flush`."""

    def push(self, text: str) -> str:
        """What of ``text``, and of the text that was held back, is certainly no call."""
        if not self._names:
            return text
        self._held += text
        found = self._held.find(_MARK)
        self._calling |= found >= 0
        self._calling |= not self._text and self._held.lstrip().startswith(("{", "["))
        if self._calling and found < 0:
            return ""
        sure = certain_length(self._held, _MARK) if found < 0 else found
        return self._release(len(self._held[:sure].rstrip()))

    def flush(self) -> str:
        """The rest of the text, at the end of the answer."""
        rest, calls = _parsed(self._held, self._names)
        if calls:
            self.calls += calls
            rest = rest.rstrip() if self._text else rest.strip()
        self._held = rest
        return self._release(len(rest))

    def _release(self, length: int) -> str:
        given, self._held = self._held[:length], self._held[length:]
        self._text += given
        return given


def _parsed(content: str, names: Collection[str]) -> tuple[str, list[dict[str, Any]]]:
    """The ``content`` without the calls in it, and the calls; all of it and none where it has
    something that looks like a call and is none."""
    if not names:
        return content, []
    blocks = [match[1] for match in _BLOCK.finditer(content)]
    rest = _BLOCK.sub("", content) if blocks else ""
    calls: list[dict[str, Any]] = []
    for text in blocks or [content]:
        found = _calls(text, names)
        if not found:
            return content, []
        calls += found
    return rest, calls


def _calls(text: str, names: Collection[str]) -> list[dict[str, Any]]:
    """The calls in one value of JSON, none if it has anything else."""
    text = text.strip()
    if not text.startswith(("{", "[")):
        return []
    try:
        read: object = json.loads(text)
    except (ValueError, RecursionError):
        return []
    calls: list[dict[str, Any]] = []
    for each in cast("list[object]", read if isinstance(read, list) else [read]):
        given = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        arguments = given.get("arguments", given.get("parameters", {}))
        name = given.get("name")
        if not isinstance(name, str) or name not in names or not isinstance(arguments, dict | str):
            return []
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function = {"name": name, "arguments": written}
        # Nine letters and digits: the templates of Mistral take no other.
        calls.append({"id": uuid.uuid4().hex[:9], "type": "function", "function": function})
    return calls

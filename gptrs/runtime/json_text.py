"""JSON whose objects have each name once: readers differ in which of two counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_SPACES = " \t\n\r"
_SPACE = re.compile(r"[ \t\n\r]*")
_SPACE_END = re.compile(r"[ \t\n\r]*}")
_NAME = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:')  # without escapes


class RepeatedName(ValueError):  # noqa: N818  what it says is one of several things wrong
    """An object has a name twice."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {name!r} is there twice, expected once")


def parse(text: str) -> object:
    """The value that ``text`` is; NaN and Infinity, which configurations have, are numbers.

    Raises `ValueError` or `RecursionError`.
    """
    return json.loads(text, object_pairs_hook=_once)


def members(text: str) -> Iterator[tuple[str, object]]:
    """The names and values of the object that ``text`` is, one by one, names perhaps repeatedly.

    NaN and Infinity are none. Raises `ValueError` or `RecursionError` where it is none.
    """
    at, mark = _mark(text, 0, "{")
    if (empty := _SPACE_END.match(text, at)) is not None:
        at, mark = empty.end(), "}"
    while mark != "}":
        if (plain := _NAME.match(text, at)) is not None:
            name, at = plain[1], plain.end()
        else:
            name, at = _DECODER.raw_decode(text, _skip(text, at))
            if not isinstance(name, str):
                raise json.JSONDecodeError("Expecting a name", text, at)
            at, _ = _mark(text, at, ":")
        value, at = _DECODER.raw_decode(text, _skip(text, at))
        yield name, value
        at, mark = _mark(text, at, ",}")
    if (end := _skip(text, at)) != len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def _once(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(entries)
    if len(found) < len(entries):
        names = [name for name, _ in entries]
        raise RepeatedName(next(name for at, name in enumerate(names) if name in names[:at]))
    return found


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)


def _mark(text: str, at: int, marks: str) -> tuple[int, str]:
    """Where what follows the mark at ``at`` begins, and which of ``marks`` it is."""
    at = _skip(text, at)
    if (found := text[at : at + 1]) not in marks or not found:
        raise json.JSONDecodeError(f"Expecting {' or '.join(map(repr, marks))}", text, at)
    return at + 1, found


def _skip(text: str, at: int) -> int:
    """Where the space at ``at`` ends."""
    if text[at : at + 1] not in _SPACES:
        return at
    found = _SPACE.match(text, at)
    return at if found is None else found.end()

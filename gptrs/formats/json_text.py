"""JSON whose objects have each name once: readers differ in which of two counts. What it takes as
values of Python is known before it is parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from gptrs.byte_sizes import size_text

_SPACES = " \t\n\r"
_SPACE = re.compile(r"[ \t\n\r]*")
_SPACE_END = re.compile(r"[ \t\n\r]*}")
_NAME = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:')  # without escapes

_MARKS = b",:[{"  # one before each value and each name, or more
_EACH = 160  # bytes at most, of a short value or name, its place, and what is held to find it
_WIDEST = 4  # bytes of a letter in a text that is not ASCII
_MOST_A_LETTER = 2 * _WIDEST + _EACH  # bytes: what a small file takes does not need counting


class NotTaken(ValueError):  # noqa: N818  what it says is one of several things wrong
    """A text that is JSON, perhaps, and is not taken all the same."""

    fix: str
    """What helps."""


class RepeatedName(NotTaken):
    """An object has a name twice."""

    fix = "remove one of them"

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {name!r} is there twice, expected once")


class TooManyValues(NotTaken):
    """What it says takes many times the memory that its file does."""

    fix = "check that it is the file that it should be"

    def __init__(self, needed: int, most: int) -> None:
        super().__init__(
            f"the values of its JSON may take {size_text(needed)} of memory, expected at most"
            f" {size_text(most)} for a file of this size"
        )


def decoded(data: bytearray, memory: int) -> str:
    """The text of UTF-8 ``data``, which takes at most ``memory`` bytes when it is parsed too.

    Raises `TooManyValues` before it takes more, and `ValueError`.
    """
    if len(data) * _MOST_A_LETTER > memory and (needed := memory_of(data)) > memory:
        raise TooManyValues(needed, memory)
    return data.decode()


def memory_of(data: bytes | bytearray) -> int:
    """How many bytes of memory the text of ``data`` may take, and what it says as JSON."""
    letter = 1 if data.isascii() else _WIDEST
    # Strings are there twice: in the text, and as values.
    return 2 * letter * len(data) + _EACH * sum(map(data.count, _MARKS))


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
        seen = set[str]()
        # Of a set, `add` gives None.
        raise RepeatedName(next(name for name, _ in entries if name in seen or seen.add(name)))
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

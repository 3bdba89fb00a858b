"""JSON parsing with unique names and a memory bound.

Readers differ in which of two equal names they take, so repeated names are an error. The memory of
the parsed values is bounded from counts of delimiters before parsing. `members` iterates over the
entries of one large object, such as a safetensors header, without building it.
"""

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

_MARKS = b",:[{"  # at least one precedes each value and each name
_EACH = 160  # bytes at most of a short value or name with its container slot and hash entry
_WIDEST = 4  # bytes of a character in a text that is not ASCII
_MOST_A_LETTER = 2 * _WIDEST + _EACH  # bytes: below this no counting is needed


class NotTaken(ValueError):  # noqa: N818  a reason of rejection, of several
    """A text that is rejected although it may be valid JSON."""

    fix: str
    """The remedy, for the error."""


class RepeatedName(NotTaken):
    """An object has a repeated name."""

    fix = "remove one of them"

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {name!r} is there twice, expected once")


class TooManyValues(NotTaken):
    """The parsed values take many times the memory of the file."""

    fix = "check that it is the file that it should be"

    def __init__(self, needed: int, most: int) -> None:
        super().__init__(
            f"the values of its JSON may take {size_text(needed)} of memory, expected at most"
            f" {size_text(most)} for a file of this size"
        )


def decoded(data: bytearray, memory: int) -> str:
    """The text of UTF-8 ``data``, if text and parsed values take at most ``memory`` bytes.

    Raises `TooManyValues` otherwise, and `ValueError`.
    """
    if len(data) * _MOST_A_LETTER > memory and (needed := memory_of(data)) > memory:
        raise TooManyValues(needed, memory)
    return data.decode()


def memory_of(data: bytes | bytearray) -> int:
    """An upper bound on the memory in bytes of the text of ``data`` and its values as JSON."""
    letter = 1 if data.isascii() else _WIDEST
    # Strings exist twice: in the text, and as values.
    return 2 * letter * len(data) + _EACH * sum(map(data.count, _MARKS))


def parse(text: str) -> object:
    """The value of ``text``; NaN and Infinity, which configurations contain, are accepted.

    Raises `ValueError` or `RecursionError`.
    """
    return json.loads(text, object_pairs_hook=_once)


def members(text: str) -> Iterator[tuple[str, object]]:
    """The (name, value) pairs of the object in ``text``, one by one; names may repeat.

    NaN and Infinity are rejected. Raises `ValueError` or `RecursionError`.
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
        # `set.add` returns None.
        raise RepeatedName(next(name for name, _ in entries if name in seen or seen.add(name)))
    return found


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)


def _mark(text: str, at: int, marks: str) -> tuple[int, str]:
    """The delimiter of ``marks`` at ``at``, after white space, and the index behind it."""
    at = _skip(text, at)
    if (found := text[at : at + 1]) not in marks or not found:
        raise json.JSONDecodeError(f"Expecting {' or '.join(map(repr, marks))}", text, at)
    return at + 1, found


def _skip(text: str, at: int) -> int:
    """The index behind the white space at ``at``."""
    if text[at : at + 1] not in _SPACES:
        return at
    found = _SPACE.match(text, at)
    return at if found is None else found.end()

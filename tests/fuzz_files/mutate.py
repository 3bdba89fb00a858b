"""Mutations of the bytes of a file: accidental damage and hostile changes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias, cast

_AT_A_TIME = (1, 1, 1, 2, 3)  # changes
_MOST_GROWTH = 4096  # bytes
_NUMBERS = (0, 1, 2, 3, 7, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63)
_VALUES: tuple[object, ...] = (
    *(None, True, False, 0, 1, -1, 0.5, 1e308, 1e-320, 10**30, 2**31, 2**63, 2**64, float("nan")),
    *(float("inf"), "", "0", "x", "a" * 3000, "\0", "\ud800", "..", "../x", "/etc/passwd", "é\n"),
    *(
        list[int](),
        dict[str, int](),
        [0],
        [None],
        [[0]],
        {"": None},
        [1] * 300,
        {"a": {"a": {"a": 0}}},
        "gpt2",
        "resnet",
    ),
    *("F32", "F64", "BF16", "I8", "F8_E8M0", [0, 0], [2**62, 4], [4, 2**62], [8, 0], [-1]),
)
_TEXTS = (b"[" * 3000, b'{"a":' * 3000, b"9" * 5000, b"1e999999", b"-", b"\xff", b"\xef\xbb\xbf")


@dataclass(frozen=True)
class Text:
    """Where the JSON of a file lies, and the form and place of the number that says its length."""

    first: int
    last: int
    form: str = ""
    place: int = 0


def json_of(name: str, data: bytes) -> Text | None:
    """The JSON of a file called ``name``; None where there is none."""
    if name.endswith(".json"):
        return Text(0, len(data))
    if name.endswith(".safetensors") and len(data) >= 8:
        return _counted(data, "<Q", 0)
    if data.startswith(b"GPTRSCHK") and len(data) >= 16:
        return _counted(data, "<I", 12)
    return None


def _counted(data: bytes, form: str, place: int) -> Text | None:
    first = place + struct.calcsize(form)
    last = first + int(struct.unpack_from(form, data, place)[0])
    return Text(first, last, form, place) if last <= len(data) else None


def mutated(name: str, data: bytes, other: bytes, random: Random) -> bytes:
    """``data``, the content of a file called ``name``, changed in one to three ways; ``other`` is
    the content of another file, of which parts may come in."""
    for _ in range(random.choice(_AT_A_TIME)):
        text = json_of(name, data)
        if text is not None and random.random() < 0.6:
            data = _with_json(data, text, random)
        else:
            data = random.choice(_CHANGES)(data, other, random)
    return data


def _with_json(data: bytes, text: Text, random: Random) -> bytes:
    """A change of the JSON, mostly with the length that fits it."""
    try:
        tree: object = json.loads(data[text.first : text.last])
    except (ValueError, RecursionError):
        return data
    changed = random.choice(_JSON_CHANGES)(tree, random)
    head = bytearray(data[: text.first])
    if text.form and random.random() < 0.95:
        struct.pack_into(text.form, head, text.place, len(changed))
    return bytes(head) + changed + data[text.last :]


def _places(tree: object) -> Iterator[tuple[Any, Any]]:
    """Each container in a tree with each of its keys or indices."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            entries = list(cast("dict[str, object]", node).items())
        elif isinstance(node, list):
            entries = list(enumerate(cast("list[object]", node)))
        else:
            continue
        for key, value in entries:
            yield node, key
            waiting.append(value)


def _spelled(tree: object) -> bytes:
    return json.dumps(tree).encode()


def _replace_value(tree: Any, random: Random) -> bytes:
    places = list(_places(tree))
    if not places:
        return _spelled(random.choice(_VALUES))
    node, key = random.choice(places)
    value = node[key]
    if type(value) is int and random.random() < 0.5:
        value = random.choice((value + 1, value - 1, -value, 2 * value, float(value), str(value)))
    else:
        value = random.choice(_VALUES)
    node[key] = value
    return _spelled(tree)


def _remove_entry(tree: Any, random: Random) -> bytes:
    if places := list(_places(tree)):
        node, key = random.choice(places)
        del node[key]
    return _spelled(tree)


def _move_value(tree: Any, random: Random) -> bytes:
    if places := list(_places(tree)):
        (node, key), (other, place) = random.choice(places), random.choice(places)
        node[key], other[place] = json.loads(json.dumps([other[place], node[key]]))
    return _spelled(tree)


def _rename_key(tree: Any, random: Random) -> bytes:
    named = [(node, key) for node, key in _places(tree) if isinstance(key, str)]
    if named:
        node, key = random.choice(named)
        node[random.choice(("", key + "x", key[:-1], "\0", random.choice(named)[1]))] = node.pop(
            key
        )
    return _spelled(tree)


def _repeat_entry(tree: Any, random: Random) -> bytes:
    """An object with one of its keys twice, which only text can say."""
    named = [(node, key) for node, key in _places(tree) if isinstance(key, str)]
    if not named:
        return _spelled(tree)
    node, key = random.choice(named)
    value = node[key] if random.random() < 0.5 else random.choice(_VALUES)
    node["\0twice"] = value
    return _spelled(tree).replace(b'"\\u0000twice"', _spelled(key))


def _put_text(tree: Any, random: Random) -> bytes:
    """A text in the place of a value that no writer of JSON makes."""
    places = list(_places(tree))
    if not places:
        return random.choice(_TEXTS)
    node, key = random.choice(places)
    node[key] = "\0text"
    return _spelled(tree).replace(b'"\\u0000text"', random.choice(_TEXTS))


def _turn_bit(data: bytes, other: bytes, random: Random) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _put_number(data: bytes, other: bytes, random: Random) -> bytes:
    """A number over 1, 4 or 8 bytes, mostly near the beginning, where lengths are."""
    size = random.choice((1, 4, 8))
    at = random.randrange(max(1, min(len(data), random.choice((32, 256, len(data))))))
    number = random.choice((*_NUMBERS, len(data), len(data) - at, random.getrandbits(64)))
    number = number + random.choice((-1, 0, 0, 1))
    return data[:at] + (number % 256**size).to_bytes(size, "little") + data[at + size :]


def _cut(data: bytes, other: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _grow(data: bytes, other: bytes, random: Random) -> bytes:
    more = random.randrange(_MOST_GROWTH)
    return data + (bytes(more) if random.random() < 0.5 else random.randbytes(more))


def _span(data: bytes, random: Random) -> tuple[int, int]:
    first = random.randrange(len(data) + 1)
    return first, min(len(data), first + random.choice((1, 4, 8, 64, _MOST_GROWTH)))


def _remove(data: bytes, other: bytes, random: Random) -> bytes:
    first, last = _span(data, random)
    return data[:first] + data[last:]


def _repeat(data: bytes, other: bytes, random: Random) -> bytes:
    first, last = _span(data, random)
    return data[:last] + data[first:last] * random.choice((1, 1, 3)) + data[last:]


def _splice(data: bytes, other: bytes, random: Random) -> bytes:
    """A part of another file in the place of one of this."""
    (first, last), (begin, end) = _span(data, random), _span(other, random)
    return data[:first] + other[begin:end] + data[last:]


def _replace_file(data: bytes, other: bytes, random: Random) -> bytes:
    return random.choice((other, b"", b"\n", bytes(len(data))))


_Change: TypeAlias = Callable[[bytes, bytes, Random], bytes]
_CHANGES: tuple[_Change, ...] = (
    *(_turn_bit, _turn_bit, _put_number, _put_number, _put_number, _cut, _grow, _remove, _repeat),
    *(_splice, _replace_file),
)
_JSON_CHANGES: tuple[Callable[[Any, Random], bytes], ...] = (
    *(_replace_value, _replace_value, _replace_value, _replace_value, _remove_entry, _move_value),
    *(_rename_key, _repeat_entry, _put_text),
)

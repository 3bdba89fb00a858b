"""Wording of the difference between two entries of a program's key, for retrace reasons.

Used by `gptrs.jit.cache` for `Retrace.reason`: "axis 1: 16 → 17", "a Python number → an array".
"""

from __future__ import annotations

from collections.abc import Hashable
from types import CodeType
from typing import Any, NamedTuple

from gptrs.errors import Location
from gptrs.ir.program import key_of
from gptrs.ir.types import Type, dim_text
from gptrs.tree import Structure, container_of

_LONGEST = 60  # characters of a value that are shown


class _CodeToken(NamedTuple):
    identity: int
    where: Location


def code_token(code: CodeType) -> Hashable:
    """The token of a function's code: its identity, and its place for the reason."""
    return _CodeToken(id(code), Location(code.co_filename, code.co_firstlineno, code.co_qualname))


def difference(old: Any, new: Any) -> str:
    """What changed from ``old`` to ``new``, two tokens of one entry."""
    match old, new:
        case _CodeToken(where=before), _CodeToken(where=after):
            was, now = before.place, after.place
            return f"defined again at {now}" if was == now else f"{was} → {now}"
        case (Type() as before, bool(weak)), (Type() as after, bool(now)):
            if before == after and weak is not now:
                return "a Python number → an array" if weak else "an array → a Python number"
            return _type_change(before, after)
        case ("array" | "parameter", *before), ("array" | "parameter", *after):
            return _array_change(old[0], before, new[0], after)
        case _:
            was, now = _text(old), _text(new)
            return f"{was} → {now}" if was and now and was != now else "another value"


def _type_change(before: Type, after: Type) -> str:
    if before.dtype is not after.dtype or before.rank != after.rank:
        return f"{before} → {after}"
    return ", ".join(
        f"axis {axis}: {dim_text(a)} → {dim_text(b)}"
        for axis, (a, b) in enumerate(zip(before.shape, after.shape, strict=True))
        if key_of(a) != key_of(b)
    )


def _array_change(old: str, before: list[Any], new: str, after: list[Any]) -> str:
    if old != new:
        return f"{old} → {new}"
    was, now = (next(part for part in token if isinstance(part, Type)) for token in (before, after))
    if was != now:
        return _type_change(was, now)
    return "other elements" if old == "array" else "shared with another place"


def structure_change(old: Any, new: Any) -> tuple[str, str]:
    """The path where two structures (or tokens) of one argument first differ, and the
    difference."""
    place = ""
    before, after = old, new
    while isinstance(before, Structure) and isinstance(after, Structure) and before.kind:
        if (before.kind, before.labels) != (after.kind, after.labels):
            break
        children = zip(before.labels, before.children, after.children, strict=True)
        changed = [(label, a, b) for label, a, b in children if a != b]
        container = container_of(before.kind)
        if not changed or container is None:
            break
        label, before, after = changed[0]
        place += container.path(label)
    return place, difference(before, after)


def _form(structure: Structure) -> str:
    if structure.kind is None:
        return "one value"
    name = structure.kind.__name__
    if structure.kind is dict:
        return f"dict of {', '.join(map(repr, structure.labels)) or 'nothing'}"
    return f"{name} of {len(structure.labels)}" if structure.kind in (tuple, list) else name


def _text(token: Any) -> str:
    """A token in the user's terms; empty when it has none."""
    match token:
        case Structure():
            text = _form(token)
        case (Type() as found, bool(weak)):
            text = "a Python number" if weak else str(found)
        case (kind, value) if kind in (float, complex):
            text = str(value)
        case (kind, value) if kind in (bool, int, str, bytes, type(None)):
            text = repr(value)
        case ("array" | "parameter" as word, *_):
            text = word
        case _:
            return ""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."

"""Conversion of the entries of a ``config.json`` to a dataclass, with checks of their types."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gptrs.errors import LoadError

C = TypeVar("C")
Entries: TypeAlias = tuple[tuple[str, object], ...]
"""The type of a field that holds an object: its entries, objects and lists in it as tuples."""


def config_from_json(
    kind: type[C], renames: Mapping[str, str], data: Mapping[str, Any], path: Path
) -> C:
    """A dataclass from the entries of ``data`` that it declares; other entries are ignored.

    ``renames`` are aliases of fields; a field's own name has priority.
    Raises `LoadError` naming file and field.
    """
    hints = _hints(kind)
    given: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # pyright: ignore[reportArgumentType]
        names = (field.name, *(other for other, own in renames.items() if own == field.name))
        for name in [name for name in names if name in data][:1]:
            value, hint = data[name], hints[field.name]
            if not _fits(value, hint):
                raise LoadError(f"{path}: {name} is {value!r}, expected {_words(hint)}")
            given[field.name] = _frozen(value)
    try:
        return kind(**given)
    except LoadError as error:
        raise LoadError(f"{path}: {error.problem}", fix=error.fix) from None


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _frozen(value: object) -> object:
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, object]", value).items()
        return tuple((name, _frozen(each)) for name, each in entries)
    if isinstance(value, list):
        return tuple(map(_frozen, cast("list[object]", value)))
    return value


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if hint == Entries:
        return isinstance(value, Mapping)
    if get_origin(hint) is tuple:  # tuple[int, ...]
        element = get_args(hint)[0]
        return isinstance(value, list) and all(
            _fits(each, element) for each in cast("list[object]", value)
        )
    if hint is float:
        return isinstance(value, float) or (_fits(value, int) and _is_in_range(cast("int", value)))
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _is_in_range(value: int) -> bool:
    """Whether ``value`` is in the range of a float."""
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _words(hint: Any) -> str:
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(map(_words, get_args(hint)))
    if hint == Entries:
        return "object"
    if get_origin(hint) is tuple:
        return f"list of {_words(get_args(hint)[0])}"
    return "null" if hint is type(None) else hint.__name__

"""Pytrees: nested tuples, lists, dicts, named tuples and dataclasses as a flat list of leaves.

`flatten` gives leaves and a hashable `Structure`, `unflatten` builds the containers again. Used for
arguments and results of jitted functions. `register` adds container types; `gptrs.nn.Module`
subclasses are dataclasses already.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from typing import Any, cast

from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass

Labels = tuple[Hashable, ...]

MOST_LEVELS = 100
"""The maximal nesting depth of containers: far below Python's recursion limit, and more than
programs need."""


@dataclass(frozen=True)
class Container:
    """Flattening and unflattening of one container type.

    ``split`` gives the labels of the children (keys, field names, indices) and the children,
    ``join`` builds a container from its type, labels and children, ``path`` writes one label as
    Python source.
    """

    split: Callable[[Any], tuple[Labels, Sequence[object]]]
    join: Callable[[type, Labels, Sequence[object]], object]
    path: Callable[[Hashable], str]


@dataclass(frozen=True, slots=True)
class Structure:
    """The shape of a tree: ``kind`` is the container's type, or None for a leaf."""

    kind: type | None
    labels: Labels = ()
    children: tuple[Structure, ...] = ()


LEAF = Structure(None)
_UNSET = object()


def _index(label: Hashable) -> str:
    return f"[{label!r}]"


def _attribute(label: Hashable) -> str:
    return f".{label}"


def _split_sequence(value: Sequence[object]) -> tuple[Labels, Sequence[object]]:
    return tuple(range(len(value))), value


def _split_dict(value: dict[Hashable, object]) -> tuple[Labels, Sequence[object]]:
    return tuple(value), tuple(value.values())


def _join_dict(kind: type, labels: Labels, children: Sequence[object]) -> object:
    return kind(zip(labels, children, strict=True))


def _split_named(value: Any) -> tuple[Labels, Sequence[object]]:
    return value._fields, value


def _join_named(kind: Any, labels: Labels, children: Sequence[object]) -> object:
    return kind._make(children)


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def plain_fields(value: object) -> dict[str, object] | None:
    """The attributes of a dataclass instance; None if it has others than its fields, in order."""
    if container_of(type(value)) is not _DATACLASS:
        return None
    values: dict[str, object] = getattr(value, "__dict__", {})
    return values if tuple(values) == _field_names(type(value)) else None


def _split_fields(value: object) -> tuple[Labels, Sequence[object]]:
    """The fields that are set, and the other attributes of the instance."""
    declared = _field_names(type(value))
    values: dict[str, object] = getattr(value, "__dict__", {})
    if tuple(values) == declared:  # as nearly all are
        return declared, tuple(values.values())
    names = dict.fromkeys(declared)
    names.update(dict.fromkeys(values))
    found = [(n, child) for n in names if (child := getattr(value, n, _UNSET)) is not _UNSET]
    return tuple([name for name, _ in found]), [child for _, child in found]


def join_fields(kind: type, labels: Labels, children: Sequence[object]) -> object:
    """An instance of ``kind`` with its fields set as they are, without running ``__init__``."""
    made = cast("object", object.__new__(kind))
    for name, child in zip(labels, children, strict=True):
        object.__setattr__(made, str(name), child)
    return made


_SEQUENCE = Container(_split_sequence, lambda kind, labels, children: kind(children), _index)
_NAMED_TUPLE = Container(_split_named, _join_named, _attribute)
_DICT = Container(_split_dict, _join_dict, _index)
_DATACLASS = Container(_split_fields, join_fields, _attribute)
_CONTAINERS: dict[type, Container] = {
    tuple: _SEQUENCE,
    list: _SEQUENCE,
    dict: _DICT,
    OrderedDict: _DICT,
}


generation: int = 0
"""The number of calls of `register`: cached facts on containers hold for one generation."""


def register(kind: type, container: Container) -> None:
    """Make ``kind`` a container."""
    global generation
    _CONTAINERS[kind] = container
    generation += 1


def container_of(kind: type) -> Container | None:
    """The container type of ``kind``, or None when its instances are leaves."""
    if (known := _CONTAINERS.get(kind)) is not None:
        return known
    if hasattr(kind, "__dataclass_fields__"):
        return _DATACLASS
    return _NAMED_TUPLE if tuple in kind.__mro__ and hasattr(kind, "_fields") else None


def is_named_tuple(kind: type) -> bool:
    """Whether instances of ``kind`` are split as named tuples."""
    return container_of(kind) is _NAMED_TUPLE


def flattens(value: object) -> bool:
    """Whether ``value`` is a container and not a leaf."""
    return container_of(type(value)) is not None


def flatten(
    value: object, *, is_leaf: Callable[[object], bool] = lambda _: False, label: str = ""
) -> tuple[list[object], Structure]:
    """The leaves of ``value`` from left to right, and its structure.

    Raises `ArgumentError`, which calls ``value`` ``label``, for containers that are nested too deep
    or hold themselves.
    """
    leaves: list[object] = []

    def visit(value: object, level: int) -> Structure:
        container = None if is_leaf(value) else container_of(type(value))
        if container is None:
            leaves.append(value)
            return LEAF
        if level > MOST_LEVELS:
            raise too_deep(value, label)
        labels, children = container.split(value)
        parts = tuple([visit(child, level + 1) for child in children])
        return Structure(type(value), labels, parts)

    return leaves, visit(value, 1)


def too_deep(value: object, label: str = "") -> ArgumentError:
    """The error for ``value``, a container at depth `MOST_LEVELS` + 1 of ``label``."""
    error = ArgumentError(
        f"a {type(value).__name__} lies in {MOST_LEVELS} other containers, or holds itself,"
        f" expected at most {MOST_LEVELS} levels",
        fix="pass what is in it as a list or a dict of one level",
    )
    error.context += [label] * bool(label)
    return error


def unflatten(structure: Structure, leaves: Sequence[object]) -> object:
    """The tree that `flatten` took apart, with ``leaves`` in the places of the old ones."""
    rest = iter(leaves)

    def build(structure: Structure) -> object:
        if structure.kind is None:
            return next(rest)
        children = [build(child) for child in structure.children]
        container = cast("Container", container_of(structure.kind))
        return container.join(structure.kind, structure.labels, children)

    return build(structure)


def joiner(structure: Structure) -> Callable[[Sequence[object]], object]:
    """`unflatten` specialised to one structure, for many calls."""
    if structure.kind is None:
        return lambda leaves: leaves[0]
    kind, labels = structure.kind, structure.labels
    container = cast("Container", container_of(kind))
    if all(child.kind is None for child in structure.children):
        return lambda leaves: container.join(kind, labels, leaves)
    parts: list[tuple[int, int, Callable[[Sequence[object]], object]]] = []
    end = 0
    for child in structure.children:
        begin, end = end, end + _count(child)
        parts.append((begin, end, joiner(child)))
    return lambda leaves: container.join(kind, labels, [join(leaves[a:b]) for a, b, join in parts])


def _count(structure: Structure) -> int:
    """The number of leaves."""
    return 1 if structure.kind is None else sum(map(_count, structure.children))


def paths(structure: Structure, root: str = "") -> Iterator[str]:
    """The path of each leaf as Python source: ``cache.keys[0]``."""
    if structure.kind is None:
        yield root
        return
    container = cast("Container", container_of(structure.kind))
    for label, child in zip(structure.labels, structure.children, strict=True):
        yield from paths(child, root + container.path(label))

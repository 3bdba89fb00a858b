"""What a walk read, written down so that a later call can read all of it again and compare.

A walk goes from value to value. Each read is a step: a place among the values so far, the type
that stands there, and a function that reads more values from it. The same steps from the same
start give the same values as long as nothing that the walk saw has changed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from operator import itemgetter
from types import FunctionType, NoneType
from typing import Any, TypeAlias, cast

Read: TypeAlias = Callable[[Any], Sequence[object]]
# (place, its type, names of its attributes or None, number of values, how they are read). With
# names, which are all that there are, the values are read from its __dict__, else from itself.
Step: TypeAlias = tuple[int, type, tuple[str, ...] | None, int, Read]

FUNCTION, ROOTS = 0, 1
"""The places of the function, and of the list of the arguments that the walk looks into."""

_EMPTY = object()  # the content of a cell that is not assigned yet


class Changed(Exception):  # noqa: N818 - no error: the slow path goes on
    """Something is not as the walk found it."""


class ReadLog:
    """The steps of one walk, and what they gave."""

    def __init__(self, function: FunctionType) -> None:
        self.roots: list[object] = []
        self.values: list[object] = [function, None]
        self.steps: list[Step] = []
        self.held: list[object] = []  # compared by identity alone: must not be freed
        self.repeatable = True

    def root(self, value: object) -> int:
        """The place of an argument."""
        number = len(self.roots)
        self.roots.append(value)
        return self.of(ROOTS, self.roots, itemgetter(slice(number, number + 1)))[0]

    def of(self, place: int, parent: object, read: Read) -> tuple[int, Sequence[object]]:
        """What ``read`` finds in ``parent``, and the place of the first of it."""
        found = read(parent)
        self.steps.append((place, type(parent), None, len(found), read))
        first = len(self.values)
        self.values += found
        return first, found

    def fields(
        self, place: int, parent: object, values: Mapping[str, object]
    ) -> tuple[int, Sequence[object]]:
        """All attributes of ``parent``, which has no others, in their order."""
        names = tuple(values)
        read = named(names)
        found = read(values)
        self.steps.append((place, type(parent), names, len(found), read))
        first = len(self.values)
        self.values += found
        return first, found[: len(names)]

    def labels(self, labels: Iterable[object]) -> None:
        """Hold the keys of a container, which the walk does not look into."""
        self.held += labels
        if not all(map(_is_plain, labels)):
            self.repeatable = False  # a key may lead to all of a model, and is not to be held


def _is_plain(label: object) -> bool:
    if isinstance(label, tuple):
        return all(map(_is_plain, cast("tuple[object, ...]", label)))
    return isinstance(label, str | bytes | int | float | type | enum.Enum | NoneType)


@lru_cache(1024)
def named(names: tuple[str, ...]) -> Read:
    """ReadLog these names of a mapping. One name is read twice, so that there is always a tuple."""
    if not names:
        return lambda _: ()
    return cast("Read", itemgetter(*names, *names) if len(names) == 1 else itemgetter(*names))


class OfCode:
    """ReadLog a function's code, its closure and the globals called ``present``."""

    __slots__ = ("absent", "get")

    def __init__(self, present: tuple[str, ...], absent: frozenset[str]) -> None:
        self.get = named(present)
        self.absent = absent

    def __call__(self, function: FunctionType) -> Sequence[object]:
        scope = function.__globals__
        if self.absent and not scope.keys().isdisjoint(self.absent):
            raise Changed
        cells = map(_content, function.__closure__ or ())
        return function.__code__, *cells, *self.get(scope)


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def is_assigned(content: object) -> bool:
    """Whether ``content``, read from a cell, is any."""
    return content is not _EMPTY


def header(function: FunctionType) -> Sequence[object]:
    """What besides its code says what a function does."""
    return (
        function.__defaults__,
        function.__kwdefaults__,
        function.__module__,
        bool(function.__dict__),
    )


def bases(kind: type) -> Read:
    """ReadLog where ``kind`` looks for attributes."""
    return lambda _: (kind.__mro__, *kind.__mro__)


def items(mapping: Mapping[object, object]) -> Sequence[object]:
    """The keys, then the values."""
    return *mapping, *mapping.values()


def within(mapping: Callable[[Any], Mapping[str, object]], names: tuple[str, ...]) -> Read:
    """ReadLog these names of what ``mapping`` gives."""
    get = named(names)
    return lambda parent: get(mapping(parent))


def lacking(mapping: Callable[[Any], Mapping[str, object]], absent: frozenset[str]) -> Read:
    """ReadLog nothing, where none of these names may be."""

    def read(parent: object) -> Sequence[object]:
        if not mapping(parent).keys().isdisjoint(absent):
            raise Changed
        return ()

    return read


def exactly(
    mapping: Callable[[Any], Mapping[str, object]], keys: Set[str], names: tuple[str, ...] = ()
) -> Read:
    """ReadLog ``names``, where ``keys`` and no others must be."""
    get = named(names)

    def read(parent: object) -> Sequence[object]:
        found = mapping(parent)
        if found.keys() != keys:
            raise Changed
        return get(found)

    return read

"""Read log: the reads of one traversal, recorded so that a guard can repeat and compare them.

`gptrs.jit.captures` traverses everything that a call can reach. Each read is a step: the index of a
value read before, its type, and a reader that returns further values. The same steps from the same
start give the same values as long as nothing that the traversal saw has changed.
`gptrs.jit.guards` repeats the steps. The second half of this module are readers for code objects,
classes and mappings of names; a reader of absent names raises `GuardFailedError` if one appeared.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from operator import itemgetter
from types import FunctionType, NoneType
from typing import Any, TypeAlias, cast

from gptrs import tree

Read: TypeAlias = Callable[[Any], Sequence[object]]
# (index of the parent, its type, all names of its __dict__ or None, number of values, reader).
# With names the values are read from the parent's __dict__, else from the parent itself.
Step: TypeAlias = tuple[int, type, tuple[str, ...] | None, int, Read]

FUNCTION, ROOTS = 0, 1
"""Indices of the function, and of the list of arguments that the traversal reads."""

_EMPTY = object()  # stands for a closure cell that is not assigned yet


class GuardFailedError(Exception):
    """A read finds another state than the traversal did; the call takes the slow path."""


class ReadLog:
    """The steps of one traversal, and the values that they read."""

    def __init__(self, function: FunctionType) -> None:
        self.roots: list[object] = []
        self.values: list[object] = [function, None]
        self.steps: list[Step] = []
        self.held: list[object] = []  # compared by identity alone: must not be freed
        self.repeatable = True

    def root(self, value: object) -> int:
        """Record an argument to read from; returns its index."""
        number = len(self.roots)
        self.roots.append(value)
        return self.of(ROOTS, self.roots, itemgetter(slice(number, number + 1)))[0]

    def of(self, place: int, parent: object, read: Read) -> tuple[int, Sequence[object]]:
        """Record and run a read of ``parent``: the index of the first value, and the values."""
        found = read(parent)
        self.steps.append((place, type(parent), None, len(found), read))
        first = len(self.values)
        self.values += found
        return first, found

    def fields(
        self, place: int, parent: object, values: Mapping[str, object]
    ) -> tuple[int, Sequence[object]]:
        """As `of`, for all attributes in the ``__dict__`` of ``parent``, in their order."""
        names = tuple(values)
        read = named(names)
        found = read(values)
        self.steps.append((place, type(parent), names, len(found), read))
        first = len(self.values)
        self.values += found
        return first, found[: len(names)]

    def labels(self, labels: Iterable[object]) -> None:
        """Keep the keys of a container alive; the traversal does not read into them."""
        self.held += labels
        if not all(map(_is_plain, labels)):
            self.repeatable = False  # such a key may refer to a whole model, which must not be kept


def _is_plain(label: object) -> bool:
    if isinstance(label, tuple):
        return all(map(_is_plain, cast("tuple[object, ...]", label)))
    return isinstance(label, str | bytes | int | float | type | enum.Enum | NoneType)


@lru_cache(1024)
def named(names: tuple[str, ...]) -> Read:
    """A reader of these names of a mapping. A single name is read twice: it must return a tuple."""
    if not names:
        return lambda _: ()
    return cast("Read", itemgetter(*names, *names) if len(names) == 1 else itemgetter(*names))


class CodeReader:
    """Reads a function's code, its closure and the globals ``present``; those in ``absent`` must
    not exist."""

    __slots__ = ("absent", "get", "present")

    def __init__(self, present: tuple[str, ...], absent: frozenset[str]) -> None:
        self.get = named(present)
        self.present, self.absent = present, absent

    def __call__(self, function: FunctionType) -> Sequence[object]:
        scope = function.__globals__
        if self.absent and not scope.keys().isdisjoint(self.absent):
            raise GuardFailedError
        cells = map(_content, function.__closure__ or ())
        return function.__code__, *cells, *self.get(scope)


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def is_assigned(content: object) -> bool:
    """Whether ``content`` was read from an assigned closure cell."""
    return content is not _EMPTY


def read_metadata(function: FunctionType) -> Sequence[object]:
    """The state of a function besides its code that changes its behaviour."""
    return (
        function.__defaults__,
        function.__kwdefaults__,
        function.__module__,
        bool(function.__dict__),
    )


class MroReader:
    """Reads the method resolution order of a class, whatever it is given."""

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __call__(self, _: object) -> Sequence[object]:
        return self.kind.__mro__, *self.kind.__mro__


def items(mapping: Mapping[object, object]) -> Sequence[object]:
    """The keys, then the values."""
    return *mapping, *mapping.values()


class NamesReader:
    """Reads these names of the mapping that ``mapping(parent)`` returns."""

    __slots__ = ("_get", "mapping", "names")

    def __init__(
        self, mapping: Callable[[Any], Mapping[str, object]], names: tuple[str, ...]
    ) -> None:
        self.mapping, self.names, self._get = mapping, names, named(names)

    def __call__(self, parent: object) -> Sequence[object]:
        return self._get(self.mapping(parent))


class AbsenceReader:
    """Reads nothing, and fails when one of these names exists."""

    __slots__ = ("absent", "mapping")

    def __init__(
        self, mapping: Callable[[Any], Mapping[str, object]], absent: frozenset[str]
    ) -> None:
        self.mapping, self.absent = mapping, absent

    def __call__(self, parent: object) -> Sequence[object]:
        if not self.mapping(parent).keys().isdisjoint(self.absent):
            raise GuardFailedError
        return ()


class ExactReader:
    """Reads ``names``, and fails unless the mapping has exactly ``keys``."""

    __slots__ = ("_get", "_keys", "mapping", "names")

    def __init__(
        self,
        mapping: Callable[[Any], Mapping[str, object]],
        keys: Set[str],
        names: tuple[str, ...] = (),
    ) -> None:
        self.mapping, self._keys, self.names = mapping, keys, names
        self._get = named(names)

    def __call__(self, parent: object) -> Sequence[object]:
        found = self.mapping(parent)
        if found.keys() != self._keys:
            raise GuardFailedError
        return self._get(found)


class ContainerReader:
    """Reads the labels of a container, then its children."""

    __slots__ = ("_container",)

    def __init__(self, container: tree.Container) -> None:
        self._container = container

    def __call__(self, value: object) -> Sequence[object]:
        labels, children = self._container.split(value)
        return *labels, *children

"""The Python state outside of a traced function that it can reach: contents, changes, restoration.

Input: the function and its arguments, before a trace. The traversal is that of the program's key
(`gptrs.jit.captures`), with a label for each object. Of each closure cell, global that the code
assigns, list, dict, set, small array, and of the attributes of objects, classes and modules of user
code the contents are kept, one level deep. Used by `gptrs.jit.second_trace`.
"""

from __future__ import annotations

import functools
import inspect
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple, cast

import numpy as np

from gptrs import tree
from gptrs.ir.program import key_of
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from gptrs.jit.arguments import Arguments, Input
from gptrs.jit.captures import Captures
from gptrs.jit.code import is_library, names_in
from gptrs.lazy_dataclass import dataclass

_MOST_BYTES = 1 << 16  # of an array whose elements are compared
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DEPTH = 4  # of containers that are searched for traced values
Contents = dict[Any, Any]


class _Kind(NamedTuple):
    """How the contents of a holder are read, and written back."""

    read: Callable[[Any], Contents]
    write: Callable[[Any, Contents], object]
    part: str = ""
    """The name of a part, by label and key; "" where changes are those of the whole."""


class Change(NamedTuple):
    """A holder, or a part of one, that a trace has changed."""

    what: str
    leaked: Tensor | None
    """A traced value in it."""


@dataclass(eq=False)
class Watched:
    """A holder of values, and its contents before the trace."""

    label: str
    holder: Any
    kind: _Kind
    before: Contents

    def now(self) -> Contents:
        return self.kind.read(self.holder)

    def is_changed(self, since: Contents) -> bool:
        return bool(_changed(since, self.now()))

    def write(self, contents: Contents) -> None:
        """Put ``contents`` back, if there are others."""
        if self.is_changed(contents):
            self.kind.write(self.holder, contents)

    def changes(self) -> Iterator[Change]:
        """What the trace has changed."""
        now = self.now()
        changed = _changed(self.before, now)
        if changed and not self.kind.part:
            leaks = (_traced_in(now.get(key)) for key in changed)
            yield Change(self.label, next((leak for leak in leaks if leak is not None), None))
            return
        for key in changed:
            leaked = _traced_in(now.get(key))
            if leaked is not None or not _is_memo(self.holder, key):
                yield Change(self.kind.part.format(self.label, key), leaked)


class OuterState:
    """The state that ``function`` can reach from its closure, globals and ``arguments``."""

    def __init__(self, function: FunctionType, arguments: Arguments) -> None:
        found = _Labelled(function)
        structure = arguments.structure
        names = zip(structure.labels, structure.children, strict=True)
        paths = [path for name, child in names for path in tree.paths(child, str(name))]
        for path, leaf in zip(paths, arguments.leaves, strict=True):
            if not isinstance(leaf, Input):
                found.argument(leaf, f"argument {path}")
        found.entries()
        self.objects = [value for _, value in found.labels.values()]
        """All that were met."""
        self.watched: list[Watched] = []
        self._seen: set[Hashable] = set()
        for label, value in list(found.labels.values()):
            self._watch(label, value)

    def _watch(self, label: str, value: Any) -> None:
        if type(value) is FunctionType:
            if not is_library(value.__module__ or ""):
                self._function(value)
        elif kind := next((k for types, k in _CONTAINERS if isinstance(value, types)), None):
            self._add(label, value, kind)
        elif isinstance(value, np.ndarray):
            array = cast("Array", value)
            if array.flags.writeable and array.nbytes <= _MOST_BYTES and not array.dtype.hasobject:
                self._add(label, array, _ARRAY)
        elif isinstance(value, ModuleType):
            if not is_library(value.__name__):
                self._add(f"module {value.__name__}", value, _FIELDS)
        else:
            kind = cast("type[object]", value if isinstance(value, type) else type(value))
            if is_library(kind.__module__):
                return
            self._add(f"class {kind.__qualname__}", kind, _CLASS)
            if kind is not value and isinstance(getattr(value, "__dict__", None), dict):
                self._add(label, value, _FIELDS)

    def _function(self, function: FunctionType) -> None:
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or (), strict=True):
            self._add(f"closure {name}", cell, _CELL)
        for name in names_in(function.__code__).stored:
            self._add(f"global {name}", function.__globals__, _global(name), name)

    def _add(self, label: str, holder: Any, kind: _Kind, part: str = "") -> None:
        if (id(holder), part) not in self._seen:
            self._seen.add((id(holder), part))
            self.watched.append(Watched(label, holder, kind, kind.read(holder)))


class _Labelled(Captures):
    """The traversal of a program's key, with the label of each object that it meets."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self.labels: dict[int, tuple[str, object]] = {id(function): ("", function)}

    def _value(self, value: Any, label: str, place: int) -> Hashable:
        if not isinstance(value, _PLAIN):
            self.labels.setdefault(id(value), (label, value))
        return super()._value(value, label, place)


def _changed(old: Contents, new: Contents) -> list[Any]:
    """The keys whose values differ: other objects, unless both are equal numbers or texts."""
    return [
        key
        for key in {**old, **new}
        if key not in old or key not in new or _differ(old[key], new[key])
    ]


def _differ(old: Any, new: Any) -> bool:
    if old is new:
        return False
    return not isinstance(old, _PLAIN) or key_of(old) != key_of(new)


def _traced_in(value: Any, depth: int = _DEPTH) -> Tensor | None:
    """A traced value in ``value``, a container or an object."""
    if isinstance(value, Tensor):
        return value if value.is_traced else None
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = list(cast("Mapping[object, object]", value).values())
    elif isinstance(value, list | tuple | set | frozenset | deque):
        parts = list(cast("list[object]", value))
    elif not isinstance(value, type | ModuleType) and not is_library(type(value).__module__):
        parts = list(getattr(value, "__dict__", {}).values())
    found = (_traced_in(part, depth - 1) for part in (parts if depth else ()))
    return next((part for part in found if part is not None), None)


def _is_memo(holder: Any, key: Any) -> bool:
    """Whether the attribute is the value that a `functools.cached_property` keeps."""
    kind = cast("type[object]", type(holder))
    attribute = inspect.getattr_static(kind, key, None) if isinstance(key, str) else None
    return isinstance(attribute, functools.cached_property)


def _global(name: str) -> _Kind:
    def read(scope: dict[str, Any]) -> Contents:
        return {name: scope[name]} if name in scope else {}

    def write(scope: dict[str, Any], contents: Contents) -> None:
        scope.pop(name, None)
        scope.update(contents)

    return _Kind(read, write)


def _cell(cell: CellType) -> Contents:
    try:
        return {"": cell.cell_contents}
    except ValueError:  # not assigned yet
        return {}


def _fill_cell(cell: CellType, contents: Contents) -> None:
    if contents:
        cell.cell_contents = contents[""]
    else:
        del cell.cell_contents


def _items(holder: Iterable[object]) -> Contents:
    return dict(enumerate(holder))


def _refill(holder: Any, contents: Contents) -> None:
    holder.clear()
    holder.extend(contents.values())


def _update(holder: Any, contents: Contents) -> None:
    holder.clear()
    holder.update(contents)


def _fields(value: Any) -> Contents:
    fields = cast("Mapping[str, object]", vars(value))
    return {name: part for name, part in fields.items() if name[:2] != "__"}


def _set_fields(value: Any, contents: Contents) -> None:
    fields = cast("dict[str, object]", vars(value))
    for name in _changed(_fields(value), contents):
        if name in contents:
            fields[name] = contents[name]
        else:
            del fields[name]


def _set_attributes(kind: type, contents: Contents) -> None:
    for name in _changed(_fields(kind), contents):
        if name in contents:
            setattr(kind, name, contents[name])
        else:
            delattr(kind, name)


def _elements(array: Array) -> Contents:
    return {"": array.tobytes()}


def _set_elements(array: Array, contents: Contents) -> None:
    array[...] = np.frombuffer(contents[""], array.dtype).reshape(array.shape)


_CELL = _Kind(_cell, _fill_cell)
_FIELDS = _Kind(_fields, _set_fields, "{}.{}")
_CLASS = _Kind(_fields, _set_attributes, "{}.{}")
_ARRAY = _Kind(_elements, _set_elements)
_CONTAINERS: tuple[tuple[Any, _Kind], ...] = (
    (dict, _Kind(dict, _update)),
    (set, _Kind(dict.fromkeys, _update)),
    ((list, deque), _Kind(_items, _refill)),
)

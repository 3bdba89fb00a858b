"""What a function reads besides its arguments: scalars, modules and arrays in closures, globals
and objects. A program depends on them, so they are part of its key and compared at every call."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Literal, cast
from zlib import crc32

import numpy as np

from gptrs import tree
from gptrs.ir.dims import Dim
from gptrs.ir.op import Op
from gptrs.ir.program import key_of
from gptrs.ir.tensor import Parameter, Tensor, as_array
from gptrs.ir.types import Array, DType, Type
from gptrs.jit.code import is_library, names_in

Entry = tuple[str, Hashable]

# Captured arrays up to this size are compared in full, others by checksum.
_COMPARED_BYTES = 1 << 16
_PLAIN = (bool, int, float, complex, str, bytes, Dim, type(None))
_ARRAYS = (Tensor, np.ndarray, np.generic)
_DEFINITIONS = (FunctionType, ModuleType, type, Op, DType, enum.Enum)


@dataclass
class _Scope:
    """Something whose attributes are read by name: an object, a class, a module, a function."""

    label: str
    values: Mapping[str, object]
    kind: Literal["object", "class", "module"]
    whole: bool = False  # code that was not looked at may read any of it
    done: set[str] = field(default_factory=set[str])

    def unread(self, names: set[str]) -> list[str]:
        """The attributes among ``names`` that were not looked at yet, and the implied ones."""
        found = set(self.values) if self.whole else names & self.values.keys()
        if self.kind == "class":  # its special methods run without being named
            found = {name for name in found if not name.startswith("__")}
            found.update(n for n, v in self.values.items() if _is_special_method(n, v))
        return sorted(found - self.done)


def _is_special_method(name: str, value: object) -> bool:
    """Whether ``value`` is a method such as ``__call__``, and not written by `dataclass`."""
    if not name.startswith("__") or not callable(value):
        return False
    return not isinstance(value, FunctionType) or value.__code__.co_filename != "<string>"


class Captures:
    """A walk over everything that a call can reach. Hashable tokens say what was found.

    ``parameters`` lists the model parameters in the order met, each once; they are not part of the
    tokens, only their types and where they repeat, so equal models share programs.
    """

    def __init__(self) -> None:
        self.parameters: list[Parameter] = []
        self.alive: list[object] = []  # what tokens name by id must not be freed
        self._places: dict[int, int] = {}  # of parameters, by id
        self._seen: dict[int, int] = {}  # other objects by id, numbered as they were met
        self._held: list[object] = []  # so that no id is used twice during the walk
        self._entries: list[Entry] = []
        self._scopes: list[_Scope] = []
        self._globals: set[tuple[int, str]] = set()
        self._read: set[str] = set()  # names of attributes in the code met so far
        self._reads_computed_names = False

    def index_of(self, parameter: Parameter) -> int | None:
        """The place of ``parameter`` in `parameters`, or None when the walk did not meet it."""
        return self._places.get(id(parameter))

    def entries(self, function: FunctionType) -> tuple[Entry, ...]:
        """What ``function`` reads, and what is read of the objects among its arguments."""
        self._once(function)
        self._code(function)
        while self._read_scopes():
            pass  # code that was met may read more names
        return tuple(self._entries)

    def _read_scopes(self) -> bool:
        """Look at what is read of each scope; false when all of it was known."""
        before = len(self._entries)
        for scope in self._scopes:  # grows on the way
            self._read_scope(scope)
        return len(self._entries) > before

    def _read_scope(self, scope: _Scope) -> None:
        if self._reads_computed_names and scope.kind != "module":
            scope.whole = True
        for name in scope.unread(self._read):
            scope.done.add(name)
            if name in scope.values:  # another thread may have taken it away
                self._add(f"{scope.label}.{name}", scope.values[name])

    def _add(self, label: str, value: object) -> None:
        self._entries.append((label, self.value(value, label)))

    def _code(self, function: FunctionType) -> None:
        """Look at what the code of ``function`` reads."""
        code = function.__code__
        names = names_in(code)
        self._name(function)
        self._read |= names.attributes
        self._reads_computed_names |= names.computed
        self._entries.append(("code", id(code)))
        cells = function.__closure__ or ()
        for name, cell in zip(code.co_freevars, cells, strict=True):
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            self._add(f"closure {name}", content)
        scope = function.__globals__
        for name in names.globals:
            place = id(scope), name
            if name in scope and place not in self._globals:
                self._globals.add(place)
                self._add(f"global {name}", scope[name])
        for module in names.imported(str(scope.get("__package__") or "")):
            self.value(module, f"module {module.__name__}")

    def value(self, value: Any, label: str) -> Hashable:
        """A token for ``value``, which is called ``label``."""
        if isinstance(value, _PLAIN):
            return cast("Hashable", key_of(value))
        if isinstance(value, _ARRAYS):
            return self._array(value)
        if isinstance(value, _DEFINITIONS):
            return self._definition(value, label)
        return self._object(value, label)

    def kinds(self, structure: tree.Structure) -> None:
        """Look at the classes of the containers in ``structure``: their methods may be called."""
        if structure.kind is not None:
            self._class(structure.kind)
            for child in structure.children:
                self.kinds(child)

    def _name(self, value: object) -> int:
        """The id of ``value`` as its token."""
        self.alive.append(value)
        return id(value)

    def _definition(self, value: Any, label: str) -> Hashable:
        if isinstance(value, type):
            return self._class(value)
        module = value.__name__ if isinstance(value, ModuleType) else value.__module__
        if not isinstance(value, FunctionType | ModuleType) or is_library(module or ""):
            return self._name(value)
        if (seen := self._once(value)) is not None:
            return seen
        if isinstance(value, ModuleType):
            self._scopes.append(_Scope(f"module {value.__name__}", vars(value), "module"))
            return self._name(value)
        self._code(value)
        if vars(value):
            self._scopes.append(_Scope(label, vars(value), "object"))
        return "function", self.value((value.__defaults__, value.__kwdefaults__), label)

    def _class(self, kind: type) -> type:
        """``kind``, once the methods and attributes of the user's own classes are looked at."""
        if not is_library(kind.__module__) and self._once(kind) is None:
            for base in kind.__mro__:
                if not is_library(base.__module__):
                    scope = _Scope(f"class {base.__qualname__}", vars(base), "class")
                    self._scopes.append(scope)
        return kind

    def _array(self, value: Any) -> Hashable:
        if isinstance(value, Parameter):
            place = self._places.get(id(value))
            if place is None:
                place = self._places[id(value)] = len(self.parameters)
                self.parameters.append(value)
            return "parameter", place, value.type
        if isinstance(value, Tensor):  # never changes, so being the same one is enough
            return "tensor", self._name(value), value.donated
        array = cast("Array", as_array(value))
        if array.nbytes <= _COMPARED_BYTES:
            return "array", Type.of(array), array.tobytes()
        return "array", Type.of(array), self._name(value), crc32(np.ascontiguousarray(array).data)

    def _once(self, value: object) -> tuple[str, int] | None:
        """A token for something met before; None the first time."""
        place = self._seen.get(id(value))
        if place is not None:
            return "seen", place
        self._seen[id(value)] = len(self._seen)
        self._held.append(value)
        return None

    def _object(self, value: Any, label: str) -> Hashable:
        if (seen := self._once(value)) is not None:
            return seen
        kind = self._class(cast("type[object]", type(value)))
        if (container := tree.container_of(kind)) is not None:
            labels, children = container.split(value)
            # Only a dict's keys can mix up 1 and True.
            named = key_of(labels) if isinstance(value, dict) else labels
            return kind, named, self._all(children, label)
        if (parts := _parts(value)) is not None:
            return kind, self._all(parts, label)
        if not is_library(kind.__module__) or not hasattr(value, "__array__"):
            contents, fields = _contents(value), _fields(value)
            if contents is None and fields is None:
                return kind, self._name(value)
            if fields:
                # Methods of a library are not looked at: they may read any field.
                whole = any(is_library(base.__module__) for base in kind.__mro__[:-1])
                self._scopes.append(_Scope(label, fields, "object", whole))
            return kind, self._all(contents or (), label)
        return self._array(value)  # of torch or another library

    def _all(self, values: Iterable[object], label: str) -> tuple[Hashable, ...]:
        return tuple([self.value(value, label) for value in values])


def _parts(value: Any) -> tuple[object, ...] | None:
    """What the wrappers of the standard library, and jitted functions, are made of."""
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, partial):
        return value.func, value.args, value.keywords  # pyright: ignore[reportUnknownMemberType]
    if isinstance(value, property):
        return (value.fget,)
    if isinstance(value, cached_property):
        return (value.func,)  # pyright: ignore[reportUnknownMemberType]
    if isinstance(value, range | slice):
        return value.start, value.stop, value.step  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if isinstance(value, SimpleNamespace):
        return (vars(value),)
    wrapped: object = getattr(value, "__wrapped__", None)
    return (wrapped,) if callable(wrapped) else None


def _contents(value: Any) -> tuple[object, ...] | None:
    """The elements of a subclass of a built-in container; None for anything else."""
    if isinstance(value, dict):
        return tuple(value), tuple(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, set | frozenset):
        return tuple(sorted(value, key=hash))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, list | tuple | deque):
        return tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return None


_OPEN_MODULES = ("argparse", "collections")  # their objects are there to hold values


def _fields(value: object) -> Mapping[str, object] | None:
    """The attributes of an object; None where they are none of our business."""
    kind = type(value)
    if is_library(kind.__module__, ours=True) and kind.__module__ not in _OPEN_MODULES:
        return None
    fields: dict[str, object] | None = getattr(value, "__dict__", None)
    slots = [
        n for base in kind.__mro__ for n in _slots(base) if hasattr(value, n) and n[:2] != "__"
    ]
    if not slots:
        return fields
    return {**(fields or {}), **{name: getattr(value, name) for name in slots}}


def _slots(kind: type) -> tuple[str, ...]:
    names: Any = vars(kind).get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)

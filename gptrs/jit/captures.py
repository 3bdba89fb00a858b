"""Captures: traversal of everything that a function reads besides its arguments.

Closures, globals, attributes of modules, classes and objects, code of called functions: a program
depends on them, so they are part of its key and compared at every call. `Captures.entries` runs on
the slow path. It returns hashable tokens for the program's key, and fills the read log
(`gptrs.jit.fast_path.read_log`), from which a guard is built that repeats the reads at later calls.
Only names that the bytecode mentions are read (`gptrs.jit.code`); code that computes names makes
all attributes count. Library code is not entered.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import field
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, cast

import numpy as np

from gptrs import tree
from gptrs.ir.dims import Dim
from gptrs.ir.op import Op
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import key_of
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType
from gptrs.jit.code import Names, is_library, names_in
from gptrs.jit.differences import code_token
from gptrs.jit.fast_path.object_graph import (
    ArrayToken,
    all_fields,
    array_token,
    fields_of,
    reader_of_contents,
    reader_of_parts,
    state_of,
)
from gptrs.jit.fast_path.read_log import (
    FUNCTION,
    AbsenceReader,
    CodeReader,
    ContainerReader,
    ExactReader,
    MroReader,
    NamesReader,
    ReadLog,
    is_assigned,
    read_metadata,
)
from gptrs.lazy_dataclass import dataclass

Entry = tuple[str, Hashable]

_PLAIN = (bool, int, float, complex, str, bytes, Dim, type(None))
_ARRAYS = (Tensor, np.ndarray, np.generic)
_DEFINITIONS = (FunctionType, ModuleType, type, Op, DType, enum.Enum)


@dataclass
class _Scope:
    """An object, class, module or function whose attributes are read by name."""

    label: str
    place: int
    parent: object
    read: Callable[[Any], Mapping[str, object]]  # the attributes of the parent
    kind: Literal["object", "class", "module"]
    whole: bool = False  # library code, which is not analysed, may read any attribute
    done: set[str] = field(default_factory=set[str])

    def unread(self, names: set[str], values: Mapping[str, object]) -> list[str]:
        """The attributes among ``names`` that were not read yet, and special methods of classes."""
        found = set(values) if self.whole else names & values.keys()
        if self.kind == "class":  # special methods are called without a name in the code
            found = {name for name in found if not _is_special(name)}
            found.update(n for n, v in values.items() if _is_special_method(n, v))
        return sorted(found - self.done)


def _is_special(name: str) -> bool:
    return name.startswith("__")


def _is_special_method(name: str, value: object) -> bool:
    """Whether ``value`` is a method such as ``__call__``, and not written by `dataclass`."""
    if not _is_special(name) or not callable(value):
        return False
    return not isinstance(value, FunctionType) or value.__code__.co_filename != "<string>"


def _is_constant(value: object, level: int = 1) -> bool:
    """Whether ``value`` is immutable through and through: nothing is read from it."""
    if type(value) is tuple:
        parts = cast("tuple[object, ...]", value)
        return level <= tree.MOST_LEVELS and all(_is_constant(p, level + 1) for p in parts)
    return isinstance(value, _PLAIN)


class Captures:
    """The traversal of everything that a call of ``function`` can reach: tokens for the key, and
    the read log `reads` that repeats it.

    ``parameters`` lists the model parameters in the order met, each once. Tokens hold their types
    and repetitions only, not their identity, so equal models share programs.
    """

    def __init__(self, function: FunctionType) -> None:
        self.reads = ReadLog(function)
        self.parameters: list[Parameter] = []
        self.parameter_places: list[int] = []  # of each, its index in the read log
        self.arrays: list[tuple[int, type, ArrayToken]] = []  # index, type, token of each
        self.alive: list[object] = []  # objects whose ids are tokens: must not be freed
        self._function = function
        self._places: dict[int, int] = {}  # number of each parameter by id
        self._seen: dict[int, int] = {}  # other objects by id, numbered as they were met
        self._held: list[object] = []  # so that no id is used twice during the traversal
        self._level = 1  # the current nesting depth of containers
        self._entries: list[Entry] = []
        self._scopes: list[_Scope] = []
        self._globals: set[tuple[int, str]] = set()
        self._read: set[str] = set()  # names of attributes in the code met so far
        self._reads_computed_names = False

    def index_of(self, parameter: Parameter) -> int | None:
        """The index of ``parameter`` in `parameters`; None when the traversal did not meet it."""
        return self._places.get(id(parameter))

    def argument(self, value: object, label: str) -> Hashable:
        """A token for an argument that is not traced."""
        if isinstance(value, _PLAIN):
            return cast("Hashable", key_of(value))
        return self._value(value, label, self.reads.root(value))

    def entries(self) -> tuple[Entry, ...]:
        """Traverse the function and the objects among its arguments: (label, token) of each
        read."""
        self._once(self._function)
        self._code(self._function, FUNCTION, self._function.__qualname__)
        while self._read_scopes():
            pass  # code met on the way may mention more names
        for scope in self._scopes:
            self._close_scope(scope)
        return tuple(self._entries)

    def _read_scopes(self) -> bool:
        """Read the mentioned attributes of each scope; false when none was new."""
        before = len(self._entries)
        for scope in self._scopes:  # grows on the way
            self._read_scope(scope)
        return len(self._entries) > before

    def _read_scope(self, scope: _Scope) -> None:
        if self._reads_computed_names and scope.kind != "module":
            scope.whole = True
        while names := tuple(scope.unread(self._read, scope.read(scope.parent))):
            try:
                first, values = self.reads.of(
                    scope.place, scope.parent, NamesReader(scope.read, names)
                )
            except KeyError:  # another thread took one away
                continue
            scope.done.update(names)
            for place, (name, value) in enumerate(zip(names, values, strict=False), first):
                self._add(f"{scope.label}.{name}", value, place)

    def _close_scope(self, scope: _Scope) -> None:
        """Record that the other mentioned names are absent."""
        values = dict(scope.read(scope.parent))
        if scope.unread(self._read, values):  # another thread added it since
            self.reads.repeatable = False
        if scope.kind == "module":
            read = AbsenceReader(scope.read, frozenset(self._read - values.keys()))
        else:
            special = filter(_is_special, values) if scope.kind == "class" else ()
            read = ExactReader(scope.read, frozenset(values), tuple(special))
        self.reads.held += self.reads.of(scope.place, scope.parent, read)[1]

    def _add(self, label: str, value: object, place: int) -> None:
        self._entries.append((label, self._value(value, label, place)))

    def _code(self, function: FunctionType, place: int, label: str) -> None:
        """Read the closure and the globals that the code of ``function``, called ``label``,
        mentions."""
        names = names_in(function.__code__)
        scope = function.__globals__
        new = [name for name in names.globals if (id(scope), name) not in self._globals]
        self._globals.update((id(scope), name) for name in new)
        present = tuple([name for name in new if name in scope])
        absent = frozenset(new).difference(present)
        first, (code, *found) = self.reads.of(place, function, CodeReader(present, absent))
        self._name(function)
        self._name(code)
        self._entries.append((f"code of {label}", code_token(cast("CodeType", code))))
        self._read |= names.attributes
        self._reads_computed_names |= names.computed
        labels = [f"closure {name}" for name in cast("CodeType", code).co_freevars]
        labels += [f"global {name}" for name in present]
        for at, (label, value) in enumerate(zip(labels, found, strict=False), first + 1):
            if is_assigned(value):
                self._add(label, value, at)
        if names.modules:
            self._imports(function, place, names)

    def _imports(self, function: FunctionType, place: int, names: Names) -> None:
        def read(function: FunctionType) -> list[ModuleType]:
            return names.imported(str(function.__globals__.get("__package__") or ""))

        first, modules = self.reads.of(place, function, read)
        for at, module in enumerate(modules, first):
            self._value(module, f"module {cast('ModuleType', module).__name__}", at)

    def _value(self, value: Any, label: str, place: int) -> Hashable:
        """A token for ``value``; ``label`` names it in retrace reasons."""
        if _is_constant(value):
            self.reads.held.append(value)
            return cast("Hashable", key_of(value))
        if isinstance(value, _ARRAYS):
            return self._array(value, place)
        if isinstance(value, _DEFINITIONS):
            return self._definition(value, label, place)
        return self._object(value, label, place)

    def kinds(self, structure: tree.Structure) -> None:
        """Read the classes of the containers in ``structure``: their methods may be called."""
        if structure.kind is not None:
            self._class(structure.kind)
            for child in structure.children:
                self.kinds(child)

    def _name(self, value: object) -> int:
        """The id of ``value`` as its token."""
        self.alive.append(value)
        return id(value)

    def _definition(self, value: Any, label: str, place: int) -> Hashable:
        if isinstance(value, type):
            self.reads.held.append(value)
            return self._class(value)
        module = value.__name__ if isinstance(value, ModuleType) else value.__module__
        if not isinstance(value, FunctionType | ModuleType) or is_library(module or ""):
            return self._name(value)
        if (seen := self._once(value)) is not None:
            return seen
        if isinstance(value, ModuleType):
            label = f"module {value.__name__}"
            self._scopes.append(_Scope(label, place, value, vars, "module"))
            return self._name(value)
        self._code(value, place, label)
        first, (defaults, by_name, *others) = self.reads.of(place, value, read_metadata)
        self.reads.held += others
        if vars(value):
            self._scopes.append(_Scope(label, place, value, vars, "object"))
        return "function", self._all((defaults, by_name), label, first)

    def _class(self, kind: type) -> type:
        """``kind``, whose methods and attributes become scopes if it is a class of user code."""
        if not is_library(kind.__module__) and self._once(kind) is None:
            first, (order, *found) = self.reads.of(FUNCTION, self._function, MroReader(kind))
            self.reads.held.append(order)
            for place, base in enumerate(cast("list[type]", found), first + 1):
                if not is_library(base.__module__):
                    label = f"class {base.__qualname__}"
                    self._scopes.append(_Scope(label, place, base, vars, "class"))
        return kind

    def _array(self, value: Any, place: int) -> Hashable:
        if isinstance(value, Parameter):
            known = self._places.get(id(value))
            if known is None:
                known = self._places[id(value)] = len(self.parameters)
                self.parameters.append(value)
                self.parameter_places.append(place)
            return "parameter", known, value.type
        if isinstance(value, Tensor):  # its elements are immutable, so identity is enough
            _, (donated, elements) = self.reads.of(place, value, state_of)
            return "tensor", self._name(value), donated, self._name(elements)
        token = array_token(value)
        held: object = value
        if isinstance(value, np.generic):  # cannot be changed
            self.reads.held.append(held)
        else:
            self.arrays.append((place, type(held), token))
        if not isinstance(token[-1], bytes):
            self._name(held)
        return token

    def _once(self, value: object) -> tuple[str, int] | None:
        """A back reference for an object met before; None the first time."""
        place = self._seen.get(id(value))
        if place is not None:
            return "seen", place
        self._seen[id(value)] = len(self._seen)
        self._held.append(value)
        return None

    def _object(self, value: Any, label: str, place: int) -> Hashable:
        if (seen := self._once(value)) is not None:
            return seen
        kind = self._class(cast("type[object]", type(value)))
        if (container := tree.container_of(kind)) is not None:
            return self._container(value, container, label, place)
        first, parts = self.reads.of(place, value, reader_of_parts(value))
        if parts:
            return kind, self._all(parts, label, first)
        if is_library(kind.__module__) and hasattr(value, "__array__"):
            return self._array(value, place)  # of torch or another library
        read, fields = reader_of_contents(value), fields_of(value)
        if read is None and fields is None:
            return kind, self._name(value)
        if fields is not None:
            # Methods of a library are not analysed: they may read any field.
            whole = any(is_library(base.__module__) for base in kind.__mro__[:-1])
            attributes = vars if fields is getattr(value, "__dict__", None) else all_fields
            self._scopes.append(_Scope(label, place, value, attributes, "object", whole))
        if read is None:
            return kind, ()
        first, contents = self.reads.of(place, value, read)
        return kind, self._all(contents, label, first)

    def _container(self, value: Any, container: tree.Container, label: str, place: int) -> Hashable:
        kind = cast("type[object]", type(value))
        if self._level > tree.MOST_LEVELS:
            raise tree.too_deep(value, label)
        if kind is tuple or kind is list:
            first, children = self.reads.of(place, value, tuple)
            return kind, self._all(children, label, first)
        if (fields := tree.plain_fields(value)) is not None:
            first, children = self.reads.fields(place, value, fields)
            return kind, self._all(children, label, first)

        first, found = self.reads.of(place, value, ContainerReader(container))
        count = len(found) // 2
        labels, children = found[:count], found[count:]
        self.reads.labels(labels)
        return kind, key_of(tuple(labels)), self._all(children, label, first + count)

    def _all(self, values: Iterable[object], label: str, first: int) -> tuple[Hashable, ...]:
        self._level += 1
        try:
            return tuple([self._value(v, label, place) for place, v in enumerate(values, first)])
        finally:
            self._level -= 1

"""The reads of a guard as rows of checks: each value that was read is compared where it is found.

`gptrs.jit.guards` repeats a read log and compares all values afterwards. Here each read becomes
rows that compare what they find, so that the parent of a later read is known by its address when
that read's rows are reached. A reader without rows raises `NoRowsError`: the call keeps to the
Python path.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType, WrapperDescriptorType
from typing import Any

import numpy as np

from gptrs.ir.tensor import Tensor
from gptrs.jit.fast_path.object_graph import (
    method_parts,
    set_elements,
    state_of,
    wrapped_function,
)
from gptrs.jit.fast_path.read_log import (
    AbsenceReader,
    CodeReader,
    ContainerReader,
    ExactReader,
    MroReader,
    NamesReader,
    read_metadata,
)
from gptrs.jit.guards import Guard
from gptrs.jit.native_call.checks import Checks, NoRowsError
from gptrs.kernels.native_call.layout import (
    CONTENT,
    METHOD_FUNCTION,
    METHOD_SELF,
    SET_SIZE,
    SIZE,
    slot,
    type_offset,
)
from gptrs.kernels.native_call.rows import Op

_CONTIGUOUS = 0x001


def add_guard(checks: Checks, guard: Guard, roots: int, values: Sequence[Any]) -> None:
    """Add the reads of ``guard``, which has just read ``values``, the number of whose arguments is
    ``roots``. Raises `NoRowsError`."""
    rows = _GuardRows(checks)
    code = guard.code
    place = 1 + roots
    count = 1 + len(guard.function.__closure__ or ()) + _count(code.present)
    rows.code(guard.function, values[place : place + count], code)
    place += count
    for parent, kind, names, count, read, alike in guard.checks:
        if alike is not None and names is not None:
            parents = parent(values)
            for number, each in enumerate(parents):
                column = values[place + number : place + len(names) * len(parents) : len(parents)]
                rows.attributes(each, kind, dict(zip(names, column, strict=True)))
            place += len(names) * len(parents)
            continue
        found = values[place : place + count]
        if names is not None:
            rows.attributes(values[parent], kind, dict(zip(names, found, strict=False)))
        else:
            rows.read(values[parent], kind, read, found)
        place += count
    for at, kind, token in guard.arrays:
        rows.elements(values[at], kind, token[-1])
    checks.length(guard.intact)


def _count(names: Sequence[str]) -> int:
    """The number of values that a reader of names returns: of a single one twice that."""
    return 2 if len(names) == 1 else len(names)


class _GuardRows:
    """Adds rows for reads, by their readers."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._readers: dict[object, Callable[[int, Any, Any, Sequence[Any]], None]] = {
            CodeReader: lambda register, _, read, found: self._code(register, found, read),
            NamesReader: self._names,
            AbsenceReader: self._absence,
            ExactReader: self._exact,
            MroReader: self._mro,
            ContainerReader: self._container,
            tuple: self._sequence,
            state_of: self._state,
            read_metadata: self._metadata,
            method_parts: self._method,
            wrapped_function: self._wrapped,
            set_elements: self._set,
        }

    def code(self, function: FunctionType, found: Sequence[Any], read: CodeReader) -> None:
        self._code(self._checks.constant(function), found, read)

    def read(self, parent: Any, kind: type, read: Any, found: Sequence[Any]) -> None:
        """The read of ``parent``, of type ``kind``, that returned ``found``."""
        add = self._readers.get(read) or self._readers.get(type(read))
        if add is None:
            raise NoRowsError
        register = self._checks.constant(parent)
        self._checks.type(register, kind)
        add(register, parent, read, found)

    def attributes(self, parent: Any, kind: type, values: Mapping[str, Any]) -> None:
        """All attributes of an instance, in their order."""
        register = self._checks.constant(parent)
        self._checks.type(register, kind)
        keys = [*parent.__dict__]
        self._checks.exactly(
            self._checks.attributes(register, parent), [(k, id(values[k])) for k in keys]
        )

    def elements(self, array: Any, kind: type, elements: object) -> None:
        """The elements of a captured array."""
        if kind is not np.ndarray or not isinstance(elements, bytes):
            raise NoRowsError  # a checksum of a large array, or an array of another library
        register = self._checks.constant(array)
        self._checks.array(register, self._checks.new_array(), array)
        self._checks.add(Op.FLAGS, register, 0, _CONTIGUOUS)
        self._checks.elements(register, elements)

    def _mapping(self, register: int, parent: Any, mapping: object) -> int:
        """The dictionary behind ``vars(parent)``."""
        if mapping is not vars:
            raise NoRowsError
        if isinstance(parent, ModuleType):
            return self._checks.load(Op.LOAD, register, CONTENT)
        if isinstance(parent, type):
            return self._checks.load(Op.LOAD, register, type_offset("__dict__"))
        return self._checks.attributes(register, parent)

    def _call(self, register: int, function: str) -> int:
        """A register with what a function of C returns."""
        address = ctypes.cast(getattr(ctypes.pythonapi, function), ctypes.c_void_p).value
        return self._checks.load(Op.CALL, register, address or 0)

    def _code(self, register: int, found: Sequence[Any], read: CodeReader) -> None:
        checks, code = self._checks, found[0]
        checks.same(self._call(register, "PyFunction_GetCode"), code)
        count = len(code.co_freevars)
        closure = self._call(register, "PyFunction_GetClosure")
        if count:
            cells = checks.unpack(closure, tuple(found[1 : 1 + count]))
            for cell, content in zip(cells, found[1:], strict=False):
                checks.same(checks.cell(cell), content)
        else:
            checks.add(Op.SAME, closure, 0, 0)
        if not (read.present or read.absent):
            return
        scope = self._call(register, "PyFunction_GetGlobals")
        with checks.looked_at_once(scope):
            for name, value in zip(read.present, found[1 + count :], strict=False):
                checks.item(scope, name, value)
            for name in read.absent:
                checks.absent(scope, name)

    def _metadata(self, register: int, _: Any, __: Any, found: Sequence[Any]) -> None:
        checks, (defaults, by_name, module, attributes) = self._checks, found
        if module is None:
            raise NoRowsError
        getters = ("PyFunction_GetDefaults", "PyFunction_GetKwDefaults", "PyFunction_GetModule")
        for name, value in zip(getters, (defaults, by_name, module), strict=True):
            wanted = 0 if value is None else id(value)
            checks.add(Op.SAME, self._call(register, name), 0, wanted)
        if not attributes:  # else the names of the attributes are read, too
            checks.add(Op.WORD, checks.load(Op.ATTRIBUTES, register), 0, SIZE, 0)

    def _names(self, register: int, parent: Any, read: NamesReader, found: Sequence[Any]) -> None:
        mapping = self._mapping(register, parent, read.mapping)
        with self._checks.looked_at_once(mapping):
            for name, value in zip(read.names, found, strict=False):
                self._checks.item(mapping, name, value)

    def _absence(self, register: int, parent: Any, read: AbsenceReader, _: object) -> None:
        mapping = self._mapping(register, parent, read.mapping)
        for name in read.absent:
            self._checks.absent(mapping, name)

    def _exact(self, register: int, parent: Any, read: ExactReader, found: Sequence[Any]) -> None:
        values = dict(zip(read.names, map(id, found), strict=False))
        pairs = [(key, values.get(key, 0)) for key in vars(parent)]
        self._checks.exactly(self._mapping(register, parent, read.mapping), pairs)

    def _mro(self, _: int, __: Any, read: MroReader, found: Sequence[Any]) -> None:
        kind = self._checks.constant(read.kind)
        self._checks.same(self._checks.load(Op.LOAD, kind, type_offset("__mro__")), found[0])

    def _container(self, register: int, parent: Any, _: Any, found: Sequence[Any]) -> None:
        if type(parent) is not dict:
            raise NoRowsError
        count = len(found) // 2
        pairs = [(k, id(v)) for k, v in zip(found[:count], found[count:], strict=True)]
        self._checks.exactly(register, pairs)

    def _sequence(self, register: int, parent: Any, _: Any, found: Sequence[Any]) -> None:
        if type(parent) not in (tuple, list):
            raise NoRowsError
        words = len(found), self._checks.ids(found), int(type(parent) is list)
        self._checks.add(Op.ITEMS, register, 0, *words)

    def _state(self, register: int, _: Any, __: Any, found: Sequence[Any]) -> None:
        if found[0]:
            raise NoRowsError
        state = self._checks.load(Op.LOAD, register, slot(Tensor, "_donated_to"))
        self._checks.same(state, "")
        elements = self._checks.load(Op.LOAD, register, slot(Tensor, "_array"))
        self._checks.same(elements, found[1])

    def _method(self, register: int, _: Any, __: Any, found: Sequence[Any]) -> None:
        for offset, value in zip((METHOD_FUNCTION, METHOD_SELF), found, strict=True):
            self._checks.same(self._checks.load(Op.LOAD, register, offset), value)

    def _set(self, register: int, parent: Any, _: Any, found: Sequence[Any]) -> None:
        if found or not isinstance(parent, set | frozenset):
            raise NoRowsError
        self._checks.add(Op.WORD, register, 0, SET_SIZE, 0)

    def _wrapped(self, register: int, parent: Any, _: Any, found: Sequence[Any]) -> None:
        """The function below a wrapper: of a static or class method, or an attribute."""
        kind = type(parent)
        if kind in (staticmethod, classmethod):
            self._checks.same(self._checks.load(Op.LOAD, register, CONTENT), found[0])
            return
        if any(hasattr(kind, name) for name in ("__wrapped__", "__getattr__")):
            raise NoRowsError
        if not isinstance(kind.__getattribute__, WrapperDescriptorType):
            raise NoRowsError  # a function of the user
        if not kind.__dictoffset__:
            if found:
                raise NoRowsError
            return
        mapping = self._checks.attributes(register, parent)
        if found:
            self._checks.item(mapping, "__wrapped__", found[0])
        else:
            self._checks.absent(mapping, "__wrapped__")

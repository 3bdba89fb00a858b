"""What a native call checks: `Checks` appends rows, `gptrs.kernels.native_call` runs them.

An address in a row is compared, or belongs to an object that lives as long as the record, or was
reached by the rows before: no row reads an object that may be gone.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import GetSetDescriptorType
from typing import Any

import numpy as np

from gptrs.ir.types import Array
from gptrs.kernels.native_call.layout import CONTENT, SIZE, TYPE, data_of, has_versions
from gptrs.kernels.native_call.rows import ROW, Op


class NoRowsError(Exception):
    """There are no rows for an argument or a read: its calls keep to the Python path."""


class Checks:
    """A list of rows, and the objects that they refer to."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.registers = 2
        self.arrays = 0
        self.held: list[object] = []
        self._alike: tuple[object, ...] = ()

    def new(self, count: int = 1) -> int:
        """The first of ``count`` new registers."""
        self.registers += count
        return self.registers - count

    def new_array(self) -> int:
        """The number of a new array."""
        self.arrays += 1
        return self.arrays - 1

    def add(self, op: Op, source: int = 0, target: int = 0, *words: int) -> None:
        a, b, c = (*words, 0, 0, 0)[:3]
        self.rows += op, source, target, a, b, c

    def load(self, op: Op, source: int, *words: int) -> int:
        """A row whose target is a new register, which is returned."""
        target = self.new()
        self.add(op, source, target, *words)
        return target

    def words(self, words: Iterable[int]) -> int:
        """The address of an array of these words."""
        array = np.array([*words], np.uint64)
        self.held.append(array)
        return data_of(array)

    def ids(self, values: Sequence[object]) -> int:
        """The address of the ids of ``values``, which are not kept alive."""
        return self.words(map(id, values))

    def constant(self, value: object) -> int:
        """A register with ``value``, which must be alive whenever this row is reached."""
        return self.load(Op.CONST, 0, id(value))

    def same(self, register: int, value: object) -> None:
        self.add(Op.SAME, register, 0, id(value))

    def type(self, register: int, kind: type) -> None:
        self.held.append(kind)
        self.add(Op.WORD, register, 0, TYPE, id(kind))

    def equal(self, register: int, value: object) -> None:
        """The register equals ``value``, an exact string, bytes or integer."""
        self.held.append(value)
        self.add(Op.EQUAL, register, 0, id(value))

    def unpack(self, register: int, values: Sequence[object]) -> range:
        """Registers of the items of a tuple or list of as many as ``values``."""
        first, count = self.new(len(values)), len(values)
        self.add(Op.UNPACK, register, first, count, 0, int(type(values) is list))
        return range(first, first + count)

    def entries(self, register: int, labels: Sequence[Any]) -> range:
        """Registers of the values of a dictionary with exactly these keys in this order."""
        first, count = self.new(len(labels)), len(labels)
        self.held += labels
        self.add(Op.DICT, register, first, count, self.ids(labels), id(dict))
        return range(first, first + count)

    def exactly(self, register: int, pairs: Sequence[tuple[object, int]]) -> None:
        """The dictionary has these keys in this order, with values of these ids (0: any)."""
        self.held += [key for key, _ in pairs]
        words = self.words(word for key, value in pairs for word in (id(key), value))
        self.add(Op.ENTRIES, register, 0, len(pairs), words)

    def item(self, register: int, key: object, value: object) -> None:
        """The dictionary has ``value`` at ``key``."""
        self.held.append(key)
        self.same(self.load(Op.ITEM, register, id(key)), value)

    def absent(self, register: int, key: object) -> None:
        self.held.append(key)
        self.add(Op.SAME, self.load(Op.ITEM, register, id(key), 1), 0, 0)

    @contextmanager
    def looked_at_once(self, register: int) -> Generator[None]:
        """The rows of this block are about the dictionary alone: they are run again when it has
        changed since they held."""
        if not has_versions():
            yield
            return
        version = np.zeros(1, np.uint64)  # of no dictionary
        self.held.append(version)
        self.add(Op.UNCHANGED, register, 0, data_of(version))
        start = len(self.rows)
        yield
        self.add(Op.REMEMBER, register, 0, data_of(version))
        self.rows[start - 2] = (len(self.rows) - start) // ROW

    def global_(self, module: object, name: str) -> None:
        """A global of a module that lives on is the object that it is now."""
        scope = self.constant(vars(module))
        value = vars(module)[name]
        self.held.append(value)
        with self.looked_at_once(scope):
            self.item(scope, name, value)

    def context(self, variable: ContextVar[Any]) -> None:
        """A context variable, which lives on, has the value that it has now."""
        value = variable.get()
        self.held.append(value)
        self.same(self.load(Op.CONTEXT, 0, id(variable)), value)

    def length(self, values: list[Any]) -> None:
        """A list, which lives on, is as long as it is now."""
        self.held.append(values)
        self.add(Op.WORD, self.constant(values), 0, SIZE, len(values))

    def array(self, register: int, number: int, array: Array) -> None:
        """Array ``number`` is an ndarray of this dtype and shape. A row covers several of a kind
        whose registers and numbers follow each other."""
        row = id(array.dtype), array.shape, register - number, len(self.rows)
        if row == self._alike and number == self.rows[-4] + self.rows[-3]:
            self.rows[-3] += 1
            return
        self.held.append(array.dtype)
        words = self.words((id(np.ndarray), id(array.dtype), array.ndim, *array.shape))
        self.add(Op.ARRAY, register, number, 1, words)
        self._alike = *row[:3], len(self.rows)

    def elements(self, register: int, elements: bytes) -> None:
        copy = np.frombuffer(elements, np.uint8)
        self.held.append(copy)
        self.add(Op.ELEMENTS, register, 0, len(elements), data_of(copy))

    def attributes(self, register: int, parent: object) -> int:
        """A register with the dictionary of an instance. Raises `NoRowsError` if its class has
        something else of that name."""
        kinds = type(parent).__mro__
        own = next((vars(kind)["__dict__"] for kind in kinds if "__dict__" in vars(kind)), None)
        if not isinstance(own, GetSetDescriptorType):
            raise NoRowsError
        return self.load(Op.ATTRIBUTES, register)

    def cell(self, register: int) -> int:
        """The content of a closure cell."""
        return self.load(Op.LOAD, register, CONTENT)

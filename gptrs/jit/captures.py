"""What a function reads besides its arguments: scalars, modules and arrays in closures, globals
and objects. A program depends on them, so they are part of its key and compared at every call."""

from __future__ import annotations

import dis
import enum
import sys
from functools import cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from gptrs import tree
from gptrs.ir.dims import Dim
from gptrs.ir.op import Op
from gptrs.ir.program import key_of
from gptrs.ir.tensor import Parameter, Tensor
from gptrs.ir.types import Array, DType, Type

_COMPARED_BYTES = (
    1 << 16
)  # captured arrays up to this size are compared in full, others by checksum
_OWN = {"gptrs", "numpy", "torch", "ml_dtypes", "builtins"}


class Names(NamedTuple):
    """What the code of a function may read by name."""

    globals: tuple[str, ...]
    attributes: frozenset[str]


@cache
def _names(code: CodeType) -> Names:
    """The global names that ``code`` loads, nested functions included, and all attribute names."""
    loads = {
        i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    attributes = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = _names(constant)
            loads.update(inner.globals)
            attributes |= inner.attributes
    return Names(tuple(sorted(loads)), frozenset(attributes))


@cache
def _is_library(module: str) -> bool:
    """Whether code of ``module`` is not the user's: what it reads does not change under us."""
    top = module.partition(".")[0]
    if top in _OWN or top in sys.stdlib_module_names:
        return not module.startswith("__main__")
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in file


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

    def index_of(self, parameter: Parameter) -> int | None:
        """The place of ``parameter`` in `parameters`, or None when the walk did not meet it."""
        return self._places.get(id(parameter))

    def function(self, function: FunctionType) -> tuple[object, ...]:
        """A token for a function and what its code reads."""
        self.alive.append(function)
        names = _names(function.__code__)
        found: list[object] = [id(function.__code__)]
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            found.append((f"closure {name}", self.value(content, names)))
        scope = function.__globals__
        for name in names.globals:
            if name in scope and (token := self.value(scope[name], names)) is not None:
                found.append((f"global {name}", token))
        return tuple(found)

    def value(self, value: Any, names: Names) -> object:
        """A token for ``value``; None for what never matters (modules and functions of libraries)."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | Dim):
            return key_of(value)
        if isinstance(value, Tensor | np.ndarray | np.generic):
            return self._array(value)
        if isinstance(value, ModuleType):
            return self._module(value, names)
        if isinstance(value, DType | Op | type | enum.Enum | FunctionType):
            return self._definition(value, names)
        return self._object(value, names)

    def _definition(self, value: Any, names: Names) -> object:
        module = getattr(value, "__module__", None) or ""
        if isinstance(value, DType | Op) or _is_library(module):
            return None
        if isinstance(value, FunctionType):
            return self._once(value) or self.function(value)
        self.alive.append(value)
        if isinstance(value, type):
            return id(value), self._attributes(vars(value), names)
        return id(value)

    def _module(self, module: ModuleType, names: Names) -> object:
        if _is_library(module.__name__):
            return None
        return self._once(module) or (id(module), self._attributes(vars(module), names))

    def _attributes(self, scope: Any, names: Names) -> tuple[object, ...]:
        tokens = ((n, self.value(scope[n], names)) for n in sorted(names.attributes & scope.keys()))
        return tuple(pair for pair in tokens if pair[1] is not None)

    def _array(self, value: Any) -> object:
        if isinstance(value, Parameter):
            place = self._places.get(id(value))
            if place is None:
                place = self._places[id(value)] = len(self.parameters)
                self.parameters.append(value)
            return "parameter", place, value.type
        self.alive.append(value)
        if isinstance(value, Tensor):  # never changes, so being the same one is enough
            return "tensor", id(value)
        array: Array = np.asarray(value)
        if array.nbytes <= _COMPARED_BYTES:
            return "array", key_of(array)
        return "array", id(value), Type.of(array), crc32(np.ascontiguousarray(array).data)

    def _once(self, value: object) -> object:
        """A token for something met before; None the first time."""
        place = self._seen.get(id(value))
        if place is not None:
            return "seen", place
        self._seen[id(value)] = len(self._seen)
        self.alive.append(value)
        return None

    def _object(self, value: Any, names: Names) -> object:
        if (seen := self._once(value)) is not None:
            return seen
        kind = type(value)
        if isinstance(value, MethodType):
            return self.value(value.__func__, names), self.value(value.__self__, names)
        wrapped = getattr(value, "__wrapped__", None)
        if isinstance(wrapped, FunctionType):
            return kind, self.function(wrapped)
        if (container := tree.container_of(kind)) is not None:
            labels, children = container.split(value)
            tokens = tuple([self.value(child, names) for child in children])
            return kind, tuple(map(key_of, labels)), tokens
        if isinstance(value, set | frozenset):
            return kind, frozenset(key_of(v) for v in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        fields = getattr(value, "__dict__", None)
        if fields is None or _is_library(kind.__module__):
            return id(value)
        return kind, tuple((name, self.value(v, names)) for name, v in sorted(fields.items()))

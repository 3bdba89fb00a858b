"""The arguments of a call as rows of checks: types, shapes, structure, plain values.

The same tokens as `gptrs.jit.fast_path.fast_key` collects, compared with those of one call. Arrays
are numbered in the order of that pass. Arguments without rows raise `NoRowsError`: scalars of
NumPy, subclasses of Tensor but for parameters, containers that a user registered.
"""

# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from numpy import ndarray

from gptrs import tree
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.jit.fast_path.fast_key import ArgumentBinding
from gptrs.jit.native_call.checks import Checks, NoRowsError
from gptrs.kernels.native_call.layout import SIZE, slot
from gptrs.kernels.native_call.rows import BY_NAME, POSITIONAL, Op

_NUMBERS = {int: Op.INT, float: Op.FLOAT, complex: Op.COMPLEX}


def add_arguments(
    checks: Checks, binding: ArgumentBinding, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[int, int]:
    """Add the arguments of a call, bound by ``binding``. Returns the registers of the arrays, by
    number; numbers have none. Raises `NoRowsError`."""
    rows = _ArgumentRows(checks)
    registers = [*checks.unpack(POSITIONAL, tuple(args))]
    if kwargs:
        registers += checks.entries(BY_NAME, [*kwargs])
    else:
        checks.add(Op.WORD, BY_NAME, 0, SIZE, 0)
    values = [*args, *kwargs.values(), *binding.defaults]
    for default in binding.defaults:
        checks.held.append(default)
        registers.append(checks.constant(default))
    order = range(len(values)) if binding.order is None else binding.order
    for number, place in enumerate(order):
        static = binding.static is not None and binding.static[number]
        add = rows.static if static else rows.traced
        add(registers[place], values[place])
    return rows.arrays


class _ArgumentRows:
    """Adds rows for arguments, by their types."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self.arrays: dict[int, int] = {}

    def traced(self, register: int, value: Any) -> None:
        """As `add_traced` of the fast key."""
        checks, kind = self._checks, cast("type[Any]", type(value))
        if kind is Tensor:
            checks.type(register, kind)
            weak = checks.load(Op.LOAD, register, slot(Tensor, "weak"))
            checks.same(weak, value.weak)
            elements = checks.load(Op.LOAD, register, slot(Tensor, "_array"))
            self._array(elements, value._array)
        elif kind is ndarray:
            self._array(register, value)
        elif value is None or kind in (bool, str, bytes):
            checks.equal(register, value)
        elif kind in _NUMBERS:
            checks.type(register, kind)
            checks.add(_NUMBERS[kind], register, checks.new_array())
        elif isinstance(value, Tensor) and kind is not Parameter:
            raise NoRowsError
        elif not getattr(kind, "is_module", False) and tree.container_of(kind):
            self._container(register, value, self.traced)
        elif hasattr(kind, "__array__") and kind is not Parameter:
            raise NoRowsError  # a scalar of NumPy
        else:
            self._object(register, value)

    def static(self, register: int, value: Any) -> None:
        """As `add_static` of the fast key."""
        kind = cast("type[Any]", type(value))
        if value is None or kind in (bool, str, bytes, int):
            self._checks.equal(register, value)
        elif tree.container_of(kind):
            self._container(register, value, self.static)
        elif kind.__hash__ is object.__hash__ and not isinstance(value, Tensor):
            self._object(register, value)
        else:
            raise NoRowsError

    def _object(self, register: int, value: Any) -> None:
        self._checks.same(register, value)
        self._checks.type(register, type(value))

    def _array(self, register: int, array: Any) -> None:
        number = self._checks.new_array()
        self._checks.array(register, number, array)
        self.arrays[number] = register

    def _container(self, register: int, value: Any, add: Callable[[int, Any], None]) -> None:
        checks, kind = self._checks, cast("type[Any]", type(value))
        if kind is not dict:
            checks.type(register, kind)
        if kind is tuple or kind is list:
            children = cast("Sequence[Any]", value)
            registers = checks.unpack(register, value)
        elif kind is dict:
            if not all(type(label) in (str, int) for label in value):
                raise NoRowsError
            children = value.values()
            registers = checks.entries(register, [*value])
        elif (fields := tree.plain_fields(value)) is not None:
            children = fields.values()
            registers = checks.entries(checks.attributes(register, value), [*fields])
        elif isinstance(value, tuple) and tree.is_named_tuple(kind):
            children = cast("Sequence[Any]", value)
            registers = checks.unpack(register, tuple(value))
        else:
            raise NoRowsError
        for child, place in zip(children, registers, strict=True):
            add(place, child)

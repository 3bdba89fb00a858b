"""The two interpreters of op calls: `Eager` computes at once, `Recorder` traces into a program.

Both run the same preparation and type rule, so that errors read the same. `gptrs.jit.trace` runs a
user's function under a `Recorder`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, count
from keyword import iskeyword
from types import FunctionType
from typing import Any, cast

from gptrs.errors import Location
from gptrs.ir import nan_watch
from gptrs.ir.call_stack import call_location
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.operands import as_operand, elements, map_operand, tensors_in
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import (
    Attrs,
    Instruction,
    Operand,
    Operation,
    Param,
    Program,
    Role,
    Value,
)
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import leak
from gptrs.ir.types import Array, Type


def _is_weak(op: Operation, operands: Sequence[object]) -> bool:
    tensors = tensors_in(operands) if op.elementwise else []
    return bool(tensors) and all(t.weak for t in tensors)


def _one_or_all(results: tuple[Tensor, ...]) -> Any:
    return results[0] if len(results) == 1 else results


class Eager:
    """Every op runs at once on its NumPy meaning, after the same type rule as when traced."""

    def apply(self, op: Operation, operands: tuple[Any, ...], attrs: Attrs) -> Any:
        ready, attrs = op.prepare([as_operand(o) for o in operands], attrs)
        for tensor in tensors_in(ready):
            if tensor.is_traced:
                raise leak(tensor)
        types = op.infer(ready, attrs)
        arrays = op.evaluate([map_operand(elements, o) for o in ready], attrs, types)
        weak = _is_weak(op, ready)
        returned = _one_or_all(
            tuple(Tensor.of_array(a, t, weak=weak) for a, t in zip(arrays, types, strict=True))
        )
        if (mode := nan_watch.nan_mode()) is not None:
            nan_watch.look(f"ptir.{op.name}", ready, returned, mode)
        return returned


EAGER = Eager()


def program_of(function: FunctionType) -> Program:
    """Trace a function whose arguments are annotated as in the text of a program."""
    recorder = Recorder(function.__name__)
    inputs: list[Tensor] = []
    for name, text in function.__annotations__.items():
        type, *flags = str(text).split()
        role: Role = "parameter" if "parameter" in flags else "input"
        donated = "donated" in flags
        inputs.append(recorder.input(Type.parse(type), name, role=role, donated=donated))
    with interpreter(recorder):
        results = function(*inputs)
    return recorder.finish(cast("Any", results if isinstance(results, tuple) else (results,)))


class Recorder:
    """Traces one function into a program.

    ``on_parameter`` returns the slot name for a model's parameter, ``on_constant`` is called with
    each array that becomes a constant. Instructions carry the user's current line, or ``where`` if
    that is given.
    """

    def __init__(
        self,
        name: str,
        *,
        on_parameter: Callable[[Parameter], str] | None = None,
        on_constant: Callable[[Array], None] | None = None,
        where: Location | None = None,
    ) -> None:
        self.name = name
        self.where = where
        self.params: list[Param] = []
        self.body: list[Instruction] = []
        self.on_parameter = on_parameter
        self.on_constant = on_constant
        self._slots: dict[int, Value] = {}  # by id of the parameter or array kept in _alive
        self._alive: list[object] = []

    def input(
        self,
        type: Type,
        name: str,
        *,
        role: Role = "input",
        donated: bool = False,
        weak: bool = False,
    ) -> Tensor:
        """A new parameter of the program. Its name is made an identifier that is not yet taken."""
        base = re.sub(r"\W+", "_", name).strip("_") or "x"
        base = f"{base}_" if iskeyword(base) or not base.isidentifier() else base
        taken = {p.name for p in self.params}
        unique = next(n for n in chain([base], (f"{base}_{i}" for i in count(1))) if n not in taken)
        param = Param(type, unique, role=role, donated=donated, origin=name)
        self.params.append(param)
        return Tensor.of_value(param, self, weak=weak)

    def apply(self, op: Operation, operands: tuple[Any, ...], attrs: Attrs) -> Any:
        ready, attrs = op.prepare([as_operand(o) for o in operands], attrs)
        lifted = tuple(self.lift(o) for o in ready)
        where = self.where or call_location()
        line = f" at line {where.line}" if where else ""
        results = tuple(
            Value(type, f"result of {op.name}{line}") for type in op.infer(lifted, attrs)
        )
        self.body.append(Instruction(op, lifted, attrs, results, where))
        weak = _is_weak(op, ready)
        return _one_or_all(tuple(Tensor.of_value(r, self, weak=weak) for r in results))

    def lift(self, operand: Any) -> Operand:
        """``operand`` as an operand of this program; parameters become slots, arrays constants."""
        if isinstance(operand, tuple):
            return tuple(self.lift(o) for o in cast("tuple[object, ...]", operand))
        if not isinstance(operand, Tensor):
            return operand
        if operand.is_traced:
            if operand.recorder is not self:
                raise leak(operand)
            return cast("Value", operand.value)
        if isinstance(operand, Parameter) and self.on_parameter is not None:
            if id(operand) not in self._slots:
                slot = self.input(operand.type, self.on_parameter(operand), role="parameter")
                self._remember(operand, cast("Value", slot.value))
            return self._slots[id(operand)]
        array = operand.numpy()
        if id(array) not in self._slots:
            if self.on_constant is not None:
                self.on_constant(array)
            value = Value(Type.of(array), "captured constant")
            attrs: Attrs = {"value": array.copy()}  # the user may write into the array later
            where = self.where or call_location()
            self.body.append(Instruction(OPS["constant"], (), attrs, (value,), where))
            self._remember(array, value)
        return self._slots[id(array)]

    def _remember(self, key: object, value: Value) -> None:
        self._slots[id(key)] = value
        self._alive.append(key)

    def finish(self, results: Sequence[Tensor | Value]) -> Program:
        """The program that returns ``results``."""
        values = tuple(cast("Value", r if isinstance(r, Value) else self.lift(r)) for r in results)
        return Program(self.name, tuple(self.params), tuple(self.body), values)

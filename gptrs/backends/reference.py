"""The reference backend: each instruction by its NumPy meaning. The oracle of all other backends.

It claims no composite. Other backends use its plan for steps without a kernel and for the texts of
errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gptrs.backends.base import Backend, DeviceInfo, Plan, PlanReport, StepReport
from gptrs.backends.host import cpu_device
from gptrs.ir.dims import Dim, size_at
from gptrs.ir.ops.literal import constant
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Attrs, Instruction, Program, Value
from gptrs.ir.sizes import apply, filled, is_symbolic
from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class _Step:
    instruction: Instruction
    symbolic: bool  # has dimensions to fill in before it can run
    last_used: tuple[Value, ...]  # values that no later step reads


class ReferencePlan(Plan):
    """Interprets the instructions in order, dropping each value after its last use."""

    def __init__(self, program: Program) -> None:
        self.program = program
        kept = set(program.results)
        self._constants = {i.result for i in program.body if i.op is constant}
        steps: list[_Step] = []
        for instruction in reversed(program.body):
            dying = tuple({*instruction.values(), *instruction.results} - kept)
            kept.update(dying)
            symbolic = is_symbolic((instruction.operands, tuple(instruction.attrs.values())))
            steps.append(_Step(instruction, symbolic, dying))
        self._steps = steps[::-1]
        self._read = kept  # unused parameters are not loaded

    def run(
        self, arguments: Sequence[Array | Parameter], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        values: dict[Value, Array] = {
            param: argument.numpy() if isinstance(argument, Parameter) else argument
            for param, argument in zip(self.program.params, arguments, strict=True)
            if param in self._read
        }
        borrowed = {id(array) for array in values.values()}
        for step in self._steps:
            for value, array in zip(
                step.instruction.results, _evaluate(step, values, sizes), strict=True
            ):
                values[value] = array
                if value in self._constants:
                    borrowed.add(id(array))
            for value in step.last_used:
                del values[value]
        return tuple(_own(values[result], borrowed) for result in self.program.results)

    def report(self, sizes: Mapping[str, int]) -> PlanReport:
        steps = [
            StepReport("reference", i.op.name, 1, str(i.results[0].type), members=(i,))
            for i in self.program.body
        ]
        return PlanReport(self.program.name, tuple(steps), scheduled=self.program)


def _evaluate(
    step: _Step, values: Mapping[Value, Array], sizes: Mapping[str, int]
) -> tuple[Array, ...]:
    instruction = step.instruction
    operands = [_operand(o, values, sizes) for o in instruction.operands]
    attrs: Attrs = instruction.attrs
    if step.symbolic:
        attrs = {name: filled(value, sizes) for name, value in attrs.items()}
    return apply(instruction, operands, attrs)


def _operand(operand: Any, values: Mapping[Value, Array], sizes: Mapping[str, int]) -> Any:
    if isinstance(operand, Value):
        return values[operand]
    if isinstance(operand, Dim):
        return size_at(operand, sizes)
    if isinstance(operand, tuple):
        return tuple(_operand(o, values, sizes) for o in operand)  # pyright: ignore[reportUnknownVariableType]
    return operand


def _own(array: Array, borrowed: set[int]) -> Array:
    """``array`` itself when no other reference shares its memory, otherwise a copy."""
    if array.base is not None or id(array) in borrowed or not array.flags.c_contiguous:
        array = np.array(array, order="C", copy=True)
    borrowed.add(id(array))
    return array


class ReferenceBackend(Backend):
    """Claims nothing: every composite is decomposed."""

    name = "reference"

    def claims(self, instruction: Instruction) -> bool:
        return False

    def plan(self, program: Program, *, precise: bool = False) -> ReferencePlan:
        return ReferencePlan(program)

    def devices(self) -> tuple[DeviceInfo, ...]:
        return (cpu_device(),)

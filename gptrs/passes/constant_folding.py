"""Constant folding: evaluate instructions whose operands are constants.

Evaluation uses the NumPy meaning of the ops, so that the bits are those of the reference backend.
Part of the clean-up group of the pipeline. `broadcast_to`, `full` and `iota` stay in the program
until an instruction reads them: they are smaller than their values, and backends handle them
symbolically.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from gptrs.errors import PtirError
from gptrs.ir.dims import Dim
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.elementwise import pow_
from gptrs.ir.ops.literal import constant, full, iota
from gptrs.ir.ops.shape import broadcast_to
from gptrs.ir.primitives import Elementwise
from gptrs.ir.program import Instruction, Operand, Program, Value
from gptrs.ir.sizes import apply, is_symbolic
from gptrs.ir.types import Array, Type
from gptrs.ir.use_def import UseDef
from gptrs.passes.base import Context

_MOST_BYTES = 4096  # a page: more is computed only where that makes it less
_NEVER = frozenset([OpKind.CALL, OpKind.CONTROL, OpKind.EFFECT, OpKind.RANDOM])
_SPOKEN = frozenset([broadcast_to, full, iota])
"""Ops that are smaller than their value: they stay in the program for backends, and are evaluated
for their uses."""


def fold_constants(program: Program, context: Context) -> Program:
    """Replace instructions on constants and numbers by their value.

    The result is at most as large as the operands, or a page. An op that raises stays, so that the
    error is raised by the run. An elementwise op reads a constant of one element as a number.
    """
    folder = _Folder(program)
    body: list[Instruction] = []
    for instruction in program.body:
        made = folder.fold(instruction)
        if made is not None and not context.fuel.spend(f"fold {instruction.op.name}"):
            made = None
        body += made or [instruction]
        for each in made or [instruction]:
            folder.facts.add(each)
    return program.with_body(body, program.results)


class _Folder:
    """The constants known so far, in program order."""

    def __init__(self, program: Program) -> None:
        self.facts = UseDef(program)

    def fold(self, instruction: Instruction) -> list[Instruction] | None:
        """The replacement of an instruction with constant operands; None to keep it."""
        op = instruction.op
        if op.kind in _NEVER or op is constant or op in _SPOKEN:
            return None
        makers = [self.facts.maker(value) for value in instruction.values()]
        if not any(maker is not None and self._may_be_known(maker) for maker in makers):
            return None
        results = self._evaluated(instruction)
        if results is not None:
            return [
                Instruction(constant, (), {"value": array}, (result,), instruction.where)
                for result, array in zip(instruction.results, results, strict=True)
            ]
        return self._with_numbers(instruction)

    def _may_be_known(self, maker: Instruction) -> bool:
        return maker.op is constant or maker.op in _SPOKEN

    def _evaluated(self, instruction: Instruction) -> tuple[Array, ...] | None:
        """The results, if all operands are known and the results are small enough."""
        if is_symbolic(tuple(instruction.attrs.values())) or is_symbolic(instruction.operands):
            return None
        room = max(_MOST_BYTES, sum(map(self._held, set(instruction.values()))))
        if sum(_bytes(result.type) for result in instruction.results) > room:
            return None
        operands = [self._known(operand, room) for operand in instruction.operands]
        if any(map(_is_unknown, operands)):
            return None
        try:
            return tuple(map(_owned, apply(instruction, operands, instruction.attrs)))
        except (PtirError, ArithmeticError, ValueError):
            return None

    def _held(self, value: Value) -> float:
        """The bytes of the constant behind ``value``, 0 if there is none."""
        maker = self.facts.maker(self.facts.unbroadcast(value))
        return _bytes(maker.result.type) if maker and maker.op is constant else 0

    def _known(self, operand: Operand, room: float) -> Any:
        """An operand with constants as arrays; values that are not constant stay values."""
        if isinstance(operand, tuple):
            return tuple(self._known(part, room) for part in operand)
        maker = self.facts.maker(operand)
        if maker is None or not isinstance(operand, Value):
            return operand
        if maker.op is constant:
            return maker.attrs["value"]
        if maker.op not in _SPOKEN or _bytes(operand.type) > room:
            return operand
        inner = [self._known(part, room) for part in maker.operands]
        if any(map(_is_unknown, inner)) or is_symbolic(tuple(maker.attrs.values())):
            return operand
        return apply(maker, inner, maker.attrs)[0]

    def _with_numbers(self, instruction: Instruction) -> list[Instruction] | None:
        """An elementwise instruction with numbers in the place of constants of one element."""
        op = instruction.op
        if not isinstance(op, Elementwise) or len(instruction.operands) == 1:
            return None
        if op is pow_:
            return None  # NumPy rounds a power in another way when the exponent is a number
        first = int(cast("Elementwise[..., Any]", op).predicate)
        operands = list(instruction.operands)
        for i in range(first, len(operands)):
            number = self.facts.number(operands[i])
            if op.takes_number(i) and isinstance(number, bool | int | float):
                operands[i] = number
        changed = operands != list(instruction.operands)
        if not changed or not any(isinstance(o, Value) for o in operands[first:]):
            return None
        return [replace(instruction, operands=tuple(operands))]


def _bytes(type: Type) -> float:
    """The size of an array in bytes; infinite where an extent is symbolic."""
    count = 1
    for extent in type.shape:
        if isinstance(extent, Dim):
            return math.inf
        count *= extent
    return count * type.dtype.numpy.itemsize


def _is_unknown(operand: Any) -> bool:
    if isinstance(operand, tuple):
        return any(map(_is_unknown, cast("tuple[Any, ...]", operand)))
    return isinstance(operand, Value)


def _owned(array: Array) -> Array:
    """A read-only copy of ``array``."""
    own = np.array(array, order="C", copy=True)
    own.flags.writeable = False
    return own

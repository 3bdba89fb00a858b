"""Error propagation: evaluates a program by its meaning, with an error radius for each value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, cast

import numpy as np

from gptrs.debug.error_bounds.balls import Ball, joined, rounding, unknown
from gptrs.debug.error_bounds.radii import radii_of
from gptrs.ir.composites import Composite
from gptrs.ir.ops import linalg
from gptrs.ir.ops.composite import embedding, relu
from gptrs.ir.ops.control import cond, while_loop
from gptrs.ir.ops.custom import custom_call
from gptrs.ir.ops.elementwise import div, pow_, remainder, shift_left, shift_right
from gptrs.ir.ops.index import gather, scatter_add, scatter_reduce, take
from gptrs.ir.ops.literal import constant, full, iota
from gptrs.ir.ops.quantize import dequantize, quantize, requantize
from gptrs.ir.ops.segment import segment_reduce
from gptrs.ir.ops.vision import max_pool2d, relu6
from gptrs.ir.program import Instruction, Operation, Program, Value
from gptrs.ir.sizes import apply
from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass

# Composites of which no backend has a kernel that computes otherwise than their definition.
_AS_DEFINED: frozenset[Operation] = frozenset(
    [relu, relu6, embedding, max_pool2d, quantize, dequantize, requantize]
)
_LINALG = frozenset(getattr(linalg, name) for name in linalg.__all__)
_PLACING = frozenset([take, gather, scatter_add, scatter_reduce, segment_reduce])
_FAIL_ON_WHOLE = frozenset([div, remainder, pow_, shift_left, shift_right])
_LITERALS = frozenset([constant, full, iota])


@dataclass
class BallEvaluator:
    """``loose``: every float op may be off by some units in the last place, as rewrites may change
    how results round. ``extreme`` then says that a float was met that such rewrites need not keep:
    NaN, an infinity, or one near the largest or the least."""

    loose: bool = False
    extreme: bool = False
    unsure: list[str] = field(default_factory=list[str])
    """Ops of which it is not known whether they raise an error, or which branch they take."""

    def run(self, program: Program, balls: Sequence[Ball], *, loose: bool = False) -> list[Ball]:
        """The results of a program without symbols. Raises `ElementError` as the reference does."""
        known: dict[Value, Ball] = dict(zip(program.params, balls, strict=True))
        loose = loose or self.loose
        for ball in balls:
            self._look(ball)
        for instruction in program.body:
            results = self._results(instruction, known, loose)
            known.update(zip(instruction.results, results, strict=True))
        return [known[result] for result in program.results]

    def _results(
        self, instruction: Instruction, known: dict[Value, Ball], loose: bool
    ) -> list[Ball]:
        def replaced(operand: Any) -> Any:
            if isinstance(operand, tuple):
                return tuple(map(replaced, cast("tuple[Any, ...]", operand)))
            return known[operand] if isinstance(operand, Value) else operand

        operands = [replaced(operand) for operand in instruction.operands]
        op: Operation = instruction.op
        if isinstance(op, Composite):
            definition = op.definition(instruction.operands, instruction.attrs)
            inner = [known[value] for value in instruction.values()]
            loose = loose or op not in _AS_DEFINED
            return self.run(definition, inner, loose=loose)
        if op is custom_call:  # a kernel of the backend
            inner = [known[value] for value in instruction.values()]
            return self.run(instruction.attrs["definition"], inner, loose=True)
        if instruction.op.control:
            return self._control(instruction, operands, loose)
        values = [_values(operand) for operand in operands]
        arrays = apply(instruction, values, instruction.attrs)
        decides = _is_inexact if op in _LINALG else _is_unsure
        if can_fail(instruction) and any(map(decides, operands)):
            self.unsure.append(instruction.op.name)
        radii = radii_of(instruction, operands, values, arrays)
        found: list[Ball] = []
        for array, (radius, slack) in zip(arrays, radii, strict=True):
            ball = Ball(array, radius, slack)
            self._look(ball)
            found.append(_loosened(ball, instruction) if loose else ball)
        return found

    def _look(self, ball: Ball) -> None:
        if self.loose and not self.extreme and ball.dtype.is_float:
            size = np.abs(ball.value.astype(np.float64))
            tame = (size == 0) | ((size > 2.0**-10) & (size < 2.0**10))
            self.extreme = not bool(tame.all())

    def _control(self, instruction: Instruction, operands: list[Any], loose: bool) -> list[Ball]:
        attrs = instruction.attrs
        if instruction.op is cond:
            pred, given = operands
            branch = attrs["then"] if pred.value else attrs["otherwise"]
            found = self.run(branch, given, loose=loose)
            return self._doubted(instruction, [pred], found)
        if instruction.op is while_loop:
            state, captured = operands
            while (more := self.run(attrs["condition"], [*state, *captured], loose=loose)[0]).value:
                self._doubted(instruction, [more], [])
                state = self.run(attrs["body"], [*state, *captured], loose=loose)
            return self._doubted(instruction, [more], list(state))
        state, xs, captured = operands
        steps: list[list[Ball]] = []
        count, length = len(state), attrs["length"]
        for n in reversed(range(length)) if attrs["reverse"] else range(length):
            rows = [_row(x, n) for x in xs]
            found = self.run(attrs["body"], [*state, *rows, *captured], loose=loose)
            state = found[:count]
            steps.append(found[count:])
        if attrs["reverse"]:
            steps.reverse()
        outputs = [
            _stacked([step[n] for step in steps], result)
            for n, result in enumerate(instruction.results[count:])
        ]
        return [*state, *outputs]

    def _doubted(
        self, instruction: Instruction, decided_by: Sequence[Ball], found: list[Ball]
    ) -> list[Ball]:
        if all(ball.radius is None for ball in decided_by):
            return found
        self.unsure.append(instruction.op.name)
        return [Ball(ball.value, unknown(ball.value)) for ball in found]


def can_fail(instruction: Instruction) -> bool:
    """Whether elements decide if the op has a result."""
    if instruction.op in _FAIL_ON_WHOLE:
        return not instruction.result.type.dtype.is_float
    return instruction.op in _PLACING or instruction.op in _LINALG


def _values(operand: Any) -> Any:
    if isinstance(operand, tuple):
        return tuple(map(_values, cast("tuple[Any, ...]", operand)))
    return operand.value if isinstance(operand, Ball) else operand


def _is_unsure(operand: Any) -> bool:
    if isinstance(operand, tuple):
        return any(map(_is_unsure, cast("tuple[Any, ...]", operand)))
    whole = isinstance(operand, Ball) and not operand.dtype.is_float
    return whole and operand.radius is not None


def _is_inexact(operand: Any) -> bool:
    return isinstance(operand, Ball) and operand.radius is not None


def _loosened(ball: Ball, instruction: Instruction) -> Ball:
    """A float that was computed may be off by 2 units in the last place."""
    moved = instruction.op in _LITERALS
    if not ball.dtype.is_float or moved or not getattr(instruction.op, "arithmetic", True):
        return ball
    value = np.abs(ball.value.astype(np.float64))
    with np.errstate(all="ignore"):
        off = 4 * rounding(ball.dtype.compute, value)
    off = np.where(np.isfinite(value), off, 0.0)
    return Ball(ball.value, joined(ball.radius, off), ball.slack)


def _row(ball: Ball, n: int) -> Ball:
    radii = (None if r is None else np.asarray(r[n]) for r in (ball.radius, ball.slack))
    return Ball(np.asarray(ball.value[n]), *radii)


def _stacked(balls: Sequence[Ball], result: Value) -> Ball:
    # An extent that is negative at these sizes is the first step's error, or no step's.
    shape = (len(balls), *[max(int(n), 0) for n in result.type.shape[1:]])
    value = np.empty(shape, result.type.dtype.numpy)
    radius: Array = np.zeros(shape)
    for n, ball in enumerate(balls):
        value[n] = ball.value
        radius[n] = 0.0 if ball.radius is None else ball.radius
    return Ball(value, radius if radius.any() else None)

"""Bound of the error that one instruction makes by itself, on operands that are given.

The operands are exact, but for what a fused loop does not round: a narrow float that an op before
made, or a product that becomes part of a sum (the slack of a `Ball`). So the bound stays tight at
any depth of a program, where that of accumulated errors grows with every instruction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from gptrs.debug.error_bounds.balls import (
    LOOSE_MARGIN,
    MARGIN,
    Ball,
    Radius,
    finfo,
)
from gptrs.debug.error_bounds.error_propagation import BallEvaluator
from gptrs.ir.composites import Composite
from gptrs.ir.kinds import OpKind
from gptrs.ir.program import Instruction, Param, Program, Value, map_values
from gptrs.ir.types import Array, DType, f32, f64
from gptrs.lazy_dataclass import dataclass

# Units in the last place of the largest element of a result, for ops without radii whose kernels,
# or whose rewrites, do not compute as NumPy does: as in the rows of the op table (tests/cases).
_UNITS = {
    OpKind.ROWWISE: 16,  # Fourier transforms
    OpKind.WINDOW: 64,
    OpKind.INDEX: 16,  # sums of scattered elements in another order
    OpKind.MATRIX: 1024,  # times the condition of the matrix
    OpKind.CONTRACTION: 64,  # of complex numbers, as are the next two
    OpKind.REDUCTION: 64,
    OpKind.ELEMENTWISE: 16,
}
_PARTS: dict[str, DType] = {"cf32": f32, "cf64": f64}


def alone(instruction: Instruction) -> Program:
    """The program of one instruction: a parameter for each value that it reads, in order."""
    values = tuple(dict.fromkeys(instruction.values()))
    params = {value: Param(value.type, f"x{n}") for n, value in enumerate(values)}
    operands = map_values(instruction.operands, params.__getitem__)
    results = tuple(Value(result.type, result.origin) for result in instruction.results)
    body = (Instruction(instruction.op, operands, instruction.attrs, results, instruction.where),)
    return Program("alone", tuple(params.values()), body, results)


def read(instruction: Instruction, values: Mapping[Value, Array]) -> list[Array]:
    """The arguments of `alone`."""
    return [values[value] for value in dict.fromkeys(instruction.values())]


@dataclass
class OwnError:
    """Bounds for the instructions of a program, which come in order. ``rounds``: rewrites may
    change how results round."""

    rounds: bool
    _slack: dict[Value, Radius] = field(default_factory=dict[Value, Radius])

    def bounds(
        self, instruction: Instruction, values: Mapping[Value, Array]
    ) -> tuple[list[Array], list[Array]]:
        """The results by NumPy's meaning, and for each how far another may be from it, in f64.
        Infinite where nothing is known."""
        read = tuple(dict.fromkeys(instruction.values()))
        given = [Ball(values[value], None, self._slack.get(value)) for value in read]
        balls = BallEvaluator(loose=self.rounds).run(alone(instruction), given)
        self._slack |= zip(instruction.results, (ball.slack for ball in balls), strict=True)
        margin = LOOSE_MARGIN if self.rounds else MARGIN
        allowed: list[Array] = []
        for ball in balls:
            radius = _filled(instruction, ball, given)
            allowed.append(np.zeros(ball.value.shape) if radius is None else margin * radius)
        return [ball.value for ball in balls], allowed


def _filled(instruction: Instruction, ball: Ball, operands: Sequence[Ball]) -> Radius:
    """The radius of a result; for an op of which `radii_of` knows none, by `_UNITS`."""
    dtype = ball.dtype
    units = _UNITS.get(instruction.op.kind, 0)
    is_known = ball.radius is not None and bool(np.isfinite(ball.radius).any())
    if not units or is_known or not (dtype.is_float or dtype.is_complex) or not ball.value.size:
        return ball.radius
    arithmetic: bool = getattr(instruction.op, "arithmetic", False)
    primitive = not isinstance(instruction.op, Composite)
    moves = instruction.op.kind is OpKind.INDEX and not arithmetic
    exact = instruction.op.kind in (OpKind.ELEMENTWISE, OpKind.REDUCTION, OpKind.CONTRACTION)
    if not primitive or moves or (exact and not dtype.is_complex):
        return ball.radius
    size = np.abs(ball.value.astype(np.complex128 if dtype.is_complex else np.float64))
    largest = float(np.max(size, where=np.isfinite(size), initial=0.0))
    condition = _condition(operands) if instruction.op.kind is OpKind.MATRIX else 1.0
    eps = float(finfo(_PARTS.get(dtype.name, dtype.compute)).eps)
    return np.full(ball.value.shape, units * eps * largest * condition)


def _condition(operands: Sequence[Ball]) -> float:
    """The largest condition number of the matrices among ``operands``."""
    found = 1.0
    for ball in operands:
        if ball.value.ndim >= 2 and ball.value.size:
            wide = np.complex128 if ball.dtype.is_complex else np.float64
            try:
                each = np.asarray(np.linalg.cond(ball.value.astype(wide)))
            except np.linalg.LinAlgError:
                return float("inf")
            found = max(found, float(np.nan_to_num(each, nan=np.inf).max()))
    return found

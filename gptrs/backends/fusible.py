"""Fusibility: which instructions a fused loop can compute, and their costs.

An instruction is fusible if it has a form as a loop over elements, and if that loop cannot fail. An
instruction that may raise an error (an integer division by zero, the maximum of nothing) is a step
of its own, which reports the user's line. Used by `gptrs.backends.fusion`; a backend may restrict
it further.
"""

from __future__ import annotations

from gptrs.ir.dims import Dim, same, surely_greater
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.elementwise import (
    add,
    cast,
    div,
    maximum,
    minimum,
    neg,
    pow_,
    remainder,
    shift_left,
    shift_right,
    sub,
)
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Fails, Instruction, Operand

DTYPES = frozenset(
    [
        *("i1", "si8", "ui8", "si16", "ui16", "si32", "ui32", "si64", "ui64"),
        *("bf16", "f16", "f32", "f64"),
    ]
)
"""The dtypes of fused loops; instructions on others stay outside."""

_FUSIBLE = frozenset([OpKind.ELEMENTWISE, OpKind.VIEW, OpKind.FILL, OpKind.REDUCTION])
_MAY_FAIL = frozenset([div, remainder, pow_])  # on integers
_SHIFTS = frozenset([shift_left, shift_right])
_COUNTING = frozenset([add, sub, neg, maximum, minimum])  # cheap on integers


def cost(instruction: Instruction) -> int:
    """The cost of a scalar operation of the instruction, in additions (a rough estimate)."""
    return max(instruction.op.cost, 1)


def can_fuse(instruction: Instruction, dtypes: frozenset[str] = DTYPES) -> bool:
    """Whether a fused loop over ``dtypes`` can compute the instruction, and cannot fail."""
    op = instruction.op
    types = [v.type for v in (*instruction.values(), *instruction.results)]
    if any(type.dtype.name not in dtypes for type in types):
        return False
    if instruction.fails is not Fails.NEVER:
        return False
    if op is constant:
        return same(types[0].size, 1)
    if op is cast:  # f64 is rounded to 16 bits at once
        return not (types[0].dtype.bits == 64 and types[1].dtype.name in ("bf16", "f16"))
    if op in _MAY_FAIL and not types[-1].dtype.is_float:
        return op is not pow_ and _is_positive(instruction.operands[1])
    if op in _SHIFTS:
        return type(instruction.operands[1]) is int
    return op.kind in _FUSIBLE


def is_cheap(instruction: Instruction) -> bool:
    """Whether recomputing an element in several loops is faster than reading a stored one."""
    op = instruction.op
    if op in _COUNTING and instruction.result.type.dtype.is_integer:
        return True
    return op.cost == 0 or op.kind is OpKind.VIEW or op.kind is OpKind.FILL


def _is_positive(operand: Operand) -> bool:
    return isinstance(operand, int | Dim) and surely_greater(operand, 0)

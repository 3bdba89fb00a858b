"""Fusibility: which instructions a fused loop can compute, and their costs.

An instruction is fusible if it has a form as a loop over elements. What fails at some sizes (the
maximum of nothing) is fusible, as a plan is not used at such sizes; what fails at some elements (an
integer division by zero), if an operand says at which. Used by `gptrs.backends.fusion`; a backend
may restrict it further.
"""

from __future__ import annotations

from gptrs.ir.dims import same
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.elementwise import add, maximum, minimum, neg, sub
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Fails, Instruction, Value

DTYPES = frozenset(
    [
        *("i1", "si4", "ui4", "si8", "ui8", "si16", "ui16", "si32", "ui32", "si64", "ui64"),
        *("fp8_e4m3", "fp8_e5m2", "bf16", "f16", "f32", "f64", "cf32", "cf64"),
    ]
)
"""The dtypes of fused loops; instructions on others stay outside."""

_FUSIBLE = frozenset([OpKind.ELEMENTWISE, OpKind.VIEW, OpKind.FILL, OpKind.REDUCTION])
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
    if instruction.fails is Fails.AT_ELEMENTS and not _depends(instruction):
        return False
    if op is constant:
        return same(types[0].size, 1)
    return op.kind in _FUSIBLE


def is_cheap(instruction: Instruction) -> bool:
    """Whether recomputing an element in several loops is faster than reading a stored one."""
    op = instruction.op
    if op in _COUNTING and instruction.result.type.dtype.is_integer:
        return True
    return op.cost == 0 or op.kind is OpKind.VIEW or op.kind is OpKind.FILL


def _depends(instruction: Instruction) -> bool:
    """Whether a loop over elements can tell where the instruction fails: a number fails without
    any, too."""
    op = instruction.op
    return op.kind is OpKind.ELEMENTWISE and isinstance(instruction.operands[-1], Value)

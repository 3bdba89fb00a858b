"""Fusibility: which instructions a fused loop can compute, and their costs.

An instruction is fusible if it has a form as a loop over elements, and if that loop cannot fail. An
instruction that may raise an error (an integer division by zero, the maximum of nothing) is a step
of its own, which reports the user's line. Used by `gptrs.backends.fusion`; a backend may restrict
it further.
"""

from __future__ import annotations

from gptrs.backends.views import MOVING
from gptrs.ir.dims import Dim, same, surely_greater
from gptrs.ir.program import Fails, Instruction, Operand

DTYPES = frozenset(
    [
        *("i1", "si8", "ui8", "si16", "ui16", "si32", "ui32", "si64", "ui64"),
        *("bf16", "f16", "f32", "f64"),
    ]
)
"""The dtypes of fused loops; instructions on others stay outside."""

REDUCING = frozenset(
    ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all"]
)
FILLING = frozenset(["iota", "full", "constant"])
"""The ops whose elements need no operand."""

_COMPARING = frozenset(["less", "less_equal", "equal", "not_equal", "greater", "greater_equal"])
_LOGICAL = frozenset(["logical_and", "logical_or", "logical_not"])
_CHEAP = _COMPARING | _LOGICAL | MOVING | FILLING | {"cast"}
_COUNTING = frozenset(["add", "sub", "neg", "maximum", "minimum"])  # cheap on integers

_COSTS = {
    **dict.fromkeys(["exp", "log", "tanh", "erf", "sin", "cos", "pow"], 10),
    **dict.fromkeys(["div", "remainder", "sqrt", "rsqrt", "reciprocal"], 4),
}


def cost(instruction: Instruction) -> int:
    """The cost of a scalar operation of the instruction, in additions (a rough estimate)."""
    return _COSTS.get(instruction.op.name, 1)


def can_fuse(instruction: Instruction, dtypes: frozenset[str] = DTYPES) -> bool:
    """Whether a fused loop over ``dtypes`` can compute the instruction, and cannot fail."""
    name = instruction.op.name
    types = [v.type for v in (*instruction.values(), *instruction.results)]
    if any(type.dtype.name not in dtypes for type in types):
        return False
    if instruction.fails is not Fails.NEVER:
        return False
    if name == "constant":
        return same(types[0].size, 1)
    if name == "cast":  # f64 is rounded to 16 bits at once
        return not (types[0].dtype.bits == 64 and types[1].dtype.name in ("bf16", "f16"))
    if name in ("div", "remainder", "pow") and not types[-1].dtype.is_float:
        return name != "pow" and _is_positive(instruction.operands[1])
    if name in ("shift_left", "shift_right"):
        return type(instruction.operands[1]) is int
    fuses = name in MOVING or name in REDUCING or name in ("iota", "full")
    return fuses or instruction.op.elementwise


def is_cheap(instruction: Instruction) -> bool:
    """Whether recomputing an element in several loops is faster than reading a stored one."""
    name = instruction.op.name
    return name in _CHEAP or (name in _COUNTING and instruction.result.type.dtype.is_integer)


def _is_positive(operand: Operand) -> bool:
    return isinstance(operand, int | Dim) and surely_greater(operand, 0)

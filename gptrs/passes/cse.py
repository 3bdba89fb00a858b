"""Common subexpression elimination.

Two instructions without effects that have equal op, operands and attributes have equal results. The
key tells 1 from 1.0 and 0.0 from -0.0 (`program.key_of`). Part of the clean-up group of the
pipeline.
"""

from __future__ import annotations

from gptrs.ir.program import Instruction, Operand, Program, Value, key_of
from gptrs.passes.base import Context


def eliminate_common_subexpressions(program: Program, context: Context) -> Program:
    """Replace an instruction by an earlier one with the same op, operands and attributes."""
    seen: dict[object, Instruction] = {}
    renamed: dict[Value, Value] = {}
    body: list[Instruction] = []
    for instruction in program.body:
        current = instruction.reading(renamed)
        first = seen.setdefault(_key_of(current), current)
        merges = first is not current and not current.has_effects
        if not merges or not context.fuel.spend(f"merge {current.op.name}"):
            body.append(current)
        else:
            renamed.update(zip(current.results, first.results, strict=True))
    return program.with_body(body, [renamed.get(r, r) for r in program.results])


def _key_of(instruction: Instruction) -> object:
    """A key equal for instructions with equal results: remembered, as the pass runs many times."""
    found = instruction.memo.get(_key_of)
    if found is None:
        key = instruction.op, _key(instruction.operands), instruction.attrs_key
        found = instruction.memo[_key_of] = key
    return found


def _key(operand: Operand) -> object:
    if isinstance(operand, Value):
        return operand
    return tuple(map(_key, operand)) if isinstance(operand, tuple) else key_of(operand)

"""Dead code elimination: remove instructions without a live use."""

from __future__ import annotations

from gptrs.ir.program import Instruction, Program
from gptrs.passes.base import Context


def eliminate_dead_code(program: Program, context: Context) -> Program:
    """Keep the instructions that the results depend on, and those with effects."""
    live = set(program.results)
    body: list[Instruction] = []
    for instruction in reversed(program.body):
        if not live.isdisjoint(instruction.results) or instruction.has_effects:
            live.update(instruction.values())
            body.append(instruction)
    return program.with_body(body[::-1], program.results)

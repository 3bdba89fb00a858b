"""Programs for C: what the passes ask, and the error that names what has no C form."""

from __future__ import annotations

from gptrs.backends.c_family.c11 import CProgram
from gptrs.backends.c_family.c_plan import c_plan
from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.backends.c_family.schedule import claims
from gptrs.errors import ArgumentError
from gptrs.ir.program import Instruction, Program
from gptrs.passes.base import Stage


class CTarget:
    """The target of the passes: attention stays whole, other composites are decomposed."""

    passes: tuple[Stage, ...] = ()

    def claims(self, instruction: Instruction) -> bool:
        return claims(instruction)


def c_program(name: str, program: Program) -> CProgram:
    """The C text of a program that was lowered for `CTarget`.

    Raises `ArgumentError` that names the ops without a C form, and the user's lines.
    """
    plan = c_plan(program)
    lines = dict.fromkeys(map(_described, plan.without_form()))
    for value in (*program.params, *program.results):
        if value.type.dtype.name not in IN_MEMORY:
            lines[repr(value)] = None
    if lines:
        raise ArgumentError(
            f"{name} cannot be written as C: there is none for " + "; ".join(lines),
            fix="leave these to a part of the program that Python runs; docs/c.md lists the ops"
            " that have a C form",
        )
    return CProgram(name, plan)


def _described(instruction: Instruction) -> str:
    where = "" if instruction.where is None else f" at {instruction.where}"
    types = ", ".join(str(value.type) for value in instruction.values())
    return f"{instruction.op.name} of {types or 'nothing'}{where}"

"""Substitution of composites by the implementations that overrides pick.

Runs before `legalize`. Without overrides (``context.choose`` is None) the program is unchanged. A
composite that is neither picked nor claimed is decomposed here already, so that the composites in
its definition can be picked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gptrs.ir.program import Instruction, Operation, Program, Value
from gptrs.passes.base import Context
from gptrs.passes.legalize import definition_of, opened

_Ops = frozenset[Operation]


def choose_implementations(program: Program, context: Context) -> Program:
    """Replace composites by the result of ``context.choose``, to any depth. Other composites stay
    if the target claims them, and are decomposed otherwise.

    Inside the implementation of a composite the same composite is not chosen again.
    """
    if context.choose is None:
        return program
    return _chosen(program, context, frozenset())


def _chosen(program: Program, context: Context, inside: _Ops) -> Program:
    renamed: dict[Value, Value] = {}
    body: list[Instruction] = []
    for instruction in program.body:
        results = _place(instruction.reading(renamed), context, inside, body)
        renamed.update(zip(instruction.results, results, strict=True))
    return program.with_body(body, [renamed.get(r, r) for r in program.results])


def _place(
    instruction: Instruction, context: Context, inside: _Ops, body: list[Instruction]
) -> Sequence[Value]:
    """Append the replacement of ``instruction`` to ``body``. Returns the values of its results."""
    op = instruction.op
    definition: Program | None = None
    if op not in inside and context.choose is not None:
        definition = context.choose(instruction)
    if definition is not None:
        inside |= {op}
    elif not context.claims(instruction) or (context.in_region and op in inside):
        definition = definition_of(instruction)
    if definition is not None:
        where = instruction.where
        return opened(definition, instruction, where, lambda i: _place(i, context, inside, body))
    body.append(_with_regions(instruction, context, inside))
    return instruction.results


def _with_regions(instruction: Instruction, context: Context, inside: _Ops) -> Instruction:
    """``instruction`` with the programs that an implementation runs in loops and branches.

    The runner applies this pass to these regions again, without the set of enclosing
    implementations: composites that must not be chosen there are decomposed now.
    """
    if not inside or not instruction.op.control:
        return instruction
    inner = replace(context, in_region=True)
    attrs = {
        name: _chosen(value, inner, inside) if isinstance(value, Program) else value
        for name, value in instruction.attrs.items()
    }
    return replace(instruction, attrs=attrs)

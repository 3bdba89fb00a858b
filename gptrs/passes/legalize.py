"""Legalization: composites that the backend does not claim are replaced by their definitions.

Also the inlining of definitions that other passes and the faer backend use (`inlined`, `inline`,
`opened`). Instructions keep the source line of the composite.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from gptrs.errors import Location
from gptrs.ir.composites import Composite
from gptrs.ir.program import (
    Instruction,
    Operand,
    Operation,
    Param,
    Program,
    Value,
    key_of,
    map_values,
)
from gptrs.passes.base import Context


def legalize(program: Program, context: Context) -> Program:
    """Replace every composite that the target does not claim by its definition, to any depth."""
    known: dict[Hashable, bool] = {}  # layers ask the same again

    def claimed(instruction: Instruction) -> bool:
        key = _key_alone(instruction)
        claims = known.get(key)
        if claims is None:
            claims = known[key] = context.claims(instruction)
        return claims and context.fuel.spend(f"claim {instruction.op.name}")

    return inlined(program, claimed)


def _key_alone(instruction: Instruction) -> Hashable:
    """A key of all that is known of an instruction without the others: equal for those that a
    target claims alike."""
    places: dict[Value, int] = {}

    def key(operand: Operand) -> Hashable:
        if isinstance(operand, Value):
            role = operand.role if isinstance(operand, Param) else ""
            return places.setdefault(operand, len(places)), operand.type, role
        return tuple(map(key, operand)) if isinstance(operand, tuple) else key_of(operand)

    results = tuple([result.type for result in instruction.results])
    return instruction.op, tuple(map(key, instruction.operands)), instruction.attrs_key, results


def inlined(program: Program, closed: Callable[[Instruction], bool]) -> Program:
    """``program`` with its composites replaced by their definitions, except where ``closed``
    holds."""
    renamed: dict[Value, Value] = {}
    body: list[Instruction] = []
    for instruction in program.body:
        results = inline(instruction.reading(renamed), instruction.where, closed, body)
        renamed.update(zip(instruction.results, results, strict=True))
    return program.with_body(body, [renamed.get(r, r) for r in program.results])


def definition_of(instruction: Instruction) -> Program | None:
    """The definition of a composite or of a custom call; None for other instructions."""
    op: Operation = instruction.op
    if isinstance(op, Composite):
        return op.definition(instruction.operands, instruction.attrs)
    return instruction.attrs.get("definition")


def inline(
    instruction: Instruction,
    where: Location | None,
    claimed: Callable[[Instruction], bool],
    body: list[Instruction],
) -> Sequence[Value]:
    """Append ``instruction`` to ``body``, decomposed unless ``claimed`` holds. Returns the values
    of its results."""
    definition = definition_of(instruction)
    if definition is None or claimed(instruction):
        body.append(instruction)
        return instruction.results
    return opened(definition, instruction, where, lambda i: inline(i, where, claimed, body))


def opened(
    definition: Program,
    instruction: Instruction,
    where: Location | None,
    place: Callable[[Instruction], Sequence[Value]],
) -> Sequence[Value]:
    """Inline the definition of ``instruction``: call ``place`` with a copy of each instruction of
    the definition; it returns the values of the copy's results. Returns the values of the results.
    """
    values: dict[Value, Value] = dict(zip(definition.params, instruction.values(), strict=True))
    for inner in definition.body:
        copied = Instruction(
            inner.op,
            map_values(inner.operands, lambda v: values[v]),
            inner.attrs,
            tuple(Value(r.type, r.origin) for r in inner.results),
            where,
        )
        values.update(zip(inner.results, place(copied), strict=True))
    return [values[r] for r in definition.results]

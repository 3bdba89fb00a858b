"""Loop-invariant code motion: what each iteration computes from captured values alone is computed
once, before the loop.

    scan(state, xs, captured=(w,)):  v0 = w * 2        →    v0 = w * 2
                                     v1 = x @ v0            scan(state, xs, captured=(w, v0)):
                                                                v1 = x @ v0

An instruction moves if all that it reads is captured or moved, if it cannot fail (a loop may run no
iteration), and if it pays: it does arithmetic on more than a few elements, and an elementwise one
stores no more than it reads. Views and literals move along as copies where something that moves
reads them. Dead code elimination removes what is left behind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from gptrs.ir.dims import same_shape
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.control import scan, while_loop
from gptrs.ir.program import Fails, Instruction, Param, Program, Value
from gptrs.ir.types import Type
from gptrs.passes.base import Context

_FREE = frozenset([OpKind.VIEW, OpKind.MOVEMENT, OpKind.FILL])
"""Kinds that store what they read, or read nothing: loops compute them as they go."""
_ELEMENTWISE = frozenset([OpKind.ELEMENTWISE, OpKind.ACTIVATION, OpKind.QUANTIZATION])
_FEW = 64  # elements that a loop has in registers


def hoist_invariants(program: Program, context: Context) -> Program:
    """Move what the iterations of a loop share to before the loop."""
    body: list[Instruction] = []
    for instruction in program.body:
        if instruction.op is scan or instruction.op is while_loop:
            instruction = _without_invariants(instruction, context, body)
        body.append(instruction)
    return program.with_body(body, program.results)


def _without_invariants(
    loop: Instruction, context: Context, before: list[Instruction]
) -> Instruction:
    """The loop with what it shares as captured operands, whose instructions join ``before``."""
    *moving, captured = operand_groups(loop)
    first = sum(map(len, moving))
    regions = {name: a for name, a in loop.attrs.items() if isinstance(a, Program)}
    moved = {
        name: _moved(region, dict(zip(region.params[first:], captured, strict=True)), context)
        for name, region in regions.items()
    }
    extra = [outer for _, pairs in moved.values() for outer in pairs.values()]
    if not extra:
        return loop
    attrs = dict(loop.attrs)
    for name, region in regions.items():
        instructions, pairs = moved[name]
        before += instructions
        taken = {param.name for param in region.params}
        params = {
            value: Param(value.type, fresh_name("shared", taken), origin=value.origin)
            for value in extra
        }
        inside = {inner: params[outer] for inner, outer in pairs.items()}
        body = [i.reading(inside) for i in region.body if inside.keys().isdisjoint(i.results)]
        results = tuple(inside.get(r, r) for r in region.results)
        attrs[name] = Program(region.name, (*region.params, *params.values()), tuple(body), results)
    return replace(loop, operands=(*moving, (*captured, *extra)), attrs=attrs)


def _moved(
    region: Program, outer: dict[Value, Value], context: Context
) -> tuple[list[Instruction], dict[Value, Value]]:
    """The instructions that go before the loop, and their values that the region reads: by the
    value in it, the one before the loop. ``outer`` has those of the captured values."""
    found = _invariants(region, {*outer}, context)
    paying = {value for i in found if i.op.kind not in _FREE for value in i.results}
    needed = paying.union(*(i.values() for i in found))
    instructions: list[Instruction] = []
    for instruction in found:
        if needed.isdisjoint(instruction.results):
            continue
        results = tuple(Value(r.type, r.origin) for r in instruction.results)
        read = instruction.reading({v: outer[v] for v in instruction.values()})
        instructions.append(replace(read, results=results))
        outer.update(zip(instruction.results, results, strict=True))
    stays = (i for i in region.body if paying.isdisjoint(i.results))
    read = {value for i in stays for value in i.values()} | {*region.results}
    return instructions, {value: outer[value] for value in outer if value in paying & read}


def operand_groups(loop: Instruction) -> list[tuple[Any, ...]]:
    """The operands of a loop: the state, the arrays of a scan, what is captured."""
    count = 3 if loop.op is scan else 2
    found = cast("tuple[tuple[Any, ...], ...]", loop.operands)
    return [*found, *[()] * (count - len(found))]


def _invariants(region: Program, known: set[Value], context: Context) -> list[Instruction]:
    """The instructions of a region that may be moved before its loop, in order; ``known`` are the
    captured values, and those that they make join them."""
    found: list[Instruction] = []
    for instruction in region.body:
        if not known.issuperset(instruction.values()) or instruction.op.control:
            continue
        if instruction.fails is not Fails.NEVER:
            continue
        free = instruction.op.kind in _FREE
        if free or (_pays(instruction) and context.fuel.spend(f"hoist {instruction.op.name}")):
            known.update(instruction.results)
            found.append(instruction)
    return found


def _pays(instruction: Instruction) -> bool:
    types = [value.type for value in instruction.values()]
    if not any(map(_is_large, [*types, *(r.type for r in instruction.results)])):
        return False
    if instruction.op.kind not in _ELEMENTWISE:
        return True
    return any(same_shape(t.shape, instruction.result.type.shape) for t in types)


def _is_large(type: Type) -> bool:
    return not isinstance(type.size, int) or type.size > _FEW


def fresh_name(word: str, taken: set[str]) -> str:
    """A name for a parameter, which becomes one of ``taken``."""
    number = 0
    while f"{word}{number}" in taken:
        number += 1
    taken.add(f"{word}{number}")
    return f"{word}{number}"

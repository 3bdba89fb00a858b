"""Batching of input projections: products of each element of a scan's xs with captured weights
become one product before the loop.

    scan(state, xs=(x,), captured=(w, u)):      p = xs @ w            all steps at once
        h = tanh(x @ w + h @ u)             →   scan(state, xs=(x, p), captured=(w, u)):
                                                    h = tanh(p + h @ u)

A loop reads the weight once an iteration, and a few rows at a time; the product before it has the
rows of all iterations. Rows of a product do not depend on each other, but the kernel of another
number of rows may round otherwise for some dtypes: precise programs keep their loops.

It pays if an iteration has few rows, and if the products take not much more memory than xs do.
Views between the captured weight and the product move along.
"""

from __future__ import annotations

from dataclasses import replace

from gptrs.ir.dims import DimLike, product, same
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.control import scan
from gptrs.ir.program import Instruction, Param, Program, Value
from gptrs.passes.base import Context
from gptrs.passes.loop_invariants import fresh_name, operand_groups

_MANY = 128  # rows of a product that reads its weight no more often than one of all rows
_WIDER = 4  # the gates of an LSTM: as many columns as four times its input


def batch_input_projections(program: Program, context: Context) -> Program:
    """Move products of xs and captured values before their loops."""
    if context.precise:
        return program
    body: list[Instruction] = []
    for instruction in program.body:
        if instruction.op is scan:
            instruction = _batched(instruction, context, body)
        body.append(instruction)
    return program.with_body(body, program.results)


def _batched(loop: Instruction, context: Context, before: list[Instruction]) -> Instruction:
    """The loop with projections as further xs, whose instructions join ``before``."""
    state, xs, captured = operand_groups(loop)
    region: Program = loop.attrs["body"]
    first = len(state) + len(xs)
    items: dict[Value, Value] = dict(zip(region.params[len(state) : first], xs, strict=True))
    outer: dict[Value, Value] = dict(zip(region.params[first:], captured, strict=True))
    views: dict[Value, Instruction] = {}
    moved: dict[Value, Param] = {}
    projected: list[Value] = []
    taken = {param.name for param in region.params}
    for instruction in region.body:
        if instruction.op.kind is OpKind.VIEW and set(instruction.values()) <= {*outer, *views}:
            views[instruction.result] = instruction
        elif _pays(instruction, items, {*outer, *views}) and context.fuel.spend("batch projection"):
            lhs, rhs = instruction.values()
            weight = _outside(rhs, outer, views, before)
            projected.append(_all_steps(instruction, items[lhs], weight, loop, before))
            result, name = instruction.result, fresh_name("projected", taken)
            moved[result] = Param(result.type, name, origin=result.origin)
    if not moved:
        return loop
    params = (*region.params[:first], *moved.values(), *region.params[first:])
    inside: dict[Value, Value] = {**moved}
    rest = [i.reading(inside) for i in region.body if inside.keys().isdisjoint(i.results)]
    results = tuple(inside.get(r, r) for r in region.results)
    made = Program(region.name, params, tuple(rest), results)
    operands = (state, (*xs, *projected), captured)
    return replace(loop, operands=operands, attrs={**loop.attrs, "body": made})


def _pays(product_: Instruction, items: dict[Value, Value], known: set[Value]) -> bool:
    """Whether an instruction is a product of an element of xs with a weight that pays to batch."""
    if product_.op is not dot_general or product_.attrs["batch_lhs"]:
        return False
    lhs, rhs = product_.values()
    if lhs not in items or rhs not in known:
        return False
    contracted: tuple[int, ...] = product_.attrs["contract_lhs"]
    rows = product(tuple(n for a, n in enumerate(lhs.type.shape) if a not in contracted))
    columns, depth = product_.result.type.size, lhs.type.size
    few = not isinstance(rows, int) or rows < _MANY
    return few and _at_most(columns, depth)


def _at_most(columns: DimLike, depth: DimLike) -> bool:
    """Whether a projection is not much larger than what it is of."""
    known = isinstance(columns, int) and isinstance(depth, int)
    return columns <= _WIDER * depth if known else same(columns, depth)


def _outside(
    value: Value,
    outer: dict[Value, Value],
    views: dict[Value, Instruction],
    before: list[Instruction],
) -> Value:
    """The value before the loop of a captured one, or of a view of one."""
    if value not in outer:
        view = views[value]
        for operand in view.values():
            _outside(operand, outer, views, before)
        result = Value(value.type, value.origin)
        before.append(replace(view.reading(outer), results=(result,)))
        outer[value] = result
    return outer[value]


def _all_steps(
    step: Instruction, xs: Value, weight: Value, loop: Instruction, before: list[Instruction]
) -> Value:
    """The product of all iterations, with their axis in front."""
    type = step.result.type
    result = Value(type.with_shape((loop.attrs["length"], *type.shape)), step.result.origin)
    contracted = tuple(axis + 1 for axis in step.attrs["contract_lhs"])
    attrs = {**step.attrs, "contract_lhs": contracted}
    before.append(replace(step, operands=(xs, weight), attrs=attrs, results=(result,)))
    return result

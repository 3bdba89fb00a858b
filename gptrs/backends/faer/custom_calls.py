"""The backend's claims and passes: instructions with a kernel become `custom_call`s.

`claims` answers for `legalize`. After it, `arrange_products` transposes operands that no kernel can
read, `keep_loop_weights` has loops keep packed weights, and `make_calls` replaces each match of a
class in `calls/`, with the instructions around it that the kernel fuses, by one `custom_call`. The
replaced instructions are its definition, so that any backend can run it; the plan matches the
definition again to find the operands of its kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gptrs import settings
from gptrs.backends.faer.calls import calls_of
from gptrs.backends.faer.calls.base import Call, activation_of, is_stable, values_of
from gptrs.backends.memory_operands import Graph
from gptrs.ir.dispatch import OPS
from gptrs.ir.implementations.kernels import kernel_for
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.control import scan, while_loop
from gptrs.ir.ops.custom import custom_call
from gptrs.ir.program import Instruction, Param, Program, Value, map_values
from gptrs.ir.types import f32
from gptrs.locks import late_import
from gptrs.passes.base import Context
from gptrs.passes.legalize import inline
from gptrs.passes.loop_invariants import operand_groups


def claims(instruction: Instruction) -> bool:
    """Whether a composite stays whole: a call or a kernel of the user implements it, or a product
    can fuse it as an activation."""
    if instruction.op is custom_call:
        return _call_in(instruction) is not None
    if kernel_for(instruction) is not None:
        return True
    if activation_of(instruction) is not None:
        return instruction.result.type.dtype is f32
    if not calls_of(instruction.op):
        return False
    alone = Graph(Program("alone", (), (instruction,), instruction.results))
    return find_call(instruction, alone) is not None


def find_call(core: Instruction, graph: Graph, *, precise: bool = False) -> Call | None:
    """The call that implements ``core``, and instructions around it."""
    precise = precise or not settings.winograd()
    kinds = (kind for kind in calls_of(core.op) if not (precise and kind.rounds))
    return next((c for kind in kinds if (c := kind.match(core, graph))), None)


def call_of(instruction: Instruction) -> Call:
    """The call behind a `custom_call` of this backend, in terms of its definition's parameters."""
    call = _call_in(instruction)
    assert call is not None
    return call


def _call_in(instruction: Instruction) -> Call | None:
    target, definition = instruction.attrs["target"], instruction.attrs["definition"]
    graph = Graph(definition)
    cores = [(core, kind) for core in definition.body for kind in calls_of(core.op)]
    return next(
        (c for core, k in cores if k.target == target and (c := k.match(core, graph))), None
    )


def arrange_products(program: Program, context: Context) -> Program:
    """Insert transposes before products whose operands no kernel can read in their layout."""
    if not any(instruction.op is dot_general for instruction in program.body):
        return program
    return late_import("gptrs.backends.faer.product_operands").arranged(program)


def keep_loop_weights(program: Program, context: Context) -> Program:
    """Make matrices that loops capture parameters of their regions: products pack them once for all
    iterations."""
    body = [_with_weights(i) if i.op in (scan, while_loop) else i for i in program.body]
    return program.with_body(body, program.results)


def _with_weights(loop: Instruction) -> Instruction:
    *moving, _ = operand_groups(loop)
    first = sum(map(len, moving))
    attrs = dict(loop.attrs)
    for name, region in attrs.items():
        if not isinstance(region, Program):
            continue
        weights: dict[Value, Param] = {
            p: Param(p.type, p.name, role="parameter", origin=p.origin)
            for p in region.params[first:]
            if p.role == "input" and p.type.dtype is f32 and p.type.rank > 1
        }
        if weights:
            params = tuple(weights.get(p, p) for p in region.params)
            inner = tuple(i.reading(weights) for i in region.body)
            results = tuple(weights.get(r, r) for r in region.results)
            attrs[name] = Program(region.name, params, inner, results)
    return replace(loop, attrs=attrs) if attrs != loop.attrs else loop


def make_calls(program: Program, context: Context) -> Program:
    """Replace matched instructions by custom calls, and decompose the composites that are left."""
    return with_calls(program, context.fuel.spend, precise=context.precise)


def with_calls(
    program: Program, allows: Callable[[str], bool] = lambda _: True, *, precise: bool = False
) -> Program:
    """`make_calls`, for the calls that ``allows`` says yes to."""
    graph = Graph(program)
    own = set[Instruction]()  # which kernels of the user's compute
    if not precise:
        own = {i for i in program.body if kernel_for(i) is not None}
        graph.taken |= own
    place = {instruction: number for number, instruction in enumerate(program.body)}
    calls: dict[Instruction, Call] = {}  # by the instruction that makes the results
    members: dict[Call, list[Instruction]] = {}  # in the program's order
    for core in program.body:
        if core in graph.taken or (call := find_call(core, graph, precise=precise)) is None:
            continue
        if allows(f"call {call.target}"):
            calls[graph.maker[call.result]] = call
            # What the call reads where it is stored comes from outside, though it may also be a
            # step between another operand and its source.
            stored = set(values_of(call)).difference(call.results)
            inner = [m for m in call.members if m is core or stored.isdisjoint(m.results)]
            members[call] = sorted(inner, key=lambda m: place[m])
            graph.taken.update(_from(core, members[call]))
    body: list[Instruction] = []
    renamed: dict[Value, Value] = {}

    def stays(instruction: Instruction) -> bool:
        kernel = None if precise else kernel_for(instruction)
        return kernel is not None or instruction.op is custom_call

    for instruction in program.body:
        if (call := calls.get(instruction)) is not None:
            body.append(_custom_call(call, graph, members[call]).reading(renamed))
        elif instruction in own:
            body.append(instruction.reading(renamed))
        elif instruction not in graph.taken:
            results = inline(instruction.reading(renamed), instruction.where, stays, body)
            renamed.update(zip(instruction.results, results, strict=True))
    return program.with_body(body, [renamed.get(r, r) for r in program.results])


def _from(core: Instruction, members: Sequence[Instruction]) -> list[Instruction]:
    """The members that depend on ``core``: they have no other use. Members before it may have."""
    found = [core]
    for member in members:
        made = {result for other in found for result in other.results}
        if not made.isdisjoint(member.values()):
            found.append(member)
    return found


def _custom_call(call: Call, graph: Graph, members: Sequence[Instruction]) -> Instruction:
    made = {result for member in members for result in member.results}
    outside = [v for member in members for v in member.values() if v not in made]
    operands = tuple(dict.fromkeys(outside))
    values: dict[Value, Value] = {}
    taken = {v.name for v in operands if isinstance(v, Param)}
    for number, value in enumerate(operands):
        name = value.name if isinstance(value, Param) else f"x{number}"
        while name in taken and not isinstance(value, Param):
            name += "_"
        role = "parameter" if is_stable(value, graph) else "input"
        values[value] = Param(value.type, name, role=role, origin=value.origin)
    body: list[Instruction] = []
    for member in members:
        results = tuple(Value(r.type, r.origin) for r in member.results)
        inner = map_values(member.operands, lambda v: values[v])
        body.append(Instruction(member.op, inner, member.attrs, results, member.where))
        values.update(zip(member.results, results, strict=True))
    params = tuple(v for v in map(values.get, operands) if isinstance(v, Param))
    results = tuple(values[result] for result in call.results)
    definition = Program(call.target.split(".")[2], params, tuple(body), results)
    attrs = {"target": call.target, "definition": definition}
    where = next((m.where for m in members if m.where), None)
    return Instruction(OPS["custom_call"], (operands,), attrs, call.results, where)

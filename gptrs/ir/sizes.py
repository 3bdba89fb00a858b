"""Programs at concrete sizes: substitution of symbols, failure at sizes, evaluation in NumPy.

Used by the reference backend, by plans (whether a step may fail at the sizes of a call), by
constant folding and by derived parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gptrs.errors import PtirError
from gptrs.ir.dims import Dim, size_at
from gptrs.ir.kinds import OpKind
from gptrs.ir.operands import map_operand, types_key
from gptrs.ir.program import Attrs, Fails, Instruction, Param, Program, Value, attrs_key
from gptrs.ir.types import Array, Type

Sizes = Mapping[str, int]


def filled(thing: Any, sizes: Sizes) -> Any:
    """An operand, attribute, type or program with each symbol replaced by its size."""
    if isinstance(thing, Dim):
        return size_at(thing, sizes)
    if isinstance(thing, Type):
        return thing.with_shape(size_at(n, sizes) for n in thing.shape)
    if isinstance(thing, Program):
        return _program(thing, sizes)
    if isinstance(thing, tuple):
        return tuple(filled(part, sizes) for part in thing)  # pyright: ignore[reportUnknownVariableType]
    return thing


def is_symbolic(thing: Any) -> bool:
    """Whether `filled` may change it: it has a symbolic dimension."""
    if isinstance(thing, tuple):
        return any(map(is_symbolic, thing))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(thing, Type):
        return is_symbolic(thing.shape)
    if isinstance(thing, Program):
        types = any(is_symbolic(param.type.shape) for param in thing.params)
        return types or any(is_symbolic((i.operands, tuple(i.attrs.values()))) for i in thing.body)
    return isinstance(thing, Dim)


def _program(program: Program, sizes: Sizes) -> Program:
    values: dict[Value, Value] = {}

    def operand(thing: Any) -> Any:
        if isinstance(thing, Value):
            return values[thing]
        if isinstance(thing, tuple):
            return tuple(map(operand, thing))  # pyright: ignore[reportUnknownArgumentType]
        return filled(thing, sizes)

    params: list[Param] = []
    for p in program.params:
        type = filled(p.type, sizes)
        values[p] = made = Param(type, p.name, role=p.role, donated=p.donated, origin=p.origin)
        params.append(made)
    body: list[Instruction] = []
    for i in program.body:
        results = tuple(Value(filled(r.type, sizes), r.origin) for r in i.results)
        attrs = {name: filled(value, sizes) for name, value in i.attrs.items()}
        body.append(Instruction(i.op, operand(i.operands), attrs, results, i.where))
        values.update(zip(i.results, results, strict=True))
    return Program(program.name, tuple(params), tuple(body), operand(program.results))


def failing_at_sizes(program: Program) -> list[Instruction]:
    """The instructions of ``program`` and of its regions whose failure depends on the sizes; of
    instructions that are equal but for their values, one."""
    found: dict[object, Instruction] = {}

    def visit(program: Program) -> None:
        for i in program.body:
            if i.fails is Fails.NEVER:
                continue
            if i.fails is Fails.AT_SIZES and not any(True for _ in i.regions()):
                found[i.op, types_key(i.operands), attrs_key(i.attrs)] = i
            for region in i.regions():
                visit(region)

    visit(program)
    return [*found.values()]


def fails_at(instruction: Instruction, sizes: Sizes) -> bool:
    """Whether an instruction that runs fails at these sizes."""
    operands = map_operand(lambda o: o.type if isinstance(o, Value) else o, instruction.operands)
    attrs = {name: filled(value, sizes) for name, value in instruction.attrs.items()}
    return instruction.op.fails(filled(operands, sizes), attrs) is not Fails.NEVER


def evaluate(program: Program, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """The results of a program without symbols, each op by its NumPy meaning."""
    values: dict[Value, Array] = dict(zip(program.params, arrays, strict=True))
    for i in program.body:
        found = apply(i, [_operand(o, values) for o in i.operands], i.attrs)
        values.update(zip(i.results, found, strict=True))
    return tuple(values[result] for result in program.results)


def _operand(thing: Any, values: Mapping[Value, Array]) -> Any:
    """The arrays of an operand. (A recursive closure in `evaluate` would be a reference cycle,
    which keeps all arrays alive until the garbage collector runs.)"""
    if isinstance(thing, Value):
        return values[thing]
    return tuple(_operand(part, values) for part in thing) if isinstance(thing, tuple) else thing  # pyright: ignore[reportUnknownVariableType]


def apply(instruction: Instruction, operands: Sequence[Any], attrs: Attrs) -> tuple[Array, ...]:
    """The results of one instruction by its op's NumPy meaning; errors name the user's line."""
    try:
        types = tuple(result.type for result in instruction.results)
        return instruction.op.evaluate(operands, attrs, types)
    except PtirError as error:
        error.context.append(instruction.op.name)
        error.where = error.where or instruction.where
        raise
    except Exception as error:
        if instruction.op.kind is OpKind.EFFECT and instruction.where is not None:
            error.add_note(f"in ptir.{instruction.op.name} at {instruction.where}")
        raise

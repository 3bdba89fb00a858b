"""The instruction that made a NaN: followed back from a result through the values of a run.

From a result with NaN the search goes to an operand with NaN, at the same element where the op
works element by element, until an instruction has none among its operands. So what a program masks
again (``where(x > 0, log(x), 0)``) is not found. Inside of a loop it is the iteration in which the
state or an output becomes NaN, of a branch the one that was taken, of a composite op its
definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from gptrs.errors import Location
from gptrs.ir.composites import Composite
from gptrs.ir.ops.control import cond, scan
from gptrs.ir.ops.elementwise import select
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.region_steps import RegionStep, region_steps
from gptrs.ir.sizes import apply
from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass

IsBad = Callable[[Array], Array]
"""Which elements of an array are looked for."""


@dataclass(frozen=True)
class Origin:
    """An instruction whose results have NaN, and whose operands have none."""

    instruction: Instruction
    operands: tuple[tuple[str, Array], ...]
    """Names of the values that it reads, as messages have them, and their elements."""
    results: tuple[Array, ...]
    path: tuple[str, ...]
    """The loops and composites around it, the outermost first."""
    where: Location | None
    """The user's line."""


def evaluated(program: Program, arrays: Sequence[Array]) -> dict[Value, Array]:
    """All values of a program without symbols, by NumPy's meaning."""
    values: dict[Value, Array] = dict(zip(program.params, arrays, strict=True))
    for instruction in program.body:
        operands = [_arrays(operand, values) for operand in instruction.operands]
        found = apply(instruction, operands, instruction.attrs)
        values.update(zip(instruction.results, found, strict=True))
    return values


def origin(
    program: Program, values: Mapping[Value, Array], is_bad: IsBad, *, inside: bool = True
) -> Origin | None:
    """Where the first bad element among the results of ``program`` comes from; None if they have
    none, or have it from an argument or a captured array. ``inside``: look into loops and
    composites, which are evaluated for that."""
    start = next((r for r in program.results if is_bad(values[r]).any()), None)
    return None if start is None else _follow(program, values, start, is_bad, inside=inside)


def _follow(
    program: Program,
    values: Mapping[Value, Array],
    value: Value,
    is_bad: IsBad,
    *,
    inside: bool,
) -> Origin | None:
    makers = {result: i for i in program.body for result in i.results}
    place: tuple[int, ...] | None = _first(is_bad(values[value]))
    while (instruction := makers.get(value)) is not None and instruction.op is not constant:
        before, place = _bad_operand(instruction, values, place, is_bad)
        if before is None:
            found = _made(instruction, values)
            return _descended(found, values, is_bad) if inside else found
        value = before
    return None


def _bad_operand(
    instruction: Instruction,
    values: Mapping[Value, Array],
    place: tuple[int, ...] | None,
    is_bad: IsBad,
) -> tuple[Value | None, tuple[int, ...] | None]:
    """An operand with a bad element, and where in it; at ``place`` if the op is elementwise."""
    operands = tuple(dict.fromkeys(instruction.values()))
    if instruction.op.elementwise and place is not None:
        if instruction.op is select and isinstance(instruction.operands[0], Value):
            chosen = instruction.operands[1 if values[instruction.operands[0]][place] else 2]
            operands = (chosen,) if isinstance(chosen, Value) else ()
        for operand in operands:
            if is_bad(values[operand])[place]:
                return operand, place
        return None, None
    for operand in operands:
        bad = is_bad(values[operand])
        if bad.any():
            return operand, _first(bad)
    return None, None


def _first(bad: Array) -> tuple[int, ...]:
    return tuple(map(int, np.argwhere(bad)[0]))


def _made(instruction: Instruction, values: Mapping[Value, Array]) -> Origin:
    operands = tuple(
        (value.origin or f"operand {number}", values[value])
        for number, value in enumerate(dict.fromkeys(instruction.values()))
    )
    results = tuple(values[result] for result in instruction.results)
    return Origin(instruction, operands, results, (), instruction.where)


def _descended(outer: Origin, values: Mapping[Value, Array], is_bad: IsBad) -> Origin:
    """The instruction inside of a loop, branch or composite; ``outer`` itself of other ops."""
    instruction = outer.instruction
    if any(region.has_effects for region in instruction.regions()):
        return outer  # it would act again
    op: Any = instruction.op
    if isinstance(op, Composite):
        definition = op.definition(instruction.operands, instruction.attrs)
        arrays = tuple(values[value] for value in instruction.values())
        found = _inside(RegionStep(definition, arrays, op.name), is_bad)
        return outer if found is None else _within(found, op.name, outer.where)
    if not instruction.op.control:
        return outer
    step = _bad_step(instruction, values, is_bad)
    found = None if step is None else _inside(step, is_bad)
    if step is None or found is None:
        return outer
    return _within(found, f"{instruction.op.name} {step.label}", None)


def _within(inner: Origin, label: str, where: Location | None) -> Origin:
    """``inner`` as found within ``label``; a composite has the user's line, and not its ops."""
    place = inner.where if where is None else where
    path = (label, *inner.path)
    return Origin(inner.instruction, inner.operands, inner.results, path, place)


def _inside(step: RegionStep, is_bad: IsBad) -> Origin | None:
    return origin(step.program, evaluated(step.program, step.arrays), is_bad)


def _bad_step(
    instruction: Instruction, values: Mapping[Value, Array], is_bad: IsBad
) -> RegionStep | None:
    """The branch that was taken; the iteration that makes the state bad which the loop ends with,
    or else the first whose output is."""
    if instruction.op is cond:
        return next(region_steps(instruction, values), None)
    state: Any = instruction.operands[0]
    count = len(state)
    ends_bad = any(is_bad(values[result]).any() for result in instruction.results[:count])
    turned: int | None = None
    good = True
    for number, step in enumerate(region_steps(instruction, values)):
        was_good = good
        found = evaluated(step.program, step.arrays)
        results = [found[result] for result in step.program.results]
        good = not any(is_bad(array).any() for array in results[:count])
        if ends_bad and was_good and not good:
            turned = number
        if not ends_bad and instruction.op is scan and turned is None:
            turned = number if any(is_bad(y).any() for y in results[count:]) else None
    if turned is None:
        return None
    steps = enumerate(region_steps(instruction, values))
    return next(step for number, step in steps if number == turned)


def _arrays(operand: Any, values: Mapping[Value, Array]) -> Any:
    if isinstance(operand, tuple):
        return tuple(_arrays(part, values) for part in cast("tuple[Any, ...]", operand))
    return values[operand] if isinstance(operand, Value) else operand

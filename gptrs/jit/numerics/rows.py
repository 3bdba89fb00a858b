"""Rows of two ways to run a call: every instruction, with its own and its accumulated error.

Both ways run the program that returns all intermediate values. Of one of them each instruction is
then run alone, on the operands that the other computed: the difference is the error of that
instruction itself, whatever went wrong before it, and is judged by the bound of its op
(`gptrs.debug.error_bounds`). Of a loop or branch that is beyond its bound, the first iteration and
the instruction inside of it are searched in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gptrs.debug.error_bounds.balls import rounding
from gptrs.debug.error_bounds.own_error import OwnError, alone, read
from gptrs.debug.numeric_diff.diff import Row
from gptrs.debug.numeric_diff.element_errors import (
    ElementErrors,
    comparable,
    dtype_of,
    element_errors,
    worst,
)
from gptrs.debug.numeric_diff.instruction_text import instruction_texts
from gptrs.ir.effect_tape import Tape, replayed
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.region_steps import RegionStep, region_steps
from gptrs.ir.types import Array
from gptrs.jit.numerics.traced_call import TracedCall, with_all_results
from gptrs.jit.numerics.ways import Way
from gptrs.lazy_dataclass import dataclass

_MOST_STEPS = 1000  # iterations of a loop that are searched
Values = dict[Value, Array]


@dataclass(frozen=True)
class _Side:
    """What one way computed: all values of the program, parameters included."""

    way: Way
    values: Mapping[Value, Array]


def instruction_rows(call: TracedCall, a: Way, b: Way, tape: Tape) -> list[Row]:
    """A row for each instruction of the call's program, without those that nothing depends on.
    Effects come from ``tape``."""
    call = call.live()
    program = call.concrete().program
    one, other = (_side(call, program, way, tape) for way in (a, b))
    return [*_rows(program, one, other, tape)]


def _side(call: TracedCall, program: Program, way: Way, tape: Tape) -> _Side:
    with replayed(tape):
        found = way.run(with_all_results(call.program), call.given, call.sizes)
    names = (result for instruction in program.body for result in instruction.results)
    return _Side(way, {**_arguments(program, call.given), **dict(zip(names, found, strict=True))})


def _arguments(program: Program, given: Sequence[Array | Parameter]) -> Values:
    arrays = (x.numpy() if isinstance(x, Parameter) else x for x in given)
    return dict(zip(program.params, arrays, strict=True))


def _rows(program: Program, a: _Side, b: _Side, tape: Tape) -> Iterator[Row]:
    runs, computed = (a, b) if a.way.interprets and not b.way.interprets else (b, a)
    bounds = OwnError(a.way.rounds or b.way.rounds)
    texts = instruction_texts(program)
    for number, (instruction, text) in enumerate(zip(program.body, texts, strict=True)):
        own = None
        if not instruction.has_effects:
            own = _own(instruction, runs.way, computed, bounds)
        total = worst(
            [
                element_errors(a.values[r], b.values[r], None, r.type.dtype)
                for r in instruction.results
            ]
        )
        types = ", ".join(str(result.type) for result in instruction.results)
        note = "has effects: not run alone" if own is None else ""
        name = instruction.op.name
        where = instruction.where
        row = Row(number, name, text, types, where, own, total, note=note)
        yield row
        if not row.agrees and instruction.op.control:
            yield from _inside(instruction, a.way, b.way, computed, tape)


def _own(instruction: Instruction, way: Way, computed: _Side, bounds: OwnError) -> ElementErrors:
    """The errors of ``instruction`` as it was computed, against ``way`` on the same operands."""
    values = _narrow(instruction, computed)
    meanings, allowed = bounds.bounds(instruction, values)
    if way.name == "eager":
        expected: Sequence[Array] = meanings
    else:
        expected = way.run(alone(instruction), read(instruction, values))
    errors: list[ElementErrors] = []
    for result, other, bound in zip(instruction.results, expected, allowed, strict=True):
        dtype, found = result.type.dtype, computed.values[result]
        if way.widens or computed.way.widens:
            bound = bound + _half_unit(other, result)
        if way.name == "torch" and dtype.is_float:
            bound = 2 * bound + 2 * _half_unit(other, result)  # torch rounds otherwise as well
        errors.append(element_errors(found, other, bound, dtype))
    return worst(errors)


def _narrow(instruction: Instruction, computed: _Side) -> Mapping[Value, Array]:
    """The operands in the dtypes of the program."""
    if not computed.way.widens:
        return computed.values
    with np.errstate(all="ignore"):
        return {
            value: computed.values[value].astype(value.type.dtype.numpy)
            for value in instruction.values()
        }


def _half_unit(array: Array, result: Value) -> Any:
    """The rounding of the elements to the dtype of a result, which a wide one does not have."""
    dtype = result.type.dtype
    if not dtype.is_float:
        return 0.0
    with np.errstate(all="ignore"):
        return rounding(dtype, np.nan_to_num(np.abs(comparable(array)), posinf=0.0))


def _inside(instruction: Instruction, a: Way, b: Way, computed: _Side, tape: Tape) -> Iterator[Row]:
    """The first row beyond its bound in the branch or the iterations of ``instruction``."""
    if any(region.has_effects for region in instruction.regions()):
        return
    steps = region_steps(instruction, computed.values)
    for number, step in enumerate(steps):
        if number >= _MOST_STEPS:
            return
        one, other = (_step_side(step, way) for way in (a, b))
        rows = [*_rows(step.program, one, other, tape)]
        wrong = [row for row in rows if not row.agrees]
        if wrong:
            inner = next((row for row in wrong if row.path), wrong[0])
            label = f"{instruction.op.name} {step.label}"
            yield replace(inner, path=(label, *inner.path))
            return


def _step_side(step: RegionStep, way: Way) -> _Side:
    found = way.run(with_all_results(step.program), step.arrays)
    names = (result for instruction in step.program.body for result in instruction.results)
    values = _arguments(step.program, step.arrays)
    return _Side(way, {**values, **dict(zip(names, found, strict=True))})


def result_rows(
    a: Sequence[Array], b: Sequence[Array], allowed: Sequence[Array | None]
) -> tuple[Row, ...]:
    """A row for each result of a function; ``allowed`` is how far its elements may be apart."""
    rows: list[Row] = []
    for number, (found, expected, bound) in enumerate(zip(a, b, allowed, strict=True)):
        dtype = dtype_of(found)
        if dtype_of(expected).bits < dtype.bits:
            dtype = dtype_of(expected)
        errors = element_errors(found, expected, bound, dtype)
        kind = f"{dtype.name}[{','.join(map(str, found.shape))}]"
        rows.append(Row(number, f"result {number}", "", kind, None, None, errors))
    return tuple(rows)

"""The regions of a control instruction as a run goes through them: iterations and branches.

Evaluated by NumPy's meaning, for tools that look inside of loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gptrs.ir.ops.control import cond, scan, while_loop
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.sizes import evaluate
from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class RegionStep:
    """One run of a region: its program, the arrays that it takes, and its name in messages."""

    program: Program
    arrays: tuple[Array, ...]
    label: str


def region_steps(instruction: Instruction, values: Mapping[Value, Array]) -> Iterator[RegionStep]:
    """The branch that is taken, or the iterations of the body in their order, counted from 0. The
    state of each is computed when the next step is asked for."""
    operands = [_arrays(operand, values) for operand in instruction.operands]
    attrs = instruction.attrs
    if instruction.op is cond:
        pred, given = operands
        name = "then" if pred else "otherwise"
        yield RegionStep(attrs[name], given, f"branch {name}")
    elif instruction.op is while_loop:
        state, captured = operands
        number = 0
        while evaluate(attrs["condition"], (*state, *captured))[0]:
            given = (*state, *captured)
            yield RegionStep(attrs["body"], given, f"body, iteration {number}")
            state, number = evaluate(attrs["body"], given), number + 1
    elif instruction.op is scan:
        yield from _scanned(attrs, *operands)


def _scanned(
    attrs: Mapping[str, Any],
    state: Sequence[Array],
    xs: Sequence[Array],
    captured: Sequence[Array],
) -> Iterator[RegionStep]:
    body, length = attrs["body"], attrs["length"]
    for number in reversed(range(length)) if attrs["reverse"] else range(length):
        given = (*state, *(x[number, ...] for x in xs), *captured)
        yield RegionStep(body, given, f"body, iteration {number}")
        state = evaluate(body, given)[: len(state)]


def _arrays(operand: Any, values: Mapping[Value, Array]) -> Any:
    if isinstance(operand, tuple):
        return tuple(_arrays(part, values) for part in operand)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return values[operand] if isinstance(operand, Value) else operand

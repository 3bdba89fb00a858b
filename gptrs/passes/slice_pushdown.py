"""Slice pushdown: compute only the rows that are read.

GPT-2 asked for the logits of the last token computes the last layer's projection and MLP for that
token alone. A backward pass from the results finds for each value the one box (contiguous slice)
that all its uses read. A forward pass computes that box where the op works row by row (elementwise,
norms, softmax, matmul, attention, transpose, reshape); slices move up to where rows are mixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from gptrs.ir.boxes import Box
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.shape import reshape, slice_
from gptrs.ir.program import Attrs, Instruction, Program, Value, map_values
from gptrs.ir.tensor import Tensor
from gptrs.passes.base import Context

_EXACT = frozenset([OpKind.ELEMENTWISE, OpKind.ACTIVATION, OpKind.VIEW])
"""Other ops sum; a backend may round fewer rows otherwise than many."""


class _Part(NamedTuple):
    """The computation of a box of a result: boxes of the operands, and attributes."""

    operands: dict[Value, Box | None]
    attrs: Attrs


def push_slices(program: Program, context: Context) -> Program:
    """Restrict instructions to the rows that are read, where all uses read the same rows."""
    wanted, parts = _demands(program, context)
    return _narrowed(program, wanted, parts) if parts else program


def _demands(
    program: Program, context: Context
) -> tuple[dict[Value, Box | None], dict[Instruction, _Part]]:
    """The box that is read of each value (None: all of it), and the instructions that compute a
    box."""
    wanted: dict[Value, Box | None] = dict.fromkeys(program.results)
    parts: dict[Instruction, _Part] = {}

    def want(value: Value, box: Box | None) -> None:
        known = wanted.setdefault(value, box)
        if known is not None and (box is None or not known.equals(box)):
            wanted[value] = None

    for instruction in reversed(program.body):
        if not any(result in wanted for result in instruction.results):
            continue
        if (whole := _slice_of(instruction)) is not None:
            wanted[instruction.result] = None
            want(*whole)
            continue
        part = None
        if len(instruction.results) == 1 and (box := wanted[instruction.result]) is not None:
            part = _part(instruction, box, context)
        if part is None:
            wanted.update(dict.fromkeys(instruction.results))
        else:
            parts[instruction] = part
        for value in instruction.values():
            want(value, None if part is None else part.operands[value])
    return wanted, parts


def _slice_of(instruction: Instruction) -> tuple[Value, Box] | None:
    """The operand and the box of a slice of stride 1."""
    attrs = instruction.attrs
    if instruction.op is not slice_ or any(step != 1 for step in attrs["strides"]):
        return None
    (value,) = instruction.values()
    return value, Box(tuple(attrs["starts"]), tuple(attrs["sizes"]))


def _narrowed(
    program: Program, wanted: Mapping[Value, Box | None], parts: Mapping[Instruction, _Part]
) -> Program:
    body: list[Instruction] = []
    made: dict[Value, Value] = {}  # the computed box of a value
    renamed: dict[Value, Value] = {}
    for instruction in program.body:
        if not any(result in wanted for result in instruction.results):
            continue  # unused; its operands may not be computed any more
        taken = _slice_of(instruction)
        if taken is not None and taken[0] in made:
            renamed[instruction.result] = made[taken[0]]
        elif instruction in parts:
            recorder = Recorder(instruction.op.name, where=instruction.where)
            with interpreter(recorder):
                result = _compute(instruction, parts[instruction], made, renamed, recorder)
                made[instruction.result] = cast("Value", recorder.lift(result))
            body += recorder.body
        else:
            body.append(instruction.reading(renamed))
    return program.with_body(body, [renamed.get(r, r) for r in program.results])


def _compute(
    instruction: Instruction,
    part: _Part,
    made: Mapping[Value, Value],
    renamed: Mapping[Value, Value],
    recorder: Recorder,
) -> Any:
    def given(value: Value) -> Any:
        if value in made:
            return Tensor.of_value(made[value], recorder)
        known = Tensor.of_value(renamed.get(value, value), recorder)
        if (box := part.operands[value]) is None:
            return known
        return slice_(known, starts=box.starts, sizes=box.sizes, strides=(1,) * len(box.sizes))

    op: Any = instruction.op
    return op(*map_values(instruction.operands, given), **part.attrs)


def _part(instruction: Instruction, box: Box, context: Context) -> _Part | None:
    op = instruction.op
    if op.rows is None or (context.precise and op.kind not in _EXACT):
        return None
    operands = op.rows(instruction, box)
    if operands is None or not any(operands.values()):
        return None
    attrs = dict(instruction.attrs)
    if op is reshape:
        attrs["shape"] = box.sizes
    return _Part(operands, attrs) if context.fuel.spend(f"narrow {op.name}") else None

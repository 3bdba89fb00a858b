"""Slice pushdown: compute only the rows that are read.

GPT-2 asked for the logits of the last token computes the last layer's projection and MLP for that
token alone. A backward pass from the results finds for each value a box (contiguous slice) that has
all that its uses read: of each axis the part on which they agree, else all of it. A forward pass
computes that box where the op works row by row (elementwise, norms, softmax, reductions, matmul,
attention, transpose, reshape); slices move up to where rows are mixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from gptrs.ir.boxes import Box
from gptrs.ir.dims import same_shape
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.kinds import OpKind
from gptrs.ir.operands import several
from gptrs.ir.ops.shape import broadcast_to, reshape, slice_
from gptrs.ir.program import Attrs, Instruction, Program, Value, map_values
from gptrs.ir.tensor import Tensor
from gptrs.passes.base import Context

_EXACT = frozenset([OpKind.ELEMENTWISE, OpKind.ACTIVATION, OpKind.VIEW])
"""Other ops sum; a backend may round fewer rows otherwise than many."""


class _Part(NamedTuple):
    """The computation of a box of a result: boxes of the operands, and attributes."""

    operands: dict[Value, Box | None]
    attrs: Attrs


class _Slice(NamedTuple):
    """A slice of stride 1: the box of its operand that makes what is read of its result."""

    operand: Value
    box: Box
    wanted: Box | None
    """The box that is read of the result; None: all of it."""


class _Demands(NamedTuple):
    wanted: dict[Value, Box | None]
    """The box that is read of each value (None: all of it)."""
    parts: dict[Instruction, _Part]
    """The instructions that compute a box."""
    slices: dict[Instruction, _Slice]


def push_slices(program: Program, context: Context) -> Program:
    """Restrict instructions to the rows that are read, where all uses read the same rows."""
    demands = _demands(program, context)
    return _Narrowing(demands).run(program) if demands.parts else program


def _demands(program: Program, context: Context) -> _Demands:
    wanted: dict[Value, Box | None] = dict.fromkeys(program.results)
    parts: dict[Instruction, _Part] = {}
    slices: dict[Instruction, _Slice] = {}

    def want(value: Value, box: Box | None) -> None:
        known = wanted.setdefault(value, box)
        if known is not None and (box is None or not known.equals(box)):
            wanted[value] = None if box is None else known.around(box, value.type.shape)

    for instruction in reversed(program.body):
        if not any(result in wanted for result in instruction.results):
            continue
        if (whole := _slice_of(instruction)) is not None:
            operand, box = whole
            read = wanted[instruction.result]
            if read is not None and not context.fuel.spend("narrow slice"):
                read = wanted[instruction.result] = None
            slices[instruction] = taken = _Slice(
                operand, box if read is None else box.of(read), read
            )
            want(operand, taken.box)
            continue
        read = _of_all(instruction, wanted)
        part = None if read is None else _part(instruction, read, context)
        wanted.update(dict.fromkeys(instruction.results, None if part is None else read))
        if part is not None:
            parts[instruction] = part
        for value in instruction.values():
            want(value, None if part is None else part.operands[value])
    return _Demands(wanted, parts, slices)


def _of_all(instruction: Instruction, wanted: Mapping[Value, Box | None]) -> Box | None:
    """A box that has what is read of each result; None: all of them."""
    first, *others = (result for result in instruction.results if result in wanted)
    shape, box = first.type.shape, wanted[first]
    for result in others:
        read = wanted[result]
        if box is None or read is None or not same_shape(result.type.shape, shape):
            return None
        box = box.around(read, shape)
    return box


def _slice_of(instruction: Instruction) -> tuple[Value, Box] | None:
    """The operand and the box of a slice of stride 1."""
    attrs = instruction.attrs
    if instruction.op is not slice_ or any(step != 1 for step in attrs["strides"]):
        return None
    (value,) = instruction.values()
    return value, Box(tuple(attrs["starts"]), tuple(attrs["sizes"]))


class _Narrowing:
    """The program in which each instruction computes the box that is read of its result."""

    def __init__(self, demands: _Demands) -> None:
        self._demands = demands
        self._made: dict[Value, tuple[Value, Box]] = {}  # the computed box of a value
        self._renamed: dict[Value, Value] = {}

    def run(self, program: Program) -> Program:
        body: list[Instruction] = []
        for instruction in program.body:
            if not any(result in self._demands.wanted for result in instruction.results):
                continue  # unused; its operands may not be computed any more
            taken = self._demands.slices.get(instruction)
            if instruction not in self._demands.parts and not self._is_narrowed(taken):
                body.append(instruction.reading(self._renamed))
                continue
            recorder = Recorder(instruction.op.name, where=instruction.where)
            with interpreter(recorder):
                if taken is None:
                    box = self._demands.wanted[instruction.results[0]]
                    found = several(self._computed(instruction, recorder))
                else:
                    box = taken.wanted
                    found = (self._part_of(taken.operand, taken.box, recorder),)
            for result, tensor in zip(instruction.results, found, strict=True):
                value = cast("Value", recorder.lift(tensor))
                if box is None:
                    self._renamed[result] = value
                else:
                    self._made[result] = value, box
            body += recorder.body
        return program.with_body(body, [self._renamed.get(r, r) for r in program.results])

    def _is_narrowed(self, taken: _Slice | None) -> bool:
        return taken is not None and (taken.wanted is not None or taken.operand in self._made)

    def _part_of(self, value: Value, box: Box | None, recorder: Recorder) -> Tensor:
        """A box of a value, of which no less than that is computed."""
        if value in self._made:
            known, made = self._made[value]
            if box is None or box.equals(made):
                return Tensor.of_value(known, recorder)
            box = box.within(made)
        else:
            known = self._renamed.get(value, value)
            if box is None:
                return Tensor.of_value(known, recorder)
        whole = Tensor.of_value(known, recorder)
        return slice_(whole, starts=box.starts, sizes=box.sizes, strides=(1,) * len(box.sizes))

    def _computed(self, instruction: Instruction, recorder: Recorder) -> Any:
        op: Any = instruction.op
        part = self._demands.parts[instruction]

        def given(value: Value) -> Any:
            return self._part_of(value, part.operands[value], recorder)

        return op(*map_values(instruction.operands, given), **part.attrs)


def _part(instruction: Instruction, box: Box, context: Context) -> _Part | None:
    op = instruction.op
    if op.rows is None or (context.precise and op.kind not in _EXACT):
        return None
    operands = op.rows(instruction, box)
    if operands is None or not any(operands.values()):
        return None
    attrs = dict(instruction.attrs)
    if op is reshape or op is broadcast_to:
        attrs["shape"] = box.sizes
    return _Part(operands, attrs) if context.fuel.spend(f"narrow {op.name}") else None

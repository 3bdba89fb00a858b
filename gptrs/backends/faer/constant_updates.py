"""Updates that are one number at all places: the kernels of scatter and segments read them from one
element, as they read operands at any strides, instead of an array of equal ones.

    ptir.scatter_add(x, index, full((1000000,), 1))     as counting has it
"""

from __future__ import annotations

from dataclasses import replace

from gptrs.ir.ops.index import scatter_add, scatter_reduce
from gptrs.ir.ops.literal import full
from gptrs.ir.ops.segment import segment_reduce
from gptrs.ir.ops.shape import broadcast_to
from gptrs.ir.program import Instruction, Operation, Program, Value
from gptrs.ir.types import Type
from gptrs.passes.base import Context

_UPDATES: dict[Operation, int] = {scatter_add: 2, scatter_reduce: 2, segment_reduce: 0}
"""By op: the number of the operand with the updates."""


def broadcast_updates(program: Program, context: Context) -> Program:
    """Make constant updates one element, broadcast."""
    makers = {i.results[0]: i for i in program.body if i.op is full}
    body: list[Instruction] = []
    for instruction in program.body:
        number = _UPDATES.get(instruction.op)
        updates = None if number is None else instruction.operands[number]
        maker = makers.get(updates) if isinstance(updates, Value) else None
        if number is not None and maker is not None:
            operands = list(instruction.operands)
            operands[number] = _broadcast(maker, body)
            instruction = replace(instruction, operands=tuple(operands))
        body.append(instruction)
    return program.with_body(body, program.results)


def _broadcast(maker: Instruction, body: list[Instruction]) -> Value:
    """The result of ``maker``, from one element; the instructions join ``body``."""
    wide = maker.result.type
    shape = (1,) * wide.rank
    one = Value(Type(shape, wide.dtype), maker.result.origin)
    result = Value(wide, maker.result.origin)
    attrs = {**maker.attrs, "shape": shape}
    body.append(Instruction(full, (), attrs, (one,), maker.where))
    body.append(Instruction(broadcast_to, (one,), {"shape": wide.shape}, (result,), maker.where))
    return result

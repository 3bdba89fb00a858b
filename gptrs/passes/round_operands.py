"""Rounding of what is multiplied by weights of bf16 to bf16, with ``GPTRS_BF16_PRODUCTS=1``.

    dot_general(x, cast(w, f32))      →      dot_general(cast(cast(x, bf16), f32), cast(w, f32))

x and the result are f32, w is bf16: torch's models of bf16 round x so, too. Products of such
numbers are exact in f32, and some CPUs multiply and add two of them at once
(`gptrs.kernels.gemm.bf16_pairs`); sums are of f32, in the same order. Precise programs stay as they
are.
"""

from __future__ import annotations

from gptrs import settings
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.elementwise import cast
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.types import DType, bf16, f32
from gptrs.passes.base import Context


def round_operands(program: Program, context: Context) -> Program:
    """Round the other operands of products with weights of bf16, if the user wants it."""
    if context.precise or not settings.bf16_products():
        return program
    makers: dict[Value, Instruction] = {}
    rounded: dict[Value, Value] = {}
    body: list[Instruction] = []
    for instruction in program.body:
        if instruction.op is dot_general and (x := _unrounded(instruction, makers)) is not None:
            if x not in rounded and context.fuel.spend("round operand"):
                narrow = _cast(x, bf16, instruction)
                wide = _cast(narrow.result, f32, instruction)
                body += [narrow, wide]
                rounded[x] = wide.result
            if x in rounded:
                instruction = instruction.reading({x: rounded[x]})
        makers |= dict.fromkeys(instruction.results, instruction)
        body.append(instruction)
    return program.with_body(body, program.results) if rounded else program


def _unrounded(product: Instruction, makers: dict[Value, Instruction]) -> Value | None:
    """The operand of f32 that a product multiplies by a weight of bf16, unless it is rounded."""
    x, weight = product.operands
    if not isinstance(x, Value) or not isinstance(weight, Value) or x.type.dtype is not f32:
        return None
    return x if _is_widened(weight, makers) and not _is_widened(x, makers) else None


def _is_widened(value: Value, makers: dict[Value, Instruction]) -> bool:
    maker = makers.get(value)
    return maker is not None and maker.op is cast and next(maker.values()).type.dtype is bf16


def _cast(x: Value, dtype: DType, beside: Instruction) -> Instruction:
    result = Value(x.type.with_dtype(dtype), x.origin)
    return Instruction(cast, (x,), {"dtype": dtype}, (result,), beside.where)

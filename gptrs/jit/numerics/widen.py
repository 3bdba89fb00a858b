"""A program with its floats in f64, its complex numbers in cf64: what exact results would be near.

Each instruction takes and gives f64. One whose bits matter keeps its dtypes between casts: draws
of random numbers, bit patterns, quantization, effects, and those that do not take f64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gptrs.backends.reference import ReferencePlan
from gptrs.errors import PtirError
from gptrs.ir.dispatch import OPS
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.bitcast import bitcast
from gptrs.ir.ops.literal import constant
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Attrs, Instruction, Param, Program, Value, map_values
from gptrs.ir.types import Array, DType, Type, cf64, f64

_KEPT = frozenset([OpKind.RANDOM, OpKind.QUANTIZATION, OpKind.EFFECT])


def run_widened(
    program: Program, given: Sequence[Array | Parameter], sizes: Mapping[str, int]
) -> tuple[Array, ...]:
    """The results of `widened` by NumPy's meaning, in f64."""
    arrays = [x.numpy() if isinstance(x, Parameter) else x for x in given]
    program = widened(program)
    wide = [
        array.astype(param.type.dtype.numpy)
        for param, array in zip(program.params, arrays, strict=True)
    ]
    return ReferencePlan(program).run(wide, sizes)


def wide_dtype(dtype: DType) -> DType:
    """f64 for floats, cf64 for complex numbers; others as they are."""
    return f64 if dtype.is_float else cf64 if dtype.is_complex else dtype


def widened(program: Program) -> Program:
    """``program`` with wide parameters, instructions and results."""
    values: dict[Value, Value] = {}
    params: list[Param] = []
    for param in program.params:
        made = Param(_wide(param.type), param.name, role=param.role, origin=param.name)
        values[param] = made
        params.append(made)
    body: list[Instruction] = []
    for instruction in program.body:
        body += _widened(instruction, values)
    results = tuple(values[result] for result in program.results)
    return Program(program.name, tuple(params), tuple(body), results)


def _widened(instruction: Instruction, values: dict[Value, Value]) -> list[Instruction]:
    """The instructions in the place of one; ``values`` gets their results."""
    keeps = instruction.op.kind in _KEPT or instruction.op in (bitcast, constant)
    if not keeps and (wide := _as_wide(instruction, values)) is not None:
        values |= zip(instruction.results, wide.results, strict=True)
        return [wide]
    body: list[Instruction] = []

    def cast_to(value: Value, type: Type) -> Value:
        if value.type == type:
            return value
        made = Value(type, value.origin)
        attrs: Attrs = {"dtype": type.dtype}
        body.append(Instruction(OPS["cast"], (value,), attrs, (made,), instruction.where))
        return made

    operands = map_values(instruction.operands, lambda v: cast_to(values[v], v.type))
    results = tuple(Value(result.type, result.origin) for result in instruction.results)
    attrs = instruction.attrs
    body.append(Instruction(instruction.op, operands, attrs, results, instruction.where))
    for old, new in zip(instruction.results, results, strict=True):
        values[old] = cast_to(new, _wide(old.type))
    return body


def _as_wide(instruction: Instruction, values: Mapping[Value, Value]) -> Instruction | None:
    """The instruction on wide operands; None where its op does not give the wide type."""
    operands = map_values(instruction.operands, values.__getitem__)
    attrs = {name: _attribute(value) for name, value in instruction.attrs.items()}
    try:
        types = instruction.op.infer(operands, attrs)
    except (PtirError, TypeError, ValueError):
        return None
    if types != tuple(_wide(result.type) for result in instruction.results):
        return None
    origins = [result.origin for result in instruction.results]
    results = tuple(Value(type, origin) for type, origin in zip(types, origins, strict=True))
    return Instruction(instruction.op, operands, attrs, results, instruction.where)


def _attribute(value: Any) -> Any:
    if isinstance(value, DType):
        return wide_dtype(value)
    return widened(value) if isinstance(value, Program) else value


def _wide(type: Type) -> Type:
    return type.with_dtype(wide_dtype(type.dtype))

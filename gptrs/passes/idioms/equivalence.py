"""Equivalence of types, axes and attributes between a pattern and a program, for the matcher."""

from __future__ import annotations

from gptrs.ir.dims import Dim, Shape, same, same_shape
from gptrs.ir.ops.shape import broadcast_to, reshape
from gptrs.ir.program import Attrs, Instruction, Operand, Value, key_of
from gptrs.ir.types import DType, Type, normal_axis


def same_but_for_ones(a: Type, b: Type) -> bool:
    """Whether two types are equal up to axes of extent 1."""
    if a.dtype is not b.dtype:
        return False
    return a == b or same_shape(*(tuple(n for n in t.shape if not same(n, 1)) for t in (a, b)))


def aligned(shape: Shape, other: Shape) -> bool:
    """Whether two shapes have the same axes, aligned at the end as in broadcasting."""
    missing = len(shape) - len(other)
    return missing >= 0 and same_shape(shape, (1,) * missing + other)


def same_place(
    node: Operand, found: Operand, shape: Shape | None, whole: tuple[Value, Value]
) -> bool:
    """Whether two factors have their axes at the same positions in the products ``whole``."""
    if not isinstance(node, Value) or not isinstance(found, Value):
        return True
    there, here = node.type.shape, found.type.shape if shape is None else shape
    if aligned(*(value.type.shape for value in whole)) and aligned(there, here):
        return True
    pairs = zip((there, here), whole, strict=True)
    return all(same_shape(a, b.type.shape) for a, b in pairs)


def axes_of(dot: Instruction, side: str) -> list[tuple[int, ...]]:
    """The axes of an operand of a matrix product (``lhs`` or ``rhs``): batch, rest, contracted."""
    operand = dot.operands[0 if side == "lhs" else 1]
    assert isinstance(operand, Value)
    batch: tuple[int, ...] = dot.attrs[f"batch_{side}"]
    contracted: tuple[int, ...] = dot.attrs[f"contract_{side}"]
    rest = tuple(i for i in range(operand.type.rank) if i not in batch + contracted)
    return [batch, rest, contracted]


def sum_dtypes(dot: Instruction) -> tuple[DType, DType]:
    """The accumulator dtype and the result dtype of a matrix product."""
    dtype = next(dot.values()).type.dtype
    return dot.attrs["accum_dtype"] or dtype.compute, dot.attrs["out_dtype"] or dtype


def same_attrs(wanted: Instruction, maker: Instruction) -> bool:
    a, b = wanted.attrs, maker.attrs
    if wanted.op in (broadcast_to, reshape):
        return wanted.results[0].type == maker.results[0].type
    if "keepdims" in a and next(wanted.values()).type == next(maker.values()).type:
        b = {**b, "keepdims": a["keepdims"]}  # their results differ in axes of extent 1
    return a.keys() == b.keys() and all(_same_attr(name, a, b, wanted) for name in a)


def _same_attr(name: str, a: Attrs, b: Attrs, wanted: Instruction) -> bool:
    x, y = a[name], b[name]
    if name == "axis" and isinstance(x, int) and isinstance(y, int):
        rank = next(wanted.values()).type.rank
        return -rank <= y < rank and normal_axis(x, rank) == normal_axis(y, rank)
    if isinstance(x, Dim) or isinstance(y, Dim):
        return isinstance(x, int | Dim) and isinstance(y, int | Dim) and same(x, y)
    if isinstance(x, float) or isinstance(y, float):
        return key_of(x) == key_of(y) or (type(x) is not bool and type(y) is not bool and x == y)
    return key_of(x) == key_of(y)

"""Ops without operands: constant, full, iota."""

from __future__ import annotations

import numpy as np

from gptrs.errors import DTypeError, ShapeError
from gptrs.ir.checks import one_dtype
from gptrs.ir.dims import Dim, Shape, surely_greater
from gptrs.ir.kinds import OpKind
from gptrs.ir.operands import as_rule_operand
from gptrs.ir.primitives import primitive
from gptrs.ir.program import Attrs
from gptrs.ir.types import Array, DType, Type, normal_axis, shape_text, si32

__all__ = ["constant", "full", "iota"]


@primitive(kind=OpKind.FILL)
def constant(*, value: Array) -> Type:
    """The array ``value``."""
    return Type.of(value)


@constant.numpy
def _(*, value: Array) -> Array:
    return value


@primitive(kind=OpKind.FILL)
def full(*, shape: Shape, value: float, dtype: DType) -> Type:
    """An array of ``shape`` in which every element is ``value``."""
    check_extents(shape)
    one_dtype(as_rule_operand(Type((), dtype)), value)
    return Type(shape, dtype)


@full.numpy
def _(*, shape: tuple[int, ...], value: float, dtype: DType) -> Array:
    check_extents(shape)  # a difference of symbols may be negative
    return np.full(shape, value, dtype.numpy)


@primitive(kind=OpKind.FILL)
def iota(*, shape: Shape, dtype: DType = si32, axis: int = 0) -> Type:
    """The position along ``axis``: 0, 1, 2, ..."""
    if dtype.is_bool or dtype.is_complex:
        raise DTypeError(f"positions cannot be counted in {dtype}", fix="dtype='si32'")
    check_extents(shape)
    normal_axis(axis, len(shape))
    return Type(shape, dtype)


@iota.canonical
def _(*, shape: Shape, dtype: DType, axis: int) -> Attrs:
    return {"axis": normal_axis(axis, len(shape))}


@iota.numpy
def _(*, shape: tuple[int, ...], dtype: DType, axis: int) -> Array:
    check_extents(shape)
    along = [1] * len(shape)
    along[axis] = shape[axis]
    positions = np.arange(shape[axis]).reshape(along).astype(dtype.numpy)
    return np.broadcast_to(positions, shape)


def check_extents(shape: Shape) -> None:
    """Raise `ShapeError` unless every extent is an integer or symbol ≥ 0."""
    for extent in shape:
        if not isinstance(extent, int | Dim) or isinstance(extent, bool):
            raise ShapeError(f"extent {extent!r} of a shape is no integer")
        if surely_greater(0, extent):
            raise ShapeError(f"shape {shape_text(shape)} has a negative extent")

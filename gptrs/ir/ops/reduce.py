"""Reductions along axes: sum, product, max, min, any, all, argmax, argmin; and cumulative ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gptrs.errors import ElementError, ShapeError
from gptrs.ir.checks import require, sum_dtype
from gptrs.ir.dims import same, surely_greater
from gptrs.ir.extremes import MAXIMUM, MINIMUM
from gptrs.ir.kinds import OpKind
from gptrs.ir.primitives import Primitive, arithmetic
from gptrs.ir.program import Attrs, Fails
from gptrs.ir.row_rules import reduced_rows
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, Kind, Type, as_dtype, normal_axes, normal_axis, si64

__all__ = [
    "argmax",
    "argmin",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
]

Axes = int | tuple[int, ...] | None


def _reduced(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Type:
    if keepdims:
        return x.type.with_shape(1 if i in axes else n for i, n in enumerate(x.shape))
    return x.type.with_shape(n for i, n in enumerate(x.shape) if i not in axes)


def _canonical_axes(x: Tensor, *, axes: Axes, **_: object) -> Attrs:
    return {"axes": normal_axes(axes, x.ndim)}


@arithmetic(OpKind.REDUCTION, rows=reduced_rows)
def reduce_sum(
    x: Tensor,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    accum_dtype: DType | None = None,
    out_dtype: DType | None = None,
) -> Type:
    """The sum over ``axes``; 0 over nothing. Narrow floats are accumulated in f32."""
    return _reduced(x, _tuple(axes), keepdims).with_dtype(sum_dtype(x, accum_dtype, out_dtype))


@arithmetic(OpKind.REDUCTION, rows=reduced_rows)
def reduce_prod(
    x: Tensor,
    *,
    axes: Axes = None,
    keepdims: bool = False,
    accum_dtype: DType | None = None,
    out_dtype: DType | None = None,
) -> Type:
    """The product over ``axes``; 1 over nothing. Narrow floats are accumulated in f32."""
    return _reduced(x, _tuple(axes), keepdims).with_dtype(sum_dtype(x, accum_dtype, out_dtype))


def _accumulate(total: Callable[..., Any]) -> Callable[..., Array]:
    def meaning(
        x: Array,
        *,
        axes: tuple[int, ...],
        keepdims: bool,
        accum_dtype: DType | None,
        out_dtype: DType | None,
    ) -> Array:
        dtype = accum_dtype.compute if accum_dtype else as_dtype(x.dtype)
        if total is np.prod and not axes:  # by 1, NumPy changes the signs of complex zeros
            return x.astype(dtype.numpy)
        return total(x.astype(dtype.numpy, copy=False), axes, keepdims=keepdims, dtype=dtype.numpy)

    return meaning


for _op, _total in ((reduce_sum, np.sum), (reduce_prod, np.prod)):
    _op.canonical(_canonical_axes)
    _op.numpy(_accumulate(_total))


def _tuple(axes: Axes) -> tuple[int, ...]:
    """Axes in a type rule: `_canonical_axes` has normalised them."""
    assert isinstance(axes, tuple)
    return axes


@arithmetic(OpKind.REDUCTION, rows=reduced_rows)
def reduce_max(x: Tensor, *, axes: Axes = None, keepdims: bool = False) -> Type:
    """The greatest element over ``axes``; −∞ over nothing, an error for integers. NaN wins, and +0
    over −0."""
    _require_elements(x, _tuple(axes))
    return _reduced(x, _tuple(axes), keepdims)


@reduce_max.numpy
def _(x: Array, *, axes: tuple[int, ...], keepdims: bool) -> Array:
    if x.dtype.kind != "f":
        _check_elements(x, axes)
    return MAXIMUM.reduce(x, axes, keepdims=keepdims)


@arithmetic(OpKind.REDUCTION, rows=reduced_rows)
def reduce_min(x: Tensor, *, axes: Axes = None, keepdims: bool = False) -> Type:
    """The least element over ``axes``; +∞ over nothing, an error for integers. NaN wins, and −0
    over +0."""
    _require_elements(x, _tuple(axes))
    return _reduced(x, _tuple(axes), keepdims)


@reduce_min.numpy
def _(x: Array, *, axes: tuple[int, ...], keepdims: bool) -> Array:
    if x.dtype.kind != "f":
        _check_elements(x, axes)
    return MINIMUM.reduce(x, axes, keepdims=keepdims)


def _require_elements(x: Tensor, axes: tuple[int, ...]) -> None:
    require(x, "int", "uint", "float")
    if not x.dtype.is_float and any(same(x.shape[i], 0) for i in axes):
        raise ShapeError(f"no greatest or least of no elements in {x.dtype}")


def _check_elements(x: Array, axes: tuple[int, ...]) -> None:
    """Run-time check, for symbolic extents: that none of them is 0."""
    for axis in axes:
        if not x.shape[axis]:
            raise ElementError(f"axis {axis} has extent 0: there is no greatest or least element")


def _without_elements(x: Tensor, axes: tuple[int, ...]) -> Fails:
    known = all(surely_greater(x.shape[axis], 0) for axis in axes)
    return Fails.NEVER if known else Fails.AT_SIZES


def _extreme_fails(x: Tensor, *, axes: tuple[int, ...], **_: object) -> Fails:
    return Fails.NEVER if x.dtype.is_float else _without_elements(x, axes)


def _position_fails(x: Tensor, *, axis: int, **_: object) -> Fails:
    return _without_elements(x, (axis,))


for _op in (reduce_max, reduce_min):
    _op.failing(_extreme_fails)


@arithmetic(OpKind.REDUCTION, rows=reduced_rows)
def reduce_any(x: Tensor, *, axes: Axes = None, keepdims: bool = False) -> Type:
    """Whether any element over ``axes`` holds; false over nothing."""
    require(x, "bool")
    return _reduced(x, _tuple(axes), keepdims)


@reduce_any.numpy
def _(x: Array, *, axes: tuple[int, ...], keepdims: bool) -> Array:
    return np.any(x, axes, keepdims=keepdims)


@arithmetic(OpKind.REDUCTION, rows=reduced_rows)
def reduce_all(x: Tensor, *, axes: Axes = None, keepdims: bool = False) -> Type:
    """Whether all elements over ``axes`` hold; true over nothing."""
    require(x, "bool")
    return _reduced(x, _tuple(axes), keepdims)


@reduce_all.numpy
def _(x: Array, *, axes: tuple[int, ...], keepdims: bool) -> Array:
    return np.all(x, axes, keepdims=keepdims)


for _op in (reduce_max, reduce_min, reduce_any, reduce_all):
    _op.canonical(_canonical_axes)


def _canonical_axis(x: Tensor, *, axis: int, **_: object) -> Attrs:
    return {"axis": normal_axis(axis, x.ndim)}


def _position(x: Tensor, axis: int, keepdims: bool, kinds: tuple[Kind, ...]) -> Type:
    require(x, *kinds)
    if same(x.shape[axis], 0):
        raise ShapeError(f"axis {axis} has extent 0: there is no greatest or least element")
    return _reduced(x, (axis,), keepdims).with_dtype(si64)


@arithmetic(OpKind.ORDER)
def argmax(x: Tensor, *, axis: int, keepdims: bool = False) -> Type:
    """The position (si64) of the greatest element along ``axis``, the first of equals; NaN wins."""
    return _position(x, axis, keepdims, ("int", "uint", "float"))


@argmax.numpy
def _(x: Array, *, axis: int, keepdims: bool) -> Array:
    _check_elements(x, (axis,))
    return np.argmax(x, axis, keepdims=keepdims)


@arithmetic(OpKind.ORDER)
def argmin(x: Tensor, *, axis: int, keepdims: bool = False) -> Type:
    """The position (si64) of the least element along ``axis``, the first of equals; NaN wins."""
    return _position(x, axis, keepdims, ("int", "uint", "float"))


@argmin.numpy
def _(x: Array, *, axis: int, keepdims: bool) -> Array:
    _check_elements(x, (axis,))
    return np.argmin(x, axis, keepdims=keepdims)


@arithmetic(OpKind.ROWWISE)
def cumsum(x: Tensor, *, axis: int) -> Type:
    """The sum of the elements up to and including each position along ``axis``."""
    require(x, "int", "uint", "float", "complex")
    return x.type


@cumsum.numpy
def _(x: Array, *, axis: int) -> Array:
    return np.cumsum(x, axis, dtype=x.dtype)


@arithmetic(OpKind.ROWWISE)
def cumprod(x: Tensor, *, axis: int) -> Type:
    """The product of the elements up to and including each position along ``axis``."""
    require(x, "int", "uint", "float", "complex")
    return x.type


@cumprod.numpy
def _(x: Array, *, axis: int) -> Array:
    return np.cumprod(x, axis, dtype=x.dtype)


@arithmetic(OpKind.ROWWISE)
def cummax(x: Tensor, *, axis: int) -> Type:
    """The greatest element up to and including each position along ``axis``. NaN wins, and +0 over
    −0."""
    require(x, "int", "uint", "float")
    return x.type


@cummax.numpy
def _(x: Array, *, axis: int) -> Array:
    return MAXIMUM.accumulate(x, axis)


@arithmetic(OpKind.ROWWISE)
def cummin(x: Tensor, *, axis: int) -> Type:
    """The least element up to and including each position along ``axis``. NaN wins, and −0 over
    +0."""
    require(x, "int", "uint", "float")
    return x.type


@cummin.numpy
def _(x: Array, *, axis: int) -> Array:
    return MINIMUM.accumulate(x, axis)


_with_axis: tuple[Primitive[Any, Tensor], ...] = (
    *(argmax, argmin),
    *(cumsum, cumprod, cummax, cummin),
)
for _op in _with_axis:
    _op.canonical(_canonical_axis)
for _op in (argmax, argmin):
    _op.failing(_position_fails)

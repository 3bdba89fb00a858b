"""Affine quantization: q stands for (q − zero_point) · scale.

``scale`` (a float) and ``zero_point`` (in the dtype of q, absent for 0) have one of three shapes:
[] for the whole tensor; [n], where n is the extent of ``axis``, for one entry per index; or with
``group_size`` that of the tensor with the extent of ``axis`` divided by it, for one entry per group
of neighbours. q is an integer of at most 32 bits, or fp8, which has no zero point. The arithmetic
runs in f32, in f64 where a float operand or result is f64 or q has more than 16 bits.
"""

from __future__ import annotations

from typing import Any
from typing import cast as typed

import ml_dtypes

from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.checks import require
from gptrs.ir.composites import composite
from gptrs.ir.dims import Shape, same, same_shape
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.elementwise import cast, clamp, round_
from gptrs.ir.ops.shape import reshape
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, dim_text, f32, f64, normal_axis, shape_text

__all__ = ["dequantize", "quantize", "requantize"]


@composite(kind=OpKind.QUANTIZATION)
def quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    dtype: DType,
    axis: int | None = None,
    group_size: int | None = None,
) -> Tensor:
    """round(x / scale) + zero_point in ``dtype``, halves to the even integer, saturated; NaN is 0.

    In fp8 x / scale is rounded to fp8 and saturated to its greatest finite numbers; NaN stays.
    """
    require(x, "float")
    groups = _Groups(x, axis, group_size)
    _check_stored(dtype, zero_point)
    wide = _wide(dtype, x.dtype, groups.checked("scale", scale).dtype)
    return groups.joined(_stored(groups.split(x, wide), scale, zero_point, groups, dtype))


@composite(kind=OpKind.QUANTIZATION)
def dequantize(
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    *,
    dtype: DType = f32,
    axis: int | None = None,
    group_size: int | None = None,
) -> Tensor:
    """(q − zero_point) · scale in the float ``dtype``."""
    if not dtype.is_float:
        raise DTypeError(f"dtype is {dtype}, expected a float", fix="dtype='f32'")
    groups = _Groups(q, axis, group_size)
    _check_stored(q.dtype, zero_point)
    wide = _wide(q.dtype, dtype, groups.checked("scale", scale).dtype)
    real = _real(groups.split(q, wide), scale, zero_point, groups)
    return groups.joined(cast(real, dtype=dtype))


@composite(kind=OpKind.QUANTIZATION)
def requantize(
    q: Tensor,
    scale: Tensor,
    new_scale: Tensor,
    zero_point: Tensor | None = None,
    new_zero_point: Tensor | None = None,
    *,
    dtype: DType,
    axis: int | None = None,
    group_size: int | None = None,
) -> Tensor:
    """round((q − zero_point) · scale / new_scale) + new_zero_point in ``dtype``.

    That is `dequantize` and then `quantize`, in f64 and rounded to ``dtype`` only. Scales and zero
    points have all the same shape.
    """
    groups = _Groups(q, axis, group_size)
    _check_stored(q.dtype, zero_point)
    _check_stored(dtype, new_zero_point)
    groups.checked("scale", scale)
    groups.checked("new_scale", new_scale)
    real = _real(groups.split(q, f64), scale, zero_point, groups)
    return groups.joined(_stored(real, new_scale, new_zero_point, groups, dtype))


def _real(q: Tensor, scale: Tensor, zero_point: Tensor | None, groups: _Groups) -> Tensor:
    """The dequantized values of ``q``, in groups and as a float."""
    if zero_point is not None:
        q = q - groups.spread("zero_point", zero_point, q.dtype)
    return q * groups.spread("scale", scale, q.dtype)


def _stored(
    x: Tensor, scale: Tensor, zero_point: Tensor | None, groups: _Groups, dtype: DType
) -> Tensor:
    """The quantized values of ``x``, in groups, in ``dtype``."""
    steps = x / groups.spread("scale", scale, x.dtype)
    if dtype.is_float:
        most = float(typed("Any", ml_dtypes.finfo(dtype.numpy)).max)
        return cast(clamp(steps, -most, most), dtype=dtype)
    whole = round_(steps)
    if zero_point is not None:
        whole = whole + groups.spread("zero_point", zero_point, x.dtype)
    return cast(whole, dtype=dtype)


class _Groups:
    """A tensor as groups of elements with one scale each: the axis split into groups and
    positions."""

    def __init__(self, x: Tensor, axis: int | None, group_size: int | None) -> None:
        self._shape = x.shape
        self._size = group_size
        if group_size is not None and group_size < 1:
            raise ArgumentError(f"group_size is {group_size}, expected at least 1")
        if group_size is not None and axis is None:
            raise ArgumentError("group_size is given and axis is not", fix="axis=-1")
        self._axis = None if axis is None else normal_axis(axis, x.ndim)

    def _entries(self) -> Shape:
        """The shape of scales and zero points."""
        if self._axis is None:
            return ()
        extent = self._shape[self._axis]
        if self._size is None:
            return (extent,)
        count = extent // self._size
        if not same(count * self._size, extent):
            raise ShapeError(
                f"axis {self._axis} has extent {dim_text(extent)}: groups of {self._size} do not"
                " divide it"
            )
        return (*self._shape[: self._axis], count, *self._shape[self._axis + 1 :])

    def checked(self, name: str, scale: Tensor) -> Tensor:
        """The scale, after a check of its dtype and shape."""
        require(scale, "float")
        self._check_shape(name, scale)
        return scale

    def _check_shape(self, name: str, entries: Tensor) -> None:
        expected = self._entries()
        if not same_shape(entries.shape, expected):
            fix = "axis= names the axis that it runs along" if self._axis is None else ""
            raise ShapeError(
                f"{name} has shape {shape_text(entries.shape)}, expected {shape_text(expected)}",
                fix=fix,
            )

    def split(self, x: Tensor, dtype: DType) -> Tensor:
        """The tensor in ``dtype`` with the axis split."""
        x = cast(x, dtype=dtype)
        if self._axis is None or self._size is None:
            return x
        count = self._entries()[self._axis]
        shape = (*self._shape[: self._axis], count, self._size, *self._shape[self._axis + 1 :])
        return reshape(x, shape=shape)

    def joined(self, x: Tensor) -> Tensor:
        """A split tensor in its original shape."""
        return x if self._size is None else reshape(x, shape=self._shape)

    def spread(self, name: str, entries: Tensor, dtype: DType) -> Tensor:
        """Scales or zero points in ``dtype``, in a shape that broadcasts to the split tensor."""
        self._check_shape(name, entries)
        entries = cast(entries, dtype=dtype)
        if self._axis is None:
            return entries
        rest = len(self._shape) - self._axis - 1
        if self._size is None:
            return reshape(entries, shape=(*entries.shape, *[1] * rest))
        before, after = entries.shape[: self._axis + 1], entries.shape[self._axis + 1 :]
        return reshape(entries, shape=(*before, 1, *after))


def _check_stored(dtype: DType, zero_point: Tensor | None) -> None:
    """Raise `DTypeError` unless q can have the dtype, and the zero point is allowed with it."""
    fp8 = dtype.is_float and dtype.bits == 8
    if not fp8 and not (dtype.is_integer and dtype.bits <= 32):
        raise DTypeError(
            f"found dtype {dtype} for quantized numbers, expected fp8 or an integer of at most"
            " 32 bits",
            fix="dtype='si8'",
        )
    if zero_point is None:
        return
    if fp8:
        raise DTypeError(f"zero_point is given, but {dtype} has none", fix="zero_point=None")
    if zero_point.dtype is not dtype:
        raise DTypeError(
            f"zero_point has dtype {zero_point.dtype}, expected {dtype} as its numbers",
            fix=f"ptir.cast(zero_point, dtype='{dtype}')",
        )


def _wide(stored: DType, *floats: DType) -> DType:
    """The dtype to compute in."""
    return f64 if f64 in floats or (stored.is_integer and stored.bits > 16) else f32

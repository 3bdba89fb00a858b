"""Quantised values, their products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.onnx.operators.broadcasting import along
from gptrs.onnx.operators.windows import Margins, convolved, margins_of
from gptrs.onnx.table import onnx, ptir
from gptrs.onnx.tensors import dtype_of

Ints = Sequence[int] | None


def blocked(values: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """One value for each block of ``block`` elements along ``axis``, or as `along`."""
    if not block:
        return along(values, x.ndim, axis)
    axis %= x.ndim
    return ptir.repeat(values, block, axis=axis)[(*(slice(None),) * axis, slice(0, x.shape[axis]))]


@onnx("QuantizeLinear")
def quantize_linear(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    axis: int = 1,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
) -> Tensor:
    """``x / scale + zero_point``, rounded half to even and clipped."""
    dtype = zero_point.dtype if zero_point is not None else dtype_of(output_dtype or 2)
    made = ptir.astype(x, ptir.f32) / blocked(ptir.astype(scale, ptir.f32), x, axis, block_size)
    if dtype.is_float:
        if not saturate:
            return ptir.astype(made, dtype)
        most = float(ptir.finfo(dtype).max)
        return ptir.astype(ptir.clip(made, -most, most), dtype)
    made = ptir.round(made)
    if zero_point is not None:
        made = made + blocked(ptir.astype(zero_point, ptir.f32), x, axis, block_size)
    return ptir.astype(ptir.clip(made, *dtype.limits), dtype)


@onnx("DequantizeLinear")
def dequantize_linear(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    """``(x − zero_point) · scale``."""
    made = ptir.astype(x, ptir.f32)
    if zero_point is not None:
        made = made - blocked(ptir.astype(zero_point, ptir.f32), x, axis, block_size)
    made = made * blocked(ptir.astype(scale, ptir.f32), x, axis, block_size)
    return ptir.astype(made, dtype_of(output_dtype) if output_dtype else scale.dtype)


@onnx("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``x`` in 8 bits without a sign, with the scale and the zero point for its range."""
    low = ptir.minimum(ptir.amin(x), 0)
    scale = (ptir.maximum(ptir.amax(x), 0) - low) / 255
    zero = ptir.clip(ptir.round(-low / scale), 0, 255)
    made = ptir.clip(ptir.round(x / scale) + zero, 0, 255)
    return ptir.astype(made, ptir.ui8), scale, ptir.astype(zero, ptir.ui8)


def centred(x: Tensor, zero_point: Tensor | None, axis: int) -> Tensor:
    """Integers without their zero point, in 32 bits."""
    wide = ptir.astype(x, ptir.si32)
    if zero_point is None:
        return wide
    return wide - along(ptir.astype(zero_point, ptir.si32), x.ndim, axis)


@onnx("MatMulInteger")
def matmul_integer(
    x: Tensor, y: Tensor, x_zero: Tensor | None = None, y_zero: Tensor | None = None
) -> Tensor:
    """The product of 8-bit integers without their zero points, in 32 bits."""
    return ptir.matmul(centred(x, x_zero, -2), centred(y, y_zero, -1))


@onnx("QLinearMatMul")
def qlinear_matmul(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
) -> Tensor:
    """The product of quantised matrices, quantised."""
    exact = ptir.matmul(centred(x, x_zero, -2), centred(y, y_zero, -1))
    return requantized(exact, along(x_scale, x.ndim, -2) * along(y_scale, x.ndim, -1), scale, zero)


def requantized(exact: Tensor, factor: Any, scale: Tensor, zero: Tensor) -> Tensor:
    """32-bit sums of quantised products, in the dtype of ``zero``."""
    wide = ptir.astype(exact, ptir.f32) * (
        ptir.astype(factor, ptir.f32) / ptir.astype(scale, ptir.f32)
    )
    made = ptir.round(wide) + ptir.astype(zero, ptir.f32)
    return ptir.astype(ptir.clip(made, *zero.dtype.limits), zero.dtype)


@onnx("ConvInteger")
def conv_integer(
    x: Tensor,
    weight: Tensor,
    x_zero: Tensor | None = None,
    w_zero: Tensor | None = None,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Tensor:
    """The convolution of 8-bit integers without their zero points, in 32 bits."""
    own, taps = centred(x, x_zero, 1), centred(weight, w_zero, 0)
    margins = margins_of(x, weight.shape[2:], strides, dilations, pads, auto_pad)
    return _integers_convolved(own, taps, margins, strides, dilations, group)


def _integers_convolved(
    x: Tensor, weight: Tensor, margins: Margins, strides: Ints, dilations: Ints, group: int
) -> Tensor:
    """Exact: in f64, which holds all sums of 2²¹ products of 16 bits."""
    own, taps = (ptir.astype(v, ptir.f64) for v in (x, weight))
    made: Tensor = convolved(own, taps, None, margins, strides, dilations, group, x.ndim - 2)
    return ptir.astype(made, ptir.si32)


@onnx("QLinearConv")
def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    weight: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
    bias: Tensor | None = None,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Tensor:
    """The convolution of quantised values, quantised."""
    own, taps = centred(x, x_zero, 1), centred(weight, w_zero, 0)
    margins = margins_of(x, weight.shape[2:], strides, dilations, pads, auto_pad)
    exact = _integers_convolved(own, taps, margins, strides, dilations, group)
    if bias is not None:
        exact = exact + along(bias, exact.ndim, 1)
    factor = along(x_scale, x.ndim, 1) * along(w_scale, x.ndim, 1)
    return requantized(exact, factor, scale, zero)

"""Layers: linear, embedding, normalisation, convolution.

Shapes are in each docstring; images are [N, H, W, C], weights as PyTorch stores them. Weights may
be narrower than f32: they are widened where they are used, and passes hoist or fuse that.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from gptrs import ptir
from gptrs.errors import ShapeError
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.vision import Padding2d, Pair
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.nn.activations import ACTIVATIONS
from gptrs.nn.module import Module, ParameterOf

Padding: TypeAlias = Padding2d | Literal["same"]
"""Zeros ((low, high), (low, high)) around H and W, or those of `same_padding`."""


def widened(weight: Tensor) -> Tensor:
    """``weight`` in its compute dtype: f32 for narrower floats."""
    compute = weight.dtype.compute
    return weight if weight.dtype is compute else ptir.cast(weight, dtype=compute)


class Linear(Module):
    """x [..., in] · weightᵀ + bias, weight [out, in]."""

    weight: Parameter
    bias: Parameter | None = None

    def __call__(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else widened(self.bias)
        return ptir.linear(x, widened(self.weight), bias)


class Conv1D(Module):
    """x [..., in] · weight + bias, weight [in, out]: the storage of GPT-2's projections."""

    weight: Parameter
    bias: Parameter

    def __call__(self, x: Tensor) -> Tensor:
        return ptir.linear(x, widened(self.weight), widened(self.bias), transposed=True)


class Embedding(Module):
    """Rows of weight [vocabulary, width]."""

    weight: Parameter

    def __call__(self, ids: Tensor) -> Tensor:
        return widened(ptir.embedding(self.weight, ids))


class LayerNorm(Module):
    """Normalises the last axis to mean 0 and variance 1, then scales and shifts."""

    weight: Parameter
    bias: Parameter
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return ptir.layer_norm(x, widened(self.weight), widened(self.bias), eps=self.eps)


class RMSNorm(Module):
    """Scales the last axis to a mean square of 1, then by weight, or by 1 + weight."""

    weight: Parameter
    eps: float
    plus_one: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        weight = widened(self.weight)
        return ptir.rms_norm(x, 1.0 + weight if self.plus_one else weight, eps=self.eps)


class Conv2d(Module):
    """Convolution of x [N, H, W, C] with weight [O, C, KH, KW], plus bias [O]: [N, H', W', O]."""

    weight: Parameter
    bias: Parameter | None = None
    strides: Pair = (1, 1)
    padding: Padding = ((0, 0), (0, 0))
    dilation: Pair = (1, 1)

    def __call__(self, x: Tensor) -> Tensor:
        return ptir.conv2d(
            x,
            widened(self.weight).permute(2, 3, 1, 0),  # [KH, KW, C, O]
            None if self.bias is None else widened(self.bias),
            strides=self.strides,
            padding=_padding(x, self),
            dilation=self.dilation,
        )


class DepthwiseConv2d(Module):
    """Convolution of each channel of x [N, H, W, C] with a kernel of its own: [N, H', W', C].

    weight [C, 1, KH, KW], bias [C].
    """

    weight: Parameter
    bias: Parameter | None = None
    strides: Pair = (1, 1)
    padding: Padding = ((0, 0), (0, 0))
    dilation: Pair = (1, 1)

    def __call__(self, x: Tensor) -> Tensor:
        return ptir.depthwise_conv2d(
            x,
            widened(self.weight).permute(2, 3, 0, 1),  # [KH, KW, C, 1]
            None if self.bias is None else widened(self.bias),
            strides=self.strides,
            padding=_padding(x, self),
            dilation=self.dilation,
        )


class BatchNorm2d(Module):
    """Shifts and scales each channel of x [N, H, W, C] by the statistics of the training."""

    weight: Parameter
    bias: Parameter
    running_mean: Parameter
    running_var: Parameter
    eps: float = 1e-5

    @classmethod
    def build(cls, parameter: ParameterOf, name: str, channels: int, eps: float) -> BatchNorm2d:
        """The layer whose parameters' names begin with ``name``."""
        fields = ("weight", "bias", "running_mean", "running_var")
        weight, bias, mean, var = (parameter(f"{name}.{field}", (channels,)) for field in fields)
        return cls(weight, bias, mean, var, eps)

    def __call__(self, x: Tensor) -> Tensor:
        return ptir.batch_norm(
            x,
            widened(self.running_mean),
            widened(self.running_var),
            widened(self.weight),
            widened(self.bias),
            eps=self.eps,
        )


class ConvLayer(Module):
    """Convolution, normalisation and, by its name, activation."""

    convolution: Conv2d | DepthwiseConv2d
    normalization: BatchNorm2d
    activation: str | None = None

    def __call__(self, x: Tensor) -> Tensor:
        y = self.normalization(self.convolution(x))
        return y if self.activation is None else ACTIVATIONS[self.activation](y)


def same_padding(extent: int, kernel: int, stride: int, dilation: int) -> Pair:
    """Zeros before and after ``extent`` elements so that ⌈extent / stride⌉ windows fit.

    Source: TensorFlow's "SAME", https://www.tensorflow.org/api_docs/python/tf/nn#notes_on_padding_2
    """
    windows = -(-extent // stride)
    reach = (windows - 1) * stride + (kernel - 1) * dilation + 1
    total = max(reach - extent, 0)
    return total // 2, total - total // 2


def _padding(x: Tensor, conv: Conv2d | DepthwiseConv2d) -> Padding2d:
    if conv.padding != "same":
        return conv.padding
    height, width = (
        same_padding(_number(x.shape[1 + i]), _number(conv.weight.shape[2 + i]), stride, dilation)
        for i, (stride, dilation) in enumerate(zip(conv.strides, conv.dilation, strict=True))
    )
    return height, width


def _number(extent: DimLike) -> int:
    if not isinstance(extent, int):
        raise ShapeError(
            f"the extent {extent} is symbolic, expected a number: padding 'same' depends on it",
            fix="leave H and W out of dynamic=",
        )
    return extent

"""MobileNetV2 (Sandler et al., arXiv:1801.04381), as Hugging Face's
``MobileNetV2ForImageClassification`` defines it; options cover torchvision's variant.

Inverted residual blocks (expand, depthwise, project) with batch norms, then a linear classifier.
"""

from __future__ import annotations

import math
import re
from typing import ClassVar

from gptrs import ptir
from gptrs.errors import LoadError
from gptrs.ir.tensor import Tensor
from gptrs.lazy_dataclass import dataclass
from gptrs.models.base import Model
from gptrs.nn.activations import ACTIVATIONS
from gptrs.nn.layers import BatchNorm2d, Conv2d, ConvLayer, DepthwiseConv2d, Linear, Padding
from gptrs.nn.layout import channels_last
from gptrs.nn.module import Module, ParameterOf

# Of the paper's table 2: channels before and after each of the 16 blocks, and their strides.
STEM_CHANNELS = 32
CHANNELS = (16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320)
STRIDES = (2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1)
_HEAD = 1280


@dataclass(frozen=True)
class MobileNetV2Config:
    """The fields of ``config.json`` that change what the model computes.

    Two are not Hugging Face's. ``round_channels``: whether channels · depth_multiplier is rounded
    before it is made divisible; torchvision does not. ``first_block_is_residual``: whether the
    block of the stem adds its input where it has as many channels; torchvision does.
    """

    num_channels: int = 3
    image_size: int | tuple[int, ...] = 224
    depth_multiplier: float = 1.0
    depth_divisible_by: int = 8
    min_depth: int = 8
    expand_ratio: float = 6.0
    output_stride: int = 32
    first_layer_is_expansion: bool = True
    finegrained_output: bool = True
    hidden_act: str = "relu6"
    tf_padding: bool = True
    layer_norm_eps: float = 0.001
    round_channels: bool = True
    first_block_is_residual: bool = False
    num_labels: int = 2

    def __post_init__(self) -> None:
        if self.hidden_act not in ACTIVATIONS:
            raise LoadError(
                f"hidden_act is {self.hidden_act!r}, expected one of {', '.join(ACTIVATIONS)}"
            )
        for name in ("depth_multiplier", "expand_ratio"):
            if not 0 < getattr(self, name) < math.inf:
                raise LoadError(f"{name} is {getattr(self, name)}, expected a number above 0")
        if not 0 <= self.layer_norm_eps < math.inf:
            raise LoadError(
                f"layer_norm_eps is {self.layer_norm_eps}, expected a finite number from 0 up"
            )
        for name in ("num_channels", "depth_divisible_by", "min_depth", "num_labels"):
            if getattr(self, name) < 1:
                raise LoadError(f"{name} is {getattr(self, name)}, expected at least 1")
        sizes = self.image_size if isinstance(self.image_size, tuple) else (self.image_size,)
        if min(sizes, default=0) < 1 or len(sizes) > 2:
            raise LoadError(f"image_size is {self.image_size}, expected one or two from 1 up")

    def channels(self, count: int) -> int:
        """The channels of this model where the paper's has ``count``."""
        scaled = count * self.depth_multiplier
        return self.divisible(round(scaled) if self.round_channels else scaled)

    def divisible(self, value: float) -> int:
        """The multiple of ``depth_divisible_by`` nearest to ``value``, at least 90 % of it."""
        by = self.depth_divisible_by
        nearest = max(self.min_depth, int(value + by / 2) // by * by)
        return nearest + by if nearest < 0.9 * value else nearest

    @property
    def head_channels(self) -> int:
        fine = self.finegrained_output and self.depth_multiplier < 1
        return _HEAD if fine else self.channels(_HEAD)

    def steps(self) -> list[tuple[int, int]]:
        """Stride and dilation of each block: beyond ``output_stride``, dilation replaces stride."""
        reached, dilation = 2, 1  # the stem has stride 2
        steps: list[tuple[int, int]] = []
        for stride in STRIDES:
            if reached == self.output_stride:
                steps.append((1, dilation))
                dilation *= stride
            else:
                steps.append((stride, 1))
                reached *= stride
        return steps


class Stem(Module):
    """The first convolution and the first block, whose expansion it replaces by default."""

    first_conv: ConvLayer
    expand_1x1: ConvLayer | None
    conv_3x3: ConvLayer
    reduce_1x1: ConvLayer
    is_residual: bool

    def __call__(self, x: Tensor) -> Tensor:
        x = self.first_conv(x)
        y = x if self.expand_1x1 is None else self.expand_1x1(x)
        y = self.reduce_1x1(self.conv_3x3(y))
        return x + y if self.is_residual else y


class InvertedResidual(Module):
    """Expansion, depthwise convolution, projection; residual if the shape is that of ``x``."""

    expand_1x1: ConvLayer
    conv_3x3: ConvLayer
    reduce_1x1: ConvLayer
    is_residual: bool

    def __call__(self, x: Tensor) -> Tensor:
        y = self.reduce_1x1(self.conv_3x3(self.expand_1x1(x)))
        return x + y if self.is_residual else y


class MobileNetV2(Model):
    """The image classifier: images → logits of classes."""

    task: ClassVar = "image_classifier"
    config_type: ClassVar = MobileNetV2Config
    renames: ClassVar = ((re.compile(r"^mobilenet_v2\."), ""),)
    ignored: ClassVar = re.compile(r".*\.num_batches_tracked$")  # counts of the training

    config: MobileNetV2Config
    conv_stem: Stem
    layer: tuple[InvertedResidual, ...]
    conv_1x1: ConvLayer
    classifier: Linear

    @classmethod
    def build(cls, config: MobileNetV2Config, parameter: ParameterOf) -> MobileNetV2:
        """Build the model from ``parameter(name, shape)``."""
        make = _Layers(config, parameter)
        wide, width = config.channels(STEM_CHANNELS), config.channels(CHANNELS[0])
        stem = Stem(
            make.layer("conv_stem.first_conv", config.num_channels, wide, 3, stride=2),
            None
            if config.first_layer_is_expansion
            else make.layer("conv_stem.expand_1x1", wide, wide),
            make.depthwise("conv_stem.conv_3x3", wide),
            make.layer("conv_stem.reduce_1x1", wide, width, is_active=False),
            config.first_block_is_residual and wide == width,
        )
        blocks: list[InvertedResidual] = []
        for number, (count, step) in enumerate(zip(CHANNELS[1:], config.steps(), strict=True)):
            to = config.channels(count)
            blocks.append(make.block(f"layer.{number}", width, to, *step))
            width = to
        head = make.layer("conv_1x1", width, config.head_channels)
        classifier = Linear(
            parameter("classifier.weight", (config.num_labels, config.head_channels)),
            parameter("classifier.bias", (config.num_labels,)),
        )
        return cls(config, stem, tuple(blocks), head, classifier)

    @property
    def image_size(self) -> int:
        """Height and width of the training images, in pixels."""
        size = self.config.image_size
        return size if isinstance(size, int) else min(size)

    @ptir.jit(name="mobilenet_v2", dynamic={"images": {0: "N"}})
    def __call__(self, images: Tensor) -> Tensor:
        """Logits [N, classes] of images [N, H, W, C] or [N, C, H, W]."""
        x = self.conv_stem(channels_last(images, self.config.num_channels))
        for block in self.layer:
            x = block(x)
        return self.classifier(ptir.global_avg_pool2d(self.conv_1x1(x)))


@dataclass(frozen=True)
class _Layers:
    """Builds layers from parameters."""

    config: MobileNetV2Config
    parameter: ParameterOf

    def layer(
        self,
        at: str,
        channels: int,
        to: int,
        kernel: int = 1,
        *,
        stride: int = 1,
        is_active: bool = True,
    ) -> ConvLayer:
        weight = self.parameter(f"{at}.convolution.weight", (to, channels, kernel, kernel))
        conv = Conv2d(weight, None, (stride, stride), self._padding(kernel))
        return self._normalised(at, conv, to, is_active)

    def depthwise(self, at: str, channels: int, stride: int = 1, dilation: int = 1) -> ConvLayer:
        weight = self.parameter(f"{at}.convolution.weight", (channels, 1, 3, 3))
        padding = self._padding(3, dilation)
        steps = (stride, stride), padding, (dilation, dilation)
        return self._normalised(at, DepthwiseConv2d(weight, None, *steps), channels, True)

    def block(
        self, at: str, channels: int, to: int, stride: int, dilation: int
    ) -> InvertedResidual:
        wide = self.config.divisible(round(channels * self.config.expand_ratio))
        return InvertedResidual(
            self.layer(f"{at}.expand_1x1", channels, wide),
            self.depthwise(f"{at}.conv_3x3", wide, stride, dilation),
            self.layer(f"{at}.reduce_1x1", wide, to, is_active=False),
            stride == 1 and channels == to,
        )

    def _normalised(
        self, at: str, conv: Conv2d | DepthwiseConv2d, to: int, is_active: bool
    ) -> ConvLayer:
        eps = self.config.layer_norm_eps
        norm = BatchNorm2d.build(self.parameter, f"{at}.normalization", to, eps)
        return ConvLayer(conv, norm, self.config.hidden_act if is_active else None)

    def _padding(self, kernel: int, dilation: int = 1) -> Padding:
        edge = (kernel - 1) // 2 * dilation
        return "same" if self.config.tf_padding else ((edge, edge), (edge, edge))

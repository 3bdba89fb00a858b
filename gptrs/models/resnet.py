"""ResNet (He et al., arXiv:1512.03385), as Hugging Face's ``ResNetForImageClassification`` has it.

Stem, four stages of basic or bottleneck residual blocks with batch norms, average pooling, linear
classifier.
"""

from __future__ import annotations

import re
from typing import ClassVar

from gptrs import ptir
from gptrs.errors import LoadError
from gptrs.ir.tensor import Tensor
from gptrs.lazy_dataclass import dataclass
from gptrs.models.base import Model
from gptrs.nn.activations import ACTIVATIONS
from gptrs.nn.layers import BatchNorm2d, Conv2d, ConvLayer, Linear
from gptrs.nn.layout import channels_last
from gptrs.nn.module import Module, ParameterOf

LAYER_TYPES = ("basic", "bottleneck")
_REDUCTION = 4  # a bottleneck computes with a quarter of the channels
_EPS = 1e-5  # of every normalisation; configurations have no field for it


@dataclass(frozen=True)
class ResNetConfig:
    """The fields of ``config.json`` that change what the model computes."""

    num_channels: int = 3
    embedding_size: int = 64
    hidden_sizes: tuple[int, ...] = (256, 512, 1024, 2048)
    depths: tuple[int, ...] = (3, 4, 6, 3)
    layer_type: str = "bottleneck"
    hidden_act: str = "relu"
    downsample_in_first_stage: bool = False
    downsample_in_bottleneck: bool = False
    num_labels: int = 2

    def __post_init__(self) -> None:
        for name, known in (("layer_type", LAYER_TYPES), ("hidden_act", ACTIVATIONS)):
            if getattr(self, name) not in known:
                raise LoadError(
                    f"{name} is {getattr(self, name)!r}, expected one of {', '.join(known)}"
                )
        if not self.depths or len(self.depths) != len(self.hidden_sizes):
            raise LoadError(
                f"depths has {len(self.depths)} entries and hidden_sizes {len(self.hidden_sizes)},"
                " expected one each for every stage"
            )
        smallest = _REDUCTION if self.layer_type == "bottleneck" else 1
        for name, least in (
            *(("num_channels", 1), ("embedding_size", 1), ("num_labels", 1)),
            *(("depths", 1), ("hidden_sizes", smallest)),
        ):
            value: int | tuple[int, ...] = getattr(self, name)
            if min(value if isinstance(value, tuple) else (value,)) < least:
                raise LoadError(f"{name} is {value}, expected at least {least}")


class Block(Module):
    """Residual block of two convolutions (basic) or three (bottleneck)."""

    layer: tuple[ConvLayer, ...]
    shortcut: ConvLayer | None
    activation: str

    def __call__(self, x: Tensor) -> Tensor:
        y = x
        for layer in self.layer:
            y = layer(y)
        residual = x if self.shortcut is None else self.shortcut(x)
        return ACTIVATIONS[self.activation](y + residual)


class Stage(Module):
    """Blocks at one resolution; the first may have stride 2."""

    layers: tuple[Block, ...]

    def __call__(self, x: Tensor) -> Tensor:
        for block in self.layers:
            x = block(x)
        return x


class ResNet(Model):
    """The image classifier: images → logits of classes."""

    task: ClassVar = "image_classifier"
    config_type: ClassVar = ResNetConfig
    renames: ClassVar = (
        (re.compile(r"^resnet\.(embedder|encoder)\.(embedder\.)?"), r"\1."),
        (re.compile(r"^encoder\."), ""),
        (re.compile(r"^classifier\.1\."), "classifier."),
    )
    ignored: ClassVar = re.compile(r".*\.num_batches_tracked$")  # counts of the training

    config: ResNetConfig
    embedder: ConvLayer
    stages: tuple[Stage, ...]
    classifier: Linear

    @classmethod
    def build(cls, config: ResNetConfig, parameter: ParameterOf) -> ResNet:
        """Build the model from ``parameter(name, shape)``."""
        channels, width = config.num_channels, config.embedding_size
        stem = _layer(parameter, "embedder", channels, width, 7, 2, config.hidden_act)
        stages: list[Stage] = []
        for number, (size, depth) in enumerate(
            zip(config.hidden_sizes, config.depths, strict=True)
        ):
            halves = number > 0 or config.downsample_in_first_stage
            blocks: list[Block] = []
            for index in range(depth):
                at = f"stages.{number}.layers.{index}"
                stride = 2 if halves and index == 0 else 1
                blocks.append(_block(parameter, at, config, width, size, stride))
                width = size
            stages.append(Stage(tuple(blocks)))
        classifier = Linear(
            parameter("classifier.weight", (config.num_labels, width)),
            parameter("classifier.bias", (config.num_labels,)),
        )
        return cls(config, stem, tuple(stages), classifier)

    @property
    def image_size(self) -> int:
        """Height and width of the training images, in pixels."""
        return 224

    @ptir.jit(name="resnet", dynamic={"images": {0: "N"}})
    def __call__(self, images: Tensor) -> Tensor:
        """Logits [N, classes] of images [N, H, W, C] or [N, C, H, W]."""
        x = self.embedder(channels_last(images, self.config.num_channels))
        x = ptir.max_pool2d(x, window=(3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))
        for stage in self.stages:
            x = stage(x)
        return self.classifier(ptir.global_avg_pool2d(x))


def _layer(
    parameter: ParameterOf,
    at: str,
    channels: int,
    to: int,
    kernel: int,
    stride: int,
    activation: str | None,
) -> ConvLayer:
    weight = parameter(f"{at}.convolution.weight", (to, channels, kernel, kernel))
    edge = (kernel // 2, kernel // 2)
    norm = BatchNorm2d.build(parameter, f"{at}.normalization", to, _EPS)
    return ConvLayer(Conv2d(weight, None, (stride, stride), (edge, edge)), norm, activation)


def _block(
    parameter: ParameterOf, at: str, config: ResNetConfig, width: int, size: int, stride: int
) -> Block:
    """The block from ``width`` to ``size`` channels. Inside, the activation is always relu."""
    if config.layer_type == "basic":
        convs = [(width, size, 3, stride), (size, size, 3, 1)]
    else:
        inner = size // _REDUCTION
        first, second = (stride, 1) if config.downsample_in_bottleneck else (1, stride)
        convs = [(width, inner, 1, first), (inner, inner, 3, second), (inner, size, 1, 1)]
    layers = [
        _layer(parameter, f"{at}.layer.{i}", *conv, "relu" if i < len(convs) - 1 else None)
        for i, conv in enumerate(convs)
    ]
    shortcut = None
    if width != size or stride != 1:
        shortcut = _layer(parameter, f"{at}.shortcut", width, size, 1, stride, None)
    return Block(tuple(layers), shortcut, config.hidden_act)

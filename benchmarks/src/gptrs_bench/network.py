"""The convolutions of a loaded image classifier, for peers that build the model anew."""

from __future__ import annotations

from typing import Any

from gptrs.models.mobilenet_v2 import MobileNetV2
from gptrs.models.resnet import ResNet
from gptrs.nn.layers import ConvLayer, DepthwiseConv2d, same_padding
from gptrs_bench.images import Block, Conv, Network


class _Collector:
    """Layers in the order in which an image goes through them, at its size there."""

    def __init__(self, size: int) -> None:
        self.size = size

    def conv(self, layer: ConvLayer, name: str) -> Conv:
        """``layer`` for an image that it then makes smaller."""
        conv = layer.convolution
        stride, dilation = conv.strides[0], conv.dilation[0]
        to, channels, kernel, _ = (int(extent) for extent in conv.weight.shape)
        groups = to if isinstance(conv, DepthwiseConv2d) else 1
        if conv.padding == "same":
            before, after = same_padding(self.size, kernel, stride, dilation)
        else:
            (before, after), _ = conv.padding
        made = Conv(
            *(name, channels * groups, to, kernel, stride, dilation, groups, before, after),
            *(layer.normalization.eps, layer.activation),
        )
        reach = dilation * (kernel - 1) + 1
        self.size = (self.size + before + after - reach) // stride + 1
        return made

    def shortcut(self, layer: ConvLayer | None, name: str, size: int) -> Conv | None:
        """``layer`` beside the layers so far, for inputs of ``size``."""
        return None if layer is None else _Collector(size).conv(layer, name)


def network_of(module: Any) -> Network:
    """The network of ``module``, with the names of a Hugging Face checkpoint."""
    return _of_resnet(module) if isinstance(module, ResNet) else _of_mobilenet_v2(module)


def _of_resnet(module: ResNet) -> Network:
    config, collector = module.config, _Collector(module.image_size)
    stem = collector.conv(module.embedder, "resnet.embedder.embedder")
    collector.size = (collector.size + 2 - 3) // 2 + 1  # the maximum of `Network.is_pooled`
    blocks: list[Block] = []
    for number, stage in enumerate(module.stages):
        for index, block in enumerate(stage.layers):
            at, size = f"resnet.encoder.stages.{number}.layers.{index}", collector.size
            convs = tuple(
                collector.conv(part, f"{at}.layer.{i}") for i, part in enumerate(block.layer)
            )
            shortcut = collector.shortcut(block.shortcut, f"{at}.shortcut", size)
            blocks.append(Block(convs, True, shortcut, block.activation))
    given = module.image_size, config.num_channels, stem, True, tuple(blocks)
    return Network(*given, "classifier.1", config.num_labels, is_in_transformers=True)


def _of_mobilenet_v2(module: MobileNetV2) -> Network:
    config, collector, top = module.config, _Collector(module.image_size), "mobilenet_v2"
    first = module.conv_stem
    stem = collector.conv(first.first_conv, f"{top}.conv_stem.first_conv")
    blocks: list[Block] = []

    def add(at: str, part: Any) -> None:
        names = ("expand_1x1", "conv_3x3", "reduce_1x1")
        layers = ((name, getattr(part, name)) for name in names)
        convs = (
            collector.conv(layer, f"{at}.{name}") for name, layer in layers if layer is not None
        )
        blocks.append(Block(tuple(convs), part.is_residual))

    add(f"{top}.conv_stem", first)
    for number, part in enumerate(module.layer):
        add(f"{top}.layer.{number}", part)
    blocks.append(Block((collector.conv(module.conv_1x1, f"{top}.conv_1x1"),)))
    given = module.image_size, config.num_channels, stem, False, tuple(blocks)
    is_theirs = config.round_channels and not config.first_block_is_residual
    return Network(*given, "classifier", config.num_labels, is_in_transformers=is_theirs)

"""torchvision's checkpoints: rename tables of tensors, and configurations inferred from shapes.

torchvision saves a state dict without a configuration. `gptrs.formats.torchvision` selects the
`Naming` of a file; `gptrs.loading.load` uses its renames and fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import count, takewhile
from math import gcd
from typing import Any

from gptrs.lazy_dataclass import dataclass
from gptrs.models.base import Renames
from gptrs.models.mobilenet_v2 import CHANNELS, STEM_CHANNELS, STRIDES, MobileNetV2Config
from gptrs.models.resnet import LAYER_TYPES

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Naming:
    """torchvision's tensor names for one type of model.

    ``mark`` matches the beginning of tensor names that occur in such checkpoints only. ``fields``
    infers entries of config.json from the shapes of the tensors.
    """

    mark: re.Pattern[str]
    renames: Renames
    fields: Callable[[Shapes], dict[str, Any]]

    def fits(self, names: Iterable[str]) -> bool:
        """Whether a checkpoint with these tensor names is torchvision's."""
        return any(self.mark.match(name) for name in names)


def _renames(table: dict[str, str]) -> Renames:
    return tuple((re.compile(pattern), replacement) for pattern, replacement in table.items())


_RESNET = _renames(
    {
        r"^conv1\.": "embedder.convolution.",
        r"^bn1\.": "embedder.normalization.",
        r"^layer1\.(\d+)\.": r"stages.0.layers.\1.",
        r"^layer2\.(\d+)\.": r"stages.1.layers.\1.",
        r"^layer3\.(\d+)\.": r"stages.2.layers.\1.",
        r"^layer4\.(\d+)\.": r"stages.3.layers.\1.",
        r"(?<=\d)\.conv1\.": ".layer.0.convolution.",
        r"(?<=\d)\.conv2\.": ".layer.1.convolution.",
        r"(?<=\d)\.conv3\.": ".layer.2.convolution.",
        r"(?<=\d)\.bn1\.": ".layer.0.normalization.",
        r"(?<=\d)\.bn2\.": ".layer.1.normalization.",
        r"(?<=\d)\.bn3\.": ".layer.2.normalization.",
        r"\.downsample\.0\.": ".shortcut.convolution.",
        r"\.downsample\.1\.": ".shortcut.normalization.",
        r"^fc\.": "classifier.",
    }
)
_MOBILENET_V2 = _renames(
    {
        r"^features\.0\.0\.": "conv_stem.first_conv.convolution.",
        r"^features\.0\.1\.": "conv_stem.first_conv.normalization.",
        r"^features\.1\.conv\.0\.0\.": "conv_stem.conv_3x3.convolution.",
        r"^features\.1\.conv\.0\.1\.": "conv_stem.conv_3x3.normalization.",
        r"^features\.1\.conv\.1\.": "conv_stem.reduce_1x1.convolution.",
        r"^features\.1\.conv\.2\.": "conv_stem.reduce_1x1.normalization.",
        **{rf"^features\.{n + 2}\.conv\.": f"layer.{n}." for n in range(len(STRIDES))},
        r"^(layer\.\d+)\.0\.0\.": r"\1.expand_1x1.convolution.",
        r"^(layer\.\d+)\.0\.1\.": r"\1.expand_1x1.normalization.",
        r"^(layer\.\d+)\.1\.0\.": r"\1.conv_3x3.convolution.",
        r"^(layer\.\d+)\.1\.1\.": r"\1.conv_3x3.normalization.",
        r"^(layer\.\d+)\.2\.": r"\1.reduce_1x1.convolution.",
        r"^(layer\.\d+)\.3\.": r"\1.reduce_1x1.normalization.",
        r"^features\.18\.0\.": "conv_1x1.convolution.",
        r"^features\.18\.1\.": "conv_1x1.normalization.",
        r"^classifier\.1\.": "classifier.",
    }
)


def _resnet_fields(shapes: Shapes) -> dict[str, Any]:
    def has(prefix: str) -> bool:
        return any(name.startswith(prefix) for name in shapes)

    stages = list(takewhile(lambda n: has(f"layer{n}."), count(1)))
    last = 3 if has("layer1.0.conv3.") or has("layer1.0.bn3.") else 2
    sizes = (
        _extent(shapes, f"layer{n}.0.conv{last}.weight", f"layer{n}.0.bn{last}.bias")
        for n in stages
    )
    return _known(
        num_channels=_extent(shapes, "conv1.weight", axis=1),
        embedding_size=_extent(shapes, "conv1.weight", "bn1.bias"),
        hidden_sizes=[size for size in sizes if size is not None],
        depths=[sum(1 for _ in takewhile(has, _prefixes(f"layer{n}."))) for n in stages],
        layer_type=LAYER_TYPES[last - 2],
        downsample_in_bottleneck=False,
        num_labels=_extent(shapes, "fc.weight", "fc.bias"),
    )


def _mobilenet_v2_fields(shapes: Shapes) -> dict[str, Any]:
    blocks = (f"features.{n + 2}.conv" for n in range(len(STRIDES)))
    widths = [
        _extent(shapes, "features.0.0.weight", "features.0.1.bias"),
        _extent(shapes, "features.1.conv.1.weight", "features.1.conv.2.bias"),
        *(_extent(shapes, f"{block}.2.weight", f"{block}.3.bias") for block in blocks),
    ]
    return _known(
        num_channels=_extent(shapes, "features.0.0.weight", axis=1),
        depth_multiplier=_multiplier(widths),
        round_channels=False,
        first_block_is_residual=True,
        tf_padding=False,
        layer_norm_eps=1e-5,
        num_labels=_extent(shapes, "classifier.1.weight", "classifier.1.bias"),
    )


TORCHVISION: dict[str, Naming] = {
    "mobilenet_v2": Naming(
        re.compile(r"features\.\d+\.conv\."), _MOBILENET_V2, _mobilenet_v2_fields
    ),
    "resnet": Naming(re.compile(r"layer\d+\.\d+\.(conv|bn)\d\."), _RESNET, _resnet_fields),
}
"""``model_type`` → torchvision's tensor names."""


def _prefixes(start: str) -> Iterable[str]:
    return (f"{start}{number}." for number in count())


def _extent(shapes: Shapes, *names: str, axis: int = 0) -> int | None:
    """The extent of the first tensor in ``names`` that exists."""
    for name in names:
        if axis < len(shape := shapes.get(name, ())):
            return shape[axis]
    return None


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _multiplier(widths: list[int | None]) -> float | None:
    """The depth multiplier that reproduces the most of ``widths``; of several, the roundest.

    None when the last width, which determines it best, is unknown.
    """
    last = widths[-1]
    if not last:
        return None

    def rank(thousandths: int) -> tuple[int, int]:
        config = MobileNetV2Config(depth_multiplier=thousandths / 1000, round_channels=False)
        pairs = zip((STEM_CHANNELS, *CHANNELS), widths, strict=True)
        wrong = sum(config.channels(full) != width for full, width in pairs if width is not None)
        return wrong, -gcd(thousandths, 1000)

    near = 1000 * last // CHANNELS[-1]
    margin = 1000 * 8 // CHANNELS[-1] + 1  # widths are multiples of 8
    return min(range(max(1, near - margin), near + margin + 1), key=rank) / 1000

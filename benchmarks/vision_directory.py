"""ResNet34 and MobileNetV2 with random weights as Hugging Face directories, and what a way to run
them offers.

It imports no library that is measured, so that a process loads those alone that it was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

SIZE = 224  # height and width of the images
EXACT = 1e-4
"""How far logits of two f32 computations may lie apart; their standard deviation is 1 or 2."""

GAINS = {None: 0.25, "relu": 2, "relu6": 4}
"""What convolutions multiply squares by, by their activation: so that sums of many residuals do not
grow much, and some values reach 6."""


class Side(Protocol):
    """One way to run a model."""

    def prepare(self, images: Array) -> Any:
        """``images`` [N, H, W, C] as this way takes them best, which is not timed."""
        ...

    def logits(self, prepared: Any) -> Array:
        """Logits [N, classes]."""
        ...


class Conv(NamedTuple):
    """A convolution without bias, the norm of its result, and what comes after that.

    ``before`` and ``after`` are the zeros at both ends of height and width.
    """

    name: str
    channels: int
    to: int
    kernel: int = 1
    stride: int = 1
    groups: int = 1
    before: int = 0
    after: int = 0
    activation: str | None = None

    @property
    def weight_shape(self) -> tuple[int, ...]:
        return self.to, self.channels // self.groups, self.kernel, self.kernel


class Block(NamedTuple):
    """Convolutions one after the other; a residual is added, as it is or by ``shortcut``."""

    convs: tuple[Conv, ...]
    is_residual: bool = False
    shortcut: Conv | None = None
    activation: str | None = None


class Network(NamedTuple):
    """Stem, blocks, the mean over height and width, and a matrix; ``config`` is config.json."""

    config: dict[str, Any]
    eps: float
    stem: Conv
    is_pooled: bool
    """Whether a maximum over windows of 3 × 3, 2 apart, padded by 1, follows the stem."""
    blocks: tuple[Block, ...]
    classifier: str
    classes: int

    @property
    def width(self) -> int:
        """Channels before the classifier."""
        return self.blocks[-1].convs[-1].to

    def convs(self) -> Iterator[Conv]:
        """All of them, shortcuts behind what they go around."""
        yield self.stem
        for block in self.blocks:
            yield from block.convs
            if block.shortcut is not None:
                yield block.shortcut


def _resnet34() -> Network:
    depths, sizes, classes, width = (3, 4, 6, 3), (64, 128, 256, 512), 1000, 64
    config = {
        "model_type": "resnet",
        "architectures": ["ResNetForImageClassification"],
        "layer_type": "basic",
        "depths": depths,
        "hidden_sizes": sizes,
        "embedding_size": width,
        "num_labels": classes,
    }
    stem = Conv("resnet.embedder.embedder", 3, width, 7, 2, 1, 3, 3, "relu")
    blocks: list[Block] = []
    for stage, (depth, to) in enumerate(zip(depths, sizes, strict=True)):
        for index in range(depth):
            at = f"resnet.encoder.stages.{stage}.layers.{index}"
            stride = 2 if stage > 0 and index == 0 else 1
            first = Conv(f"{at}.layer.0", width, to, 3, stride, 1, 1, 1, "relu")
            second = Conv(f"{at}.layer.1", to, to, 3, 1, 1, 1, 1)
            changes = stride != 1 or width != to
            shortcut = Conv(f"{at}.shortcut", width, to, 1, stride) if changes else None
            blocks.append(Block((first, second), True, shortcut, "relu"))
            width = to
    return Network(config, 1e-5, stem, True, tuple(blocks), "classifier.1", classes)


def _mobilenet_v2() -> Network:
    # Of the paper's table 2 (Sandler et al., arXiv:1801.04381): channels, blocks, stride of the
    # first. Padding is TensorFlow's, as in the published weights: at stride 2 only behind.
    groups = ((24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))
    classes, width, top = 1001, 32, "mobilenet_v2"
    config = {
        "model_type": "mobilenet_v2",
        "architectures": ["MobileNetV2ForImageClassification"],
        "depth_multiplier": 1.0,
        "image_size": SIZE,
        "num_labels": classes,
    }

    def depthwise(at: str, wide: int, stride: int) -> Conv:
        return Conv(f"{at}.conv_3x3", wide, wide, 3, stride, wide, 2 - stride, 1, "relu6")

    at = f"{top}.conv_stem"
    stem = Conv(f"{at}.first_conv", 3, width, 3, 2, 1, 0, 1, "relu6")
    blocks = [Block((depthwise(at, width, 1), Conv(f"{at}.reduce_1x1", width, 16)))]
    width = 16
    for to, count, first in groups:
        for index in range(count):
            at, wide = f"{top}.layer.{len(blocks) - 1}", 6 * width
            stride = first if index == 0 else 1
            expand = Conv(f"{at}.expand_1x1", width, wide, activation="relu6")
            reduce = Conv(f"{at}.reduce_1x1", wide, to)
            is_residual = stride == 1 and width == to
            blocks.append(Block((expand, depthwise(at, wide, stride), reduce), is_residual))
            width = to
    blocks.append(Block((Conv(f"{top}.conv_1x1", width, 1280, activation="relu6"),)))
    return Network(config, 0.001, stem, False, tuple(blocks), "classifier", classes)


NETWORKS = {"resnet34": _resnet34(), "mobilenet_v2": _mobilenet_v2()}


def network(directory: Path) -> Network:
    """The network whose weights are in ``directory``."""
    return NETWORKS[directory.name]


def images(count: int) -> Array:
    """Random images [count, H, W, 3], normalised."""
    random = np.random.default_rng(count)
    return random.standard_normal((count, SIZE, SIZE, 3), np.float32)


def _tensors(model: Network, random: np.random.Generator) -> Iterator[tuple[str, NDArray[Any]]]:
    """Weights that keep activations of order 1, and statistics far from those of no norm."""

    def uniform(low: float, high: float, size: int) -> Array:
        return random.uniform(low, high, size).astype(np.float32)

    for conv in model.convs():
        shape = conv.weight_shape
        scale = np.float32((GAINS[conv.activation] / np.prod(shape[1:])) ** 0.5)
        yield f"{conv.name}.convolution.weight", scale * random.standard_normal(shape, np.float32)
        norm = f"{conv.name}.normalization"
        yield f"{norm}.weight", uniform(0.6, 1.4, conv.to)
        yield f"{norm}.bias", uniform(-0.3, 0.3, conv.to)
        yield f"{norm}.running_mean", uniform(-0.3, 0.3, conv.to)
        yield f"{norm}.running_var", uniform(0.5, 1.5, conv.to)
        yield f"{norm}.num_batches_tracked", np.array(1, np.int64)
    shape = model.classes, model.width
    scale = np.float32(model.width**-0.5)
    yield f"{model.classifier}.weight", scale * random.standard_normal(shape, np.float32)
    yield f"{model.classifier}.bias", uniform(-0.5, 0.5, model.classes)


def write_directory(parent: Path, name: str, seed: int = 0) -> Path:
    """Write the model ``name`` to a directory of that name in ``parent``, unless it is there."""
    model, directory = NETWORKS[name], parent / name
    config = directory / "config.json"
    if not config.exists():
        directory.mkdir(parents=True, exist_ok=True)
        arrays = dict(_tensors(model, np.random.default_rng(seed)))
        safetensors: Any = import_module("safetensors.numpy")
        safetensors.save_file(arrays, directory / "model.safetensors", {"format": "pt"})
        config.write_text(json.dumps(model.config))  # last: it says that the rest is there
    return directory


def read_weights(directory: Path) -> dict[str, Array]:
    """The tensors by their names in the checkpoint."""
    safetensors: Any = import_module("safetensors.numpy")
    return safetensors.load_file(directory / "model.safetensors")


def folded(conv: Conv, eps: float, weights: dict[str, Array]) -> tuple[Array, Array]:
    """Weight and bias of the convolution with its norm in them."""
    norm = f"{conv.name}.normalization"
    parts = ("weight", "bias", "running_mean", "running_var")
    scale, bias, mean, variance = (weights[f"{norm}.{part}"].astype(np.float64) for part in parts)
    scale /= np.sqrt(variance + eps)
    weight = weights[f"{conv.name}.convolution.weight"] * scale[:, None, None, None]
    return weight.astype(np.float32), (bias - mean * scale).astype(np.float32)

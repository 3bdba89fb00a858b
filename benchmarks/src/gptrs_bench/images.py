"""Image classifiers as lists of convolutions (``network.json`` of a Hugging Face directory), and
the interface of a side that runs one.

It imports no library that is measured, so that a process loads those alone that it was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gptrs.extras import needed_for

Array: TypeAlias = NDArray[np.float32]

EXACT = 1e-4
"""How far logits of two f32 computations may lie apart whose root mean square is 1."""
FILE = "network.json"


class Side(Protocol):
    """One way to run an image classifier."""

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
    kernel: int
    stride: int
    dilation: int
    groups: int
    before: int
    after: int
    eps: float
    activation: str | None


class Block(NamedTuple):
    """Convolutions one after the other; a residual is added, as it is or by ``shortcut``."""

    convs: tuple[Conv, ...]
    is_residual: bool = False
    shortcut: Conv | None = None
    activation: str | None = None


class Network(NamedTuple):
    """Stem, blocks, the mean over height and width, and a matrix."""

    size: int
    """Height and width of the images."""
    channels: int
    stem: Conv
    is_pooled: bool
    """Whether a maximum over windows of 3 × 3, 2 apart, padded by 1, follows the stem."""
    blocks: tuple[Block, ...]
    classifier: str
    classes: int
    is_in_transformers: bool
    """Whether transformers has this model too."""

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


def write_network(network: Network, directory: Path) -> None:
    """Write ``network`` beside the weights in ``directory``."""
    (directory / FILE).write_text(json.dumps(network), encoding="utf-8")


def read_network(directory: Path) -> Network:
    """The network whose weights are in ``directory``."""
    size, channels, stem, is_pooled, blocks, *rest = json.loads(
        (directory / FILE).read_text(encoding="utf-8")
    )

    def block(convs: list[Any], is_residual: bool, shortcut: Any, activation: str | None) -> Block:
        made = tuple(Conv(*conv) for conv in convs)
        return Block(made, is_residual, shortcut and Conv(*shortcut), activation)

    made = tuple(block(*each) for each in blocks)
    return Network(size, channels, Conv(*stem), is_pooled, made, *rest)


def random_images(count: int, size: int, channels: int) -> Array:
    """Random images [count, size, size, channels], normalised."""
    random = np.random.default_rng(count)
    return random.standard_normal((count, size, size, channels), np.float32)


def read_weights(directory: Path) -> dict[str, Array]:
    """The tensors by their names in the checkpoint."""
    with needed_for("reading the weights of a comparison"):
        safetensors: Any = import_module("safetensors.numpy")
    return safetensors.load_file(directory / "model.safetensors")


def folded(conv: Conv, weights: dict[str, Array]) -> tuple[Array, Array]:
    """Weight and bias of the convolution with its norm in them."""
    norm = f"{conv.name}.normalization"
    parts = ("weight", "bias", "running_mean", "running_var")
    scale, bias, mean, variance = (weights[f"{norm}.{part}"].astype(np.float64) for part in parts)
    scale /= np.sqrt(variance + conv.eps)
    weight = weights[f"{conv.name}.convolution.weight"] * scale[:, None, None, None]
    return weight.astype(np.float32), (bias - mean * scale).astype(np.float32)

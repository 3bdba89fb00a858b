"""Image classifiers in eager torch: minimal modules, and transformers' models."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gptrs_bench.images import (
    Array,
    Block,
    Conv,
    Network,
    Side,
    folded,
    read_network,
    read_weights,
)
from gptrs_bench.peers.torch_activations import ACTIVATIONS

library: Any = torch  # its types are partly unknown


def _activate(x: torch.Tensor, activation: str | None) -> torch.Tensor:
    """In place where torch can do that."""
    if activation == "relu6":
        return functional.relu6(x, inplace=True)
    if activation == "relu":
        return functional.relu(x, inplace=True)
    return x if activation is None else ACTIVATIONS[activation](x)


class ConvNorm(nn.Module):
    """A convolution and what follows it; its norm is folded into it, or a module."""

    def __init__(self, conv: Conv, weights: dict[str, Array], *, is_folded: bool) -> None:
        super().__init__()
        self.activation = conv.activation
        is_even, edges = conv.before == conv.after, (conv.before, conv.after)
        self.pad = None if is_even else nn.ZeroPad2d((*edges, *edges))
        given: dict[str, Any] = {
            "groups": conv.groups,
            "bias": is_folded,
            "dilation": conv.dilation,
        }
        sizes = conv.channels, conv.to, conv.kernel, conv.stride, conv.before if is_even else 0
        self.conv, self.norm = nn.Conv2d(*sizes, **given), None
        if is_folded:
            weight, bias = folded(conv, weights)
            _load(self.conv, {"weight": weight, "bias": bias})
        else:
            _load(self.conv, _part(weights, f"{conv.name}.convolution."))
            self.norm = nn.BatchNorm2d(conv.to, conv.eps)
            _load(self.norm, _part(weights, f"{conv.name}.normalization."))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x if self.pad is None else self.pad(x))
        return _activate(y if self.norm is None else self.norm(y), self.activation)


class Residual(nn.Module):
    """Convolutions, with the input added where the block has a residual."""

    def __init__(self, block: Block, **given: Any) -> None:
        super().__init__()
        self.block = block
        self.convs = nn.Sequential(*(ConvNorm(conv, **given) for conv in block.convs))
        shortcut = block.shortcut
        self.shortcut = None if shortcut is None else ConvNorm(shortcut, **given)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.convs(x)
        if self.block.is_residual:
            y += x if self.shortcut is None else self.shortcut(x)
        return _activate(y, self.block.activation)


class Classifier(nn.Module):
    """The whole model, images [N, C, H, W] to logits [N, classes]."""

    def __init__(self, model: Network, weights: dict[str, Array], *, is_folded: bool) -> None:
        super().__init__()
        given: dict[str, Any] = {"weights": weights, "is_folded": is_folded}
        self.stem = ConvNorm(model.stem, **given)
        self.pool = nn.MaxPool2d(3, 2, 1) if model.is_pooled else nn.Identity()
        self.blocks = nn.Sequential(*(Residual(block, **given) for block in model.blocks))
        self.mean, self.flatten = nn.AdaptiveAvgPool2d(1), nn.Flatten()
        self.linear = nn.Linear(model.width, model.classes)
        _load(self.linear, _part(weights, f"{model.classifier}."))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.pool(self.stem(images)))
        return self.linear(self.flatten(self.mean(x)))


def _part(weights: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {n.removeprefix(prefix): a for n, a in weights.items() if n.startswith(prefix)}


def _load(module: nn.Module, arrays: dict[str, Array]) -> None:
    module.load_state_dict({name: library.from_numpy(array) for name, array in arrays.items()})


def read_classifier(directory: Path, *, is_folded: bool) -> Classifier:
    """The model in ``directory``, ready to infer."""
    model = Classifier(read_network(directory), read_weights(directory), is_folded=is_folded)
    return model.eval().requires_grad_(False)


class Torch:
    """``model`` in one of the layouts that torch has for images and weights of convolutions."""

    def __init__(self, model: Any, layout: torch.memory_format) -> None:
        self.model, self.layout = model.to(memory_format=layout), layout

    def prepare(self, images: Array) -> torch.Tensor:
        return library.from_numpy(images).permute(0, 3, 1, 2).contiguous(memory_format=self.layout)

    @torch.inference_mode()
    def logits(self, prepared: torch.Tensor) -> Array:
        said = self.model(prepared)
        return getattr(said, "logits", said).numpy()


def quickest(directory: Path, threads: int) -> Side:
    torch.set_num_threads(threads)
    return Torch(read_classifier(directory, is_folded=True), torch.channels_last)


def _transformers(directory: Path) -> dict[str, Side]:
    """Its own model, if it has this one."""
    if not read_network(directory).is_in_transformers:
        return {}
    library: Any = import_module("transformers")  # which takes long
    given: dict[str, Any] = {"dtype": torch.float32}
    model = library.AutoModelForImageClassification.from_pretrained(directory, **given)
    return {"transformers": Torch(model.eval(), torch.contiguous_format)}


def sides(directory: Path, threads: int) -> dict[str, Side]:
    torch.set_num_threads(threads)
    layouts = {"": torch.contiguous_format, " channels_last": torch.channels_last}
    found = _transformers(directory)
    for after, layout in layouts.items():
        for folds, is_folded in (("", False), (" folded", True)):
            model = read_classifier(directory, is_folded=is_folded)
            found[f"torch{folds}{after}"] = Torch(model, layout)
    return found

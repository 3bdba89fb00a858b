"""Export of a loaded model for peers: one f32 Hugging Face directory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gptrs.formats.hf_directory import write_directory
from gptrs.formats.tensor_writer import NewTensor
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array, f32
from gptrs.loading.loaded_model import LoadedModel
from gptrs_bench.images import write_network
from gptrs_bench.network import network_of

_ONE_FILE = 2**62  # bytes

# Hugging Face's names by the model's own, which `renames` of the models turn into these.
_NAMES = {
    "gpt2": ((r"^(?!lm_head\.)", "transformer."),),
    "mobilenet_v2": ((r"^(?!classifier\.)", "mobilenet_v2."),),
    "resnet": (
        (r"^embedder\.", "resnet.embedder.embedder."),
        (r"^stages\.", "resnet.encoder.stages."),
        (r"^classifier\.", "classifier.1."),
    ),
}
_ARCHITECTURES = {
    "gpt2": "GPT2LMHeadModel",
    "mobilenet_v2": "MobileNetV2ForImageClassification",
    "resnet": "ResNetForImageClassification",
}


def write_for_peers(model: LoadedModel, directory: Path) -> None:
    """Write ``model`` to ``directory``: all that its configuration says, its weights in f32, and of
    an image classifier its `Network`. Raises `ArgumentError` where that cannot be written.
    """
    config: dict[str, object] = asdict(model.config)
    config |= {"model_type": model.kind, "architectures": [_ARCHITECTURES[model.kind]]}
    parameters: dict[str, Parameter] = model.module.parameters()
    tensors = [_widened(_name(model.kind, name), value) for name, value in parameters.items()]
    write_directory(directory, config, tensors, _ONE_FILE, {})
    if model.kind != "gpt2":
        write_network(network_of(model.module), directory)


def _name(kind: str, name: str) -> str:
    for pattern, replacement in _NAMES[kind]:
        name = re.sub(pattern, replacement, name)
    return name


def _widened(name: str, value: Parameter) -> NewTensor:
    given = NewTensor.of(name, value)

    def pieces() -> Iterator[Array]:
        for piece in given.pieces():
            widened: Any = piece.astype(f32.numpy, copy=False)
            yield widened

    return NewTensor(name, given.shape, f32, pieces)

"""GPT-2 configurations of a Hugging Face directory, and the interface of a side that runs one.

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

from gptrs.extras import needed_for

Prompts = list[list[int]]  # all of one length

EXACT = 1e-3
"""How far logits of two f32 computations may lie apart whose root mean square is `USUAL`."""
USUAL = 2.8

TANH_GELU = ("gelu_new", "gelu_accurate", "gelu_fast", "gelu_python_tanh", "gelu_pytorch_tanh")
"""The names of the gelu that GPT-2 was trained with."""


class Side(Protocol):
    """One way to run a language model."""

    tolerance: float
    """How far its logits may lie from those of f32 whose root mean square is `USUAL`; up to `EXACT`
    its tokens must be the same."""

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        """The ``count`` likeliest tokens that follow each prompt, one of every row at a time."""
        ...

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        """Logits [vocabulary] of the token after ``prompt``, all of which goes into a cache."""
        ...


class Sizes(NamedTuple):
    """What a configuration says of the computation; the defaults are those of the 124M model."""

    vocabulary: int = 50257
    context: int = 1024
    width: int = 768
    layers: int = 12
    heads: int = 12
    inner: int = 4 * 768
    activation: str = "gelu_new"
    epsilon: float = 1e-5
    is_scaled: bool = True
    is_scaled_by_layer: bool = False
    is_tied: bool = True
    """Whether the embedding of tokens is the matrix of the logits too."""

    @property
    def head_size(self) -> int:
        return self.width // self.heads

    @property
    def has_usual_scale(self) -> bool:
        return self.is_scaled and not self.is_scaled_by_layer

    def scale(self, layer: int) -> float:
        """The factor on q·k of layer number ``layer``, counted from 0."""
        scale = self.head_size**-0.5 if self.is_scaled else 1.0
        return scale / (layer + 1) if self.is_scaled_by_layer else scale

    def cache_names(self) -> list[str]:
        """Names for the keys and the values of all layers."""
        return [f"{kind}_{layer}" for layer in range(self.layers) for kind in ("key", "value")]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors by the names of `read_weights`; the weights of products are [from, to]."""
        width, inner = self.width, self.inner
        found: dict[str, tuple[int, ...]] = {}

        def add(name: str, *shape: int) -> None:
            found[f"{name}.weight"] = shape
            found[f"{name}.bias"] = shape[-1:]

        found["wte.weight"] = self.vocabulary, width
        found["wpe.weight"] = self.context, width
        for layer in range(self.layers):
            add(f"h.{layer}.ln_1", width)
            add(f"h.{layer}.attn.c_attn", width, 3 * width)
            add(f"h.{layer}.attn.c_proj", width, width)
            add(f"h.{layer}.ln_2", width)
            add(f"h.{layer}.mlp.c_fc", width, inner)
            add(f"h.{layer}.mlp.c_proj", inner, width)
        add("ln_f", width)
        if not self.is_tied:
            found["lm_head.weight"] = self.vocabulary, width
        return found


_FIELDS = {
    "vocab_size": "vocabulary",
    "n_positions": "context",
    "n_embd": "width",
    "n_layer": "layers",
    "n_head": "heads",
    "activation_function": "activation",
    "layer_norm_epsilon": "epsilon",
    "scale_attn_weights": "is_scaled",
    "scale_attn_by_inverse_layer_idx": "is_scaled_by_layer",
    "tie_word_embeddings": "is_tied",
}


def read_sizes(directory: Path) -> Sizes:
    """Those that the ``config.json`` of a directory says."""
    config: dict[str, Any] = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    known = {name: config[entry] for entry, name in _FIELDS.items() if entry in config}
    inner: int | None = config.get("n_inner")
    return Sizes(**known, inner=inner or 4 * known.get("width", Sizes().width))


def read_weights(directory: Path) -> dict[str, NDArray[np.float32]]:
    """The tensors of an f32 directory of one file by their names in `Sizes.shapes`."""
    with needed_for("reading the weights of a comparison"):
        safetensors: Any = import_module("safetensors.numpy")
    stored: dict[str, Any] = safetensors.load_file(directory / "model.safetensors")
    return {name.removeprefix("transformer."): array for name, array in stored.items()}


def head_matrix(weights: dict[str, Any]) -> Any:
    """The matrix of the logits, [vocabulary, width]."""
    return weights.get("lm_head.weight", weights["wte.weight"])

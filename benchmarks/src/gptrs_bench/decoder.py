"""Decoder language models of a Hugging Face directory, for peers that take other files.

It imports no library that is measured. Of the families those are read that the benchmark has: Llama
and Qwen3, with a tied head and without biases.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gptrs.formats.safetensors_file import SafetensorsFile
from gptrs.nn.rotary import rope_of
from gptrs_bench.peers import PeerError

CONTEXT = 1024
"""Tokens that caches of peers have room for which reserve it."""


class DecoderSizes(NamedTuple):
    """What a configuration says of the computation."""

    kind: str  # model_type
    dtype: str  # of the weights, as torch calls it
    vocabulary: int
    width: int
    inner: int
    layers: int
    heads: int
    key_heads: int
    head_size: int
    epsilon: float
    theta: float
    frequencies: tuple[float, ...]  # radians per position, of each pair of a head

    @property
    def has_head_norms(self) -> bool:
        """Whether queries and keys are normalised, head by head."""
        return self.kind == "qwen3"

    @property
    def frequency_divisors(self) -> NDArray[np.float32]:
        """By what the plain frequencies are divided, one for each pair of a head."""
        plain = self.theta ** (-np.arange(0, self.head_size, 2) / self.head_size)
        return (plain / np.array(self.frequencies)).astype(np.float32)

    def tables(self, count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Cosines and sines [positions, pairs] of so many positions."""
        positions = np.arange(count, dtype=np.float32)[:, None]
        angles = positions * np.array(self.frequencies, np.float32)
        return np.cos(angles), np.sin(angles)


def read_sizes(directory: Path) -> DecoderSizes:
    """Those that the ``config.json`` of a directory says. Raises `PeerError`."""
    config: dict[str, Any] = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    kind, size = config["model_type"], config["hidden_size"] // config["num_attention_heads"]
    usual = config["hidden_act"] == "silu" and config.get("tie_word_embeddings")
    if kind not in ("llama", "qwen3") or not usual:
        raise PeerError("of decoders it has Llama and Qwen3 with a tied head alone")
    size = config.get("head_dim", size)
    theta = config["rope_theta"]
    scaling: dict[str, Any] = {**(config.get("rope_scaling") or {}), "rope_theta": theta}
    rope = rope_of(scaling, size, config["max_position_embeddings"])
    return DecoderSizes(
        kind,
        config.get("dtype", "float32"),
        config["vocab_size"],
        config["hidden_size"],
        config["intermediate_size"],
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["num_key_value_heads"],
        size,
        config["rms_norm_eps"],
        theta,
        rope.frequencies,
    )


def read_weights(directory: Path) -> Iterator[tuple[str, NDArray[Any]]]:
    """Names in the file and tensors as they are stored (bf16 as ml_dtypes has it), of a directory
    with one file of weights."""
    file = SafetensorsFile.open(directory / "model.safetensors")
    for name, tensor in file.tensors.items():
        yield name, tensor.read()


def attention_scale(sizes: DecoderSizes) -> float:
    """The factor on q·k."""
    return 1 / math.sqrt(sizes.head_size)

"""GPT-2 124M with random weights as a Hugging Face directory, and what a way to run it offers.

It imports no library that is measured, so that a process loads those alone that it was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

LAYERS, HEADS, WIDTH, CONTEXT, VOCABULARY = 12, 12, 768, 1024, 50257
HEAD_SIZE = WIDTH // HEADS
EPSILON = 1e-5  # of the norms

DType = Literal["f32", "f16", "bf16"]
Prompts = list[list[int]]  # all of one length

EXACT = 1e-3
"""How far logits of two f32 computations may lie apart; they have a standard deviation of 2.8."""


class Side(Protocol):
    """One way to run the model."""

    tolerance: float
    """How far its logits may lie from those of f32; up to `EXACT` its tokens must be the same."""

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        """The ``count`` likeliest tokens that follow each prompt, one of every row at a time."""
        ...

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        """Logits [vocabulary] of the token after ``prompt``, all of which goes into a cache."""
        ...


def shapes() -> dict[str, tuple[int, ...]]:
    """The tensors by their names in the checkpoint; the weights of products are [from, to]."""
    found: dict[str, tuple[int, ...]] = {}

    def add(name: str, *shape: int) -> None:
        found[f"{name}.weight"] = shape
        found[f"{name}.bias"] = shape[-1:]

    found["wte.weight"], found["wpe.weight"] = (VOCABULARY, WIDTH), (CONTEXT, WIDTH)
    for layer in range(LAYERS):
        add(f"h.{layer}.ln_1", WIDTH)
        add(f"h.{layer}.attn.c_attn", WIDTH, 3 * WIDTH)
        add(f"h.{layer}.attn.c_proj", WIDTH, WIDTH)
        add(f"h.{layer}.ln_2", WIDTH)
        add(f"h.{layer}.mlp.c_fc", WIDTH, 4 * WIDTH)
        add(f"h.{layer}.mlp.c_proj", 4 * WIDTH, WIDTH)
    add("ln_f", WIDTH)
    return found


def _random(random: np.random.Generator, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Weights so large that the likeliest tokens depend on the text before."""
    norm = len(shape) == 1 and name.endswith("weight")
    product = len(shape) == 2 and not name.startswith("w")
    scale = 1.5 / shape[0] ** 0.5 if product else 0.1
    return (1 if norm else 0) + scale * random.standard_normal(shape, np.float32)


def write_directory(directory: Path, dtype: DType = "f32", seed: int = 0) -> Path:
    """Write the model, unless it is there: f32 to ``directory``, others beside it.

    The narrow ones hold the same numbers, rounded.
    """
    if dtype != "f32":
        directory = directory.with_name(f"{directory.name}-{dtype}")
    config = directory / "config.json"
    if config.exists():
        return directory
    ml_dtypes: Any = import_module("ml_dtypes")
    stored: Any = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[dtype]
    random = np.random.default_rng(seed)
    arrays = {
        f"transformer.{name}": _random(random, name, shape).astype(stored)
        for name, shape in shapes().items()
    }
    directory.mkdir(parents=True, exist_ok=True)
    safetensors: Any = import_module("safetensors.numpy")
    safetensors.save_file(arrays, directory / "model.safetensors", {"format": "pt"})
    fields = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}
    config.write_text(json.dumps(fields))  # last: it says that the rest is there
    return directory


def read_weights(directory: Path) -> dict[str, NDArray[np.float32]]:
    """The tensors of an f32 directory by their names in `shapes`."""
    safetensors: Any = import_module("safetensors.numpy")
    stored: dict[str, Any] = safetensors.load_file(directory / "model.safetensors")
    return {name.removeprefix("transformer."): array for name, array in stored.items()}


def step_bytes(dtype: DType = "f32") -> int:
    """Bytes of weights that a decode step reads: all but the position rows of other tokens."""
    sizes = (int(np.prod(shape)) for name, shape in shapes().items() if name != "wpe.weight")
    return sum(sizes) * (4 if dtype == "f32" else 2)


def prefill_flops(tokens: int) -> float:
    """Multiplications and additions of a prompt: its products, with the last position's logits."""
    matrices = (shape for name, shape in shapes().items() if name.startswith("h."))
    layers = sum(2 * tokens * int(np.prod(shape)) for shape in matrices if len(shape) == 2)
    attention = LAYERS * 2 * tokens * (tokens + 1) * WIDTH  # two products, the lower triangle
    return layers + attention + 2 * WIDTH * VOCABULARY

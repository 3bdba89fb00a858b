"""GPT-2 in JAX: one jitted step over a cache of fixed length, which it is given to overwrite."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpt2_directory import (
    EPSILON,
    EXACT,
    HEAD_SIZE,
    HEADS,
    LAYERS,
    WIDTH,
    Prompts,
    Side,
    read_weights,
)

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")

Weights = dict[str, Any]
Cache = tuple[list[Any], list[Any]]  # keys and values [rows, heads, capacity, head size] of layers


def _norm(w: Weights, x: Any, name: str) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + EPSILON)
    return centred * scale * w[f"{name}.weight"] + w[f"{name}.bias"]


def _linear(w: Weights, x: Any, name: str) -> Any:
    return x @ w[f"{name}.weight"] + w[f"{name}.bias"]


def _attend(qkv: Any, keys: Any, values: Any, seen: Any) -> tuple[Any, Any, Any]:
    """[rows, new, width], and keys and values with the new ones at ``seen``."""
    rows, count, _ = qkv.shape
    q, k, v = qkv.reshape(rows, count, 3, HEADS, HEAD_SIZE).transpose(2, 0, 3, 1, 4)
    keys = jax.lax.dynamic_update_slice(keys, k, (0, 0, seen, 0))
    values = jax.lax.dynamic_update_slice(values, v, (0, 0, seen, 0))
    scores = q @ keys.transpose(0, 1, 3, 2) * HEAD_SIZE**-0.5
    visible = jnp.arange(keys.shape[2]) <= seen + jnp.arange(count)[:, None]
    y = jax.nn.softmax(jnp.where(visible, scores, -jnp.inf), axis=-1) @ values
    return y.transpose(0, 2, 1, 3).reshape(rows, count, WIDTH), keys, values


@partial(jax.jit, donate_argnums=3)
def step(w: Weights, tokens: Any, seen: Any, cache: Cache) -> tuple[Any, Any, Cache]:
    """Logits [rows, vocabulary], the likeliest tokens [rows, 1] and the cache after ``tokens``
    [rows, count], before which came ``seen``."""
    keys, values = list(cache[0]), list(cache[1])
    positions = jax.lax.dynamic_slice_in_dim(w["wpe.weight"], seen, tokens.shape[1])
    x = w["wte.weight"][tokens] + positions
    for i in range(LAYERS):
        qkv = _linear(w, _norm(w, x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn")
        y, keys[i], values[i] = _attend(qkv, keys[i], values[i], seen)
        x = x + _linear(w, y, f"h.{i}.attn.c_proj")
        y = _linear(w, _norm(w, x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        x = x + _linear(w, jax.nn.gelu(y, approximate=True), f"h.{i}.mlp.c_proj")
    logits = _norm(w, x[:, -1], "ln_f") @ w["wte.weight"].T
    return logits, logits.argmax(-1, keepdims=True), (keys, values)


class Jax:
    tolerance: float = EXACT

    def __init__(self, directory: Path) -> None:
        weights = read_weights(directory)
        self.weights: Weights = {name: jnp.asarray(array) for name, array in weights.items()}

    def _cache(self, rows: int, capacity: int) -> Cache:
        shape = rows, HEADS, capacity, HEAD_SIZE
        keys, values = ([jnp.zeros(shape) for _ in range(LAYERS)] for _ in range(2))
        return keys, values

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        cache, seen = self._cache(len(prompts), len(prompts[0]) + count), 0
        new: Any = jnp.asarray(prompts, jnp.int32)
        for _ in range(count):
            before = new.shape[1]
            _, new, cache = step(self.weights, new, seen, cache)
            seen += before
            yield np.asarray(new)[:, 0].tolist()

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        tokens = jnp.asarray([prompt], jnp.int32)
        return np.asarray(step(self.weights, tokens, 0, self._cache(1, len(prompt)))[0])[0]


def sides(directory: Path, threads: int) -> dict[str, Side]:
    """JAX makes as many threads as there are cores for this process."""
    return {"jax": Jax(directory)}


def quickest(directory: Path, threads: int) -> Side:
    return Jax(directory)

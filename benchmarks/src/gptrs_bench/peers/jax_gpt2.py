"""GPT-2 in JAX: one jitted step with a donated cache of fixed length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.gpt2 import (
    EXACT,
    TANH_GELU,
    Prompts,
    Side,
    Sizes,
    head_matrix,
    read_sizes,
    read_weights,
)
from gptrs_bench.peers import PeerError

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")

Weights = dict[str, Any]
Cache = tuple[list[Any], list[Any]]  # keys and values [rows, heads, capacity, head size] of layers


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": partial(jax.nn.gelu, approximate=False),
    **dict.fromkeys(TANH_GELU, partial(jax.nn.gelu, approximate=True)),
    "gelu_python": partial(jax.nn.gelu, approximate=False),
    "quick_gelu": lambda x: x * jax.nn.sigmoid(1.702 * x),
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "swish": jax.nn.silu,
    "tanh": jnp.tanh,
}


def _norm(w: Weights, x: Any, name: str, epsilon: float) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + epsilon)
    return centred * scale * w[f"{name}.weight"] + w[f"{name}.bias"]


def _linear(w: Weights, x: Any, name: str) -> Any:
    return x @ w[f"{name}.weight"] + w[f"{name}.bias"]


def _attend(qkv: Any, keys: Any, values: Any, seen: Any, scale: float) -> tuple[Any, Any, Any]:
    """[rows, new, width], and keys and values with the new ones at ``seen``."""
    rows, count, tripled = qkv.shape
    q, k, v = qkv.reshape(rows, count, 3, keys.shape[1], -1).transpose(2, 0, 3, 1, 4)
    keys = jax.lax.dynamic_update_slice(keys, k, (0, 0, seen, 0))
    values = jax.lax.dynamic_update_slice(values, v, (0, 0, seen, 0))
    scores = q @ keys.transpose(0, 1, 3, 2) * scale
    visible = jnp.arange(keys.shape[2]) <= seen + jnp.arange(count)[:, None]
    y = jax.nn.softmax(jnp.where(visible, scores, -jnp.inf), axis=-1) @ values
    return y.transpose(0, 2, 1, 3).reshape(rows, count, tripled // 3), keys, values


@partial(jax.jit, static_argnums=0, donate_argnums=4)
def step(sizes: Sizes, w: Weights, tokens: Any, seen: Any, cache: Cache) -> tuple[Any, Any, Cache]:
    """Logits [rows, vocabulary], the likeliest tokens [rows, 1] and the cache after ``tokens``
    [rows, count], before which came ``seen``."""
    keys, values, epsilon = list(cache[0]), list(cache[1]), sizes.epsilon
    positions = jax.lax.dynamic_slice_in_dim(w["wpe.weight"], seen, tokens.shape[1])
    x = w["wte.weight"][tokens] + positions
    for i in range(sizes.layers):
        qkv = _linear(w, _norm(w, x, f"h.{i}.ln_1", epsilon), f"h.{i}.attn.c_attn")
        y, keys[i], values[i] = _attend(qkv, keys[i], values[i], seen, sizes.scale(i))
        x = x + _linear(w, y, f"h.{i}.attn.c_proj")
        y = _linear(w, _norm(w, x, f"h.{i}.ln_2", epsilon), f"h.{i}.mlp.c_fc")
        x = x + _linear(w, ACTIVATIONS[sizes.activation](y), f"h.{i}.mlp.c_proj")
    logits = _norm(w, x[:, -1], "ln_f", epsilon) @ head_matrix(w).T
    return logits, logits.argmax(-1, keepdims=True), (keys, values)


class Jax:
    tolerance: float = EXACT

    def __init__(self, directory: Path) -> None:
        weights, self.sizes = read_weights(directory), read_sizes(directory)
        if self.sizes.activation not in ACTIVATIONS:
            raise PeerError(f"it has no {self.sizes.activation}")
        self.weights: Weights = {name: jnp.asarray(array) for name, array in weights.items()}

    def _cache(self, rows: int, capacity: int) -> Cache:
        shape, layers = (rows, self.sizes.heads, capacity, self.sizes.head_size), self.sizes.layers
        keys, values = ([jnp.zeros(shape) for _ in range(layers)] for _ in range(2))
        return keys, values

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        cache, seen = self._cache(len(prompts), len(prompts[0]) + count), 0
        new: Any = jnp.asarray(prompts, jnp.int32)
        for _ in range(count):
            before = new.shape[1]
            _, new, cache = step(self.sizes, self.weights, new, seen, cache)
            seen += before
            yield np.asarray(new)[:, 0].tolist()

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        tokens = jnp.asarray([prompt], jnp.int32)
        return np.asarray(
            step(self.sizes, self.weights, tokens, 0, self._cache(1, len(prompt)))[0]
        )[0]


def sides(directory: Path, threads: int) -> dict[str, Side]:
    """JAX makes as many threads as there are cores for this process."""
    return {"jax": Jax(directory)}


def quickest(directory: Path, threads: int) -> Side:
    return Jax(directory)

"""A Llama as a user writes it with plain ops and no layer of this package.

Rotary positions are slices and a concatenation, attention is two products and a softmax with a
mask, and the cache is two arrays.
"""

# Users' functions take any arrays.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.ir.tensor import Tensor

Weights = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a Llama."""

    vocabulary: int = 97
    width: int = 48
    inner: int = 80
    layers: int = 2
    heads: int = 6
    kv_heads: int = 2
    theta: float = 1e4

    @property
    def head(self) -> int:
        return self.width // self.heads


def random_weights(s: Sizes, seed: int = 0) -> Weights:
    """Weights [in, out], so that rows are multiplied from the left."""
    rng = np.random.default_rng(seed)

    def weight(*shape: int) -> NDArray[np.float32]:
        return rng.standard_normal(shape, np.float32) * np.float32(shape[0] ** -0.5)

    def layer() -> Weights:
        keys = s.kv_heads * s.head
        return {
            "norm1": np.ones(s.width, np.float32),
            "q": weight(s.width, s.width),
            "k": weight(s.width, keys),
            "v": weight(s.width, keys),
            "o": weight(s.width, s.width),
            "norm2": np.ones(s.width, np.float32),
            "gate": weight(s.width, s.inner),
            "up": weight(s.width, s.inner),
            "down": weight(s.inner, s.width),
        }

    return {
        "embedding": rng.standard_normal((s.vocabulary, s.width), np.float32),
        "layers": [layer() for _ in range(s.layers)],
        "norm": np.ones(s.width, np.float32),
        "head": weight(s.width, s.vocabulary),
    }


def empty_cache(s: Sizes, capacity: int, batch: int = 1, dtype: Any = np.float32) -> Any:
    """Keys and values of all layers, [layers, batch, kv heads, capacity, head size]."""
    shape = (s.layers, batch, s.kv_heads, capacity, s.head)
    return tuple(ptir.tensor(np.zeros(shape, dtype)) for _ in range(2))


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * ptir.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Heads x [batch, heads, tokens, head size] turned by their positions."""
    half = x.shape[-1] // 2
    turned = ptir.concat((-x[..., half:], x[..., :half]), axis=-1)
    return x * cos + turned * sin


def attend(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
    """Attention of q [batch, heads, tokens, size] to keys [batch, kv heads, capacity, size] up to
    their positions [tokens]."""
    batch, heads, count, size = q.shape
    groups, keys = k.shape[1], k.shape[2]
    q = q.reshape(batch, groups, heads // groups, count, size)
    scores = (q @ k[:, :, None].transpose(-2, -1)) / math.sqrt(size)
    seen = ptir.arange(keys)[None, :] <= positions[:, None]
    weights = ptir.softmax(ptir.where(seen, scores, -math.inf), axis=-1)
    return (weights @ v[:, :, None]).reshape(batch, heads, count, size)


def forward(w: Weights, tokens: Tensor, cache: Any, at: Tensor, s: Sizes) -> Any:
    """Logits after ``tokens`` [batch, tokens], of which the first stands at ``at``; the cache."""
    batch, count = tokens.shape
    keys, values = cache
    positions = ptir.arange(count) + at
    rates = s.theta ** (-np.arange(0, s.head, 2, dtype=np.float32) / s.head)
    angles = positions.astype("f32")[:, None] * ptir.tensor(rates.astype(np.float32))
    angles = ptir.concat((angles, angles), axis=-1)  # [tokens, head size]
    cos, sin = ptir.cos(angles), ptir.sin(angles)

    def heads(x: Tensor) -> Tensor:
        return x.reshape(batch, count, -1, s.head).permute(0, 2, 1, 3)

    x = ptir.take(w["embedding"], tokens, axis=0)
    for number, layer in enumerate(w["layers"]):
        y = norm(x, layer["norm1"])
        q, k, v = (heads(y @ layer[name]) for name in ("q", "k", "v"))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        place = (number, 0, 0, at, 0)
        keys = ptir.dynamic_update_slice(keys, k[None].astype(keys.dtype), place)
        values = ptir.dynamic_update_slice(values, v[None].astype(values.dtype), place)
        y = attend(q, keys[number].astype("f32"), values[number].astype("f32"), positions)
        x = x + y.permute(0, 2, 1, 3).reshape(batch, count, s.width) @ layer["o"]
        y = norm(x, layer["norm2"])
        x = x + (ptir.silu(y @ layer["gate"]) * (y @ layer["up"])) @ layer["down"]
    return norm(x, w["norm"]) @ w["head"], (keys, values)


step = ptir.jit(donate="cache", static_argnames="s", dynamic={"tokens": {1: "S"}})(forward)

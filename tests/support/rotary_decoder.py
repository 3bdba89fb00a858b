"""A decoder as users write one in the manner of Llama: rotary positions, grouped heads, a cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gptrs import ptir
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.nn.cache import KVCache
from gptrs.nn.layers import Embedding, Linear
from gptrs.nn.module import Module


@dataclass(frozen=True)
class Config:
    """The sizes of a decoder."""

    vocab_size: int = 97
    hidden_size: int = 48
    intermediate_size: int = 80
    layers: int = 2
    heads: int = 6
    kv_heads: int = 2
    theta: float = 1e4

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.heads


class RMSNorm(Module):
    """x / √(mean x² + eps) · weight."""

    weight: Parameter

    def __call__(self, x: Tensor) -> Tensor:
        return ptir.rms_norm(x, self.weight)


class Block(Module):
    """Attention, then a gated MLP, each on a normalised copy and added back."""

    config: Config
    layer: int
    input_norm: RMSNorm
    qkv: Linear
    o: Linear
    mlp_norm: RMSNorm
    gate: Linear
    up: Linear
    down: Linear

    def __call__(
        self, x: Tensor, cos: Tensor, sin: Tensor, cache: KVCache
    ) -> tuple[Tensor, KVCache]:
        batch, tokens, width = x.shape
        c = self.config
        parts = self.qkv(self.input_norm(x)).reshape(batch, tokens, -1, c.head_size)
        parts = parts.permute(0, 2, 1, 3)  # [batch, heads of q, k and v, tokens, head size]
        q, k, v = parts.split([c.heads, c.kv_heads, c.kv_heads], axis=1)
        q, k = ptir.rotary(q, cos, sin), ptir.rotary(k, cos, sin)
        y, cache = cache.attend(self.layer, q, k, v, scale=c.head_size**-0.5)
        x = x + self.o(y.permute(0, 2, 1, 3).reshape(batch, tokens, width))
        y = self.mlp_norm(x)
        return x + self.down(ptir.silu(self.gate(y)) * self.up(y)), cache


class Decoder(Module):
    """Tokens to logits of the token after each."""

    config: Config
    embedding: Embedding
    blocks: tuple[Block, ...]
    norm: RMSNorm
    head: Linear

    @classmethod
    def random(cls, config: Config, seed: int = 0) -> Decoder:
        """A decoder with made-up weights."""
        rng = np.random.default_rng(seed)

        def weight(*shape: int) -> Parameter:
            scale = shape[-1] ** -0.5
            drawn = rng.standard_normal(shape, np.float32) * np.float32(scale)
            return Parameter(drawn, f"weight{shape}")

        def norm() -> RMSNorm:
            return RMSNorm(Parameter(np.ones(width, np.float32), "norm"))

        width, inner = config.hidden_size, config.intermediate_size
        together = config.heads + 2 * config.kv_heads

        def block(layer: int) -> Block:
            qkv = Linear(weight(together * config.head_size, width))
            gate, up = Linear(weight(inner, width)), Linear(weight(inner, width))
            o, down = Linear(weight(width, width)), Linear(weight(width, inner))
            return Block(config, layer, norm(), qkv, o, norm(), gate, up, down)

        blocks = tuple(block(layer) for layer in range(config.layers))
        head = Linear(weight(config.vocab_size, width))
        return cls(config, Embedding(weight(config.vocab_size, width)), blocks, norm(), head)

    def init_cache(self, batch: int, capacity: int) -> KVCache:
        c = self.config
        starts = np.zeros(batch, np.int32)
        return KVCache.empty(c.layers, starts, c.kv_heads, capacity, c.head_size)

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin [batch, 1, tokens, head size / 2] of ``positions`` [batch, tokens]."""
        half = self.config.head_size // 2
        rates = self.config.theta ** (-np.arange(half, dtype=np.float32) / half)
        turned = positions.astype("f32").unsqueeze(-1) * ptir.tensor(rates.astype(np.float32))
        return ptir.cos(turned).unsqueeze(1), ptir.sin(turned).unsqueeze(1)

    @ptir.jit(
        name="decoder",
        donate="cache",
        dynamic={
            "tokens": {0: "B", 1: "S"},
            "cache.keys": {1: "B", 3: "C"},
            "cache.values": {1: "B", 3: "C"},
            "cache.start": {0: "B"},
        },
    )
    def __call__(self, tokens: Tensor, cache: KVCache) -> tuple[Tensor, KVCache]:
        """Logits [batch, tokens, vocabulary], and the cache with these tokens in."""
        count = tokens.shape[1]
        cos, sin = self.angles(cache.positions(count))
        x = self.embedding(tokens)
        for block in self.blocks:
            x, cache = block(x, cos, sin, cache)
        return self.head(self.norm(x)), cache.advanced(count)

    def greedy(self, prompt: Tensor, count: int) -> list[int]:
        """The likeliest ``count`` tokens after a prompt [1, tokens]."""
        cache = self.init_cache(1, int(prompt.shape[1]) + count)
        found: list[int] = []
        for _ in range(count):
            logits, cache = self(prompt, cache)
            found.append(int(logits.numpy()[0, -1].argmax()))
            prompt = ptir.tensor(np.array([found[-1:]]))
        return found

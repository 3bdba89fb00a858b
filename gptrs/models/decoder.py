"""Decoder language models in the manner of Llama, as Hugging Face's classes define and store them.

One description for all: a family (`gptrs.models.families`) is a table of its differences. One
``__call__`` is prefill, decode and plain forward, with or without a `KVCache`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.ir.tensor import Tensor
from gptrs.models.base import Model
from gptrs.models.decoder_config import DecoderConfig, Family
from gptrs.nn.activations import ACTIVATIONS
from gptrs.nn.cache import KVCache
from gptrs.nn.layers import Embedding, LayerNorm, Linear, RMSNorm
from gptrs.nn.module import Module, ParameterOf

Norm: TypeAlias = RMSNorm | LayerNorm
Tables: TypeAlias = tuple[Tensor, Tensor] | None
"""Cosines and sines of a layer's positions; None for a layer without rotary positions."""


class Attention(Module):
    """Causal self-attention over [batch, tokens, width], in groups of heads that share keys."""

    qkv: tuple[Linear, ...]  # q, k and v, or one for all
    o_proj: Linear
    q_norm: RMSNorm | None
    k_norm: RMSNorm | None
    config: DecoderConfig
    family: Family
    layer: int

    def __call__(
        self, x: Tensor, tables: Tables, cache: KVCache | None
    ) -> tuple[Tensor, KVCache | None]:
        config = self.config
        batch, tokens, _ = x.shape
        q, k, v = self._projected(x)  # each [batch, heads or key heads, tokens, head size]
        if tables is not None:
            q, k = _rotated(q, *tables), _rotated(k, *tables)
        options: dict[str, Any] = {
            "scale": config.attention_scale,
            "window": config.window(self.layer),
            "softcap": config.attn_logit_softcapping,
        }
        if cache is None:
            y = ptir.attention(q, k, v, causal=True, **options)
        else:
            y, cache = cache.attend(self.layer, q, k, v, **options)
        return self.o_proj(y.permute(0, 2, 1, 3).reshape(batch, tokens, -1)), cache

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        heads, groups = self.config.num_attention_heads, self.config.key_heads
        size = self.config.head_size
        batch, tokens, _ = x.shape
        parts = [projection(x) for projection in self.qkv]
        if self.family.qkv == "by_head":
            rows = parts[0].reshape(batch, tokens, heads, 3, size)
            parts = [rows[:, :, :, n] for n in range(3)]
        elif self.family.qkv == "stacked":
            ends = (heads * size, (heads + groups) * size)
            slices = (slice(0, ends[0]), slice(*ends), slice(ends[1], None))
            parts = [parts[0][..., rows] for rows in slices]
        norms = (self.q_norm, self.k_norm, None)
        if self.family.qk_norm == "all":
            parts = [y if norm is None else norm(y) for y, norm in zip(parts, norms, strict=True)]
        split = [
            y.reshape(batch, tokens, count, size)
            for y, count in zip(parts, (heads, groups, groups), strict=True)
        ]
        if self.family.qk_norm == "head":
            split = [y if norm is None else norm(y) for y, norm in zip(split, norms, strict=True)]
        q, k, v = (y.permute(0, 2, 1, 3) for y in split)
        return q, k, v


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Heads x [batch, heads, tokens, head size] turned by their positions; elements beyond those of
    the tables stay."""
    size = 2 * cos.shape[-1]
    if size == x.shape[-1]:
        return ptir.rotary(x, cos, sin)
    return ptir.concat((ptir.rotary(x[..., :size], cos, sin), x[..., size:]), axis=-1)


class MLP(Module):
    """act(gate(x)) · up(x), or act(up(x)), projected back."""

    up: tuple[Linear, ...]  # gate and up, one for both, or up alone
    down_proj: Linear
    hidden_act: str
    family: Family

    def __call__(self, x: Tensor) -> Tensor:
        act = ACTIVATIONS[self.hidden_act]
        parts = [projection(x) for projection in self.up]
        if self.family.mlp == "stacked":
            half = parts[0].shape[-1] // 2
            parts = [parts[0][..., :half], parts[0][..., half:]]
        return self.down_proj(act(parts[0]) if len(parts) == 1 else act(parts[0]) * parts[1])


class Block(Module):
    """Attention and MLP with residual connections, one after the other or side by side."""

    self_attn: Attention
    mlp: MLP
    norms: tuple[Norm | None, Norm | None, Norm | None, Norm | None]
    """Before and after attention, before and after the MLP."""
    config: DecoderConfig

    def __call__(
        self, x: Tensor, tables: Tables, cache: KVCache | None
    ) -> tuple[Tensor, KVCache | None]:
        before, after, before_mlp, after_mlp = (_applied(norm) for norm in self.norms)
        factor = self.config.residual_multiplier
        y, cache = self.self_attn(before(x), tables, cache)
        y = after(y) * factor if factor != 1.0 else after(y)
        if self.config.use_parallel_residual:
            return x + y + self.mlp(before_mlp(x)), cache
        x = x + y
        y = after_mlp(self.mlp(before_mlp(x)))
        return x + (y * factor if factor != 1.0 else y), cache


def _applied(norm: Norm | None) -> Callable[[Tensor], Tensor]:
    return (lambda x: x) if norm is None else norm


class Decoder(Model):
    """The language model: tokens → logits of the next token at each position."""

    task: ClassVar = "causal_lm"
    config_type: ClassVar = DecoderConfig
    ignored: ClassVar = re.compile(r"\.(rotary_emb\.inv_freq|attention\.(masked_)?bias)$")
    family: ClassVar[Family]

    config: DecoderConfig
    embed_tokens: Embedding
    layers: tuple[Block, ...]
    norm: Norm
    lm_head: Linear

    @classmethod
    def read_config(cls, data: Mapping[str, Any], file: Path) -> DecoderConfig:
        """The configuration of the entries of ``config.json``. Raises `LoadError`."""
        return cls.family.read(data, file)

    @classmethod
    def build(cls, config: DecoderConfig, parameter: ParameterOf) -> Self:
        """Build the model from ``parameter(name, shape)``."""
        from gptrs.models.decoder_builder import Builder

        return Builder(cls.family, config, parameter).model(cls)

    @property
    def context_length(self) -> int:
        return self.config.context_length

    @property
    def vocab_size(self) -> int:
        return self.config.vocab_size

    def init_cache(self, starts: NDArray[np.int32], capacity: int) -> KVCache:
        """An empty cache for ``len(starts)`` rows; row b's text begins at column starts[b]."""
        config = self.config
        layers, heads = config.num_hidden_layers, config.key_heads
        return KVCache.empty(layers, starts, heads, capacity, config.head_size)

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
    def __call__(
        self,
        tokens: Tensor,
        cache: KVCache | None = None,
        *,
        logits: Literal["all", "last"] = "all",
    ) -> tuple[Tensor, KVCache | None]:
        """Logits [batch, tokens or 1, vocabulary] for integer tokens [batch, tokens].

        With a cache the tokens continue the ones that it has seen, and the next cache is returned.
        """
        config, count = self.config, tokens.shape[1]
        if cache is None:
            positions, lengths = ptir.iota(shape=(1, count), axis=1), count
        else:
            positions, lengths = cache.positions(count), cache.lengths(count)
        kinds = dict.fromkeys(map(config.layer_type, range(config.num_hidden_layers)))
        tables = {kind: config.rope(kind).tables(positions, lengths) for kind in kinds}
        x = self.embed_tokens(tokens)  # [batch, tokens, width]
        factor = config.embedding_multiplier
        if self.family.scales_embedding:
            factor *= math.sqrt(config.hidden_size)
        x = x if factor == 1.0 else x * factor
        for layer, block in enumerate(self.layers):
            turns = tables[config.layer_type(layer)] if config.rotates(layer) else None
            x, cache = block(x, turns, cache)
        if logits == "last":
            x = x[:, -1:]
        y = self.lm_head(self.norm(x))
        if config.logits_scaling != 1.0:
            y = y / config.logits_scaling
        if (cap := config.final_logit_softcapping) is not None:
            y = ptir.tanh(y / cap) * cap
        return y, None if cache is None else cache.advanced(count)

"""Layers of decoder language models: attention, MLP and block, named as Llama's checkpoints are."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from gptrs import ptir
from gptrs.ir.tensor import Tensor
from gptrs.models.experts import SparseMLP
from gptrs.nn.activations import ACTIVATIONS
from gptrs.nn.cache import KVCache
from gptrs.nn.layers import LayerNorm, Linear, RMSNorm
from gptrs.nn.module import Module

Norm: TypeAlias = RMSNorm | LayerNorm
Tables: TypeAlias = tuple[Tensor, Tensor] | None
"""Cosines and sines of a layer's positions; None for a layer without rotary positions."""


class Attention(Module):
    """Causal self-attention over [batch, tokens, width], in groups of heads that share keys."""

    q_proj: Linear | None
    k_proj: Linear | None
    v_proj: Linear | None
    qkv_proj: Linear | None  # in their place
    o_proj: Linear
    q_norm: RMSNorm | None
    k_norm: RMSNorm | None
    heads: int
    key_heads: int
    head_size: int
    qkv: Literal["separate", "stacked", "by_head"]
    qk_norm: Literal["none", "head", "all"]
    scale: float
    window: int | None
    softcap: float | None
    layer: int
    slot: int  # how many layers before it have a window, or none, as this one

    def __call__(
        self, x: Tensor, tables: Tables, cache: KVCache | None
    ) -> tuple[Tensor, KVCache | None]:
        batch, tokens, _ = x.shape
        q, k, v = self._projected(x)  # each [batch, heads or key heads, tokens, head size]
        if tables is not None:
            q, k = _rotated(q, *tables), _rotated(k, *tables)
        options: dict[str, Any] = {
            "scale": self.scale,
            "window": self.window,
            "softcap": self.softcap,
        }
        if cache is None:
            y = ptir.attention(q, k, v, causal=True, **options)
        else:
            y, cache = cache.attend(self.layer, q, k, v, slot=self.slot, **options)
        return self.o_proj(y.permute(0, 2, 1, 3).reshape(batch, tokens, -1)), cache

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, tokens, _ = x.shape
        counts, size = (self.heads, self.key_heads, self.key_heads), self.head_size
        parts = _products(x, self.q_proj, self.k_proj, self.v_proj, self.qkv_proj)
        if self.qkv == "by_head":
            rows = parts[0].reshape(batch, tokens, self.heads, 3, size)
            parts = [rows[:, :, :, n] for n in range(3)]
        elif self.qkv == "stacked":
            q, k = self.heads * size, (self.heads + self.key_heads) * size
            parts = [parts[0][..., rows] for rows in (slice(0, q), slice(q, k), slice(k, None))]
        norms = (self.q_norm, self.k_norm, None)
        if self.qk_norm == "all":
            parts = [_applied(norm, y) for norm, y in zip(norms, parts, strict=True)]
        split = [
            y.reshape(batch, tokens, count, size) for y, count in zip(parts, counts, strict=True)
        ]
        if self.qk_norm == "head":
            split = [_applied(norm, y) for norm, y in zip(norms, split, strict=True)]
        q, k, v = (y.permute(0, 2, 1, 3) for y in split)
        return q, k, v


def _products(x: Tensor, *projections: Linear | None) -> list[Tensor]:
    return [projection(x) for projection in projections if projection is not None]


def _applied(norm: Norm | None, x: Tensor) -> Tensor:
    return x if norm is None else norm(x)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Heads x [batch, heads, tokens, head size] turned by their positions; elements beyond those of
    the tables stay."""
    size = 2 * cos.shape[-1]
    if size == x.shape[-1]:
        return ptir.rotary(x, cos, sin)
    return ptir.concat((ptir.rotary(x[..., :size], cos, sin), x[..., size:]), axis=-1)


class MLP(Module):
    """act(gate(x)) · up(x), or act(up(x)), projected back."""

    gate_proj: Linear | None
    up_proj: Linear | None
    gate_up_proj: Linear | None  # in their place
    down_proj: Linear
    hidden_act: str

    def __call__(self, x: Tensor) -> Tensor:
        act = ACTIVATIONS[self.hidden_act]
        parts = _products(x, self.gate_proj, self.up_proj, self.gate_up_proj)
        if self.gate_up_proj is not None:
            half = parts[0].shape[-1] // 2
            parts = [parts[0][..., :half], parts[0][..., half:]]
        return self.down_proj(act(parts[0]) if len(parts) == 1 else act(parts[0]) * parts[1])


class Block(Module):
    """Attention and MLP with residual connections, one after the other or side by side."""

    self_attn: Attention
    mlp: MLP | SparseMLP
    input_layernorm: Norm | None
    post_attention_layernorm: Norm
    pre_feedforward_layernorm: Norm | None
    post_feedforward_layernorm: Norm | None
    norms: Literal["before", "after", "around"]
    residual_multiplier: float
    is_parallel: bool

    def __call__(
        self, x: Tensor, tables: Tables, cache: KVCache | None
    ) -> tuple[Tensor, KVCache | None]:
        # What "before" calls the norm after attention is that of the MLP.
        after, before_mlp = self.post_attention_layernorm, self.pre_feedforward_layernorm
        if self.norms == "before":
            after, before_mlp = None, self.post_attention_layernorm
        y, cache = self.self_attn(_applied(self.input_layernorm, x), tables, cache)
        added = self._scaled(_applied(after, y))
        if self.is_parallel:
            return x + added + self.mlp(_applied(before_mlp, x)), cache
        x = x + added
        y = self.mlp(_applied(before_mlp, x))
        return x + self._scaled(_applied(self.post_feedforward_layernorm, y)), cache

    def _scaled(self, x: Tensor) -> Tensor:
        return x if self.residual_multiplier == 1.0 else x * self.residual_multiplier

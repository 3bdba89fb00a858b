"""Layers of models: norms over the last axis, and attention."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """(x − mean x) / √(var x + eps) · weight + bias over the last axis."""
    return functional.layer_norm(x, x.shape[-1:], weight, bias, eps) if x.numel() else x.clone()


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """x / √(mean x² + eps) · weight over the last axis."""
    return functional.rms_norm(x, x.shape[-1:], weight, eps) if x.numel() else x.clone()


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    kv_start: Tensor | None,
    kv_len: Tensor | None,
    causal: bool,
    scale: float | None,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    """softmax(q·kᵀ·scale + mask)·v as `ptir.attention` has it; a query that sees no key gives 0.

    q [B, H, S, D], k and v [B, G, T, D], kv_start and kv_len [B].
    """
    queries, keys = q.shape[2], k.shape[2]
    if not keys:
        return q.new_zeros((*q.shape[:3], v.shape[3]))
    shared = q.shape[1] != k.shape[1]
    everything = kv_start is None and kv_len is None and window is None
    # torch adds −∞ to hidden scores, which leaves NaN of infinite keys; the CPU's has to be exact.
    exact = q.device.type == "cpu" and (causal or not everything)
    if everything and softcap is None and not exact and (not causal or queries in (1, keys)):
        return functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal and queries > 1, scale=scale, enable_gqa=shared
        )
    mask = _visible(q, keys, kv_start, kv_len, causal, window)
    if softcap is None and not exact:
        found = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, scale=scale, enable_gqa=shared
        )
    else:
        found = _capped(q, k, v, mask, scale, softcap)
    if everything and queries <= keys:  # each sees a key
        return found
    return torch.where(mask.any(-1, keepdim=True), found, 0)


def _visible(
    q: Tensor,
    keys: int,
    kv_start: Tensor | None,
    kv_len: Tensor | None,
    causal: bool,
    window: int | None,
) -> Tensor:
    """The mask [B or 1, 1, queries or 1, keys] of visible keys."""
    queries = q.shape[2]
    key = torch.arange(keys, device=q.device).reshape(1, 1, 1, keys)
    end = keys if kv_len is None else kv_len.long().reshape(-1, 1, 1, 1)
    mask = torch.ones_like(key, dtype=torch.bool) if kv_len is None else key < end
    if kv_start is not None:
        mask = mask & (key >= kv_start.long().reshape(-1, 1, 1, 1))
    if causal or window is not None:
        query = torch.arange(queries, device=q.device).reshape(1, 1, queries, 1) + (end - queries)
        if causal:
            mask = mask & (key <= query)
        if window is not None:
            mask = mask & (key > query - window)
    return mask


def _capped(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float | None, softcap: float | None
) -> Tensor:
    """Attention by its definition, in f32 at least; hidden scores are replaced."""
    batch, heads, queries, depth = q.shape
    wide = q.dtype if q.dtype is torch.float64 else torch.float32
    grouped = q.to(wide).reshape(batch, k.shape[1], heads // k.shape[1], queries, depth)
    scores = grouped @ k.to(wide).unsqueeze(2).mT
    scores = scores * (depth**-0.5 if scale is None else scale)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    scores = scores.masked_fill(~mask.unsqueeze(1), float("-inf"))
    weights = torch.softmax(scores, -1)
    return (
        (weights @ v.to(wide).unsqueeze(2)).reshape(batch, heads, queries, v.shape[3]).to(q.dtype)
    )

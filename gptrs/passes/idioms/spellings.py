"""Spellings of composites whose structure differs from the composite's definition.

A spelling is a function over ops that takes operands and returns the composite's result, or that
result reshaped. Its scalar attributes may be holes. `patterns` traces it.
"""

from __future__ import annotations

import math
from typing import Literal

from gptrs.ir.ops.composite import softmax
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.elementwise import exp, maximum, select, tanh
from gptrs.ir.ops.reduce import reduce_max, reduce_sum
from gptrs.ir.ops.shape import broadcast_to
from gptrs.ir.tensor import Tensor

Scaled = Literal["scores", "q", "k", "both"]
Heads = Literal["plain", "grouped", "spread", "repeated"]
Mask = Literal["none", "keep", "hide", "add"]


def factored_gelu_tanh(x: Tensor) -> Tensor:
    """½ x (1 + tanh(√(2/π) x (1 + 0.044715 x²)))."""
    inner = x * (x * x * 0.044715 + 1.0) * math.sqrt(2 / math.pi)
    return x * 0.5 * (tanh(inner) + 1.0)


def halved_sigmoid(x: Tensor) -> Tensor:
    """½ (1 + tanh(x / 2))."""
    return (tanh(x * 0.5) + 1.0) * 0.5


def shifted_sigmoid(x: Tensor) -> Tensor:
    """½ tanh(x / 2) + ½."""
    return tanh(x * 0.5) * 0.5 + 0.5


def attention_of_softmax(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    scale: float,
    fill: float,
    scaled: Scaled,
    heads: Heads,
    masked: Mask,
    batch_axes: int,
) -> Tensor:
    """softmax(q·kᵀ·scale with mask)·v, q [B, H, S, D], k and v [B, G, T, D].

    ``heads`` is how query heads share keys: each has its own; q is [B, G, H/G, S, D], in a product
    for each group or for each head ("spread", with keys broadcast along H/G); or k and v
    are repeated. With ``batch_axes`` 1 or 0 the leading axes of extent 1 are left out.
    """
    scores = _scores(q, k, scale=scale, scaled=scaled, heads=heads, batch_axes=batch_axes)
    return _weighted(softmax(_with_mask(scores, mask, fill, masked)), v, q, heads, batch_axes)


def guarded_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    *,
    scale: float,
    fill: float,
    scaled: Scaled,
    heads: Heads,
    masked: Mask,
    batch_axes: int,
) -> Tensor:
    """Attention as in its definition: 0 for a query without a visible key."""
    scores = _scores(q, k, scale=scale, scaled=scaled, heads=heads, batch_axes=batch_axes)
    scores = _with_mask(scores, mask, fill, masked)
    top = reduce_max(scores, axes=-1, keepdims=True)
    e = exp(scores - select(top == -math.inf, 0.0, top))
    weights = e / maximum(reduce_sum(e, axes=-1, keepdims=True), 1.0)
    return _weighted(weights, v, q, heads, batch_axes)


def _scores(
    q: Tensor, k: Tensor, *, scale: float, scaled: Scaled, heads: Heads, batch_axes: int
) -> Tensor:
    if scaled in ("q", "both"):
        q = q * (scale if scaled == "q" else scale**0.5)
    if scaled in ("k", "both"):
        k = k * (scale if scaled == "k" else scale**0.5)
    if heads == "grouped":
        batch, _, queries, depth = q.shape
        q = q.reshape(batch, k.shape[1], -1, queries, depth)
        scores = dot_general(
            q,
            k,
            batch_lhs=(0, 1),
            batch_rhs=(0, 1),
            contract_lhs=(-1,),
            contract_rhs=(-1,),
        )
    elif heads == "spread":
        batch, _, queries, depth = q.shape
        scores = q.reshape(batch, k.shape[1], -1, queries, depth) @ k.unsqueeze(2).mT
    else:
        k = _repeated(k, q, heads)
        scores = _plain(q, batch_axes) @ _plain(k, batch_axes).mT
    return scores * scale if scaled == "scores" else scores


def _weighted(weights: Tensor, v: Tensor, q: Tensor, heads: Heads, batch_axes: int) -> Tensor:
    if heads == "grouped":
        return dot_general(
            weights,
            v,
            batch_lhs=(0, 1),
            batch_rhs=(0, 1),
            contract_lhs=(-1,),
            contract_rhs=(-2,),
        )
    if heads == "spread":
        return weights @ v.unsqueeze(2)
    return weights @ _plain(_repeated(v, q, heads), batch_axes)


def _plain(x: Tensor, batch_axes: int) -> Tensor:
    return x if batch_axes == 2 else x.reshape(x.shape[2 - batch_axes :])


def _repeated(x: Tensor, q: Tensor, heads: Heads) -> Tensor:
    """Keys or values of G heads, repeated for H query heads."""
    if heads != "repeated":
        return x
    batch, groups, keys, depth = x.shape
    shared = q.shape[1] // groups
    wide = broadcast_to(x.unsqueeze(2), shape=(batch, groups, shared, keys, depth))
    return wide.reshape(batch, q.shape[1], keys, depth)


def _with_mask(scores: Tensor, mask: Tensor | None, fill: float, masked: Mask) -> Tensor:
    if mask is None:
        return scores
    match masked:
        case "keep":
            return select(mask, scores, fill)
        case "hide":
            return select(mask, fill, scores)
        case _:
            return scores + mask

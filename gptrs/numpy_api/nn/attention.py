"""Attention: the scaled dot product, and several heads with their projections.

Source: Vaswani et al., arXiv:1706.03762.
"""

from __future__ import annotations

import math
from typing import Any, cast

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import DimLike, same, same_shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.composite import attention
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, shape_text
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.operands import as_float, nn_function
from gptrs.numpy_api.nn.stochastic import dropped

__all__ = ["scaled_dot_product_attention"]


@nn_function
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    seed: Any = None,
) -> Tensor:
    """softmax(q·kᵀ·scale + mask)·v of q [..., H, L, E], k [..., H, S, E] and v [..., H, S, V]:
    [..., H, L, V].

    ``scale`` is 1/√E unless given. ``attn_mask`` broadcasts to [..., H, L, S]: a mask of booleans
    says which keys a query sees, another one is added to the scores. With ``is_causal`` query i
    sees the keys j ≤ i. A query that sees no key gives 0. With ``enable_gqa`` k and v may have
    fewer heads, each for a group of q's. Without a mask and dropout it is the op ``attention``.
    ``dropout_p`` above 0 needs a ``seed``, as `dropout`.
    """
    q, k, v = promote((as_float(query), as_float(key), as_float(value)))
    if attn_mask is not None and is_causal:
        raise ArgumentError("attn_mask and is_causal exclude each other")
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(
            f"q, k and v have ranks {q.ndim}, {k.ndim} and {v.ndim}, expected 2 or more"
        )
    lead = _leading(q, k, v, enable_gqa)
    q = _four_axes(q, lead, own_heads=False)
    k, v = (_four_axes(x, lead, own_heads=enable_gqa) for x in (k, v))
    mask = None if attn_mask is None else _mask(as_tensor(attn_mask), lead)
    if mask is None and not dropout_p:
        result = _causal(q, k, v, scale) if is_causal else attention(q, k, v, scale=scale)
    else:
        if is_causal:
            mask = _lower_triangle(q.shape[-2], k.shape[-2])
        weights = dropped(attention_weights(q, k, mask, scale), dropout_p, seed=seed)
        result = narrow(_per_group(weights, widen(v), contract_rhs=-2), q)
    return result.reshape([*lead, *result.shape[-2:]])


def _leading(q: Tensor, k: Tensor, v: Tensor, grouped: bool) -> tuple[DimLike, ...]:
    """The axes before [L, E], which the operands share; with groups all but the heads of q."""
    if not grouped or min(q.ndim, k.ndim, v.ndim) < 3:
        return broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    heads = q.shape[-3]
    for name, x in (("key", k), ("value", v)):
        if not same(heads % x.shape[-3], 0):
            raise ShapeError(f"{heads} heads of query cannot share {x.shape[-3]} of {name} evenly")
    return (*broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3]), heads)


def _four_axes(x: Tensor, lead: tuple[DimLike, ...], own_heads: bool) -> Tensor:
    """``x`` as [batch, heads, rows, width], with its own number of heads or that of ``lead``."""
    outer = (*lead[:-1], x.shape[-3]) if own_heads and x.ndim > 2 else lead
    if not same_shape(x.shape[:-2], outer):
        x = OPS["broadcast_to"](x, shape=(*outer, *x.shape[-2:]))
    if len(outer) < 2:
        return x.reshape([*(1,) * (2 - len(outer)), *x.shape])
    return x if len(outer) == 2 else x.reshape([-1, *x.shape[-3:]])


def _mask(mask: Tensor, lead: tuple[DimLike, ...]) -> Tensor:
    if mask.ndim < 2 or mask.ndim > max(len(lead), 2) + 2:
        raise ShapeError(
            f"attn_mask has shape {shape_text(mask.shape)}, expected one that broadcasts to"
            f" [{', '.join([*map(str, lead), 'L', 'S'])}]"
        )
    if len(lead) > 2:
        return _four_axes(mask, lead, own_heads=False)
    return mask.reshape([*(1,) * (4 - mask.ndim), *mask.shape])


def _lower_triangle(queries: DimLike, keys: DimLike) -> Tensor:
    """Whether key j ≤ i, for query i."""
    i = OPS["iota"](shape=(queries, 1), axis=0)
    return OPS["less_equal"](OPS["iota"](shape=(1, keys), axis=1), i)


def _causal(q: Tensor, k: Tensor, v: Tensor, scale: float | None) -> Tensor:
    """Causal attention whose first query stands at the first key; that of the op has the last
    query at the last key."""
    queries, keys = q.shape[-2], k.shape[-2]
    if same(queries, keys):
        return attention(q, k, v, causal=True, scale=scale)
    if not isinstance(queries, int) or not isinstance(keys, int):
        weights = attention_weights(q, k, _lower_triangle(queries, keys), scale)
        return narrow(_per_group(weights, widen(v), contract_rhs=-2), q)
    if queries < keys:
        return attention(q, k[:, :, :queries], v[:, :, :queries], causal=True, scale=scale)
    first = attention(q[:, :, :keys], k, v, causal=True, scale=scale)
    rest = attention(q[:, :, keys:], k, v, scale=scale)
    return OPS["concat"]((first, rest), axis=-2)


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    """softmax(q·kᵀ·scale + mask) in the dtype of the arithmetic; 0 for a query without keys.

    Spelled as `attention` is, so that a mask that compares positions becomes its attributes
    (`gptrs.passes.idioms`).
    """
    if scale is None:
        scale = 1 / math.sqrt(cast("int", q.shape[-1])) if q.shape[-1] else 1.0
    scores = _per_group(widen(q), widen(k), contract_rhs=-1) * scale
    if mask is not None and mask.dtype.is_bool:
        scores = OPS["select"](mask, scores, -math.inf)
    elif mask is not None:
        scores = scores + widen(mask).astype(scores.dtype)
    top = OPS["reduce_max"](scores, axes=-1, keepdims=True)
    e = OPS["exp"](scores - OPS["select"](top == -math.inf, 0.0, top))
    return e / OPS["maximum"](OPS["reduce_sum"](e, axes=-1, keepdims=True), 1.0)


def _per_group(x: Tensor, y: Tensor, *, contract_rhs: int) -> Tensor:
    """The products of x [B, H, L, n] with y [B, G, ...], whose heads serve groups of x's."""
    batch, heads, rows, width = x.shape
    groups = y.shape[1]
    axes = {"batch_lhs": (0, 1), "batch_rhs": (0, 1), "contract_rhs": (contract_rhs,)}
    if same(heads, groups):
        return OPS["dot_general"](x, y, contract_lhs=(-1,), **axes)
    grouped = x.reshape([batch, groups, -1, rows, width])
    product: Tensor = OPS["dot_general"](grouped, y, contract_lhs=(-1,), **axes)
    return product.reshape([batch, heads, rows, product.shape[-1]])

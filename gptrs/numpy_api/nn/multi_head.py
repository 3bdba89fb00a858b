"""Multi-head attention with its projections, as torch.nn.MultiheadAttention calls it."""

from __future__ import annotations

import math
from functools import reduce as fold
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.ops.widening import narrow
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.attention import attention_weights, scaled_dot_product_attention
from gptrs.numpy_api.nn.linear_maps import linear
from gptrs.numpy_api.nn.operands import as_float, maybe_float, nn_function
from gptrs.numpy_api.nn.stochastic import dropped

__all__ = ["multi_head_attention_forward"]


@nn_function
def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    *,
    seed: Any = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention of ``num_heads`` heads between projections of query [L, N, E], key and value
    [S, N, ...]: [L, N, E] and, with ``need_weights``, the weights [N, L, S], or [N, heads, L, S]
    without ``average_attn_weights``.

    Masks hide where they are True, as in torch: ``key_padding_mask`` [N, S], ``attn_mask`` [L, S]
    or [N · heads, L, S]; masks of floats are added to the scores. ``bias_k`` and ``bias_v``
    [1, 1, E], and a zero with ``add_zero_attn``, are further keys. ``static_k`` and ``static_v``
    [N · heads, S, E / heads] replace projected ones. Operands without the batch axis N give results
    without. ``dropout_p`` in ``training`` needs a ``seed``.
    """
    if is_causal and attn_mask is None:
        raise ArgumentError("is_causal says what attn_mask is", fix="give attn_mask too")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        is_causal = False
    q, k, v = as_float(query), as_float(key), as_float(value)
    if q.ndim not in (2, 3):
        raise ShapeError(f"query has rank {q.ndim}, expected [L, N, E] or [L, E]")
    batched = q.ndim == 3
    if not batched:
        q, k, v = q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else as_tensor(key_padding_mask)[None]
    length, batch, width = q.shape
    if width != embed_dim_to_check or width % num_heads:
        raise ShapeError(
            f"query has width {width}, expected {embed_dim_to_check}, a multiple of {num_heads}"
        )
    weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    if not use_separate_proj_weight:
        whole = as_float(in_proj_weight)
        weights = (whole[:width], whole[width : 2 * width], whole[2 * width :])
    bias = maybe_float(in_proj_bias)
    biases = (
        (None,) * 3 if bias is None else (bias[:width], bias[width : 2 * width], bias[2 * width :])
    )
    q, k, v = (linear(*operands) for operands in zip((q, k, v), weights, biases, strict=True))
    added = 0
    if bias_k is not None and bias_v is not None:
        k, v, added = _one_more(k, bias_k), _one_more(v, bias_v), added + 1
    q = _heads(q, num_heads)
    k = _heads(k, num_heads) if static_k is None else _static(static_k, num_heads)
    v = _heads(v, num_heads) if static_v is None else _static(static_v, num_heads)
    if add_zero_attn:
        k, v, added = _zero_more(k), _zero_more(v), added + 1
    mask = _mask(attn_mask, key_padding_mask, (batch, num_heads), added, q)
    p = dropout_p if training else 0.0
    if not need_weights:
        y = scaled_dot_product_attention(q, k, v, mask, p, is_causal, seed=seed)
        return _projected(y, out_proj_weight, out_proj_bias, length, batched), None
    shares = dropped(attention_weights(q, k, mask, None), p, seed=seed)
    y = narrow(shares @ v.astype(shares.dtype), q)
    result = _projected(y, out_proj_weight, out_proj_bias, length, batched)
    shares = narrow(OPS["mean"](shares, axes=1) if average_attn_weights else shares, q)
    return result, shares if batched else shares.squeeze(0)


def _one_more(x: Tensor, row: Any) -> Tensor:
    """x [S, N, E] with a further row for each example."""
    row = as_float(row).astype(x.dtype)
    row = OPS["broadcast_to"](row.reshape(1, 1, -1), shape=(1, *x.shape[1:]))
    return OPS["concat"]((x, row), axis=0)


def _zero_more(x: Tensor) -> Tensor:
    """x [N, H, S, D] with a further key, 0."""
    return OPS["pad"](x, low=(0, 0, 0, 0), high=(0, 0, 1, 0))


def _heads(x: Tensor, heads: int) -> Tensor:
    """[L, N, E] as [N, H, L, E / H]."""
    length, batch, width = x.shape
    parts = x.reshape([length, batch, heads, width // heads])
    return OPS["transpose"](parts, perm=(1, 2, 0, 3))


def _static(x: Any, heads: int) -> Tensor:
    """[N · H, S, D] as [N, H, S, D]."""
    x = as_float(x)
    return x.reshape([-1, heads, *x.shape[1:]])


def _projected(y: Tensor, weight: Any, bias: Any, length: Any, batched: bool) -> Tensor:
    """y [N, H, L, D] as [L, N, E], projected."""
    turned: Tensor = OPS["transpose"](y, perm=(2, 0, 1, 3))
    rows = linear(turned.reshape([length, y.shape[0], -1]), weight, bias)
    return rows if batched else rows.squeeze(1)


def _added(mask: Any, like: Tensor, further: int) -> Tensor:
    """A mask as numbers to add, −∞ where True, with 0 for further keys."""
    mask = as_tensor(mask)
    if mask.dtype.is_bool:
        mask = OPS["select"](mask, OPS["full"](shape=(), value=-math.inf, dtype=like.dtype), 0.0)
    none = (0,) * (mask.ndim - 1)
    return OPS["pad"](mask, low=(*none, 0), high=(*none, further)) if further else mask


def _mask(mask: Any, padding: Any, lead: tuple[Any, int], further: int, like: Tensor) -> Any:
    """Both masks as one, in the form that `scaled_dot_product_attention` takes."""
    forms: list[Tensor] = []
    if mask is not None:
        mask = as_tensor(mask)
        forms.append(mask.reshape([*(() if mask.ndim == 2 else lead), *mask.shape[-2:]]))
    if padding is not None:
        padding = as_tensor(padding)
        forms.append(padding.reshape([lead[0], 1, 1, padding.shape[-1]]))
    if not forms:
        return None
    if not further and all(form.dtype.is_bool for form in forms):
        return OPS["logical_not"](fold(OPS["logical_or"], forms))
    return fold(FUNCTIONS["add"], [_added(form, like, further) for form in forms])

"""Blocked attention: online softmax over blocks of keys."""

from __future__ import annotations

import math

from gptrs.ir.dims import DimLike
from gptrs.ir.implementations.blocks import blocks, is_long
from gptrs.ir.implementations.registry import implementation
from gptrs.ir.ops.composite import attention
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.elementwise import cast, exp, logical_and, maximum, select, tanh
from gptrs.ir.ops.literal import iota
from gptrs.ir.ops.reduce import reduce_max, reduce_sum
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type


def _keys(q: Type, k: Type) -> DimLike:
    return k.shape[2]


attention.examples["kv_len"] = _keys


def _has_many_keys(k: Type) -> bool:
    return is_long(k.shape[2])


@implementation("attention", name="blocked", when=_has_many_keys)
def blocked(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    kv_start: Tensor | None,
    kv_len: Tensor | None,
    *,
    causal: bool,
    scale: float | None,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    """Block by block of keys with a running maximum and sum: scores [queries, keys] are never
    stored as a whole. Source: Dao et al., arXiv:2205.14135."""
    batch, heads, queries, depth = q.shape
    groups, keys = k.shape[1], k.shape[2]
    if scale is None:
        assert isinstance(depth, int)  # as in the definition
        scale = 1 / math.sqrt(depth)
    grouped = widen(q).reshape(batch, groups, heads // groups, queries, depth)
    top = total = result = None
    for start, size in blocks(keys):
        part = slice(start, start + size)
        scores = _product(grouped, widen(k[:, :, part]), -1) * scale
        if softcap is not None:
            scores = tanh(scores / softcap) * softcap
        mask = _visible(queries, keys, start, size, kv_start, kv_len, causal, window)
        if mask is not None:
            scores = select(mask, scores, -math.inf)
        highest = reduce_max(scores, axes=-1, keepdims=True)
        new = highest if top is None else maximum(top, highest)
        # A row that has seen nothing yet has maximum −∞: 0 in its place gives 0 and not NaN.
        level = new if mask is None else select(new == -math.inf, 0.0, new)
        e = exp(scores - level)
        added = reduce_sum(e, axes=-1, keepdims=True)
        product = _product(e, widen(v[:, :, part]), -2)
        if top is None or total is None or result is None:
            total, result = added, product
        else:
            shrink = exp(top - level)
            total, result = total * shrink + added, result * shrink + product
        top = new
    assert total is not None
    assert result is not None
    return narrow((result / maximum(total, 1.0)).reshape(batch, heads, queries, v.shape[-1]), q)


def _product(x: Tensor, y: Tensor, axis: int) -> Tensor:
    """The product of x [B, G, ..., n] and y [B, G, ., .], contracted over ``axis`` of y."""
    return dot_general(
        x, y, batch_lhs=(0, 1), batch_rhs=(0, 1), contract_lhs=(-1,), contract_rhs=(axis,)
    )


def _visible(
    queries: DimLike,
    keys: DimLike,
    start: int,
    size: int,
    kv_start: Tensor | None,
    kv_len: Tensor | None,
    causal: bool,
    window: int | None,
) -> Tensor | None:
    """The mask of a block of keys, [B or 1, 1, 1, queries or 1, size]; None: all keys are
    visible."""
    key = iota(shape=(1, 1, 1, 1, size), axis=-1) + start
    end = keys if kv_len is None else _per_row(kv_len, key)
    conditions: list[Tensor] = []
    if kv_start is not None:
        conditions.append(key >= _per_row(kv_start, key))
    if kv_len is not None:
        conditions.append(key < end)
    query = iota(shape=(1, 1, 1, queries, 1), axis=-2) + (end - queries)
    if causal:
        conditions.append(key <= query)
    if window is not None:
        conditions.append(key > query - window)
    mask = None
    for condition in conditions:
        mask = condition if mask is None else logical_and(mask, condition)
    return mask


def _per_row(x: Tensor, like: Tensor) -> Tensor:
    """Integers [B] as [B, 1, 1, 1, 1]."""
    return cast(x, dtype=like.dtype).reshape(x.shape[0], 1, 1, 1, 1)

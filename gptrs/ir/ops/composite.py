"""Composite ops common to models: matmul, linear, softmax, layer_norm, activations, attention.

A composite is one instruction of a program until the backend declines it (`gptrs.passes.legalize`).
Narrow floats are computed in f32 and rounded once, at the end.
"""

from __future__ import annotations

import math

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.checks import one_dtype
from gptrs.ir.composites import composite
from gptrs.ir.dims import DimLike, same, surely_greater
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.elementwise import (
    FLOATING,
    cast,
    erf,
    exp,
    log,
    logical_and,
    maximum,
    reciprocal,
    rsqrt,
    select,
    tanh,
)
from gptrs.ir.ops.index import take
from gptrs.ir.ops.literal import full, iota
from gptrs.ir.ops.reduce import Axes, reduce_max, reduce_sum
from gptrs.ir.ops.shape import broadcast_to
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.row_rules import (
    attention_rows,
    axis_mixed,
    elementwise_rows,
    last_axis_mixed,
    matmul_rows,
)
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, normal_axes, normal_axis

__all__ = [
    "attention",
    "embedding",
    "gelu",
    "gelu_quick",
    "gelu_tanh",
    "layer_norm",
    "linear",
    "log_softmax",
    "matmul",
    "mean",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "var",
]


def _present(*operands: Tensor | None) -> list[Tensor]:
    return [operand for operand in operands if operand is not None]


def _count(x: Tensor, axes: Axes) -> DimLike:
    count: DimLike = 1
    for axis in normal_axes(axes, x.ndim):
        count = count * x.shape[axis]
    return count


@composite(kind=OpKind.CONTRACTION, rows=matmul_rows)
def matmul(x: Tensor, y: Tensor) -> Tensor:
    """The matrix product over the last axis of x [..., M, K] and y [..., K, N].

    Leading axes broadcast; an operand of rank 1 is a row on the left, a column on the right.
    """
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError("an operand has rank 0", fix="x * y multiplies by a scalar")
    if y.ndim <= 2:
        return dot_general(x, y, contract_lhs=(-1,), contract_rhs=(0,))
    if x.ndim == 1:
        return matmul(x.unsqueeze(0), y).squeeze(-2)
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x = broadcast_to(x, shape=(*batch, *x.shape[-2:]))
    y = broadcast_to(y, shape=(*batch, *y.shape[-2:]))
    axes = tuple(range(len(batch)))
    return dot_general(x, y, batch_lhs=axes, batch_rhs=axes, contract_lhs=(-1,), contract_rhs=(-2,))


@composite(kind=OpKind.CONTRACTION, rows=last_axis_mixed)
def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, transposed: bool = False
) -> Tensor:
    """x [..., in] · weightᵀ + bias [out], with weight [out, in] as in torch.

    ``transposed``: the weight is stored as [in, out].
    """
    if weight.ndim != 2:
        raise ShapeError(f"weight has rank {weight.ndim}, expected 2")
    one_dtype(*_present(x, weight, bias))
    y = dot_general(
        x,
        weight,
        contract_lhs=(-1,),
        contract_rhs=(0 if transposed else 1,),
        out_dtype=None if bias is None or x.dtype.compute is x.dtype else x.dtype.compute,
    )
    return y if bias is None else narrow(y + widen(bias), x)


@composite(kind=OpKind.ROWWISE)
def mean(x: Tensor, *, axes: Axes = None, keepdims: bool = False) -> Tensor:
    """Σx / n over ``axes``; NaN over nothing."""
    wide = widen(x)
    total = reduce_sum(wide, axes=axes, keepdims=keepdims)
    return narrow(total / _count(x, axes), x)


@composite(kind=OpKind.ROWWISE)
def var(x: Tensor, *, axes: Axes = None, keepdims: bool = False, correction: int = 0) -> Tensor:
    """Σ(x − mean x)² / max(n − correction, 0) over ``axes``: +∞ or NaN where that divides by 0."""
    wide = widen(x)
    centred = wide - mean(wide, axes=axes, keepdims=True)
    total = reduce_sum(centred * centred, axes=axes, keepdims=keepdims)
    divisor = _count(x, axes) - correction
    if isinstance(divisor, int):
        divisor = max(divisor, 0)
    elif not surely_greater(divisor, -1):
        divisor = maximum(full(shape=(), value=0, dtype=wide.dtype), divisor)
    return narrow(total / divisor, x)


@composite(kind=OpKind.ROWWISE, rows=axis_mixed)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """exp(x − max x) / Σ exp(x − max x) along ``axis``."""
    wide = widen(x)
    e = exp(wide - reduce_max(wide, axes=axis, keepdims=True))
    return narrow(e / reduce_sum(e, axes=axis, keepdims=True), x)


@composite(kind=OpKind.ROWWISE)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """x − max x − log Σ exp(x − max x) along ``axis``."""
    wide = widen(x)
    centred = wide - reduce_max(wide, axes=axis, keepdims=True)
    return narrow(centred - log(reduce_sum(exp(centred), axes=axis, keepdims=True)), x)


@composite(kind=OpKind.NORM, rows=last_axis_mixed)
def layer_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5
) -> Tensor:
    """(x − mean x) / √(var x + eps) · weight + bias over the last axis."""
    normal_axis(-1, x.ndim)
    one_dtype(*_present(x, weight, bias))
    wide = widen(x)
    centred = wide - mean(wide, axes=-1, keepdims=True)
    y = centred * rsqrt(mean(centred * centred, axes=-1, keepdims=True) + eps)
    if weight is not None:
        y = y * widen(weight)
    if bias is not None:
        y = y + widen(bias)
    return narrow(y, x)


@composite(kind=OpKind.ACTIVATION, rows=elementwise_rows)
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e⁻ˣ)."""
    return narrow(reciprocal(exp(-widen(x)) + 1.0), x)


@composite(kind=OpKind.ACTIVATION, rows=elementwise_rows)
def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return maximum(x, 0)


@composite(kind=OpKind.ACTIVATION, rows=elementwise_rows)
def silu(x: Tensor) -> Tensor:
    """x · sigmoid(x)."""
    wide = widen(x)
    return narrow(wide * sigmoid(wide), x)


@composite(kind=OpKind.ACTIVATION, rows=elementwise_rows)
def gelu(x: Tensor) -> Tensor:
    """x · Φ(x) = ½ x (1 + erf(x/√2)). Source: Hendrycks and Gimpel, arXiv:1606.08415."""
    wide = widen(x)
    return narrow(wide * 0.5 * (erf(wide * math.sqrt(0.5)) + 1.0), x)


@composite(kind=OpKind.ACTIVATION, rows=elementwise_rows)
def gelu_tanh(x: Tensor) -> Tensor:
    """½ x (1 + tanh(√(2/π) (x + 0.044715 x³))), the approximation in arXiv:1606.08415."""
    wide = widen(x)
    inner = (wide + wide * wide * wide * 0.044715) * math.sqrt(2 / math.pi)
    return narrow(wide * 0.5 * (tanh(inner) + 1.0), x)


@composite(kind=OpKind.ACTIVATION, rows=elementwise_rows)
def gelu_quick(x: Tensor) -> Tensor:
    """x · sigmoid(1.702 x), the other approximation in arXiv:1606.08415."""
    wide = widen(x)
    return narrow(wide * sigmoid(wide * 1.702), x)


@composite(kind=OpKind.INDEX)
def embedding(weight: Tensor, ids: Tensor) -> Tensor:
    """Rows of ``weight`` [vocabulary, width] for integer ``ids`` of any shape."""
    return take(weight, ids)


@composite(kind=OpKind.CONTRACTION, rows=attention_rows)
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    kv_start: Tensor | None = None,
    kv_len: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    softcap: float | None = None,
) -> Tensor:
    """softmax(q·kᵀ·scale + mask)·v over keys, in f32. Source: arXiv:1706.03762.

    q [B, H, S, D], k and v [B, G, T, D] with H a multiple of G (query heads share keys in groups);
    the result is [B, H, S, D]. Row b sees the keys kv_start[b] ≤ t < kv_len[b] (integers [B]; all
    keys where absent). The last query stands at the last key seen: query i has position
    kv_len[b] − S + i; ``causal`` hides keys after it, ``window`` keys ``window`` or more before
    it. Scores s become softcap·tanh(s/softcap) with a ``softcap``. A query that sees no key gives
    0. ``scale`` is 1/√D unless given. Where a key is hidden, its value has to be finite: 0 times
    another one may count, or not.
    """
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ShapeError(f"q, k and v have ranks {q.ndim}, {k.ndim} and {v.ndim}, expected 4")
    one_dtype(q, k, v)
    batch, heads, queries, depth = q.shape
    groups, keys = k.shape[1], k.shape[2]
    if not same(heads % groups, 0):
        raise ShapeError(f"{heads} query heads cannot share {groups} key heads evenly")
    if window is not None and window < 1:
        raise ArgumentError(f"window is {window}, expected at least 1")
    if softcap is not None and not 0 < softcap < math.inf:
        raise ArgumentError(f"softcap is {softcap}, expected a positive number")
    if scale is None:
        if not isinstance(depth, int):
            raise ShapeError(f"the head size {depth} is symbolic", fix="give `scale`")
        scale = 1 / math.sqrt(depth)
    grouped = q.reshape(batch, groups, heads // groups, queries, depth)
    scores = (
        dot_general(
            grouped,
            k,
            batch_lhs=(0, 1),
            batch_rhs=(0, 1),
            contract_lhs=(-1,),
            contract_rhs=(-1,),
            accum_dtype=q.dtype.compute,
        )
        * scale
    )
    if softcap is not None:
        scores = tanh(scores / softcap) * softcap
    mask = _visible(queries, keys, kv_start, kv_len, causal=causal, window=window)
    if mask is not None:
        scores = select(mask, scores, -math.inf)
    # A row that sees nothing has maximum −∞; 0 in its place gives exp(−∞) = 0 and not NaN. A row
    # that sees something has a sum of at least exp(0) = 1, so the maximum changes no other row.
    top = reduce_max(scores, axes=-1, keepdims=True)
    if mask is not None:
        top = select(top == -math.inf, 0.0, top)
    e = exp(scores - top)
    weights = e / maximum(reduce_sum(e, axes=-1, keepdims=True), 1.0)
    result = dot_general(
        weights,
        widen(v),
        batch_lhs=(0, 1),
        batch_rhs=(0, 1),
        contract_lhs=(-1,),
        contract_rhs=(-2,),
    )
    return narrow(result.reshape(batch, heads, queries, v.shape[-1]), q)


def _visible(
    queries: DimLike,
    keys: DimLike,
    kv_start: Tensor | None,
    kv_len: Tensor | None,
    *,
    causal: bool,
    window: int | None,
) -> Tensor | None:
    """The mask [B or 1, 1, 1, queries or 1, keys] of visible keys; None when all keys are
    visible."""
    key = iota(shape=(1, 1, 1, 1, keys), axis=-1)
    conditions: list[Tensor] = []
    end: Tensor | DimLike = keys
    if kv_start is not None:
        conditions.append(key >= _per_row(kv_start, key))
    if kv_len is not None:
        end = _per_row(kv_len, key)
        conditions.append(key < end)
    if causal or window is not None:
        query = iota(shape=(1, 1, 1, queries, 1), axis=-2) + (end - queries)
        if causal:
            conditions.append(key <= query)
        if window is not None:
            conditions.append(key > query - window)
    if not conditions:
        return None
    mask = conditions[0]
    for condition in conditions[1:]:
        mask = logical_and(mask, condition)
    return mask


def _per_row(x: Tensor, like: Tensor) -> Tensor:
    """Integers [B] as [B, 1, 1, 1, 1]."""
    if x.ndim != 1 or not x.dtype.is_integer:
        raise ShapeError(f"kv_start and kv_len are integers of shape [batch], found {x.type}")
    return cast(x, dtype=like.dtype).reshape(x.shape[0], 1, 1, 1, 1)


matmul.promoting("x", "y")
linear.promoting("x", "weight", "bias")
layer_norm.promoting("x", "weight", "bias", kinds=FLOATING)
attention.promoting("q", "k", "v", kinds=FLOATING)
for _op in (
    *(mean, var, softmax, log_softmax),
    *(sigmoid, silu, gelu, gelu_tanh, gelu_quick),
):
    _op.promoting("x", kinds=FLOATING)

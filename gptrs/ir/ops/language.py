"""Composite ops of language models besides attention: rms_norm, rotary, cross_entropy.

Narrow floats are computed in f32 and rounded once, at the end.
"""

from __future__ import annotations

from typing import Literal

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.checks import one_dtype, require
from gptrs.ir.composites import composite
from gptrs.ir.dims import same, same_shape
from gptrs.ir.kinds import OpKind
from gptrs.ir.operands import tensors_in
from gptrs.ir.ops.composite import mean
from gptrs.ir.ops.elementwise import FLOATING, cast, exp, log, not_equal, rsqrt, select
from gptrs.ir.ops.index import gather
from gptrs.ir.ops.reduce import reduce_max, reduce_sum
from gptrs.ir.ops.shape import concat
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.row_rules import last_axis_mixed, pairs_mixed
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, normal_axis, shape_text, si64

__all__ = ["cross_entropy", "rms_norm", "rotary"]

Reduction = Literal["mean", "sum", "none"]
_REDUCTIONS = ("mean", "sum", "none")


@composite(kind=OpKind.NORM, rows=last_axis_mixed)
def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    """x / √(mean x² + eps) · weight over the last axis; x [..., D], weight [D].

    Source: Zhang and Sennrich, arXiv:1910.07467.
    """
    width = x.shape[normal_axis(-1, x.ndim)]
    if weight is not None and not same_shape(weight.shape, (width,)):
        raise ShapeError(
            f"weight has shape {shape_text(weight.shape)}, expected {shape_text((width,))}"
        )
    one_dtype(*tensors_in((x, weight)))
    wide = widen(x)
    y = wide * rsqrt(mean(wide * wide, axes=-1, keepdims=True) + eps)
    return narrow(y if weight is None else y * widen(weight), x)


@composite(rows=pairs_mixed)
def rotary(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool = False) -> Tensor:
    """Each pair (a, b) of elements of x [..., S, D] turned: (a·cos − b·sin, b·cos + a·sin).

    Element i < D/2 is paired with element i + D/2, as in GPT-NeoX and Llama; with ``interleaved``
    element 2i with 2i + 1, as in GPT-J. cos and sin broadcast to x, with D/2 entries in the last
    axis (one per pair) or D (one per element). Source: Su et al., arXiv:2104.09864.
    """
    depth = x.shape[normal_axis(-1, x.ndim)]
    if not same(depth % 2, 0):
        raise ShapeError(f"the last axis of x has extent {depth}, expected pairs of elements")
    one_dtype(x, cos, sin)
    wide = widen(x)
    if interleaved:
        pairs = wide.reshape(*x.shape[:-1], depth // 2, 2)
        turned = concat((-pairs[..., 1:], pairs[..., :1]), axis=-1).reshape(*x.shape)
    else:
        turned = concat((-wide[..., depth // 2 :], wide[..., : depth // 2]), axis=-1)
    cosines = _per_element("cos", cos, x, interleaved=interleaved)
    sines = _per_element("sin", sin, x, interleaved=interleaved)
    return narrow(wide * cosines + turned * sines, x)


def _per_element(name: str, table: Tensor, x: Tensor, *, interleaved: bool) -> Tensor:
    """A rotary table with one entry per pair or per element, expanded to one per element."""
    depth = x.shape[-1]
    extent = table.shape[normal_axis(-1, table.ndim)]
    if not same(extent, depth) and not same(extent * 2, depth):
        raise ShapeError(
            f"{name} has {extent} entries in its last axis, expected {depth // 2} (one per pair) or"
            f" {depth} (one per element)"
        )
    outer = (*x.shape[:-1], 1)
    if not same_shape(broadcast_shapes((*table.shape[:-1], 1), outer), outer):
        raise ShapeError(
            f"{name} of shape {shape_text(table.shape)} does not broadcast to x of shape"
            f" {shape_text(x.shape)}"
        )
    wide = widen(table)
    if same(extent, depth):
        return wide
    if not interleaved:
        return concat((wide, wide), axis=-1)
    pairs = wide.unsqueeze(-1)
    return concat((pairs, pairs), axis=-1).reshape(*table.shape[:-1], depth)


@composite(kind=OpKind.ROWWISE)
def cross_entropy(
    logits: Tensor,
    targets: Tensor,
    *,
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """log Σ exp(logits) − logits[target], the loss of each row, and their mean or sum.

    logits [..., C], targets [...] integers from 0 to C − 1 (another one is an `ElementError`). The
    loss of a row whose target is ``ignore_index`` is 0 and the mean leaves it out; the mean of no
    rows is NaN.
    """
    if reduction not in _REDUCTIONS:
        raise ArgumentError(f"reduction is {reduction!r}, expected {', '.join(_REDUCTIONS)}")
    require(logits, "float")
    require(targets, "int", "uint")
    normal_axis(-1, logits.ndim)
    if not same_shape(targets.shape, logits.shape[:-1]):
        raise ShapeError(
            f"targets have shape {shape_text(targets.shape)}, expected"
            f" {shape_text(logits.shape[:-1])}: one class for each row of logits",
            fix="classes are the last axis of logits",
        )
    wide = widen(logits)
    kept = None
    if ignore_index is not None:
        targets = cast(targets, dtype=si64)
        kept = not_equal(targets, ignore_index)
        targets = select(kept, targets, 0)
    centred = wide - reduce_max(wide, axes=-1, keepdims=True)
    target = gather(centred, targets.unsqueeze(-1), axis=-1).squeeze(-1)
    loss = log(reduce_sum(exp(centred), axes=-1)) - target
    if kept is not None:
        loss = select(kept, loss, 0.0)
    if reduction == "mean" and kept is not None:
        count = cast(reduce_sum(cast(kept, dtype=si64)), dtype=loss.dtype)
        return narrow(reduce_sum(loss) / count, logits)
    if reduction == "mean":
        return narrow(mean(loss), logits)
    return narrow(reduce_sum(loss) if reduction == "sum" else loss, logits)


rms_norm.promoting("x", "weight", kinds=FLOATING)
rotary.promoting("x", "cos", "sin", kinds=FLOATING)
cross_entropy.promoting("logits", kinds=FLOATING)

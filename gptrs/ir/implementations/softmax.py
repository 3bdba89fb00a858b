"""Softmax with fewer passes over its operand than the definition: two-pass and online softmax."""

from __future__ import annotations

from gptrs.ir.implementations.blocks import blocks, is_long
from gptrs.ir.implementations.registry import implementation
from gptrs.ir.ops.elementwise import exp, log, maximum
from gptrs.ir.ops.reduce import reduce_max, reduce_sum
from gptrs.ir.ops.shape import slice_
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type


@implementation("softmax", name="two_pass")
def two_pass(x: Tensor, *, axis: int) -> Tensor:
    """exp((x − max x) − log Σ exp(x − max x)): exponentials are taken twice and never kept.

    The relative error grows by up to |log Σ| roundings.
    """
    wide = widen(x)
    centred = wide - reduce_max(wide, axes=axis, keepdims=True)
    return narrow(exp(centred - log(reduce_sum(exp(centred), axes=axis, keepdims=True))), x)


def _is_long_axis(x: Type, axis: int) -> bool:
    return is_long(x.shape[axis])


@implementation("softmax", name="online", when=_is_long_axis)
def online(x: Tensor, *, axis: int) -> Tensor:
    """Maximum and sum in one pass over blocks, the sum rescaled as the maximum grows.

    Source: Milakov and Gimelshein, arXiv:1805.02867.
    """
    wide = widen(x)
    axis %= x.ndim
    top: Tensor | None = None
    total: Tensor | None = None
    for start, size in blocks(x.shape[axis]):
        starts = tuple(start if i == axis else 0 for i in range(x.ndim))
        sizes = tuple(size if i == axis else n for i, n in enumerate(x.shape))
        part = slice_(wide, starts=starts, sizes=sizes)
        highest = reduce_max(part, axes=axis, keepdims=True)
        new = highest if top is None else maximum(top, highest)
        added = reduce_sum(exp(part - new), axes=axis, keepdims=True)
        total = added if top is None or total is None else total * exp(top - new) + added
        top = new
    assert top is not None
    assert total is not None
    return narrow(exp(wide - top) / total, x)

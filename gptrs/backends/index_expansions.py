"""Expansion of reductions at indices whose sums are not of their own dtype, as ops with kernels.

    scatter_add(x) of narrow floats      x widened to f32, then the same; the result is rounded
    segment_reduce(x, add or mul)        likewise
    segment_reduce(x, mean)              sums of x, and of ones as integers: their quotient

The extremes of an empty segment are infinite: those of a dtype without infinities are found in f32
too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gptrs.backends.expansion import Expansion, Expansions
from gptrs.ir.ops.elementwise import cast, div
from gptrs.ir.ops.index import scatter_add, scatter_reduce
from gptrs.ir.ops.literal import full
from gptrs.ir.ops.segment import empty_segment, segment_reduce
from gptrs.ir.ops.shape import broadcast_to, reshape
from gptrs.ir.program import Instruction
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, si64


def is_wide(instruction: Instruction) -> bool:
    """Whether a reduction at indices computes in a wider dtype than its result's."""
    dtype = instruction.result.type.dtype
    if instruction.op is segment_reduce:
        reduce = instruction.attrs["reduce"]
        return reduce == "mean" or _is_narrow(dtype, reduce) or not _holds_empty(dtype, reduce)
    reduce = "add" if instruction.op is scatter_add else instruction.attrs["reduce"]
    return _is_narrow(dtype, reduce)


def _is_narrow(dtype: DType, reduce: str) -> bool:
    return dtype.is_float and dtype.compute is not dtype and reduce in ("add", "mul")


def _holds_empty(dtype: DType, reduce: str) -> bool:
    """Whether ``dtype`` has the number of a segment without rows."""
    empty = empty_segment(dtype, reduce)
    return bool(np.full((), empty, dtype.numpy) == empty)


def scattered(operands: Sequence[Tensor], instruction: Instruction) -> Tensor:
    """scatter_add or scatter_reduce in the dtype of its arithmetic."""
    x, index, source = operands
    wide = x.dtype.compute
    op = scatter_add if instruction.op is scatter_add else scatter_reduce
    result = op(_as(x, wide), index, _as(source, wide), **instruction.attrs)
    return _as(result, x.dtype)


def segments(operands: Sequence[Tensor], instruction: Instruction) -> Tensor:
    """segment_reduce in the dtype of its arithmetic; a mean as a quotient."""
    x, places = operands
    attrs, narrow = instruction.attrs, x.dtype
    x = _as(x, narrow.compute)
    if attrs["reduce"] != "mean":
        return _as(segment_reduce(x, places, **attrs), narrow)
    count = attrs["count"]
    ones = broadcast_to(full(shape=(), value=1, dtype=si64), shape=places.shape)
    sums = segment_reduce(x, places, count=count, reduce="add")
    sizes = _as(segment_reduce(ones, places, count=count, reduce="add"), x.dtype)
    sizes = reshape(sizes, shape=(count, *[1] * (x.ndim - 1)))
    return _as(div(sums, broadcast_to(sizes, shape=sums.shape)), narrow)


def _as(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype is dtype else cast(x, dtype=dtype)


NARROW_SUMS: Expansions = {
    scatter_add: Expansion(scattered, is_wide),
    scatter_reduce: Expansion(scattered, is_wide),
    segment_reduce: Expansion(segments, is_wide),
}
"""By op: its expansion where it computes in a wider dtype than its result's."""

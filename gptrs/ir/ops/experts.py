"""Grouped matrix products of mixtures of experts: grouped_linear."""

from __future__ import annotations

from gptrs.errors import ShapeError
from gptrs.ir.boxes import Box
from gptrs.ir.checks import one_dtype, require
from gptrs.ir.composites import composite
from gptrs.ir.dims import same, same_shape
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.elementwise import FLOATING
from gptrs.ir.ops.index import take
from gptrs.ir.program import Instruction, Value
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text

__all__ = ["grouped_linear"]


def _rows(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """Tokens are independent; those of a box need all experts."""
    x, ids, weight = instruction.values()
    shape, tokens = instruction.result.type.shape, len(ids.type.shape) - 1
    whole = all(box.is_whole(axis, shape) for axis in range(tokens, len(shape)))
    if not whole or len({x, ids, weight}) < 3:
        return None
    axes = {axis: axis for axis in range(tokens)}
    parts = {value: box.along(axes, value.type.shape) for value in (x, ids)}
    return {**parts, weight: None}


@composite(kind=OpKind.CONTRACTION, rows=_rows)
def grouped_linear(x: Tensor, ids: Tensor, weight: Tensor) -> Tensor:
    """x · weight[ids]ᵀ: each token times the matrices of its experts, [..., K, out].

    ids [..., K] are the numbers of the experts, weight [E, out, in] has their matrices, and x is
    [..., in], one row for all experts of a token, or [..., K, in], one for each. An id from outside
    of the experts is an `ElementError`. The definition takes a matrix for each id; a kernel groups
    tokens by expert and reads each chosen matrix once. Source: Shazeer et al., arXiv:1701.06538.
    """
    require(ids, "int", "uint")
    one_dtype(x, weight)
    if weight.ndim != 3 or ids.ndim < 1:
        raise ShapeError(
            f"weight has shape {shape_text(weight.shape)} and ids {shape_text(ids.shape)}, expected"
            " [experts, out, in] and [..., experts of a token]"
        )
    each = x.ndim > ids.ndim  # a row for each expert
    outer = ids.shape if each else ids.shape[:-1]
    if not same_shape(x.shape[:-1], outer) or not same(x.shape[-1], weight.shape[2]):
        depth = weight.shape[2]
        shared, rows = (shape_text((*some, depth)) for some in (ids.shape[:-1], ids.shape))
        raise ShapeError(
            f"x has shape {shape_text(x.shape)}, expected {shared}, one row for all experts of a"
            f" token, or {rows}, one for each"
        )
    batch = tuple(range(len(outer)))
    chosen = take(weight, ids)  # [..., K, out, in]
    return dot_general(
        chosen,
        x,
        batch_lhs=batch,
        batch_rhs=batch,
        contract_lhs=(ids.ndim + 1,),
        contract_rhs=(x.ndim - 1,),
    )


grouped_linear.promoting("x", "weight", kinds=FLOATING)

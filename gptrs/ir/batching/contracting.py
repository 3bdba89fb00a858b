"""Batching rule of dot_general: two mapped operands share a batch axis, one has it as rows."""

from __future__ import annotations

from typing import Any

from gptrs.ir.batching.axes import move_axis
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.contract import Axes, dot_general
from gptrs.ir.tensor import Tensor


@dot_general.batching
def _(
    _: DimLike,
    mapped: tuple[bool, bool],
    lhs: Tensor,
    rhs: Tensor,
    *,
    batch_lhs: Axes,
    batch_rhs: Axes,
    contract_lhs: Axes,
    contract_rhs: Axes,
    **dtypes: Any,
) -> Tensor:
    left, right = mapped
    if left:
        batch_lhs, contract_lhs = _further(batch_lhs), _further(contract_lhs)
    if right:
        batch_rhs, contract_rhs = _further(batch_rhs), _further(contract_rhs)
    if left and right:
        batch_lhs, batch_rhs = (0, *batch_lhs), (0, *batch_rhs)
    one = {"batch_lhs": batch_lhs, "contract_lhs": contract_lhs}
    other = {"batch_rhs": batch_rhs, "contract_rhs": contract_rhs}
    shared, contracted = len(batch_lhs), len(contract_lhs)
    if right and not left and rhs.ndim == 1 + shared + contracted:  # Wx for each x: rows of xᵀWᵀ
        swapped = {"batch_lhs": batch_rhs, "contract_lhs": contract_rhs}
        swapped |= {"batch_rhs": batch_lhs, "contract_rhs": contract_lhs}
        return move_axis(dot_general(rhs, lhs, **swapped, **dtypes), shared, 0)
    result = dot_general(lhs, rhs, **one, **other, **dtypes)
    if left and right:
        return result
    return move_axis(result, shared if left else lhs.ndim - contracted, 0)


def _further(axes: Axes) -> Axes:
    """Axes of an example as axes of the batch."""
    return tuple([axis + 1 for axis in axes])

"""Operands and reductions of losses."""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.nn.operands import as_float


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction, also by torch's earlier arguments."""
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in ("mean", "sum", "none", "batchmean"):
        raise ArgumentError(f"reduction is {reduction!r}, expected 'mean', 'sum' or 'none'")
    return reduction


def reduced(loss: Tensor, x: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return narrow(OPS["mean"](loss), x)
    if reduction == "batchmean":
        return narrow(OPS["reduce_sum"](loss) / x.shape[0], x)
    return narrow(OPS["reduce_sum"](loss) if reduction == "sum" else loss, x)


def float_pair(input: Any, target: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The operand that has the dtype of the result, and both in the dtype of the arithmetic."""
    x, y = as_float(input), as_float(target)
    wider = (x + y) if x.dtype is not y.dtype else x
    return wider, widen(x), widen(y)


def weighted(loss: Tensor, x: Tensor, weight: Any, reduction: str) -> Tensor:
    """The loss with a weight per element, by whose sum the mean divides."""
    if weight is None:
        return reduced(loss, x, reduction)
    parts = widen(as_float(weight))
    loss = loss * parts
    if reduction != "mean":
        return reduced(loss, x, reduction)
    whole = OPS["reduce_sum"](OPS["broadcast_to"](parts, shape=loss.shape))
    return narrow(OPS["reduce_sum"](loss) / whole, x)

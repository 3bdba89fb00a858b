"""Vectors as operands along an axis."""

from __future__ import annotations

from gptrs.ir.tensor import Tensor
from gptrs.onnx.table import ptir


def along(values: Tensor, rank: int, axis: int) -> Tensor:
    """A vector as an operand that lies along ``axis``; others as they are."""
    if values.ndim != 1 or values.shape[0] == 1:
        return ptir.reshape(values, ()) if values.ndim == 1 else values
    return ptir.reshape(values, [-1 if i == axis % rank else 1 for i in range(rank)])

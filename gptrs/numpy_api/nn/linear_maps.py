"""Maps of the last axis: linear, bilinear."""

from __future__ import annotations

from typing import Any

from gptrs.errors import ShapeError
from gptrs.ir.dims import same_shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.operands import as_float, maybe_float, nn_function

__all__ = ["bilinear", "linear"]


@nn_function
def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """x [..., in] · weightᵀ + bias [out], with weight [out, in]; weight [in] gives [...]."""
    x, w = as_tensor(input), as_tensor(weight)
    b = None if bias is None else as_tensor(bias)
    if w.ndim == 1:
        y: Tensor = OPS["matmul"](x, w)
        return y if b is None else y + b
    return OPS["linear"](x, w, b)


@nn_function
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """Σ x[..., i] · weight[o, i, j] · y[..., j] + bias[o]: [..., out] of x [..., I], y [..., J]."""
    x, y, w, b = promote((as_float(input1), as_float(input2), as_float(weight), maybe_float(bias)))
    if w.ndim != 3 or not same_shape((x.shape[-1], y.shape[-1]), w.shape[1:]):
        raise ShapeError(
            f"weight has shape {shape_text(w.shape)}, expected [out, {x.shape[-1]}, {y.shape[-1]}]"
        )
    if not same_shape(x.shape[:-1], y.shape[:-1]):
        raise ShapeError(
            f"input1 has shape {shape_text(x.shape)} and input2 {shape_text(y.shape)}, expected the"
            " same axes before the last"
        )
    rows: Tensor = OPS["dot_general"](
        widen(x), widen(w), contract_lhs=(-1,), contract_rhs=(1,)
    )  # [..., out, J]
    total = OPS["reduce_sum"](rows * widen(y).unsqueeze(-2), axes=-1)
    return narrow(total if b is None else total + widen(b), x)

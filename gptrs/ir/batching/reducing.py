"""Batching rules of reductions, cumulative ops, sorting and Fourier transforms: their axes are one
further back."""

from __future__ import annotations

from typing import Any

from gptrs.ir.batching.axes import along_axis
from gptrs.ir.batching.matrices import leading
from gptrs.ir.dims import DimLike
from gptrs.ir.op import Op
from gptrs.ir.ops.composite import log_softmax, mean, softmax, var
from gptrs.ir.ops.fft import fft_c2c, fft_c2r, fft_r2c
from gptrs.ir.ops.reduce import (
    Axes,
    argmax,
    argmin,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from gptrs.ir.ops.sort import searchsorted, sort, top_k
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axes

along_axis(argmax, argmin, cumsum, cumprod, cummax, cummin, sort, top_k, softmax, log_softmax)
along_axis(fft_c2c, fft_c2r, fft_r2c)
leading(searchsorted)


def over_axes(*ops: Op[..., Any]) -> None:
    """Give ``ops`` the rule of reductions of one operand over the attribute ``axes``."""
    for op in ops:

        def rule(
            _: DimLike, __: Any, x: Tensor, *, axes: Axes, _op: Op[..., Any] = op, **attrs: Any
        ) -> Any:
            inner = normal_axes(axes, x.ndim - 1)
            return _op(x, axes=tuple([axis + 1 for axis in inner]), **attrs)

        op.batching(rule)


over_axes(reduce_sum, reduce_prod, reduce_max, reduce_min, reduce_any, reduce_all, mean, var)

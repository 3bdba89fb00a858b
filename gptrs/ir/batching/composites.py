"""Composites that stay whole in a batch, so that their kernels run; else their definitions do."""

from __future__ import annotations

from typing import Any

from gptrs.ir.batching.axes import first_operand_leads, fold, spread, unfold
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.composite import attention, embedding, layer_norm, linear, matmul
from gptrs.ir.ops.experts import grouped_linear
from gptrs.ir.ops.language import rms_norm, rotary
from gptrs.ir.ops.vision import batch_norm
from gptrs.ir.tensor import Tensor

first_operand_leads(layer_norm, rms_norm, batch_norm, rotary, linear)


@matmul.batching
def _(_: DimLike, mapped: tuple[bool, bool], x: Tensor, y: Tensor) -> Any:
    both = all(mapped) and x.ndim == y.ndim > 2
    return matmul(x, y) if both or (not mapped[1] and y.ndim <= 2) else NotImplemented


@embedding.batching
def _(_: DimLike, mapped: tuple[bool, bool], weight: Tensor, ids: Tensor) -> Any:
    return NotImplemented if mapped[0] else embedding(weight, ids)


@grouped_linear.batching
def _(size: DimLike, mapped: Any, x: Tensor, ids: Tensor, weight: Tensor) -> Any:
    rows, places = spread((x, ids), size, mapped[:2])
    return NotImplemented if mapped[2] else grouped_linear(rows, places, weight)


@attention.batching
def _(size: DimLike, mapped: Any, *operands: Tensor | None, **attrs: Any) -> Tensor:
    rows: list[Any] = [x if x is None else fold(x) for x in spread(operands, size, mapped)]
    return unfold(attention(*rows, **attrs), size)

"""Batching rule of linear algebra: the batch is one more leading axis of the matrices."""

from __future__ import annotations

from typing import Any

from gptrs.ir.batching.axes import spread
from gptrs.ir.dims import DimLike
from gptrs.ir.op import Op
from gptrs.ir.ops import linalg


def leading(*ops: Op[..., Any]) -> None:
    """Give ``ops`` the rule of what works on the last two axes, with equal axes before them."""
    for op in ops:

        def rule(
            size: DimLike,
            mapped: tuple[Any, ...],
            *operands: Any,
            _op: Op[..., Any] = op,
            **attrs: Any,
        ) -> Any:
            return _op(*spread(operands, size, mapped), **attrs)

        op.batching(rule)


leading(*(getattr(linalg, name) for name in linalg.__all__))

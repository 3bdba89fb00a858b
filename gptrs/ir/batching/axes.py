"""The batch axis, which batching rules keep in front: spread, moved, folded into another axis."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import DimLike
from gptrs.ir.op import Op
from gptrs.ir.ops.shape import broadcast_to, reshape, transpose
from gptrs.ir.tensor import Tensor


def spread(x: Any, size: DimLike, mapped: Any = False) -> Any:
    """``x`` with a batch axis: itself if it is ``mapped``, else once for each example. Numbers stay
    as they are; of a tuple each part."""
    if isinstance(x, tuple):
        parts: list[Any] = []
        for part, own in zip(x, mapped or (False,) * len(x), strict=True):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            parts.append(spread(part, size, own))
        return tuple(parts)
    if mapped or not isinstance(x, Tensor):
        return x
    return broadcast_to(x, shape=(size, *x.shape))


def move_axis(x: Tensor, source: int, target: int) -> Tensor:
    """``x`` with axis ``source`` at ``target``, both counted from the front; the others keep their
    order."""
    if source == target:
        return x
    perm = [axis for axis in range(x.ndim) if axis != source]
    perm.insert(target, source)
    return transpose(x, perm=tuple(perm))


def shifted(axis: int) -> int:
    """An axis of an example as an axis of the batch: from the end it has the same number."""
    return axis + 1 if axis >= 0 else axis


def fold(x: Tensor) -> Tensor:
    """[B, N, ...] as [B·N, ...]."""
    return reshape(x, shape=(x.shape[0] * x.shape[1], *x.shape[2:]))


def unfold(x: Tensor, size: DimLike) -> Tensor:
    """[B·N, ...] as [B, N, ...]."""
    return reshape(x, shape=(size, x.shape[0] // size, *x.shape[1:]))


def along_axis(*ops: Op[..., Any]) -> None:
    """Give ``ops`` the rule of what works along the attribute ``axis`` of operands of one rank."""
    for op in ops:

        def rule(
            size: DimLike,
            mapped: tuple[Any, ...],
            *operands: Any,
            axis: int,
            _op: Op[..., Any] = op,
            **attrs: Any,
        ) -> Any:
            return _op(*spread(operands, size, mapped), axis=shifted(axis), **attrs)

        op.batching(rule)


def first_operand_leads(*ops: Op[..., Any]) -> None:
    """Give ``ops`` the rule of what takes leading axes as they are: it stays as it is where the
    first operand alone is mapped."""
    for op in ops:

        def rule(
            size: DimLike,
            mapped: tuple[Any, ...],
            *operands: Any,
            _op: Op[..., Any] = op,
            **attrs: Any,
        ) -> Any:
            return NotImplemented if any(mapped[1:]) else _op(*operands, **attrs)

        op.batching(rule)


def folded(*ops: Op[..., Any]) -> None:
    """Give ``ops`` the rule of what treats the rows of its first operand [N, ...] alike: the
    batch is folded into N where that operand alone is mapped."""
    for op in ops:

        def rule(
            size: DimLike,
            mapped: tuple[Any, ...],
            x: Tensor,
            *operands: Any,
            _op: Op[..., Any] = op,
            **attrs: Any,
        ) -> Any:
            if any(mapped[1:]):
                return NotImplemented
            return unfold(_op(fold(x), *operands, **attrs), size)

        op.batching(rule)

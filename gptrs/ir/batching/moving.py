"""Batching rules of ops that move elements: an entry for the batch axis in front of each list."""

from __future__ import annotations

from typing import Any

from gptrs.ir.batching.axes import along_axis
from gptrs.ir.dims import DimLike, Shape
from gptrs.ir.ops.shape import broadcast_to, concat, pad, reshape, slice_, tile, transpose
from gptrs.ir.tensor import Tensor

along_axis(concat)


@reshape.batching
def _(size: DimLike, _: Any, x: Tensor, *, shape: Shape) -> Tensor:
    return reshape(x, shape=(size, *shape))


@transpose.batching
def _(_: DimLike, __: Any, x: Tensor, *, perm: tuple[int, ...]) -> Tensor:
    return transpose(x, perm=(0, *[axis + 1 for axis in perm]))


@broadcast_to.batching
def _(size: DimLike, _: Any, x: Tensor, *, shape: Shape) -> Tensor:
    new = len(shape) + 1 - x.ndim
    if new:
        x = reshape(x, shape=(size, *[1] * new, *x.shape[1:]))
    return broadcast_to(x, shape=(size, *shape))


@slice_.batching
def _(
    size: DimLike, _: Any, x: Tensor, *, starts: Shape, sizes: Shape, strides: tuple[int, ...]
) -> Tensor:
    return slice_(x, starts=(0, *starts), sizes=(size, *sizes), strides=(1, *strides))


@pad.batching
def _(
    _: DimLike,
    __: Any,
    x: Tensor,
    *,
    low: tuple[int, ...],
    high: tuple[int, ...],
    interior: tuple[int, ...],
    value: float,
) -> Tensor:
    return pad(x, low=(0, *low), high=(0, *high), interior=(0, *interior), value=value)


@tile.batching
def _(_: DimLike, __: Any, x: Tensor, *, reps: tuple[int, ...]) -> Tensor:
    return tile(x, reps=(1, *reps))

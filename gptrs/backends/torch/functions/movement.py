"""Data movement: slices backwards, padding, tiles, boxes with a start that is on the device."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

Counts: TypeAlias = tuple[int, ...]
Start: TypeAlias = tuple[Tensor | int, ...]


def slice_(x: Tensor, starts: Counts, sizes: Counts, strides: Counts) -> Tensor:
    """A box of ``sizes`` elements from ``starts`` in steps of ``strides``, backwards too."""
    backward = [axis for axis, stride in enumerate(strides) if stride < 0]
    for axis, (start, size, stride) in enumerate(zip(starts, sizes, strides, strict=True)):
        if stride < 0 and size:
            start, stride = start + (size - 1) * stride, -stride
        x = x.narrow(axis, start, (size - 1) * stride + 1 if size else 0)
        if stride > 1:
            x = x[(slice(None),) * axis + (slice(None, None, stride),)]
    return x.flip(backward) if backward else x


def pad(x: Tensor, low: Counts, high: Counts, interior: Counts, value: float) -> Tensor:
    """``value`` before, after and between the elements."""
    spans = list(zip(x.shape, low, high, interior, strict=True))
    shape = [lo + n + max(n - 1, 0) * between + hi for n, lo, hi, between in spans]
    result = x.new_full(shape, value)
    inside = tuple(
        slice(lo, lo + max((n - 1) * (between + 1) + 1, 0), between + 1)
        for n, lo, _, between in spans
    )
    result[inside] = x
    return result


def tile(x: Tensor, reps: Counts) -> Tensor:
    """``x`` repeated along each axis."""
    return x.repeat(reps) if reps else x.clone()


def iota(shape: Counts, axis: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The position along an axis."""
    along = [1] * len(shape)
    along[axis] = shape[axis]
    return torch.arange(shape[axis], device=device).to(dtype).reshape(along).expand(shape)


def dynamic_slice(x: Tensor, start: Start, sizes: Counts) -> Tensor:
    """A box of ``sizes`` elements from ``start``, moved so that it lies in ``x``."""
    for axis, (first, size) in enumerate(zip(start, sizes, strict=True)):
        most = x.shape[axis] - size
        at = _known(first, most)
        if at is None:
            x = x.index_select(axis, _places(first, size, most))
        elif size < x.shape[axis]:
            x = x.narrow(axis, at, size)
    return x


def dynamic_update_slice(x: Tensor, update: Tensor, start: Start) -> Tensor:
    """``x`` with ``update`` in place from ``start``, which is moved so that it lies in ``x``."""
    return dynamic_update_slice_(x.clone(memory_format=torch.contiguous_format), update, start)


def dynamic_update_slice_(x: Tensor, update: Tensor, start: Start) -> Tensor:
    """The same in the memory of ``x``."""
    part, moving = x, [*range(0)]
    places: list[Tensor] = []
    for axis, (first, size) in enumerate(zip(start, update.shape, strict=True)):
        most = x.shape[axis] - size
        at = _known(first, most)
        if at is None:
            moving.append(axis)
            places.append(_places(first, size, most))
        else:
            part = part.narrow(axis, at, size)
    if not moving:
        part.copy_(update)
    elif len(moving) == 1:
        part.index_copy_(moving[0], places[0], update)
    else:
        part.index_put_(_indices(part, moving, places), update)
    return x


def _known(first: Tensor | int, most: int) -> int | None:
    """The start of an axis, where it is known without waiting for a device."""
    if most == 0:
        return 0
    if isinstance(first, Tensor):
        if first.device.type != "cpu":
            return None
        first = int(first)
    return min(max(first, 0), most)


def _places(first: Tensor | int, size: int, most: int) -> Tensor:
    """The positions of a box along an axis, on the device."""
    assert isinstance(first, Tensor)
    return first.long().clamp(0, most) + torch.arange(size, device=first.device)


def _indices(x: Tensor, axes: Sequence[int], places: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Index tensors of all axes that broadcast to a box."""
    known = dict(zip(axes, places, strict=True))
    made: list[Tensor] = []
    for axis, extent in enumerate(x.shape):
        along = known.get(axis)
        along = torch.arange(extent, device=x.device) if along is None else along
        made.append(along.reshape([-1 if i == axis else 1 for i in range(x.ndim)]))
    return tuple(made)

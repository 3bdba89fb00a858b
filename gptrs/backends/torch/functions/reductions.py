"""Reductions and cumulative ops over any axes, also over none and of no elements."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from gptrs.backends.torch.run import Run

Axes = tuple[int, ...]


def reduce_sum(x: Tensor, axes: Axes, keepdims: bool, dtype: torch.dtype) -> Tensor:
    """Σx in ``dtype``; 0 over nothing."""
    return x.sum(axes, keepdim=keepdims, dtype=dtype) if axes else x.to(dtype, copy=True)


def reduce_prod(x: Tensor, axes: Axes, keepdims: bool, dtype: torch.dtype) -> Tensor:
    """Πx in ``dtype``; 1 over nothing."""
    found = x.to(dtype, copy=not axes)
    for axis in sorted(axes, reverse=True):
        found = found.prod(axis, keepdim=keepdims, dtype=dtype)
    return found


def reduce_max(run: Run, x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """The greatest element; NaN wins, and −∞ over nothing."""
    return _extreme(run, x, axes, keepdims, greatest=True)


def reduce_min(run: Run, x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """The least element; NaN wins, and +∞ over nothing."""
    return _extreme(run, x, axes, keepdims, greatest=False)


def _extreme(run: Run, x: Tensor, axes: Axes, keepdims: bool, *, greatest: bool) -> Tensor:
    if not axes:
        return x.clone()
    if not prod(x.shape[axis] for axis in axes):
        if not x.is_floating_point():
            run.fail()
        shape = reduced(x.shape, axes, keepdims)
        return x.new_full(shape, float("-inf" if greatest else "inf"))
    return (torch.amax if greatest else torch.amin)(x, axes, keepdim=keepdims)


def reduced(shape: torch.Size, axes: Axes, keepdims: bool) -> list[int]:
    """The shape without ``axes``, or with 1 in their place."""
    if keepdims:
        return [1 if i in axes else n for i, n in enumerate(shape)]
    return [n for i, n in enumerate(shape) if i not in axes]


def reduce_any(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Whether any element holds."""
    return torch.any(x, axes, keepdim=keepdims) if axes else x.clone()


def reduce_all(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Whether all elements hold."""
    return torch.all(x, axes, keepdim=keepdims) if axes else x.clone()


def mean(x: Tensor, axes: Axes | int | None, keepdims: bool) -> Tensor:
    """Σx / n; NaN over nothing."""
    axes = tuple(range(x.ndim)) if axes is None else axes
    return x.clone() if axes == () else x.mean(axes, keepdim=keepdims)


def argmax(run: Run, x: Tensor, axis: int, keepdims: bool) -> Tensor:
    """The position of the greatest element along an axis, the first of equals; NaN wins."""
    return torch.argmax(x, axis, keepdim=keepdims) if x.shape[axis] else run.fail()


def argmin(run: Run, x: Tensor, axis: int, keepdims: bool) -> Tensor:
    """The position of the least element along an axis, the first of equals; NaN wins."""
    return torch.argmin(x, axis, keepdim=keepdims) if x.shape[axis] else run.fail()


def cumulative(name: str, x: Tensor, axis: int) -> Tensor:
    """``cumsum``, ``cumprod``, ``cummax`` or ``cummin`` along an axis, in the dtype of ``x``."""
    if name in ("cumsum", "cumprod"):
        return getattr(torch, name)(x, axis, dtype=x.dtype)
    return getattr(torch, name)(x, axis).values

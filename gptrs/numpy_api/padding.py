"""Padding with constants, edges, reflections or the other side (`pad`)."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Literal

import numpy as np

from gptrs.errors import ArgumentError
from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.manipulation import positions, rows_at

__all__ = ["pad"]


PadMode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]


def _pad_widths(width: Any, rank: int) -> list[tuple[int, int]]:
    try:
        pairs = np.broadcast_to(np.asarray(width), (rank, 2))
    except ValueError:
        raise ArgumentError(
            f"pad: pad_width is {width!r}, expected a number, a pair or {rank} pairs"
        ) from None
    return [(int(a), int(b)) for a, b in pairs.tolist()]


@public
def pad(
    x: Any,
    pad_width: Any = None,
    mode: PadMode = "constant",
    constant_values: Any = 0,
    **schema: Any,
) -> Tensor:
    """``x`` with ``pad_width`` (before, after) elements more at the ends of each axis, as in NumPy:
    a constant, or the elements inside by ``mode``. With ``low=`` and ``high=`` the op itself."""
    x = as_tensor(x)
    if pad_width is None:
        return OPS["pad"](x, **schema)
    if schema:
        raise ArgumentError(f"pad: found pad_width and {', '.join(schema)}")
    widths = _pad_widths(pad_width, x.ndim)
    if mode == "constant":
        low, high = tuple(a for a, _ in widths), tuple(b for _, b in widths)
        value = constant_values.item() if hasattr(constant_values, "item") else constant_values
        return OPS["pad"](x, low=low, high=high, value=value)
    if mode not in _PLACES_OUTSIDE:
        raise ArgumentError(
            f"pad: mode is {mode!r}, expected one of constant, {', '.join(_PLACES_OUTSIDE)}"
        )
    for axis, (before, after) in enumerate(widths):
        extent = x.shape[axis]
        if not before and not after:
            continue
        fits = isinstance(extent, int) and extent and min(before, after) >= 0
        if fits and max(before, after) <= most_outside(extent, mode):
            low, high = outside(x, axis, before, after, mode)
            x = OPS["concat"]((*low, x, *high), axis=axis)
        else:
            place = positions(extent + before + after) - before
            x = rows_at(x, _PLACES_OUTSIDE[mode](place, extent), axis)
    return x


def most_outside(extent: int, mode: PadMode) -> float:
    """The most elements at an end of an axis that one part of it, in either order, gives."""
    if mode == "edge":
        return inf
    return extent - 1 if mode == "reflect" else extent


def outside(
    x: Tensor, axis: int, before: int, after: int, mode: PadMode
) -> tuple[list[Tensor], list[Tensor]]:
    """What ``mode`` puts before and after an axis, at most `most_outside`; parts without elements
    are left out."""
    extent: Any = x.shape[axis]

    def part(start: int, count: int, step: int) -> list[Tensor]:
        keys = (slice(None),) * axis
        end = start + count * step
        return [x[(*keys, slice(start, end if end >= 0 else None, step))]] if count else []

    def repeated(start: int, count: int) -> list[Tensor]:
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        return [OPS["broadcast_to"](end, shape=shape) for end in part(start, min(count, 1), 1)]

    if mode == "edge":
        return repeated(0, before), repeated(extent - 1, after)
    if mode == "wrap":
        return part(extent - before, before, 1), part(0, after, 1)
    first, last = (before, extent - 2) if mode == "reflect" else (before - 1, extent - 1)
    return part(first, before, -1), part(last, after, -1)


def _mirrored(place: Tensor, extent: DimLike) -> Tensor:
    """Positions reflected at the first and last element."""
    period = OPS["maximum"](tensor_of(2 * (extent - 1), "si64"), 1)
    place = OPS["remainder"](place, period)
    return OPS["minimum"](place, 2 * (extent - 1) - place)


def _mirrored_with_ends(place: Tensor, extent: DimLike) -> Tensor:
    """Positions reflected beyond the first and last element."""
    place = OPS["remainder"](place, 2 * extent)
    return OPS["minimum"](place, (2 * extent - 1) - place)


def _nearest(place: Tensor, extent: DimLike) -> Tensor:
    """The first and last position again and again."""
    return OPS["clamp"](place, 0, extent - 1)


def _around(place: Tensor, extent: DimLike) -> Tensor:
    """Positions from the other end on."""
    return OPS["remainder"](place, extent)


_PLACES_OUTSIDE: dict[str, Callable[[Tensor, DimLike], Tensor]] = {
    "edge": _nearest,
    "reflect": _mirrored,
    "symmetric": _mirrored_with_ends,
    "wrap": _around,
}

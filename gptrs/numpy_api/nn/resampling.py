"""Positions and weights of resampling along an axis, and the elements at positions.

Element i of the result stands at (i + ½)·scale − ½ of the input, or with aligned corners at
i·scale. Positions are computed in the dtype of the arithmetic, as torch does: rounding decides
between neighbours.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from gptrs.numpy_api.manipulation import rows_at

Taps = list[tuple[Array, Array]]
"""For each tap, the position and the weight at each element of the result."""

CUBIC = -0.75
_SMOOTH_CUBIC = -0.5


class Axis(NamedTuple):
    """An axis of ``extent`` elements that becomes one of ``size``."""

    extent: int
    size: int
    factor: float | None
    align_corners: bool
    number: Any
    """The NumPy type of positions."""

    @property
    def scale(self) -> Any:
        """The distance of neighbours of the result, in elements of the input."""
        if self.align_corners:
            most = self.size - 1
            return self.number(self.extent - 1) / self.number(most) if most else self.number(0)
        if self.factor:
            return self.number(1.0 / self.factor)
        return self.number(self.extent) / self.number(self.size)

    def positions(self) -> Array:
        """Where elements of the result stand, also beyond the ends."""
        i = np.arange(self.size).astype(self.number)
        if self.align_corners:
            return i * self.scale
        half = self.number(0.5)
        return (i + half) * self.scale - half


def at_positions(x: Tensor, positions: Array, axis: int) -> Tensor:
    """The elements at known positions along an axis."""
    return rows_at(x, Tensor(positions.astype(np.int64)), axis)


def nearest(axis: Axis, *, exact: bool) -> Array:
    """⌊i · scale⌋, or with ``exact`` ⌊(i + ½) · scale⌋."""
    i = np.arange(axis.size).astype(axis.number) + axis.number(0.5 if exact else 0)
    return np.minimum(np.floor(i * axis.scale).astype(np.int64), axis.extent - 1)


def linear(axis: Axis) -> Taps:
    """The neighbours on both sides."""
    place = np.maximum(axis.positions(), 0)
    first = np.minimum(place.astype(np.int64), axis.extent - 1)
    share = np.clip(place - first.astype(axis.number), 0, 1)
    return [(first, 1 - share), (np.minimum(first + 1, axis.extent - 1), share)]


def cubic(axis: Axis) -> Taps:
    """Four neighbours; the ends go on beyond the axis."""
    place = axis.positions()
    first = np.floor(place)
    share = place - first
    return [
        (np.clip(first.astype(np.int64) + k, 0, axis.extent - 1), keys_cubic(share - k, CUBIC))
        for k in (-1, 0, 1, 2)
    ]


def keys_cubic(distance: Array, a: float) -> Array:
    """The cubic convolution kernel of Keys (1981)."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0)).astype(distance.dtype)


def smoothed(axis: Axis, *, is_cubic: bool) -> Taps:
    """The elements within the reach of a filter that is as wide as elements of the result are
    apart, with weights of sum 1."""
    number, scale = axis.number, axis.scale
    half = number(2 if is_cubic else 1)
    reach, narrowing = (half * scale, number(1) / scale) if scale >= 1 else (half, number(1))
    centre = scale * (np.arange(axis.size).astype(number) + number(0.5))
    first = np.maximum((centre - reach + number(0.5)).astype(np.int64), 0)
    end = np.minimum((centre + reach + number(0.5)).astype(np.int64), axis.extent)
    taps: Taps = []
    for k in range(math.ceil(float(reach)) * 2 + 1):
        place = first + k
        distance = (place.astype(number) - centre + number(0.5)) * narrowing
        weight = keys_cubic(distance, _SMOOTH_CUBIC) if is_cubic else 1 - np.abs(distance)
        inside = (place < end) & (np.abs(distance) < half)
        taps.append((np.minimum(place, axis.extent - 1), np.where(inside, weight, 0)))
    total = np.sum([weight for _, weight in taps], axis=0)
    return [(place, weight / total) for place, weight in taps if weight.any()]

"""Ball arithmetic: how far the results of a program may lie from the reference's, by element.

The reference computes in one order and rounds after every op. A backend may do otherwise, within
what the language allows: sum in another order, round a product and a sum once, keep a narrow float
wide inside a fused loop, and use other kernels for exp, sin and the like, a few units in the last
place from NumPy's. A fixed tolerance for whole programs would either be wrong where a sum cancels
or ``floor`` makes a jump of the last bit, or hide what is broken elsewhere. So each value is
followed together with a radius: 0 where every backend must have the same bits, infinite where
nothing is known any more (a comparison of two numbers that rounding may swap), and in between an
error bound, from the worst case of each op (Higham, "Accuracy and Stability of Numerical
Algorithms", §§2-4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np

from gptrs.ir.types import Array, DType, as_dtype
from gptrs.lazy_dataclass import dataclass

MARGIN = 2.0
"""Radii may be exceeded so many times: they leave products of roundings out, which are small."""
LOOSE_MARGIN = 8.0
"""The same where rules that round are applied: they state how much, up to a few units in the last
place."""

Radius: TypeAlias = Array | None
"""f64 of the value's shape, or None: 0 everywhere."""
Found: TypeAlias = tuple[Radius, Radius]
"""Radius and slack of a result."""


@dataclass(frozen=True)
class Ball:
    """A value of the reference with a radius.

    ``slack`` is what a reader may see besides: the rounding that is left out where an op goes on
    with what is not stored. For f32 and f64 that is a product that becomes part of a sum, for
    narrow floats the result of any op.
    """

    value: Array
    radius: Radius = None
    slack: Radius = None

    @property
    def dtype(self) -> DType:
        return as_dtype(self.value.dtype)

    def seen(self, *, by_sum: bool = False) -> Radius:
        """The radius for an op that reads the value; ``by_sum`` if it adds."""
        narrow = self.dtype.compute is not self.dtype
        return joined(self.radius, self.slack) if by_sum or narrow else self.radius


def joined(*radii: Radius) -> Radius:
    """The sum of radii."""
    present = [radius for radius in radii if radius is not None]
    total = sum(present[1:], present[0]) if present else None
    return None if total is None or not total.any() else np.asarray(total)


def unknown(value: Array) -> Array:
    """The radius of a value of which nothing is known."""
    return np.full(value.shape, np.inf)


def wide(array: Any) -> Any:
    """A float array in f64; anything else as it is."""
    if not isinstance(array, np.ndarray):
        return array
    known = cast("Array", array)
    return known.astype(np.float64) if as_dtype(known.dtype).is_float else known


def finfo(dtype: DType) -> Any:
    return cast("Any", ml_dtypes.finfo(dtype.numpy))


def rounding(dtype: DType, magnitude: Array) -> Array:
    """The most that rounding to ``dtype`` changes a number of this magnitude."""
    info = finfo(dtype)
    least = float(info.smallest_subnormal)
    return float(info.eps) * magnitude / 2 + (least / 2 or least)  # half of f64's least is none


def settled(value: Array, radius: Array, certain: Array | None = None) -> Radius:
    """The radius of a result ``value`` that is off by ``radius`` before it is rounded.

    Of integers and truth values it is known which they are, or nothing. What is not finite is that
    only where ``certain``, and what may be too large to be finite is unknown.
    """
    dtype = as_dtype(value.dtype)
    radius = np.where(np.isnan(radius), np.inf, radius)
    if not dtype.is_float:
        radius = np.where(radius > 0, np.inf, 0.0)
        return radius if radius.any() else None
    plain = np.abs(value.astype(np.float64))
    with np.errstate(all="ignore"):
        off = radius + 2 * rounding(dtype.compute, plain + radius)
        if dtype.compute is not dtype:
            off += 2 * rounding(dtype, plain + off)
        off = np.where(plain + off > float(finfo(dtype).max), np.inf, off)
    off = np.where(radius > 0, off, 0.0)
    finite = np.isfinite(plain)
    if not finite.all():
        known = np.zeros(value.shape, bool) if certain is None else certain
        off = np.where(finite, off, np.where(known | (radius == 0), 0.0, np.inf))
    return off if off.any() else None


def corners(
    function: Callable[..., Any], operands: Sequence[Any], radii: Sequence[Radius], *, one_way: bool
) -> Array:
    """How far ``function`` moves when its operands move by their radii.

    That is found at the corners of the box: the function is monotone in each operand; ``one_way``
    says that it grows with all of them, so that two corners are enough.
    """
    center = wide(np.asarray(function(*map(wide, operands))))
    moving = [n for n, radius in enumerate(radii) if radius is not None]
    most: Array = np.zeros(center.shape)
    choices = [0, 2 ** len(moving) - 1] if one_way else range(2 ** len(moving))
    for choice in choices:
        moved = [wide(operand) for operand in operands]
        for bit, n in enumerate(moving):
            offset = radii[n] if choice >> bit & 1 else -np.asarray(radii[n])
            moved[n] = np.asarray(moved[n] + offset)  # not a NumPy scalar
        found = wide(np.asarray(function(*moved)))
        same = (found == center) | ((found != found) & (center != center))
        if center.dtype == np.float64:
            away = np.abs(found - center)
            away = np.where(np.isfinite(away), away, np.inf)
        else:
            away = np.full(center.shape, np.inf)
        most = np.maximum(most, np.where(same, 0.0, away))
    return most

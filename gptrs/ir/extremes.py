"""Maximum and minimum of IEEE 754-2019 in NumPy: NaN propagates, and −0 is less than +0.

Used by the NumPy meanings of maximum, minimum, clamp, reductions, windows, scatter and segments.
NumPy's own functions return either of two zeros, depending on the dtype, the CPU, the length and
the position. Where zeros of both signs may meet, the bits of the floats are compared instead, as
integers in the order of the numbers, with NaN at the winning end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Extreme:
    """Maximum or minimum, with the calls of the NumPy function."""

    ufunc: np.ufunc

    def __call__(self, x: Any, y: Any) -> Any:
        """Element by element; one of ``x`` and ``y`` may be a number."""
        if not _may_differ(x, y):
            return self.ufunc(x, y)
        dtype = np.result_type(x, y)
        keys = (self._keys(np.asarray(operand, dtype)) for operand in (x, y))
        return _in_order(self.ufunc(*keys)).view(dtype)

    def reduce(self, x: Array, axes: tuple[int, ...], *, keepdims: bool) -> Array:
        """Reduce over ``axes``. Without elements: the neutral infinity for floats, an error for
        integers."""
        if x.dtype.kind != "f":
            return self.ufunc.reduce(x, axes, keepdims=keepdims)
        neutral = x.dtype.type(-np.inf if self.ufunc is np.maximum else np.inf)
        plain = self.ufunc.reduce(x, axes, keepdims=keepdims, initial=neutral)
        if np.all(plain):
            return plain
        start = _in_order(np.asarray(neutral)).item()
        keys = self.ufunc.reduce(self._keys(x), axes, keepdims=keepdims, initial=start)
        return _in_order(keys).view(x.dtype)

    def accumulate(self, x: Array, axis: int) -> Array:
        """The extreme up to each element along ``axis``."""
        plain = self.ufunc.accumulate(x, axis)
        if x.dtype.kind != "f" or np.all(plain):
            return plain
        return _in_order(self.ufunc.accumulate(self._keys(x), axis)).view(x.dtype)

    def at(self, x: Array, places: Any, y: Array) -> None:
        """``x[place]`` becomes the extreme of itself and the element of ``y``, for each of
        ``places``."""
        if x.dtype.kind != "f":
            self.ufunc.at(x, places, y)
            return
        keys = self._keys(x)
        self.ufunc.at(keys, places, self._keys(y))
        x[...] = _in_order(keys).view(x.dtype)

    def _keys(self, x: Array) -> Array:
        keys = _in_order(x)
        limits = np.iinfo(keys.dtype)
        return np.where(x == x, keys, limits.max if self.ufunc is np.maximum else limits.min)


def _may_differ(x: Any, y: Any) -> bool:
    """Whether two zeros meet at some element, of floats."""
    return np.result_type(x, y).kind == "f" and bool(np.any((x == 0) & (y == 0)))


def _in_order(x: Array) -> Array:
    """The bits of floats as integers in the order of the floats; the same function inverts
    itself."""
    integers = np.dtype(f"i{x.dtype.itemsize}")
    bits: Array = x.view(integers)
    return bits ^ ((bits >> (8 * integers.itemsize - 1)) & np.iinfo(integers).max)


MAXIMUM = Extreme(np.maximum)
MINIMUM = Extreme(np.minimum)

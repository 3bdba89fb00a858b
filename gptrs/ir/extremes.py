"""The greater and the lesser of numbers in NumPy: NaN wins, and −0 is less than +0.

IEEE 754-2019 calls these functions maximum and minimum. NumPy's own give either of two zeros, as
the dtype, the CPU, the length and the place decide. Where zeros of two signs may meet, the bits of
the floats are compared instead: as integers in the order of the numbers, NaN at the end that wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gptrs.ir.types import Array


@dataclass(frozen=True)
class Extreme:
    """One of the two functions, called as NumPy's."""

    ufunc: np.ufunc

    def __call__(self, x: Any, y: Any) -> Any:
        """Of each two elements; one of ``x`` and ``y`` may be a number."""
        if not _may_differ(x, y):
            return self.ufunc(x, y)
        dtype = np.result_type(x, y)
        keys = (self._keys(np.asarray(operand, dtype)) for operand in (x, y))
        return _in_order(self.ufunc(*keys)).view(dtype)

    def reduce(self, x: Array, axes: tuple[int, ...], *, keepdims: bool) -> Array:
        """Over ``axes``; the infinity that loses where there is nothing, an error for integers."""
        if x.dtype.kind != "f":
            return self.ufunc.reduce(x, axes, keepdims=keepdims)
        neutral = x.dtype.type(-np.inf if self.ufunc is np.maximum else np.inf)
        plain = self.ufunc.reduce(x, axes, keepdims=keepdims, initial=neutral)
        if np.all(plain):
            return plain
        start = _in_order(np.asarray(neutral)).item()
        keys = self.ufunc.reduce(self._keys(x), axes, keepdims=keepdims, initial=start)
        return _in_order(keys).view(x.dtype)

    def at(self, x: Array, places: Any, y: Array) -> None:
        """``x[place]`` becomes the greater, or lesser, of itself and the element of ``y``."""
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
    """Whether zeros meet somewhere, of floats."""
    return np.result_type(x, y).kind == "f" and bool(np.any((x == 0) & (y == 0)))


def _in_order(x: Array) -> Array:
    """The bits of floats as integers in their order, and such integers as bits again."""
    integers = np.dtype(f"i{x.dtype.itemsize}")
    bits: Array = x.view(integers)
    return bits ^ ((bits >> (8 * integers.itemsize - 1)) & np.iinfo(integers).max)


MAXIMUM = Extreme(np.maximum)
MINIMUM = Extreme(np.minimum)

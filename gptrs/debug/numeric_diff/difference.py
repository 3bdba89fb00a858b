"""Difference of two results: max abs, max rel, cosine, and a tolerance for rounding.

Computed in f64, in pieces. Tolerances are for f32 sums in different orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs.lazy_dataclass import dataclass

_PIECE = 2**20  # elements at a time
_LARGE = 10.0  # the magnitude that tolerances refer to


@dataclass(frozen=True)
class Difference:
    """``max_rel`` is over the elements of at least the root mean square; for smaller ones a ratio
    says little."""

    max_abs: float
    max_rel: float
    cosine: float
    """The cosine of the angle between both as vectors; 1 where both are 0."""
    tolerance: float
    """The largest accepted ``max_abs``."""

    @property
    def agrees(self) -> bool:
        """Whether they are equal up to rounding."""
        return self.max_abs <= self.tolerance

    def as_json(self) -> dict[str, float | None]:
        """The fields; None for infinity and NaN, which JSON cannot represent."""
        return {name: value if np.isfinite(value) else None for name, value in vars(self).items()}


def difference(found: NDArray[Any], expected: NDArray[Any], within: float) -> Difference:
    """The difference of ``found`` from ``expected``, of the same shape. ``within`` is the tolerance
    for numbers up to 10; it scales with the largest of ``expected``. NaN equals NaN, infinity
    equals infinity."""
    assert found.shape == expected.shape, (found.shape, expected.shape)
    peak = products = ours = theirs = 0.0
    for a, b in _pieces(found, expected):
        finite = np.isfinite(a) & np.isfinite(b)
        a, b = a[finite], b[finite]
        peak = max(peak, float(np.abs(b).max(initial=0.0)))
        products, ours, theirs = products + float(a @ b), ours + float(a @ a), theirs + float(b @ b)
    least = max(float(np.sqrt(theirs / max(expected.size, 1))), float(np.finfo(np.float32).tiny))
    max_abs = max_rel = 0.0
    for a, b in _pieces(found, expected):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            apart = np.where(same, 0.0, np.abs(a - b))
        apart[np.isnan(apart)] = np.inf  # a number and NaN
        large = (np.abs(b) >= least) & np.isfinite(b)
        max_abs = max(max_abs, float(apart.max()))
        max_rel = max(max_rel, float((apart[large] / np.abs(b[large])).max(initial=0.0)))
    length = np.sqrt(ours) * np.sqrt(theirs)
    cosine = float(products / length) if length else float(ours == theirs)
    cosine = float(np.clip(cosine, -1.0, 1.0))  # its three sums are rounded, each on its own
    return Difference(max_abs, max_rel, cosine, within * max(1.0, peak / _LARGE))


def _pieces(
    found: NDArray[Any], expected: NDArray[Any]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Both arrays as f64, in pieces, so that copies stay small."""
    a, b = _real(found), _real(expected)
    for first in range(0, b.size, _PIECE):
        part = slice(first, first + _PIECE)
        yield a[part].astype(np.float64), b[part].astype(np.float64)


def _real(array: NDArray[Any]) -> NDArray[Any]:
    """The elements in one row; of complex numbers the real and imaginary parts."""
    row = np.ascontiguousarray(array).reshape(-1)
    return row.view(np.real(row).dtype) if row.dtype.kind == "c" else row

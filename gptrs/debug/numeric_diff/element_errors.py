"""Errors of the elements of an array: max abs, max rel, units in the last place, bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from gptrs.ir.types import Array, DType, as_dtype, f32, f64
from gptrs.lazy_dataclass import dataclass

_PARTS: dict[str, DType] = {"cf32": f32, "cf64": f64}


@dataclass(frozen=True)
class ElementErrors:
    """How far the elements of one or several arrays are from those expected. NaN equals NaN."""

    max_abs: float
    max_rel: float
    """Of elements that are expected not to be 0."""
    max_ulp: float
    """In units in the last place of the dtype of the instruction; of integers the difference."""
    differing: int
    """How many elements are not equal."""
    beyond: int
    """How many are beyond their bounds."""
    unknown: int
    """How many differ and have no bound: roundings decide comparisons on the way to them."""
    size: int

    def as_json(self) -> dict[str, float | int | None]:
        """The fields; None for infinity, which JSON cannot represent."""
        return {name: value if np.isfinite(value) else None for name, value in vars(self).items()}


def element_errors(
    found: Array, expected: Array, allowed: Array | None, dtype: DType
) -> ElementErrors:
    """The errors of ``found``, of the shape of ``expected``. ``allowed`` is the bound of each
    element; None: equal. Units in the last place are those of ``dtype``."""
    a, b = comparable(found), comparable(expected)
    with np.errstate(all="ignore"):
        alike = found == expected if found.dtype == expected.dtype else a == b
        same = np.asarray(alike) | (np.isnan(a) & np.isnan(b))
        least = 0.0 if a.dtype.kind == "c" or dtype.is_float else 1.0  # f64 loses some of 64 bits
        apart = np.where(same, 0.0, np.maximum(np.abs(a - b), least))
        apart = np.where(np.isnan(apart), np.inf, apart)
        relative = np.where((b != 0) & ~same, apart / np.abs(b), 0.0)
        relative = np.where(np.isnan(relative), np.inf, relative)
        ulps = np.where(same, 0.0, apart / unit(np.maximum(np.abs(a), np.abs(b)), dtype))
        beyond = ~same if allowed is None else ~same & ~(apart <= allowed)
    unknown = 0 if allowed is None else int((~same & np.isinf(allowed)).sum())
    numbers = _most(apart), _most(relative), _most(ulps)
    return ElementErrors(*numbers, int((~same).sum()), int(beyond.sum()), unknown, a.size)


def worst(errors: Sequence[ElementErrors]) -> ElementErrors:
    """The errors of several arrays as those of one."""
    return ElementErrors(
        max((each.max_abs for each in errors), default=0.0),
        max((each.max_rel for each in errors), default=0.0),
        max((each.max_ulp for each in errors), default=0.0),
        sum(each.differing for each in errors),
        sum(each.beyond for each in errors),
        sum(each.unknown for each in errors),
        sum(each.size for each in errors),
    )


def comparable(array: Array) -> Array:
    """``array`` as f64, or as complex numbers of f64."""
    with np.errstate(all="ignore"):  # signalling NaNs
        return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def unit(size: Array, dtype: DType) -> Array:
    """The unit in the last place of numbers of this magnitude; 1 for integers."""
    dtype = _PARTS.get(dtype.name, dtype)
    if not dtype.is_float:
        return np.ones(size.shape)
    info = cast("Any", ml_dtypes.finfo(dtype.numpy))
    _, exponent = np.frexp(np.where(np.isfinite(size), size, 1.0))
    return np.maximum(np.ldexp(float(info.eps), exponent - 1), float(info.smallest_subnormal))


def eps(dtype: DType) -> float:
    """The distance of 1 from the next number of a float dtype, or of the parts of a complex one."""
    dtype = _PARTS.get(dtype.name, dtype)
    return float(cast("Any", ml_dtypes.finfo(dtype.numpy)).eps) if dtype.is_float else 0.0


def dtype_of(array: Array) -> DType:
    """The dtype of an array as programs name it."""
    return as_dtype(array.dtype)


def _most(values: Array) -> float:
    return float(values.max()) if values.size else 0.0

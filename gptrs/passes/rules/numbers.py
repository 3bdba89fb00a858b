"""Compile-time arithmetic of rules: numbers rounded and wrapped as the elements of a dtype."""

from __future__ import annotations

import math
from typing import Any, cast

import ml_dtypes
import numpy as np

from gptrs.ir.types import DType


def wrapped(number: int, dtype: DType) -> int:
    """An integer wrapped to ``dtype``."""
    low, _ = dtype.limits
    return (number - low) % (1 << dtype.bits) + low


def in_dtype(number: float, dtype: DType) -> float:
    """A number rounded to the dtype of arithmetic on ``dtype``, then to ``dtype``."""
    with np.errstate(all="ignore"):
        array = np.asarray(number).astype(dtype.compute.numpy).astype(dtype.numpy)
    return cast("float", array.item())


def computed(number: float, dtype: DType) -> float:
    """A number rounded to the dtype of arithmetic on ``dtype``."""
    return in_dtype(number, dtype.compute)


def has_infinity(dtype: DType) -> bool:
    """Whether ``dtype`` has infinities: 1/0 is ∞ and not NaN."""
    return dtype.is_float and math.isinf(in_dtype(math.inf, dtype))


def is_ordinary(number: float, dtype: DType) -> bool:
    """Whether a number is normal in the dtype of arithmetic: not 0, subnormal, infinite or NaN."""
    info = cast("Any", ml_dtypes.finfo(dtype.compute.numpy))
    return float(info.smallest_normal) <= abs(number) <= float(info.max)


def is_power_of_two(number: float) -> bool:
    """Whether a finite number is ±2ᵏ."""
    return abs(math.frexp(number)[0]) == 0.5


def exponent_of(number: int) -> int | None:
    """k where an integer is 2ᵏ."""
    return number.bit_length() - 1 if number > 0 and number & (number - 1) == 0 else None

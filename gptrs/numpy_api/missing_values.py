"""Reductions that leave out NaN, by NumPy's names.

Of nothing but NaN the result is NaN; sums and products are those of no elements.
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.searching import argmax, argmin
from gptrs.numpy_api.statistics import (
    Axes,
    as_float,
    cumprod,
    cumsum,
    mean,
    prod,
    quantiles,
    std,
    sum,
    var,
)

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
]


def _is_nan(x: Tensor) -> Tensor:
    return OPS["not_equal"](x, x)


def _filled(x: Any, value: float) -> Tensor:
    """``x`` with ``value`` in the place of NaN."""
    x = as_tensor(x)
    return OPS["select"](_is_nan(x), value, x) if x.dtype.is_float or x.dtype.is_complex else x


@public
def nansum(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements over ``axis`` that are not NaN."""
    return sum(_filled(x, 0), axis, keepdims=keepdims)


@public
def nanprod(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The product of the elements over ``axis`` that are not NaN."""
    return prod(_filled(x, 1), axis, keepdims=keepdims)


@public
def nancumsum(x: Any, axis: int | None = None) -> Tensor:
    """`cumsum` with NaN counted as 0."""
    return cumsum(_filled(x, 0), axis)


@public
def nancumprod(x: Any, axis: int | None = None) -> Tensor:
    """`cumprod` with NaN counted as 1."""
    return cumprod(_filled(x, 1), axis)


@public
def nanmean(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements over ``axis`` that are not NaN."""
    x = as_tensor(x)
    return mean(x, axis, keepdims=keepdims, where=x == x)


@public
def nanvar(
    x: Any,
    axis: Axes = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tensor:
    """`var` of the elements over ``axis`` that are not NaN."""
    x = as_tensor(x)
    return var(x, axis, correction=correction, keepdims=keepdims, ddof=ddof, where=x == x)


@public
def nanstd(
    x: Any,
    axis: Axes = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tensor:
    """The square root of `nanvar`."""
    x = as_tensor(x)
    return std(x, axis, correction=correction, keepdims=keepdims, ddof=ddof, where=x == x)


def _extreme(op: str, x: Any, axis: Axes, keepdims: bool, least: float) -> Tensor:
    x = as_float(x)
    result = OPS[f"reduce_{op}"](_filled(x, least), axes=axis, keepdims=keepdims)
    nothing = OPS["reduce_all"](_is_nan(x), axes=axis, keepdims=keepdims)
    return OPS["select"](nothing, float("nan"), result)


@public
def nanmax(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest element over ``axis`` that is not NaN."""
    return _extreme("max", x, axis, keepdims, float("-inf"))


@public
def nanmin(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The least element over ``axis`` that is not NaN."""
    return _extreme("min", x, axis, keepdims, float("inf"))


@public
def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the greatest element that is not NaN; the first where there is none, for
    which NumPy raises."""
    return argmax(_filled(x, float("-inf")), axis, keepdims)


@public
def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the least element that is not NaN; the first where there is none, for which
    NumPy raises."""
    return argmin(_filled(x, float("inf")), axis, keepdims)


@public
def nanquantile(x: Any, q: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """`quantile` of the elements over ``axis`` that are not NaN."""
    return quantiles(x, q, axis, keepdims, skip_nan=True)


@public
def nanpercentile(x: Any, q: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """`nanquantile` of ``q`` / 100."""
    return nanquantile(x, as_tensor(q) / 100, axis, keepdims)


@public
def nanmedian(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The middle of the elements over ``axis`` that are not NaN."""
    return nanquantile(x, 0.5, axis, keepdims)

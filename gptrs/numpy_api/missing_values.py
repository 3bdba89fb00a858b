"""Reductions that leave out NaN, by NumPy's names.

Of nothing but NaN the result is NaN; sums and products are those of no elements.
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.arithmetic import truth
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.searching import argmax, argmin
from gptrs.numpy_api.statistics import (
    Axes,
    cumprod,
    cumsum,
    mean,
    prod,
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
    "nanmin",
    "nanprod",
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


def _numbers(x: Tensor, where: Any) -> Tensor:
    """Where ``x`` is not NaN, of what ``where`` keeps."""
    numbers = OPS["equal"](x, x)
    return numbers if where is None else OPS["logical_and"](numbers, truth(where))


@public
def nansum(
    x: Any,
    axis: Axes = None,
    dtype: object = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Any = None,
) -> Tensor:
    """The sum of the elements over ``axis`` that are not NaN."""
    return sum(_filled(x, 0), axis, dtype, keepdims, initial=initial, where=where)


@public
def nanprod(
    x: Any,
    axis: Axes = None,
    dtype: object = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Any = None,
) -> Tensor:
    """The product of the elements over ``axis`` that are not NaN."""
    return prod(_filled(x, 1), axis, dtype, keepdims, initial=initial, where=where)


@public
def nancumsum(x: Any, axis: int | None = None, dtype: object = None) -> Tensor:
    """`cumsum` with NaN counted as 0."""
    return cumsum(_filled(x, 0), axis, dtype)


@public
def nancumprod(x: Any, axis: int | None = None, dtype: object = None) -> Tensor:
    """`cumprod` with NaN counted as 1."""
    return cumprod(_filled(x, 1), axis, dtype)


@public
def nanmean(
    x: Any, axis: Axes = None, dtype: object = None, keepdims: bool = False, *, where: Any = None
) -> Tensor:
    """The mean of the elements over ``axis`` that are not NaN."""
    x = as_tensor(x)
    return mean(x, axis, dtype, keepdims, where=_numbers(x, where))


@public
def nanvar(
    x: Any,
    axis: Axes = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    ddof: float | None = None,
    where: Any = None,
    mean: Any = None,
    dtype: object = None,
) -> Tensor:
    """`var` of the elements over ``axis`` that are not NaN."""
    x = as_tensor(x)
    more: dict[str, Any] = {"where": _numbers(x, where), "mean": mean, "dtype": dtype}
    return var(x, axis, correction=correction, keepdims=keepdims, ddof=ddof, **more)


@public
def nanstd(
    x: Any,
    axis: Axes = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    ddof: float | None = None,
    where: Any = None,
    mean: Any = None,
    dtype: object = None,
) -> Tensor:
    """The square root of `nanvar`."""
    x = as_tensor(x)
    more: dict[str, Any] = {"where": _numbers(x, where), "mean": mean, "dtype": dtype}
    return std(x, axis, correction=correction, keepdims=keepdims, ddof=ddof, **more)


def _extreme(
    op: str, x: Any, axis: Axes, keepdims: bool, initial: Any, where: Any, least: float
) -> Tensor:
    x = as_tensor(x)
    if not x.dtype.is_float:
        return FUNCTIONS[op](x, axis, keepdims, initial=initial, where=where)
    kept = _numbers(x, where)
    values = OPS["select"](kept, x, least)
    result = OPS[f"reduce_{op}"](values, axes=axis, keepdims=keepdims)
    nothing = OPS["logical_not"](OPS["reduce_any"](kept, axes=axis, keepdims=keepdims))
    result = OPS["select"](nothing, float("nan") if initial is None else initial, result)
    return result if initial is None else OPS[f"{op}imum"](result, initial)


@public
def nanmax(
    x: Any, axis: Axes = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """The greatest element over ``axis`` that is not NaN."""
    return _extreme("max", x, axis, keepdims, initial, where, float("-inf"))


@public
def nanmin(
    x: Any, axis: Axes = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """The least element over ``axis`` that is not NaN."""
    return _extreme("min", x, axis, keepdims, initial, where, float("inf"))


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

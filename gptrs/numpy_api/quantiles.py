"""Quantiles of sorted elements: quantile, percentile, median, and those that leave out NaN.

Between the two neighbours of a place in order, `METHODS` says what is taken. Source of the
continuous ones: Hyndman and Fan, "Sample quantiles in statistical packages", 1996: the place of
``q`` among n elements, from 0, is n·q + α + q·(1 − α − β) − 1.
"""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axes
from gptrs.numpy_api.function import public, tensor_of
from gptrs.numpy_api.statistics import Axes, as_float, number_over, sum

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

METHODS: dict[str, tuple[float, float]] = {
    "linear": (1.0, 1.0),
    "lower": (1.0, 1.0),
    "higher": (1.0, 1.0),
    "midpoint": (1.0, 1.0),
    "nearest": (1.0, 1.0),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
"""α and β by NumPy's name of the method."""


@public
def quantile(
    x: Any, q: Any, axis: Axes = None, keepdims: bool = False, *, method: str = "linear"
) -> Tensor:
    """The ``q``-quantiles (0 to 1) over ``axis``, by default linear between neighbours in order, as
    in NumPy; several ``q`` give a leading axis. NaN where there is one."""
    return _quantiles(x, q, axis, keepdims, method)


@public
def percentile(
    x: Any, q: Any, axis: Axes = None, keepdims: bool = False, *, method: str = "linear"
) -> Tensor:
    """`quantile` of ``q`` / 100."""
    return _quantiles(x, q, axis, keepdims, method, percent=True)


@public
def median(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The middle element over ``axis`` in order, or the mean of the two."""
    return _quantiles(x, 0.5, axis, keepdims)


@public
def nanquantile(
    x: Any, q: Any, axis: Axes = None, keepdims: bool = False, *, method: str = "linear"
) -> Tensor:
    """`quantile` of the elements over ``axis`` that are not NaN."""
    return _quantiles(x, q, axis, keepdims, method, skip_nan=True)


@public
def nanpercentile(
    x: Any, q: Any, axis: Axes = None, keepdims: bool = False, *, method: str = "linear"
) -> Tensor:
    """`nanquantile` of ``q`` / 100."""
    return _quantiles(x, q, axis, keepdims, method, skip_nan=True, percent=True)


@public
def nanmedian(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The middle of the elements over ``axis`` that are not NaN."""
    return _quantiles(x, 0.5, axis, keepdims, skip_nan=True)


def _quantiles(
    x: Any,
    q: Any,
    axis: Axes,
    keepdims: bool,
    method: str = "linear",
    *,
    skip_nan: bool = False,
    percent: bool = False,
) -> Tensor:
    if method not in METHODS:
        raise ArgumentError(f"method is {method!r}, expected one of {', '.join(METHODS)}")
    values = as_float(x)
    axes = normal_axes(axis, values.ndim)
    kept = [i for i in range(values.ndim) if i not in axes]
    rows = OPS["transpose"](values, perm=(*kept, *axes))
    rows = rows.reshape([*(values.shape[i] for i in kept), number_over(values, axes)])
    if rows.shape[-1] == 0:  # those of nothing are NaN
        rows = OPS["full"](shape=(*rows.shape[:-1], 1), value=float("nan"), dtype=values.dtype)
    ordered: Tensor = OPS["sort"](rows, axis=-1)[0]  # NaN last
    fractions = tensor_of(q, values.dtype)
    fractions = fractions / 100 if percent else fractions
    is_nan = OPS["not_equal"](rows, rows)
    if skip_nan:
        last = sum(OPS["logical_not"](is_nan), -1, keepdims=True).astype(values.dtype) - 1
        nothing = last < 0
        last = OPS["maximum"](last, 0)
    else:
        last = tensor_of(rows.shape[-1] - 1, values.dtype)
        nothing = OPS["reduce_any"](is_nan, axes=-1, keepdims=True)
    place = _place(fractions.reshape(-1), last, method)
    low, part = OPS["floor"](place), place - OPS["floor"](place)
    first, after = (
        _columns(ordered, OPS["cast"](end, dtype="si64")) for end in (low, OPS["ceil"](place))
    )
    result: Tensor = first + (after - first) * part
    result = OPS["select"](OPS["logical_or"](part == 0, first == after), first, result)
    result = OPS["select"](nothing, float("nan"), result)
    front = OPS["transpose"](result, perm=(len(kept), *range(len(kept))))
    shape = (
        [1 if i in axes else n for i, n in enumerate(values.shape)]
        if keepdims
        else [values.shape[i] for i in kept]
    )
    return front.reshape([*fractions.shape, *shape])


def _place(q: Tensor, last: Tensor, method: str) -> Tensor:
    """The place of ``q`` among elements 0 to ``last``, whole unless the method is between two."""
    alpha, beta = METHODS[method]
    place = q * last
    if (alpha, beta) != (1.0, 1.0):
        place = q * (last + (2 - alpha - beta)) + (alpha - 1)
        place = OPS["minimum"](OPS["maximum"](place, 0), last)
    if method == "midpoint":
        return (OPS["floor"](place) + OPS["ceil"](place)) / 2
    rounding = {"lower": "floor", "higher": "ceil", "nearest": "round"}.get(method)
    return OPS[rounding](place) if rounding else place


def _columns(x: Tensor, places: Tensor) -> Tensor:
    """The elements of the last axis at ``places``: one row of them for all rows, or one for
    each."""
    if places.ndim == x.ndim and x.ndim > 1:
        return OPS["gather"](x, places, axis=-1)
    turned = OPS["transpose"](x, perm=(x.ndim - 1, *range(x.ndim - 1)))
    return OPS["transpose"](OPS["take"](turned, places), perm=(*range(1, x.ndim), 0))

"""Reductions and cumulative functions by the names of the array API standard and NumPy.

Sums and products of bools and integers are si64, or ui64 of unsigned ones, as in NumPy. ``axis`` is
an integer, several, or None for all; ``where`` leaves elements out.
"""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, as_dtype, normal_axes, si64, ui64
from gptrs.numpy_api.arithmetic import truth
from gptrs.numpy_api.function import alike, as_tensor, public, tensor_of

__all__ = [
    "all",
    "any",
    "average",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]

Axes = int | tuple[int, ...] | None


def _total_dtype(x: Tensor) -> DType:
    """The dtype of a sum over ``x``: integers have room."""
    if x.dtype.is_bool or x.dtype.kind == "int":
        return si64
    return ui64 if x.dtype.kind == "uint" else x.dtype


def _in_total_dtype(x: Tensor, dtype: object) -> Tensor:
    wanted = _total_dtype(x) if dtype is None else as_dtype(dtype)
    return x if x.dtype is wanted else x.astype(wanted)


def _where(x: Tensor, where: Any, other: Any) -> Tensor:
    """``x`` with ``other`` in the place of elements that are left out."""
    return x if where is None else OPS["select"](truth(where), x, other)


def as_float(x: Any) -> Tensor:
    """``x`` as a Tensor; integers and bools as f32."""
    x = as_tensor(x)
    return x.astype(DEFAULT_FLOAT) if x.dtype.is_integer or x.dtype.is_bool else x


@public(op="reduce_sum")
def sum(
    x: Any,
    axis: Axes = None,
    dtype: object = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Any = None,
) -> Tensor:
    """The sum over ``axis``; integers are summed as si64 or ui64 unless ``dtype`` is given.
    ``initial`` is one more term."""
    terms = _where(_in_total_dtype(as_tensor(x), dtype), where, 0)
    result: Tensor = OPS["reduce_sum"](terms, axes=axis, keepdims=keepdims)
    return result if initial is None else result + initial


@public(op="reduce_prod")
def prod(
    x: Any,
    axis: Axes = None,
    dtype: object = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Any = None,
) -> Tensor:
    """The product over ``axis``; integers are multiplied as si64 or ui64 unless ``dtype`` says
    otherwise. ``initial`` is one more factor."""
    factors = _where(_in_total_dtype(as_tensor(x), dtype), where, 1)
    result: Tensor = OPS["reduce_prod"](factors, axes=axis, keepdims=keepdims)
    return result if initial is None else result * initial


def _extreme(op: str, x: Any, axis: Axes, keepdims: bool, initial: Any, where: Any) -> Tensor:
    x = as_tensor(x)
    if x.dtype.is_bool:
        reduced = "reduce_any" if op == "max" else "reduce_all"
        found = OPS[reduced](_where(x, where, op == "min"), axes=axis, keepdims=keepdims)
        if initial is None:
            return found
        return found | bool(initial) if op == "max" else found & bool(initial)
    if where is not None and initial is None:
        raise ArgumentError(
            f"{op}: with where= there may be no element left",
            fix="give the result of none: initial=",
        )
    given = _where(x, where, initial)
    if initial is None:
        return OPS[f"reduce_{op}"](given, axes=axis, keepdims=keepdims)
    axes = normal_axes(axis, x.ndim)
    empty = [a for a in axes if isinstance(n := x.shape[a], Dim) or n == 0]
    if empty and not x.dtype.is_float:  # the op has no result of no elements: here is one more
        high = [int(a in empty) for a in range(x.ndim)]
        given = OPS["pad"](given, low=[0] * x.ndim, high=high, value=initial)
    result: Tensor = OPS[f"reduce_{op}"](given, axes=axis, keepdims=keepdims)
    return OPS[f"{op}imum"](result, initial)


@public(op="reduce_max")
def max(
    x: Any, axis: Axes = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """The greatest element over ``axis``; NaN wins. ``initial`` is one more element."""
    return _extreme("max", x, axis, keepdims, initial, where)


@public(op="reduce_min")
def min(
    x: Any, axis: Axes = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """The least element over ``axis``; NaN wins. ``initial`` is one more element."""
    return _extreme("min", x, axis, keepdims, initial, where)


@public
def ptp(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest minus the least element over ``axis``."""
    return max(x, axis, keepdims) - min(x, axis, keepdims)


@public
def mean(
    x: Any, axis: Axes = None, dtype: object = None, keepdims: bool = False, *, where: Any = None
) -> Tensor:
    """The mean over ``axis``; integers as f32. NaN of no elements."""
    values = as_float(x) if dtype is None else tensor_of(x, dtype)
    if where is None:
        return OPS["mean"](values, axes=axis, keepdims=keepdims)
    total = sum(values, axis, keepdims=keepdims, where=where)
    return total / _counted(values, where, axis, keepdims).astype(total.dtype)


def _counted(x: Tensor, where: Any, axis: Axes, keepdims: bool) -> Tensor:
    """The number of elements that ``where`` keeps."""
    kept = OPS["broadcast_to"](truth(where), shape=x.shape)
    return sum(kept, axis, keepdims=keepdims)


@public
def var(
    x: Any,
    axis: Axes = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    ddof: float | None = None,
    where: Any = None,
    mean: Any = None,
    dtype: object = None,
    unbiased: bool | None = None,
) -> Tensor:
    """Σ|x − mean x|² / (n − correction) over ``axis``. ``ddof`` is NumPy's name of the correction;
    it is 0 here as there, while torch's default is 1, its ``unbiased=True``. ``mean`` is that
    of `mean` with ``keepdims``, where it is known."""
    correction = correction if ddof is None else ddof
    correction = correction if unbiased is None else int(unbiased)
    values = as_float(x) if dtype is None else tensor_of(x, dtype)
    if (
        where is None
        and mean is None
        and not values.dtype.is_complex
        and float(correction).is_integer()
    ):
        return OPS["var"](values, axes=axis, keepdims=keepdims, correction=int(correction))
    if mean is None:
        mean = FUNCTIONS["mean"](values, axis, keepdims=True, where=where)
    centred = values - mean
    size: Tensor = FUNCTIONS["abs"](centred) if values.dtype.is_complex else centred
    squares = size * size
    total = sum(squares, axis, keepdims=keepdims, where=where)
    count: Any = number_over(values, axis)
    if where is not None:
        count = _counted(values, where, axis, keepdims).astype(total.dtype)
    return total / OPS["maximum"](tensor_of(count - correction, total.dtype), 0)


def number_over(x: Tensor, axis: Axes) -> DimLike:
    """The number of elements over ``axis``."""
    count: DimLike = 1
    for each in normal_axes(axis, x.ndim):
        count = count * x.shape[each]
    return count


@public
def std(
    x: Any,
    axis: Axes = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    ddof: float | None = None,
    where: Any = None,
    mean: Any = None,
    dtype: object = None,
    unbiased: bool | None = None,
) -> Tensor:
    """The square root of `var`."""
    more: dict[str, Any] = {"where": where, "mean": mean, "dtype": dtype, "unbiased": unbiased}
    squared = var(x, axis, correction=correction, keepdims=keepdims, ddof=ddof, **more)
    return OPS["sqrt"](squared)


@public(op="reduce_all")
def all(x: Any, axis: Axes = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Whether all elements over ``axis`` differ from 0."""
    return OPS["reduce_all"](_where(truth(x), where, True), axes=axis, keepdims=keepdims)


@public(op="reduce_any")
def any(x: Any, axis: Axes = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Whether any element over ``axis`` differs from 0."""
    return OPS["reduce_any"](_where(truth(x), where, False), axes=axis, keepdims=keepdims)


@public
def count_nonzero(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The number (si64) of elements over ``axis`` that differ from 0."""
    return sum(truth(x), axis, keepdims=keepdims)


def _accumulated(op: str, x: Any, axis: int | None, dtype: object) -> Tensor:
    terms = _in_total_dtype(as_tensor(x), dtype)
    if axis is None:
        return OPS[op](terms.reshape(-1), axis=0)
    return OPS[op](terms, axis=axis)


@public
def cumsum(x: Any, axis: int | None = None, dtype: object = None) -> Tensor:
    """The sum of the elements up to and including each position along ``axis``, or of all elements
    in one row."""
    return _accumulated("cumsum", x, axis, dtype)


@public
def cumprod(x: Any, axis: int | None = None, dtype: object = None) -> Tensor:
    """The product of the elements up to and including each position along ``axis``, or of all
    elements in one row."""
    return _accumulated("cumprod", x, axis, dtype)


def _cumulative(op: str, x: Any, axis: int | None, dtype: object, first: int | None) -> Tensor:
    x = as_tensor(x)
    if axis is None and x.ndim != 1:
        raise ArgumentError(f"x has {x.ndim} axes", fix="say which one: axis=")
    axis = 0 if axis is None else axis
    result = _accumulated(op, x, axis, dtype)
    if first is None:
        return result
    shape = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
    start = OPS["full"](shape=tuple(shape), value=first, dtype=result.dtype)
    return OPS["concat"]((start, result), axis=axis)


@public
def cumulative_sum(
    x: Any, *, axis: int | None = None, dtype: object = None, include_initial: bool = False
) -> Tensor:
    """`cumsum` by the standard's name; ``include_initial`` puts 0 before the first."""
    return _cumulative("cumsum", x, axis, dtype, 0 if include_initial else None)


@public
def cumulative_prod(
    x: Any, *, axis: int | None = None, dtype: object = None, include_initial: bool = False
) -> Tensor:
    """`cumprod` by the standard's name; ``include_initial`` puts 1 before the first."""
    return _cumulative("cumprod", x, axis, dtype, 1 if include_initial else None)


@public
def cummax(x: Any, axis: int = -1) -> Tensor:
    """The greatest element up to and including each position along ``axis``."""
    return _running_extreme("cummax", as_tensor(x), axis)


@public
def cummin(x: Any, axis: int = -1) -> Tensor:
    """The least element up to and including each position along ``axis``."""
    return _running_extreme("cummin", as_tensor(x), axis)


def _running_extreme(op: str, x: Tensor, axis: int) -> Tensor:
    """`cummax` or `cummin`; bools are compared as 0 and 1."""
    if x.dtype.is_bool:
        return OPS[op](x.astype("ui8"), axis=axis) != 0
    return OPS[op](x, axis=axis)


@public
def average(
    x: Any,
    axis: Axes = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Σ weights · x / Σ weights over ``axis``; without weights the mean. With ``returned`` the sums
    of weights, too."""
    values, parts = map(as_float, alike(x, 1 if weights is None else weights))
    parts = FUNCTIONS["ones_like"](values) if weights is None else parts
    if parts.ndim == 1 and values.ndim > 1 and isinstance(axis, int):
        parts = parts.reshape([-1 if i == axis % values.ndim else 1 for i in range(values.ndim)])
    parts = OPS["broadcast_to"](parts, shape=values.shape)
    total = sum(parts, axis, keepdims=keepdims)
    found = sum(values * parts, axis, keepdims=keepdims) / total
    if weights is None:
        found = mean(values, axis, keepdims=keepdims)
    return (found, total) if returned else found


@public
def logsumexp(x: Any, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """log Σ exp(x) over ``axis``, without overflow."""
    values = as_float(x)
    top = OPS["reduce_max"](values, axes=axis, keepdims=True)
    top = OPS["select"](OPS["is_finite"](top), top, 0)
    total = OPS["reduce_sum"](OPS["exp"](values - top), axes=axis, keepdims=keepdims)
    return OPS["log"](total) + (top if keepdims else top.reshape(total.shape))

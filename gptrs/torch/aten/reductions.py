"""Reductions, scans along an axis and softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import Operands, aten, enter_all, ptir

Axes = int | Sequence[int] | None


def axes_of(x: Tensor, dim: Axes) -> tuple[int, ...]:
    """The axes that ``dim`` names: all of them without one."""
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return tuple(range(x.ndim))
    if x.ndim == 0:
        return ()
    named = (dim,) if isinstance(dim, int) else dim
    return tuple(axis % x.ndim for axis in named)


def _over_axes(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``function(x, axis=, keepdims=)`` with torch's arguments."""

    def call(x: Tensor, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
        return function(x, axis=axes_of(x, dim), keepdims=keepdim)

    return call


def _of_all(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``function`` of all elements."""

    def call(x: Tensor, dtype: Any = None) -> Tensor:
        return function(x)

    return call


enter_all(
    {
        "sum.default": _of_all(ptir.sum),
        "sum.dim_IntList": _over_axes(ptir.sum),
        "prod.default": _of_all(ptir.prod),
        "prod.dim_int": _over_axes(ptir.prod),
        "mean.default": _of_all(ptir.mean),
        "mean.dim": _over_axes(ptir.mean),
        "nansum": _over_axes(ptir.nansum),
    },
    Operands.TO_RESULT,
)
enter_all(
    {
        "amax": _over_axes(ptir.amax),
        "amin": _over_axes(ptir.amin),
        "any any.dim any.dims": _over_axes(ptir.any),
        "all all.dim all.dims": _over_axes(ptir.all),
        "logsumexp": _over_axes(ptir.logsumexp),
        "max": _of_all(ptir.amax),
        "min": _of_all(ptir.amin),
        "count_nonzero count_nonzero.dim_IntList": _over_axes(ptir.count_nonzero),
    }
)


@aten("var.correction")
def var(
    x: Tensor, dim: Axes = None, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    """The variance over ``n - correction``; without one over ``n - 1``."""
    by = 1 if correction is None else correction
    return ptir.var(x, axis=axes_of(x, dim), correction=by, keepdims=keepdim)


@aten("std.correction")
def std(
    x: Tensor, dim: Axes = None, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return ptir.sqrt(var(x, dim, correction, keepdim))


@aten("var_mean.correction")
def var_mean(
    x: Tensor, dim: Axes = None, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    mean = ptir.mean(x, axis=axes_of(x, dim), keepdims=keepdim)
    return var(x, dim, correction, keepdim), mean


def _position(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The index of an extreme, along an axis or among all elements."""

    def call(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        if x.ndim == 0:
            return ptir.zeros((), dtype=ptir.si64)
        if dim is not None:
            return function(x, axis=dim, keepdims=keepdim)
        found = function(ptir.reshape(x, shape=(x.size,)), axis=0)
        return ptir.reshape(found, shape=(1,) * x.ndim) if keepdim else found

    return call


enter_all({"argmax": _position(ptir.argmax), "argmin": _position(ptir.argmin)})


def _with_position(
    extreme: Callable[..., Tensor], position: Callable[..., Tensor]
) -> Callable[..., tuple[Tensor, Tensor]]:
    """An extreme along an axis, and its index."""

    def call(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        if x.ndim == 0:
            return x, ptir.zeros((), dtype=ptir.si64)
        return (
            extreme(x, axis=dim, keepdims=keepdim),
            position(x, axis=dim, keepdims=keepdim),
        )

    return call


enter_all(
    {
        "max.dim": _with_position(ptir.amax, ptir.argmax),
        "min.dim": _with_position(ptir.amin, ptir.argmin),
    }
)


def _along(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function(x, axis=)``, whose axis a scalar has, too."""

    def call(x: Tensor, dim: int, dtype: Any = None) -> Any:
        return function(x, axis=dim) if x.ndim else _at_rank_1(function, x)

    return call


def _at_rank_1(function: Callable[..., Any], x: Tensor) -> Any:
    results = function(ptir.reshape(x, shape=(1,)), axis=0)
    if isinstance(results, tuple):
        return tuple(ptir.reshape(y, shape=()) for y in results)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return ptir.reshape(results, shape=())


enter_all(
    {"cumsum": _along(ptir.cumsum), "cumprod": _along(ptir.cumprod)},
    Operands.TO_RESULT,
)
enter_all({"logcumsumexp": _along(ptir.logcumsumexp)})


def _running_extreme(function: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    """The running extreme along ``dim``, and the last place where it was met; NaN wins."""

    def call(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if x.ndim == 0:
            return x, ptir.zeros((), dtype=ptir.si64)
        best = function(x, dim)
        is_met = ptir.logical_or(ptir.equal(x, best), ptir.not_equal(x, x))
        places = ptir.iota(shape=x.shape, dtype=ptir.si64, axis=dim % x.ndim)
        return best, ptir.cummax(ptir.where(is_met, places, 0), dim)

    return call


enter_all(
    {"cummax": _running_extreme(ptir.cummax), "cummin": _running_extreme(ptir.cummin)},
)


def _softmax(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
        if half_to_float:
            x = ptir.cast(x, dtype=ptir.f32)
        return function(x, axis=dim) if x.ndim else _at_rank_1(function, x)

    return call


enter_all(
    {
        "_softmax": _softmax(ptir.softmax),
        "_log_softmax": _softmax(ptir.log_softmax),
    }
)


@aten("_safe_softmax")
def safe_softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Softmax that is 0 where all of a row is masked by −∞."""
    if dtype is not None:
        x = ptir.cast(x, dtype=dtype)
    is_masked = ptir.all(ptir.equal(x, -float("inf")), axis=dim, keepdims=True)
    return ptir.where(is_masked, 0.0, ptir.softmax(x, axis=dim))


@aten("dist", operands=Operands.TO_RESULT)
def dist(x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    return ptir.linalg.vector_norm(ptir.ravel(x - y), ord=p)


@aten("linalg_vector_norm", operands=Operands.TO_RESULT)
def vector_norm(
    x: Tensor, ord: float = 2, dim: Axes = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    axes = axes_of(x, dim)
    return ptir.linalg.vector_norm(x, ord=ord, axis=axes, keepdims=keepdim)

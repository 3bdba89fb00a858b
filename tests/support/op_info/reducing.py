"""Reductions, cumulative sums, softmax, sort."""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs import ptir
from gptrs.ir.dispatch import OPS
from tests.support.op_info.row import NAMED, SUMMED, B, R, Row, unless


def axes_of(dim: Any) -> Any:
    """torch takes () for all axes."""
    if isinstance(dim, list | tuple):
        return tuple(dim) or None
    return dim


def _totals(name: str, wide: bool = False) -> Callable[..., Any]:
    def call(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        x = x if dtype is None else ptir.cast(x, dtype=dtype)
        attrs: dict[str, Any] = {}
        if wide and not x.dtype.is_float and dtype is None:
            attrs = {"accum_dtype": "si64", "out_dtype": "si64"}
        unless(not x.ndim and dim is not None, "an axis of a scalar")
        return OPS[name](x, axes=axes_of(dim), keepdims=keepdim, **attrs)

    return call


def _var(root: bool) -> Callable[..., Any]:
    def call(
        x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = (
            (1 if unbiased is None else int(unbiased)) if correction is None else correction
        )
        unless(not isinstance(correction, int), "a correction that is no integer")
        found = ptir.var(x, axes=axes_of(dim), keepdims=keepdim, correction=correction)
        return ptir.sqrt(found) if root else found

    return call


def _position(name: str) -> Callable[..., Any]:
    def call(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        unless(not x.ndim, "an axis of a scalar")
        if dim is None:
            unless(keepdim, "all axes, kept")
            return OPS[name](x.reshape(-1), axis=0)
        return OPS[name](x, axis=dim, keepdims=keepdim)

    return call


def _extreme(name: str) -> Callable[..., Any]:
    """torch.max(x, dim): values and positions."""

    def call(x: Any, dim: int, keepdim: bool = False) -> Any:
        unless(not x.ndim, "an axis of a scalar")
        return (
            OPS[f"reduce_{name}"](x, axes=dim, keepdims=keepdim),
            OPS[f"arg{name}"](x, axis=dim, keepdims=keepdim),
        )

    return call


def _along(name: str) -> Callable[..., Any]:
    def call(x: Any, dim: int, dtype: Any = None) -> Any:
        unless(not x.ndim, "an axis of a scalar")
        return OPS[name](x if dtype is None else ptir.cast(x, dtype=dtype), axis=dim)

    return call


def _sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    unless(not x.ndim, "an axis of a scalar")
    unless(not stable, "equal elements in any order")
    return ptir.ops.sort(x, axis=dim, descending=descending)


def _top_k(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    unless(not x.ndim, "an axis of a scalar")
    unless(not sorted, "in any order")
    return ptir.top_k(x, k=k, axis=dim, largest=largest)[0]


ROWS: tuple[Row, ...] = (
    Row("sum", _totals("reduce_sum", wide=True), R, **SUMMED),
    Row("prod", _totals("reduce_prod", wide=True), R, **SUMMED),
    Row("mean", _totals("mean"), **SUMMED),
    Row("var", _var(root=False), **SUMMED),
    Row("var.unbiased", _var(root=False), **SUMMED),
    Row("std", _var(root=True), **SUMMED),
    Row("amax", _totals("reduce_max"), R),
    Row("amin", _totals("reduce_min"), R),
    Row("max.reduction_with_dim", _extreme("max"), R),
    Row("min.reduction_with_dim", _extreme("min"), R),
    Row("any", _totals("reduce_any"), B),
    Row("all", _totals("reduce_all"), B),
    Row("argmax", _position("argmax"), R),
    Row("argmin", _position("argmin"), R),
    Row("cumsum", _along("cumsum"), **SUMMED),
    Row("softmax", _along("softmax"), **NAMED),
    Row("softmax.with_dtype", _along("softmax"), **NAMED),
    Row("log_softmax", _along("log_softmax"), **NAMED),
    Row("sort", _sort, R),
    Row("msort", lambda x: ptir.ops.sort(x, axis=0)[0], R),
    Row("topk", _top_k, R),
)

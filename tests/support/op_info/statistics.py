"""Statistics: quantiles, cumulative products, pairs of results, counts, histograms."""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs import ptir
from tests.support.op_info.reducing import axes_of
from tests.support.op_info.row import NAMED, SUMMED, R, Row, unless

ANY = ("f32", "f64", "si64", "ui8", "i1")
NUMBERS = ("f32", "f64", "si64", "ui8")
SIGNED = ("f32", "f64", "si64")


def _along(name: str, *, first: bool = False) -> Callable[..., Any]:
    """The function of this name over ``dim``, for all but scalars."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        unless(not x.ndim, "an axis of a scalar")
        if args:
            args = (axes_of(args[0]), *args[1:])
        if "dim" in kwargs:
            kwargs["dim"] = axes_of(kwargs["dim"])
        found = getattr(ptir, name)(x, *args, **kwargs)
        return found[0] if first and isinstance(found, tuple) else found

    return call


def _moments(root: bool) -> Callable[..., Any]:
    def call(
        x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        unless(not x.ndim, "an axis of a scalar")
        fewer = (1 if unbiased is None else int(unbiased)) if correction is None else correction
        function = ptir.std_mean if root else ptir.var_mean
        return function(x, axes_of(dim), correction=fewer, keepdim=keepdim)

    return call


def _middle(name: str) -> Callable[..., Any]:
    """torch gives the lower of the two middle elements."""

    def call(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        unless(not x.ndim, "an axis of a scalar")
        count = x.size if dim is None else x.shape[dim]
        unless(count % 2 == 0, "the mean of the two in the middle")
        return getattr(ptir, name)(x, dim, keepdims=keepdim)

    return call


def _quantile(name: str) -> Callable[..., Any]:
    def call(
        x: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
    ) -> Any:
        unless(not x.ndim, "an axis of a scalar")
        return getattr(ptir, name)(x, q, dim, keepdim, method=interpolation)

    return call


def _histogram(
    x: Any, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    unless(isinstance(bins, ptir.Tensor) and range is not None, "a range beside the edges")
    counts, edges = ptir.histogram(x, bins, range=range, weights=weight, density=density)
    return counts.astype(x.dtype), edges.astype(x.dtype)


def _differences(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    unless(n == 0 and (prepend is not None or append is not None), "torch leaves them out")
    return ptir.diff(x, n, dim, prepend=prepend, append=append)


def _covariances(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    unless(aweights is not None, "torch weighs in f32")
    return ptir.cov(x, correction=correction, fweights=fweights, aweights=aweights)


def _extremes(x: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    unless(not x.ndim, "an axis of a scalar")
    unless(dim is None and keepdim, "all axes, kept")
    return ptir.aminmax(x, dim=dim, keepdim=keepdim)


_INFINITE = "∞ − ∞, and the mean of both infinities"
_UNSORTED = "the special values are no edges in order"
_ORDER = "zeros of both signs, and NaN by its bits"

ROWS: tuple[Row, ...] = (
    Row("cumprod", _along("cumprod"), SIGNED, **SUMMED),
    *(Row(name, _along(name, first=True), R) for name in ("cummax", "cummin")),
    Row("diff", _differences, NUMBERS),
    Row("var_mean", _moments(root=False), special=False, differs=_INFINITE, **SUMMED),
    Row("std_mean", _moments(root=True), special=False, differs=_INFINITE, **SUMMED),
    Row("var_mean.unbiased", _moments(root=False), special=False, differs=_INFINITE, **SUMMED),
    Row("std_mean.unbiased", _moments(root=True), special=False, differs=_INFINITE, **SUMMED),
    Row(
        "std.unbiased",
        lambda *a, **k: _moments(root=True)(*a, **k)[0],
        special=False,
        differs=_INFINITE,
        **SUMMED,
    ),
    Row("median", _middle("median")),
    Row("nanmedian", _middle("nanmedian"), special=False, differs="how many are no NaN"),
    Row("quantile", _quantile("quantile"), special=False, differs="∞ − ∞ between two", **NAMED),
    Row("nanquantile", _quantile("nanquantile"), special=False, differs="∞ − ∞", **NAMED),
    Row("count_nonzero", _along("count_nonzero"), ANY),
    Row("nansum", _along("nansum"), SIGNED, **SUMMED),
    Row("nanmean", _along("nanmean"), **SUMMED),
    Row("logsumexp", _along("logsumexp"), **SUMMED),
    Row("aminmax", _extremes, R),
    Row("cov", _covariances, NUMBERS, special=False, differs="∞ − ∞", **SUMMED),
    Row("histogram", _histogram, special=False, differs="numbers on an edge", **SUMMED),
    Row("bucketize", lambda *a, **k: ptir.bucketize(*a, **k), R, special=False, differs=_UNSORTED),
    Row("searchsorted", lambda *a, **k: ptir.searchsorted(*a, **k), R),
    Row("gradient", lambda *a, **k: ptir.gradient(*a, **k), **SUMMED),
    Row("trapz", lambda *a, **k: ptir.trapezoid(*a, **k), special=False, differs="∞ − ∞", **SUMMED),
    Row("argwhere", lambda x: ptir.argwhere(x), ANY, compiled=0),
    Row(
        "unique",
        lambda *a, **k: ptir.unique(*a, **k),
        NUMBERS,
        compiled=0,
        special=False,
        differs=_ORDER,
    ),
    Row("trace", lambda x: ptir.trace(x), SIGNED, **SUMMED),
)

"""Functions that take all arguments of torch's samples, by position and keyword, as they are."""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs import ptir
from tests.support.op_info.row import SUMMED, R, Row, unless


def _direct(name: str) -> Callable[..., Any]:
    """The function of this name, for all but scalars."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        parts = [part for part in (x, *args, *kwargs.values()) if isinstance(part, ptir.Tensor)]
        unless(any(not part.ndim for part in parts), "an axis of a scalar")
        found = getattr(ptir, name)(x, *args, **kwargs)
        return found[0] if name == "mode" else found

    return call


def _reduced(x: Any, dim: int, index: Any, source: Any, reduce: str, **kwargs: Any) -> Any:
    unless(not x.ndim or index.ndim != x.ndim, "an axis of a scalar")
    return ptir.scatter_reduce(x, dim, index, source, reduce, **kwargs)


def _part(x: Any, *args: Any, **kwargs: Any) -> Any:
    unless(not x.ndim, "an axis of a scalar")
    return x.unfold(*args, **kwargs)


_WITHOUT_ENDS = "torch subtracts the ends from the sum, and an infinite one from itself"

ROWS: tuple[Row, ...] = (
    Row("scatter_reduce.prod", _reduced, R, **SUMMED),
    Row("scatter_reduce.mean", _reduced, R, **SUMMED),
    Row("index_reduce.prod", _direct("index_reduce"), R, **SUMMED),
    Row("index_reduce.mean", _direct("index_reduce"), R, **SUMMED),
    Row("index_reduce.amax", _direct("index_reduce"), R),
    Row("index_reduce.amin", _direct("index_reduce"), R),
    Row("index_put", _direct("index_put"), R, **SUMMED),
    Row("index_fill", _direct("index_fill"), R),
    Row("unfold", _part, R),
    Row("logcumsumexp", _direct("logcumsumexp"), **SUMMED),
    Row("cumulative_trapezoid", _direct("cumulative_trapezoid"), **SUMMED),
    Row("trapezoid", _direct("trapezoid"), special=False, differs=_WITHOUT_ENDS, **SUMMED),
    Row("mode", _direct("mode"), R, special=False, differs="NaN is last, and each one alone"),
    Row("unique_consecutive", _direct("unique_consecutive"), R, compiled=0),
    Row("histc", _direct("histc"), special=False, differs="no width between the largest floats"),
    Row("cdist", _direct("cdist"), special=False, differs="NaN is a difference", **SUMMED),
    Row("dist", _direct("dist"), **SUMMED),
    Row("renorm", _direct("renorm"), **SUMMED),
)

"""Segment reduction: rows combined by the segment that each belongs to."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gptrs.errors import ArgumentError, ElementError, ShapeError
from gptrs.ir.checks import require
from gptrs.ir.dims import Dim, same
from gptrs.ir.extremes import MAXIMUM, MINIMUM
from gptrs.ir.kinds import OpKind
from gptrs.ir.operands import widened
from gptrs.ir.ops.literal import check_extents
from gptrs.ir.primitives import primitive
from gptrs.ir.program import Fails
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, Kind, Type, as_dtype, shape_text

__all__ = ["segment_reduce"]

SegmentReduce = Literal["add", "mul", "max", "min", "mean"]


@primitive(kind=OpKind.INDEX)
def segment_reduce(
    x: Tensor, segments: Tensor, *, count: int | Dim, reduce: SegmentReduce = "add"
) -> Type:
    """result[s, ...] = the rows x[i, ...] with segments[i] = s, combined.

    x [N, ...], segments [N] with integers from 0 to count − 1 in any order, result [count, ...].
    A segment without rows is 0 (add), 1 (mul), NaN (mean), and for max and min −∞ and +∞ in floats,
    the least and the greatest number of the dtype in integers. Rows are combined in order, narrow
    floats in f32; NaN wins in max and min, integers wrap in add and mul and have no mean. Raises
    `ElementError` where an entry of ``segments`` is no segment.
    """
    if reduce not in _KINDS:
        raise ArgumentError(f"reduce is {reduce!r}, expected one of {', '.join(_KINDS)}")
    require(x, *_KINDS[reduce])
    require(segments, "int", "uint")
    if x.ndim == 0:
        raise ShapeError("x has rank 0: there are no rows to combine")
    if segments.ndim != 1 or not same(segments.shape[0], x.shape[0]):
        raise ShapeError(
            f"segments has shape {shape_text(segments.shape)}, expected"
            f" {shape_text(x.shape[:1])}: one entry per row of x"
        )
    check_extents((count,))
    return x.type.with_shape((count, *x.shape[1:]))


# Not an `arithmetic` op: the result of an empty segment depends on the dtype before widening.
@segment_reduce.numpy
def _(x: Array, segments: Array, *, count: int, reduce: SegmentReduce) -> Array:
    places = segments.astype(np.int64)
    wrong = (places < 0) | (places >= count)
    if wrong.any():
        raise ElementError(
            f"segment {segments[wrong][0]} is out of range for {count} segments",
            fix="clamp the segments, or look at where they come from",
        )
    rows: Array = widened(x)
    empty = empty_segment(as_dtype(x.dtype), reduce)
    result = np.full((count, *x.shape[1:]), empty, rows.dtype)
    _COMBINE[reduce].at(result, places, rows)
    if reduce == "mean":
        sizes = np.bincount(places, minlength=count).reshape(count, *[1] * (x.ndim - 1))
        result /= sizes.astype(rows.dtype)
    return result


@segment_reduce.failing
def _(*_: Tensor, **__: object) -> Fails:
    return Fails.AT_ELEMENTS


segment_reduce.harmless = {"segments": 0}


_NUMERIC: tuple[Kind, ...] = ("int", "uint", "float", "complex")
_KINDS: dict[str, tuple[Kind, ...]] = {
    "add": _NUMERIC,
    "mul": _NUMERIC,
    "max": ("int", "uint", "float"),
    "min": ("int", "uint", "float"),
    "mean": ("float", "complex"),
}
_COMBINE: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "max": MAXIMUM,
    "min": MINIMUM,
    "mean": np.add,
}


def empty_segment(dtype: DType, reduce: str) -> float:
    """The initial value of a segment, which is its result without rows."""
    if reduce in ("max", "min"):
        low, high = dtype.limits if dtype.is_integer else (-np.inf, np.inf)
        return low if reduce == "max" else high
    return float(reduce == "mul")

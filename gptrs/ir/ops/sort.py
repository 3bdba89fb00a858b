"""Order along an axis: sort, top_k, searchsorted. NaN counts as greater than every number."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

import numpy as np

from gptrs.errors import ArgumentError, ElementError, ShapeError
from gptrs.ir.checks import one_dtype, require
from gptrs.ir.dims import Dim, same_shape, surely_greater
from gptrs.ir.kinds import OpKind
from gptrs.ir.primitives import Primitive
from gptrs.ir.program import Attrs, Fails
from gptrs.ir.row_rules import axis_mixed
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, dim_text, normal_axis, shape_text, si64

__all__ = ["searchsorted", "sort", "top_k"]

P = ParamSpec("P")


def _ordering(fn: Callable[P, tuple[Type, Type]]) -> Primitive[P, tuple[Tensor, Tensor]]:
    """Declare an op that returns sorted elements and their positions; the body is its type rule."""
    return Primitive(fn, arithmetic=True, kind=OpKind.ORDER, rows=axis_mixed)


@_ordering
def sort(x: Tensor, *, axis: int = -1, descending: bool = False) -> tuple[Type, Type]:
    """The elements along ``axis`` in order, and their positions (si64) in ``x``.

    Equal elements stay in their order in ``x``; NaN is last, or first if ``descending``.
    """
    require(x, "int", "uint", "float", "bool")
    return x.type, x.type.with_dtype(si64)


@sort.numpy
def _(x: Array, *, axis: int, descending: bool) -> tuple[Array, Array]:
    order = _order(x, axis, descending)
    return np.take_along_axis(x, order, axis), order


@_ordering
def top_k(x: Tensor, *, k: int | Dim, axis: int = -1, largest: bool = True) -> tuple[Type, Type]:
    """The ``k`` greatest (or least) elements along ``axis``, best first, and where they are (si64).

    Of equal elements the one at the lowest position is better. Raises `ShapeError` when ``k`` is
    more than the extent of the axis.
    """
    require(x, "int", "uint", "float", "bool")
    if isinstance(k, bool) or surely_greater(0, k):
        raise ArgumentError(f"k is {k}, expected an integer of at least 0")
    extent = x.shape[axis]
    if surely_greater(k, extent):
        raise ShapeError(
            f"k is {dim_text(k)}, but axis {axis} has extent {dim_text(extent)}",
            fix=f"k={dim_text(extent)} gives all of them in order",
        )
    values = x.type.with_shape(k if i == axis else n for i, n in enumerate(x.shape))
    return values, values.with_dtype(si64)


@top_k.failing
def _(x: Tensor, *, k: int | Dim, axis: int, largest: bool) -> Fails:
    return Fails.NEVER if surely_greater(x.shape[axis] + 1, k) else Fails.AT_SIZES


@top_k.numpy
def _(x: Array, *, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    if k > x.shape[axis]:  # a symbolic extent: only now known
        raise ElementError(f"k is {k}, but axis {axis} has extent {x.shape[axis]}")
    order = _order(x, axis, descending=largest)
    best = order[tuple(slice(k if i == axis else None) for i in range(x.ndim))]
    return np.take_along_axis(x, best, axis), best


def _searching(fn: Callable[P, Type]) -> Primitive[P, Tensor]:
    return Primitive(fn, arithmetic=True, kind=OpKind.ORDER)


@_searching
def searchsorted(rows: Tensor, values: Tensor, *, right: bool = False) -> Type:
    """The positions (si64) [..., M] at which ``values`` [..., M] keep the sorted ``rows`` [..., N]
    in order: before equal elements, or after them if ``right``. Leading axes are equal.
    """
    one_dtype(rows, values)
    require(rows, "int", "uint", "float", "bool")
    if not (rows.ndim and values.ndim and same_shape(rows.shape[:-1], values.shape[:-1])):
        raise ShapeError(
            f"rows have shape {shape_text(rows.shape)} and values {shape_text(values.shape)},"
            " expected [..., N] and [..., M]"
        )
    return values.type.with_dtype(si64)


searchsorted.promoting("rows", "values")


@searchsorted.numpy
def _(rows: Array, values: Array, *, right: bool) -> Array:
    found = np.empty(values.shape, np.int64)
    for at in np.ndindex(values.shape[:-1]):
        found[at] = np.searchsorted(rows[at], values[at], "right" if right else "left")
    return found


def _order(x: Array, axis: int, descending: bool) -> Array:
    """The positions along ``axis`` in the order of their elements, equal ones from low to high."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    backward = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - backward


def _canonical(x: Tensor, *, axis: int, **_: object) -> Attrs:
    return {"axis": normal_axis(axis, x.ndim)}


sort.canonical(_canonical)
top_k.canonical(_canonical)

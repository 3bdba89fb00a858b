"""Positions of elements: argmax, argmin, nonzero, searchsorted; sort, argsort, top_k, unique.

What depends on values in its size (nonzero, unique) works on arrays, and inside a traced function
with ``size=``, as in JAX: longer results are cut, shorter ones filled.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from gptrs.errors import ArgumentError, ShapeError, TraceError
from gptrs.ir.dims import DimLike, product, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import described
from gptrs.numpy_api.arithmetic import truth
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.taking import take_along_axis

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "flatnonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


def _extreme(op: str, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    x = as_tensor(x)
    x = x.astype("ui8") if x.dtype.is_bool else x
    if axis is not None:
        return OPS[op](x, axis=axis, keepdims=keepdims)
    place: Tensor = OPS[op](x.reshape(-1), axis=0)
    return place.reshape([1] * x.ndim) if keepdims else place


@public
def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position (si64) of the greatest element along ``axis``, or among all in row-major order;
    the first of equals, NaN wins."""
    return _extreme("argmax", x, axis, keepdims)


@public
def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position (si64) of the least element along ``axis``, or among all in row-major order; the
    first of equals, NaN wins."""
    return _extreme("argmin", x, axis, keepdims)


def _sorted(x: Any, axis: int | None, descending: bool) -> tuple[Tensor, Tensor]:
    x = as_tensor(x)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    return OPS["sort"](x, axis=axis, descending=descending)


@public
def sort(
    x: Any,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> Tensor:
    """The elements in order along ``axis`` (None: all in one row), always stable, whatever ``kind``
    says; NaN last, or first if ``descending``. ``ptir.ops.sort`` gives the positions, too."""
    return _sorted(x, axis, descending)[0]


@public
def argsort(
    x: Any,
    axis: int | None = -1,
    kind: str | bool | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> Tensor:
    """The positions (si64) of the elements in order along ``axis``, always stable, whatever
    ``kind`` says; in torch's place of it, ``descending`` may be given."""
    descending = kind if isinstance(kind, bool) else descending
    return _sorted(x, axis, descending)[1]


@public
def searchsorted(
    x1: Any,
    x2: Any,
    side: Literal["left", "right"] | None = None,
    sorter: Any = None,
    *,
    right: bool = False,
    out_int32: bool = False,
) -> Tensor:
    """The positions (si64) at which the elements of ``x2`` keep the sorted row ``x1`` in order:
    before ("left") or after ("right", or torch's ``right``) equal ones. NaN counts as greater than
    every number. With ``out_int32`` as si32.

    A batch of sorted rows [..., N] takes values [..., M] of equal leading axes.
    """
    if out_int32:
        return searchsorted(x1, x2, side, sorter, right=right).astype("si32")
    side = side or ("right" if right else "left")
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side is {side!r}, expected 'left' or 'right'")
    rows, values = as_tensor(x1), as_tensor(x2)
    if not rows.ndim:
        raise ArgumentError("searchsorted: x1 has rank 0, expected a sorted row")
    if sorter is not None:
        rows = take_along_axis(rows, as_tensor(sorter), axis=-1)
    if rows.ndim > 1:
        return OPS["searchsorted"](rows, values, right=side == "right")
    found = OPS["searchsorted"](rows, values.reshape(-1), right=side == "right")
    return found.reshape(values.shape)


def size_of_result(name: str, x: Tensor, size: DimLike | None) -> None:
    if size is None and x.is_traced:
        raise TraceError(
            f"the size of {name}'s result depends on values ({described(x)})",
            fix=f"give the greatest size: {name}(..., size=n); or call it outside of the function",
        )


@public
def nonzero(
    x: Any,
    *,
    size: DimLike | None = None,
    fill_value: int = 0,
    as_tuple: bool = True,
) -> Any:
    """The positions (si64) of the elements that differ from 0, a row for each axis, in row-major
    order; without ``as_tuple`` those of `argwhere`, as torch has them by default. In a traced
    function ``size`` says how many; missing ones are ``fill_value``."""
    x = as_tensor(x)
    if not as_tuple:
        return argwhere(x, size=size, fill_value=fill_value)
    if not x.ndim:
        raise ShapeError("x has rank 0: there is no axis for positions", fix="x.reshape(1)")
    size_of_result("nonzero", x, size)
    if size is None:
        return tuple(Tensor(places.astype(np.int64)) for places in np.nonzero(x.numpy()))
    if any(same(extent, 0) for extent in x.shape):  # whose positions have no division
        missing = OPS["full"](shape=(size,), value=fill_value, dtype="si64")
        return (missing,) * x.ndim
    flat = first_true(truth(x).reshape(-1), size)
    there = flat < product(x.shape)
    places: list[Tensor] = []
    for extent in reversed(x.shape):
        places.append(OPS["select"](there, OPS["remainder"](flat, extent), fill_value))
        flat = flat // extent
    return tuple(reversed(places))


def first_true(mask: Tensor, size: DimLike) -> Tensor:
    """The positions of the first ``size`` elements of a row that hold; its length where there are
    fewer."""
    length = mask.shape[0]
    rank = OPS["cumsum"](OPS["cast"](mask, dtype="si64"), axis=0) - 1
    inside = OPS["logical_and"](mask, rank < size)
    slot = OPS["select"](inside, rank, size)  # one more slot takes those that are left out
    start = OPS["full"](shape=(size + 1,), value=length, dtype="si64")
    positions = OPS["iota"](shape=(length,), dtype="si64")
    placed = OPS["scatter_reduce"](start, slot, positions, axis=0, reduce="min")
    return placed[:size]


@public
def flatnonzero(x: Any, *, size: DimLike | None = None, fill_value: int = 0) -> Tensor:
    """The positions in row-major order of the elements that differ from 0."""
    return nonzero(as_tensor(x).reshape(-1), size=size, fill_value=fill_value)[0]


@public
def argwhere(x: Any, *, size: DimLike | None = None, fill_value: int = 0) -> Tensor:
    """The positions of the elements that differ from 0, one in each row [count, rank]."""
    x = as_tensor(x)
    if not x.ndim:  # one position of no axes, or none
        return argwhere(x.reshape(1), size=size)[:, :0]
    places: tuple[Tensor, ...] = nonzero(x, size=size, fill_value=fill_value)
    return OPS["concat"](tuple(place.reshape(-1, 1) for place in places), axis=1)


class UniqueAll(NamedTuple):
    """Distinct values in order, where each is first, where each element is among them, counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


@public
def unique_all(x: Any, *, size: DimLike | None = None) -> UniqueAll:
    """The distinct elements in order, the position of the first of each, the place of each element
    of ``x`` among them, and how many there are of each. NaNs are distinct.

    In a traced function ``size`` says how many: further ones are cut, missing ones repeat the
    greatest value with a count of 0.
    """
    return _distinct(as_tensor(x), size, equal_nan=False)


def _distinct(x: Tensor, size: DimLike | None, equal_nan: bool) -> UniqueAll:
    size_of_result("unique", x, size)
    if size is None:
        found = np.unique(x.numpy(), True, True, True, equal_nan=equal_nan)
        values, first, inverse, counts = (Tensor(np.asarray(part)) for part in found)
        return UniqueAll(values, first, inverse.reshape(x.shape), counts)
    flat = x.reshape(-1)
    ordered, order = OPS["sort"](flat, axis=0)
    count = flat.shape[0]
    changes = OPS["not_equal"](ordered[1:], ordered[:-1])
    if equal_nan and x.dtype.is_float:  # NaN is last
        changes = OPS["logical_and"](changes, OPS["equal"](ordered[:-1], ordered[:-1]))
    starts = OPS["concat"]((OPS["full"](shape=(1,), value=True, dtype="i1"), changes), axis=0)
    group = OPS["cumsum"](OPS["cast"](starts, dtype="si64"), axis=0) - 1
    places = first_true(starts, size)
    safe = OPS["minimum"](places, count - 1)
    values = OPS["take"](ordered, safe)
    first = OPS["take"](order, safe)
    end = OPS["full"](shape=(1,), value=count, dtype="si64")
    counts = OPS["concat"]((places[1:], end), axis=0) - places
    inverse = OPS["scatter_reduce"](order, order, group, axis=0, reduce="replace")
    return UniqueAll(values, first, inverse.reshape(x.shape), counts)


def _unique_slices(x: Tensor, axis: int, asked: tuple[bool, bool, bool]) -> Any:
    size_of_result("unique", x, None)
    found = np.unique(x.numpy(), True, True, True, axis=axis)
    wanted = (part for part, wanted in zip(found, (True, *asked), strict=True) if wanted)
    parts = tuple(Tensor.of_array(np.asarray(part)) for part in wanted)
    return parts if any(asked) else parts[0]


@public
def unique_counts(x: Any, *, size: DimLike | None = None) -> UniqueCounts:
    """The distinct elements in order, and how many there are of each."""
    found = unique_all(x, size=size)
    return UniqueCounts(found.values, found.counts)


@public
def unique_inverse(x: Any, *, size: DimLike | None = None) -> UniqueInverse:
    """The distinct elements in order, and the place of each element of ``x`` among them."""
    found = unique_all(x, size=size)
    return UniqueInverse(found.values, found.inverse_indices)


@public
def unique_values(x: Any, *, size: DimLike | None = None) -> Tensor:
    """The distinct elements in order."""
    return unique_all(x, size=size).values


@public
def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    size: DimLike | None = None,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The distinct elements in order (also if not ``sorted``), and what of `unique_all` is asked
    for; along ``axis`` the distinct slices, of arrays alone. NaN is one element, unless
    ``equal_nan`` is false."""
    if axis is not None:
        return _unique_slices(as_tensor(x), axis, (return_index, return_inverse, return_counts))
    found = _distinct(as_tensor(x), size, equal_nan)
    asked = (return_index, return_inverse, return_counts)
    more = [part for part, wanted in zip(found[1:], asked, strict=True) if wanted]
    return (found.values, *more) if more else found.values

"""Arrays with parts added, removed or replaced; cuts along a named axis; orders by several keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from gptrs.errors import ArgumentError, ShapeError, TraceError
from gptrs.ir.dims import Dim, product
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import described
from gptrs.ir.types import normal_axis, shape_text
from gptrs.numpy_api.creation import full, shape_of
from gptrs.numpy_api.data_types import result_type
from gptrs.numpy_api.function import alike, as_tensor, public
from gptrs.numpy_api.joining import concat, split
from gptrs.numpy_api.manipulation import broadcast_to, moveaxis, ravel
from gptrs.numpy_api.searching import argsort, sort
from gptrs.numpy_api.taking import from_front, take

__all__ = [
    "append",
    "argpartition",
    "delete",
    "dsplit",
    "ediff1d",
    "hsplit",
    "insert",
    "lexsort",
    "partition",
    "put_along_axis",
    "resize",
    "rollaxis",
    "sort_complex",
    "trim_zeros",
    "vsplit",
]


@public(other_names={"arr": "x"})
def append(x: Any, values: Any, axis: int | None = None) -> Tensor:
    """``values`` after ``x`` along ``axis``; without one both in a row."""
    return concat(alike(x, values), axis)


def _static(name: str, places: Any) -> np.ndarray[Any, Any] | slice:
    """The positions that an edit is about, which give its result a shape."""
    if isinstance(places, slice):
        return cast("slice", places)
    if isinstance(places, Tensor):
        if places.is_traced:
            raise TraceError(
                f"{name}: the shape of the result depends on values ({described(places)})",
                fix="give positions that are known while tracing, or use where",
            )
        places = places.numpy()
    return np.asarray(places)


def _extent(name: str, x: Tensor, axis: int) -> int:
    extent = x.shape[axis]
    if isinstance(extent, Dim):
        raise ShapeError(f"{name}: axis {axis} has the symbolic size {extent}, expected a number")
    return extent


@public(other_names={"arr": "x"})
def delete(x: Any, obj: Any, axis: int | None = None) -> Tensor:
    """``x`` without what ``obj`` (an integer, several, a slice or a mask) names along ``axis``, or
    among all elements in a row."""
    x = as_tensor(x)
    x, axis = (ravel(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    if isinstance(obj, int) and isinstance(x.shape[axis], Dim):
        keys = (slice(None),) * axis
        after = slice(obj + 1, None) if obj != -1 else slice(0, 0)
        return concat([x[(*keys, slice(obj))], x[(*keys, after)]], axis)
    places = np.arange(_extent("delete", x, axis))
    try:
        kept = np.delete(places, _static("delete", obj))
    except (IndexError, ValueError) as error:
        raise ArgumentError(f"delete: {error}") from None
    return take(x, kept, axis)


@public(other_names={"arr": "x"})
def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """``x`` with ``values`` before the positions ``obj`` along ``axis``, or among all elements in a
    row."""
    x, new = alike(x, values)
    x, axis = (ravel(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    places = _static("insert", obj)
    if isinstance(places, np.ndarray) and places.ndim == 0 and new.ndim:
        new = moveaxis(new, 0, axis) if new.ndim == x.ndim else new[(slice(None),) * axis + (None,)]
    count = new.shape[axis] if new.ndim == x.ndim else 1
    if isinstance(obj, int) and isinstance(x.shape[axis], Dim):
        new = broadcast_to(new, tuple(count if i == axis else n for i, n in enumerate(x.shape)))
        keys = (slice(None),) * axis
        return concat([x[(*keys, slice(obj))], new, x[(*keys, slice(obj, None))]], axis)
    extent = _extent("insert", x, axis)
    asked = [places] * count if isinstance(places, np.ndarray) and not places.ndim else places
    asked = np.asarray(asked) if not isinstance(asked, slice) else asked
    try:
        # Where each part of the result comes from: its place in x, or -1 - its number in new.
        numbers = np.arange(extent if isinstance(asked, slice) else asked.size)
        wanted = numbers[asked] if isinstance(asked, slice) else asked
        source = np.insert(np.arange(extent), wanted, -1 - np.arange(wanted.size))
    except (IndexError, ValueError) as error:
        raise ArgumentError(f"insert: {error}") from None
    shape = tuple(wanted.size if i == axis else n for i, n in enumerate(x.shape))
    parts = concat([x, broadcast_to(new.astype(x.dtype), shape)], axis)
    return take(parts, np.where(source < 0, extent - 1 - source, source), axis)


@public
def ediff1d(x: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """The differences of neighbours of all elements in a row, between ``to_begin`` and
    ``to_end``."""
    row = ravel(x)
    steps = row[1:] - row[:-1]
    ends = [None if end is None else ravel(end).astype(row.dtype) for end in (to_begin, to_end)]
    return concat([part for part in (ends[0], steps, ends[1]) if part is not None], 0)


def _cut(x: Any, parts: Any, axis: int) -> list[Tensor]:
    return split(x, parts, axis)


@public
def hsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """`split` along axis 1, or 0 of a row."""
    x = as_tensor(x)
    return _cut(x, indices_or_sections, 1 if x.ndim > 1 else 0)


@public
def vsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """`split` along axis 0."""
    return _cut(x, indices_or_sections, 0)


@public
def dsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """`split` along axis 2."""
    return _cut(x, indices_or_sections, 2)


@public
def rollaxis(x: Any, axis: int, start: int = 0) -> Tensor:
    """``axis`` moved back until it stands before ``start``."""
    x = as_tensor(x)
    axis = normal_axis(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


@public
def resize(x: Any, new_shape: Any) -> Tensor:
    """The elements of ``x`` in order, over and over, in another shape."""
    row, shape = ravel(x), shape_of(new_shape)
    count = product(shape)
    if isinstance(count, Dim) or isinstance(row.shape[0], Dim):
        raise ShapeError("resize: a size is symbolic, expected numbers", fix="use reshape")
    if not row.shape[0]:
        return full(shape, 0, dtype=row.dtype)
    return take(row, np.arange(count) % row.shape[0]).reshape(shape)


@public(other_names={"arr": "x"})
def put_along_axis(x: Any, indices: Any, values: Any, axis: int | None) -> Tensor:
    """``x`` with ``values`` where ``indices`` point along ``axis``, as a new array: as with
    `take_along_axis`, but written."""
    x, indices, values = as_tensor(x), as_tensor(indices), as_tensor(values)
    if axis is None:
        return put_along_axis(ravel(x), ravel(indices), values, 0).reshape(x.shape)
    axis = normal_axis(axis, x.ndim)
    places = from_front(indices, x.shape[axis])
    shape = tuple(n if i == axis else x.shape[i] for i, n in enumerate(places.shape))
    source = broadcast_to(values.astype(x.dtype), shape)
    places = broadcast_to(places, shape)
    return OPS["scatter_reduce"](x, places, source, axis=axis, reduce="replace")


@public
def partition(x: Any, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """The elements with the ``kth`` in its place in order, lesser ones before it, along ``axis``:
    here all are in order."""
    return sort(x, axis)


@public
def argpartition(x: Any, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """The positions that `partition` takes elements from: here those of all in order."""
    return argsort(x, axis)


@public
def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """The positions in the order of several keys, the last of which counts most."""
    parts = [as_tensor(key) for key in keys]
    if not parts:
        raise ArgumentError("lexsort: there is no key")
    axis = normal_axis(axis, parts[0].ndim)
    order = argsort(parts[0], axis)
    for key in parts[1:]:
        ranked = OPS["gather"](key, order, axis=axis)
        order = OPS["gather"](order, argsort(ranked, axis), axis=axis)
    return order


@public(other_names={"a": "x"})
def sort_complex(x: Any) -> Tensor:
    """The elements as complex numbers in order of their real, then of their imaginary parts, along
    the last axis."""
    x = as_tensor(x)
    x = x if x.dtype.is_complex else x.astype(result_type(x, "cf32"))
    return OPS["gather"](x, lexsort((OPS["imag"](x), OPS["real"](x))), axis=-1)


@public(other_names={"filt": "x"})
def trim_zeros(x: Any, trim: str = "fb") -> Tensor:
    """The row ``x`` without the zeros at its front ("f"), its back ("b"), or both. How many there
    are depends on values, so it is not for traced functions."""
    x = as_tensor(x)
    if x.ndim != 1:
        raise ShapeError(f"trim_zeros takes a row, found {shape_text(x.shape)}")
    if x.is_traced:
        raise TraceError(
            f"trim_zeros: the length of the result depends on values ({described(x)})",
            fix="call it outside of the function",
        )
    sides = trim.lower()
    present = np.flatnonzero(x.numpy())
    if not present.size:
        return x[:0]
    first = int(present[0]) if "f" in sides else 0
    return x[first : int(present[-1]) + 1 if "b" in sides else None]

"""The key of ``x[key]`` as one part for each axis: NumPy's integers, slices, arrays and masks.

| in a key | part | axes of x |
|---|---|---|
| ``None`` | `NEW`: an axis of extent 1 | 0 |
| integer, NumPy integer, symbolic size | `Position`, known while tracing | 1 |
| slice | `Span`, of any step but 0 | 1 |
| list, array or Tensor of integers | `Places`, known or traced | 1 |
| list, array or Tensor of bools | `Mask` | its rank |
| ``...`` | whole spans | the rest |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from gptrs.errors import ArgumentError, DTypeError, PositionError, ShapeError, TraceError
from gptrs.ir.dims import Dim, DimLike, same, surely_greater
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import code_of, described
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import as_tensor


class Position(NamedTuple):
    """One place, counted from the front: its axis goes."""

    start: DimLike


class Span(NamedTuple):
    """``size`` places from ``start``, ``step`` apart; backwards where ``step`` is negative."""

    start: DimLike
    size: DimLike
    step: int = 1


class Places(NamedTuple):
    """Places in the order of an integer tensor, not yet counted from the front."""

    indices: Tensor


class Mask(NamedTuple):
    """The places at which a tensor of bools holds."""

    mask: Tensor


class Gap(NamedTuple):
    """``...`` in the place of no axis: it separates index arrays."""


NEW = None
Part: TypeAlias = Position | Span | Places | Mask | Gap | None


def parts_of(x: Tensor, key: Any) -> list[Part]:
    """The parts of ``key``, which together name each axis of ``x`` once.

    Raises `PositionError` for a known place out of range and for too many indices, `DTypeError` for
    indices of other dtypes.
    """
    given = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    keys = [part if _is_basic(part) else _array(part) for part in given]
    used = sum(map(_axes_used, keys))
    if used > x.ndim:
        raise PositionError(f"x[...] has {used} indices, x has {x.ndim} axes")
    gaps = [at for at, part in enumerate(keys) if part is Ellipsis]
    if len(gaps) > 1:
        raise ArgumentError("x[...] has more than one `...`")
    at = gaps[0] if gaps else len(keys)
    rest: list[Any] = [slice(None)] * (x.ndim - used)
    keys[at : at + 1] = rest or [Gap()] * len(gaps)
    parts: list[Part] = []
    axis = 0
    for part in keys:
        parts.append(_part(x, part, axis))
        axis += _axes_used(part)
    return parts


def as_row(x: Tensor, key: Any) -> tuple[Tensor, Any] | None:
    """For one bool as the key, ``x`` as the one row of an array and the mask of that row: x[True]
    has it, x[False] none. None for other keys."""
    if isinstance(key, tuple | list) or getattr(key, "ndim", 0) or not _is_bool(key):
        return None
    mask = as_tensor(np.array(key) if isinstance(key, bool) else key)
    mask = mask.reshape(1) if mask.is_traced else Tensor(mask.numpy().reshape(1))
    return x.reshape([1, *x.shape]), mask


def _is_bool(key: Any) -> bool:
    return isinstance(key, bool) or getattr(key, "dtype", int) == np.bool_


def without_masks(parts: Iterable[Part]) -> list[Part]:
    """``parts`` with the positions of masks in their place. Raises `TraceError` for one that is
    traced: how many positions there are would depend on values."""
    found: list[Part] = []
    for part in parts:
        if not isinstance(part, Mask):
            found.append(part)
            continue
        if part.mask.is_traced:
            mask = code_of(part.mask, "mask")
            raise TraceError(
                f"the size of x[mask] depends on the values of a traced mask"
                f" ({described(part.mask)})",
                fix=f"keep the shape: ptir.where({mask}, x, 0); or give the size:"
                f" x[ptir.nonzero({mask}, size=n)]; x[{mask}] = v works, and for x[{mask}] += v"
                f" x = x.at[{mask}].add(v)",
            )
        found += [Places(Tensor(places)) for places in np.nonzero(part.mask.numpy())]
    return found


def _is_basic(part: Any) -> bool:
    if isinstance(part, bool | np.bool_):
        raise ArgumentError("True stands beside other indices", fix="x[None] adds an axis")
    return part is None or part is Ellipsis or isinstance(part, slice | int | np.integer | Dim)


def _array(part: Any) -> Tensor:
    if isinstance(part, list | tuple) and not part:
        return Tensor(np.zeros(0, np.int64))
    if isinstance(part, float | complex | str):
        raise ArgumentError(f"x[...] is indexed with {part!r}, expected integers, slices or arrays")
    array = as_tensor(part)
    if not (array.dtype.is_integer or array.dtype.is_bool):
        raise DTypeError(
            f"x[...] is indexed with {array.type}, expected integers or bools",
            fix=f"{code_of(array, 'i')}.astype('si64')",
        )
    if array.dtype.is_bool and not array.ndim:
        raise ArgumentError(
            "a bool of rank 0 stands beside other indices", fix="x[None] adds an axis"
        )
    return array


def _axes_used(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, Gap):
        return 0
    return part.ndim if isinstance(part, Tensor) and part.dtype.is_bool else 1


def _part(x: Tensor, part: Any, axis: int) -> Part:
    if part is None:
        return NEW
    if isinstance(part, Gap):
        return part
    if isinstance(part, slice):
        return _span(cast("slice[Any, Any, Any]", part), x.shape[axis], axis)
    if not isinstance(part, Tensor):
        return Position(_position(part, x.shape[axis], axis))
    if not part.dtype.is_bool:
        return Places(part)
    covered = x.shape[axis : axis + part.ndim]
    if not all(map(same, part.shape, covered)):
        raise PositionError(
            f"a mask of shape {shape_text(part.shape)} does not fit axes {axis} to"
            f" {axis + part.ndim - 1} of x, whose extents are {shape_text(covered)}"
        )
    return Mask(part)


def _position(part: Any, extent: DimLike, axis: int) -> DimLike:
    place: DimLike = part if isinstance(part, Dim) else part.__index__()
    if not isinstance(place, Dim) and place < 0:
        place = extent + place
    if surely_greater(0, place) or surely_greater(place + 1, extent):  # others fail at their sizes
        raise PositionError(f"index {part} is out of range for axis {axis} of extent {extent}")
    return place


def _span(part: slice, extent: DimLike, axis: int) -> Span:
    """Start, size and step of a slice, clipped to the extent as Python does."""
    step = 1 if part.step is None else int(part.step.__index__())
    if not step:
        raise ArgumentError(f"the slice of axis {axis} has step 0")
    ends = (part.start, part.stop)
    if not isinstance(extent, Dim) and not any(isinstance(end, Dim) for end in ends):
        found = range(*slice(_known(part.start), _known(part.stop), step).indices(extent))
        return Span(found.start, len(found), step)
    if step > 0:
        first, last = _bound(part.start, extent, 0), _bound(part.stop, extent, extent)
    else:  # the same places from the other side
        first = _bound(part.stop, extent, -1) + 1
        last = _bound(part.start, extent, extent - 1) + 1
    length = last - first
    if surely_greater(0, length) or surely_greater(last, extent) or surely_greater(0, first):
        raise ShapeError(f"slice {first}:{last} does not fit axis {axis} of extent {extent}")
    size = length if abs(step) == 1 else (length + (abs(step) - 1)) // abs(step)
    return Span(first if step > 0 else last - 1, size, step)


def _known(end: Any) -> int | None:
    if isinstance(end, Tensor) and end.is_traced:
        raise TraceError(
            f"a slice ends at a traced value ({described(end)}): its size is not known",
            fix="ptir.dynamic_slice(x, start, sizes=...) has a size that is known",
        )
    return None if end is None else int(end.__index__())


def _bound(value: Any, extent: DimLike, default: DimLike) -> DimLike:
    if value is None:
        return default
    if isinstance(value, Dim):
        return value
    place = cast("int", _known(value))
    return extent + place if place < 0 else place

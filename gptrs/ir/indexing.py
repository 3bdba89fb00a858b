"""NumPy-style indexing ``x[...]`` in terms of ops: integers, slices, None, Ellipsis, integer
tensors.

Called by `Operators.__getitem__`. Static integers and slices become ``slice_`` and ``reshape``; an
integer tensor becomes ``take``.
"""

from __future__ import annotations

from typing import Any, SupportsIndex, TypeGuard, cast

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike, same, surely_greater
from gptrs.ir.dispatch import OPS


def index(x: Any, key: Any) -> Any:
    """``x[key]`` by NumPy's rules, without boolean masks and negative steps.

    An integer tensor (at most one, all else before it whole) selects along its axis.
    """
    keys = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    keys = _fill_ellipsis(keys, x.ndim)
    starts: list[DimLike] = []
    sizes: list[DimLike] = []
    strides: list[int] = []
    shape: list[DimLike] = []  # after dropping integer axes and adding new ones
    chosen: tuple[int, Any] | None = None
    axis = 0
    for part in keys:
        if part is None:
            shape.append(1)
            continue
        extent = x.shape[axis]
        if isinstance(part, slice):
            start, size, stride = _span(cast("slice[Any, Any, Any]", part), extent, axis)
            shape.append(size)
        elif _is_static_index(part):
            start, size, stride = _position(part, extent, axis), 1, 1
        else:
            if chosen is not None:
                raise ArgumentError("x[...] takes one index tensor only", fix="use ptir.gather")
            chosen = len(shape), part
            start, size, stride = 0, extent, 1
            shape.append(size)
        starts.append(start)
        sizes.append(size)
        strides.append(stride)
        axis += 1
    whole = all(s == 1 for s in strides) and all(map(same, sizes, x.shape))
    if not whole:
        x = OPS["slice"](x, starts=tuple(starts), sizes=tuple(sizes), strides=tuple(strides))
    if len(shape) != x.ndim or not all(map(same, shape, x.shape)):
        x = OPS["reshape"](x, shape=tuple(shape))
    return x if chosen is None else _take(x, *chosen)


def _take(x: Any, axis: int, positions: Any) -> Any:
    if getattr(getattr(positions, "dtype", None), "name", "").startswith(("bool", "i1")):
        raise ArgumentError(
            "x[mask] has a size that is not known while tracing",
            fix="ptir.select(mask, x, other) keeps the shape",
        )
    if axis == 0:
        return OPS["take"](x, positions)
    order = (axis, *(i for i in range(x.ndim) if i != axis))
    taken = OPS["take"](OPS["transpose"](x, perm=order), positions)
    new = taken.ndim - x.ndim + 1  # axes that the positions brought
    back = (*range(new, new + axis), *range(new), *range(new + axis, taken.ndim))
    return OPS["transpose"](taken, perm=back)


def _fill_ellipsis(keys: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    used = sum(key is not None and key is not Ellipsis for key in keys)
    if used > rank:
        raise ShapeError(f"x[...] has {used} indices, x has {rank} axes")
    whole = (slice(None),) * (rank - used)
    for at, key in enumerate(keys):
        if key is Ellipsis:
            return keys[:at] + whole + tuple(k for k in keys[at + 1 :] if k is not Ellipsis)
    return keys + whole


def _is_static_index(part: Any) -> TypeGuard[int | Dim]:
    if isinstance(part, Dim):
        return True
    if isinstance(part, bool | np.bool_):
        raise ArgumentError("x[True] is not supported", fix="x[None] adds an axis")
    # A Tensor or an array is a run-time index even when it has rank 0.
    return isinstance(part, SupportsIndex) and not hasattr(part, "shape")


def _position(part: DimLike, extent: DimLike, axis: int) -> DimLike:
    if not isinstance(part, Dim) and part < 0:
        part = extent + part
    elif not isinstance(part, Dim):
        part = part.__index__()
    if surely_greater(0, part) or not surely_greater(extent, part):
        raise ShapeError(f"index {part} is out of range for axis {axis} of extent {extent}")
    return part


def _span(part: slice, extent: DimLike, axis: int) -> tuple[DimLike, DimLike, int]:
    """Start, size and stride of a slice, clipped to the extent as Python does."""
    stride = 1 if part.step is None else part.step.__index__()
    if stride < 1:
        raise ArgumentError(f"a slice of axis {axis} has step {stride}, expected at least 1")
    if not isinstance(extent, Dim) and not any(isinstance(p, Dim) for p in (part.start, part.stop)):
        found = range(*part.indices(extent))
        return found.start, len(found), stride
    start = _bound(part.start, extent, 0)
    stop = _bound(part.stop, extent, extent)
    length = stop - start
    if surely_greater(0, length) or surely_greater(stop, extent) or surely_greater(0, start):
        raise ShapeError(f"slice {start}:{stop} does not fit axis {axis} of extent {extent}")
    return start, length if stride == 1 else (length + (stride - 1)) // stride, stride


def _bound(value: Any, extent: DimLike, default: DimLike) -> DimLike:
    if value is None:
        return default
    if isinstance(value, Dim):
        return value
    value = value.__index__()
    return extent + value if value < 0 else value

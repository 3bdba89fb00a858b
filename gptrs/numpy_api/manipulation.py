"""Shapes and order of elements: reshape, broadcast_to, transpose, moveaxis, flip, roll, repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, normal_axis
from gptrs.numpy_api.creation import Extents, shape_of
from gptrs.numpy_api.function import as_tensor, public

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "expand_dims",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "moveaxis",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "squeeze",
    "swapaxes",
    "tile",
    "transpose",
]

Axes = int | Sequence[int]


def _axes(axes: Axes, rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in the order given."""
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    normal = tuple(normal_axis(axis, rank) for axis in given)
    if len(set(normal)) != len(normal):
        raise ShapeError(f"axes {given} name an axis twice")
    return normal


@public
def atleast_1d(x: Any, *more: Any) -> Any:
    """``x`` with at least one axis; of several arrays a tuple."""
    if more:
        return tuple(map(atleast_1d, (x, *more)))
    x = as_tensor(x)
    return x if x.ndim else x.reshape(1)


@public
def atleast_2d(x: Any, *more: Any) -> Any:
    """``x`` with at least two axes; a vector is a row; of several arrays a tuple."""
    if more:
        return tuple(map(atleast_2d, (x, *more)))
    x = atleast_1d(x)
    return x if x.ndim > 1 else x.reshape(1, -1)


@public
def atleast_3d(x: Any, *more: Any) -> Any:
    """``x`` with at least three axes; a matrix gets a last one; of several arrays a tuple."""
    if more:
        return tuple(map(atleast_3d, (x, *more)))
    x = as_tensor(x)
    if x.ndim < 2:
        return x.reshape(1, -1, 1)
    return x if x.ndim > 2 else expand_dims(x, -1)


@public
def reshape(
    x: Any, shape: Extents, *more: DimLike, copy: bool | None = None, order: str = "C"
) -> Tensor:
    """The same elements in row-major order in another shape; one extent may be -1. With ``order``
    "F" they are read and placed with the first axis fastest."""
    if order not in ("A", "C", "F"):
        raise ArgumentError(f"order is {order!r}, expected 'C' or 'F'")
    wanted = shape_of((shape, *more) if more else shape)  # type: ignore[arg-type]
    if order == "F":
        return OPS["reshape"](as_tensor(x).T, shape=tuple(reversed(wanted))).T
    return OPS["reshape"](as_tensor(x), shape=wanted)


@public
def ravel(x: Any, order: str = "C") -> Tensor:
    """All elements in one row, in row-major order or with the first axis fastest ("F")."""
    return reshape(x, -1, order=order)


@public(other_names={"start": "start_dim", "end": "end_dim"})
def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from ``start_dim`` to ``end_dim`` as one."""
    x = as_tensor(x)
    if not x.ndim:
        return x.reshape(1)
    first, last = normal_axis(start_dim, x.ndim), normal_axis(end_dim, x.ndim)
    if first > last:
        raise ShapeError(f"flatten: axis {start_dim} comes after axis {end_dim}")
    extent: DimLike = 1
    for n in x.shape[first : last + 1]:
        extent = extent * n
    return x.reshape([*x.shape[:first], extent, *x.shape[last + 1 :]])


@public
def broadcast_to(x: Any, shape: Extents) -> Tensor:
    """``x`` repeated along new leading axes and axes of extent 1."""
    return OPS["broadcast_to"](as_tensor(x), shape=shape_of(shape))


@public
def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """All arrays in the shape that they broadcast to."""
    made = [as_tensor(x) for x in arrays]
    shape = broadcast_shapes(*(x.shape for x in made))
    return tuple(broadcast_to(x, shape) for x in made)


@public
def expand_dims(x: Any, axis: Axes = 0) -> Tensor:
    """``x`` with new axes of extent 1 at these places of the result."""
    x = as_tensor(x)
    count = 1 if isinstance(axis, int) else len(axis)
    places = _axes(axis, x.ndim + count)
    extents = iter(x.shape)
    return x.reshape([1 if i in places else next(extents) for i in range(x.ndim + count)])


@public
def squeeze(x: Any, axis: Axes | None = None) -> Tensor:
    """``x`` without these axes of extent 1, or without all of them."""
    x = as_tensor(x)
    if axis is None:
        drop = {i for i, n in enumerate(x.shape) if not isinstance(n, Dim) and n == 1}
    else:
        drop = set(_axes(axis, x.ndim))
    for i in drop:
        if isinstance(x.shape[i], Dim) or x.shape[i] != 1:
            raise ShapeError(f"axis {i} has extent {x.shape[i]}, expected 1")
    return x.reshape([n for i, n in enumerate(x.shape) if i not in drop])


@public(op="transpose", other_names={"perm": "axes"})
def permute_dims(x: Any, axes: Sequence[int]) -> Tensor:
    """All axes in another order: axis i of the result is axis ``axes[i]`` of ``x``."""
    return OPS["transpose"](as_tensor(x), perm=tuple(axes))


@public(other_names={"perm": "axes"})
def transpose(x: Any, axes: Sequence[int] | None = None, *more: int) -> Tensor:
    """All axes in the order ``axes``, reversed by default, as in NumPy. ``transpose(x, i, j)``
    exchanges two axes, as in torch."""
    x = as_tensor(x)
    if isinstance(axes, int):
        return x.transpose(axes, *more)
    return permute_dims(x, tuple(reversed(range(x.ndim))) if axes is None else axes)


@public
def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    x = as_tensor(x)
    order = list(range(x.ndim))
    a, b = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    order[a], order[b] = b, a
    return permute_dims(x, order)


@public
def moveaxis(x: Any, source: Axes, destination: Axes) -> Tensor:
    """The axes ``source`` at the places ``destination``; the others keep their order."""
    x = as_tensor(x)
    old, new = _axes(source, x.ndim), _axes(destination, x.ndim)
    if len(old) != len(new):
        raise ShapeError(f"moveaxis: {len(old)} axes to {len(new)} places")
    placed = dict(zip(new, old, strict=True))
    others = iter(i for i in range(x.ndim) if i not in old)
    return permute_dims(x, [placed[i] if i in placed else next(others) for i in range(x.ndim)])


def rows_at(x: Tensor, places: Tensor, axis: int) -> Tensor:
    """The parts of ``x`` at ``places`` along ``axis``, whose place in the shape theirs takes."""
    axis = normal_axis(axis, x.ndim)
    if not axis:
        return OPS["take"](x, places)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if not after and (known := _few_known(x, places)):
        columns = (OPS["slice"](x, starts=(0,) * axis + (n,), sizes=(*before, 1)) for n in known)
        return OPS["concat"](tuple(columns), axis=axis).reshape((*before, *places.shape))
    row = places.reshape(-1)
    index = row.reshape((1,) * len(before) + row.shape + (1,) * len(after))
    full = (*before, *row.shape, *after)
    found = OPS["gather"](x, OPS["broadcast_to"](index, shape=full), axis=axis)
    return found.reshape((*before, *places.shape, *after))


_FEW = 16  # columns that are moved faster than they are looked for


def _few_known(x: Tensor, places: Tensor) -> list[int]:
    """Places along the last axis that tracing knows, if they are few and all are there."""
    extent = x.shape[-1]
    if not x.is_traced or places.is_traced or isinstance(extent, Dim):
        return []
    known: list[int] = places.numpy().ravel().tolist() if places.size <= _FEW else []
    return known if all(0 <= n < extent for n in known) else []


def positions(extent: DimLike) -> Tensor:
    """The positions along an axis, si64[extent]."""
    return OPS["iota"](shape=(extent,), dtype="si64")


@public
def flip(x: Any, axis: Axes | None = None) -> Tensor:
    """The elements in reverse order along ``axis``, or along all axes."""
    x = as_tensor(x)
    axes = range(x.ndim) if axis is None else _axes(axis, x.ndim)
    axes = [each for each in axes if not same(x.shape[each], 0)]
    if not axes:
        return x
    starts = tuple(n - 1 if i in axes else 0 for i, n in enumerate(x.shape))
    steps = tuple(-1 if i in axes else 1 for i in range(x.ndim))
    return OPS["slice"](x, starts=starts, sizes=x.shape, strides=steps)


@public
def flipud(x: Any) -> Tensor:
    """The first axis reversed."""
    return flip(x, 0)


@public
def fliplr(x: Any) -> Tensor:
    """The second axis reversed."""
    return flip(x, 1)


@public
def rot90(x: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """``k`` quarter turns from the first of ``axes`` towards the second."""
    x = as_tensor(x)
    first, second = _axes(axes, x.ndim)
    if k % 4 == 2:
        return flip(x, (first, second))
    if k % 4 == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second) if k % 4 else x


@public(other_names={"shifts": "shift", "dims": "axis"})
def roll(x: Any, shift: DimLike | Sequence[DimLike], axis: Axes | None = None) -> Tensor:
    """The elements moved by ``shift`` places along ``axis``; what leaves one end enters the other.
    Without an axis all elements in row-major order."""
    x = as_tensor(x)
    if axis is None:
        steps = shift if isinstance(shift, int | Dim) else sum(shift)
        return roll(x.reshape(-1), steps, 0).reshape(x.shape)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    steps = (shift,) * len(axes) if isinstance(shift, int | Dim) else tuple(shift)
    axes = axes * len(steps) if len(axes) == 1 else axes
    if len(axes) != len(steps):
        raise ShapeError(f"roll: {len(steps)} shifts for {len(axes)} axes")
    for each, by in zip(axes, steps, strict=True):
        place = normal_axis(each, x.ndim)
        extent = x.shape[place]
        if isinstance(extent, Dim) or isinstance(by, Dim):
            x = rows_at(x, OPS["remainder"](positions(extent) - by, extent), place)
        elif extent and by % extent:
            keys = (slice(None),) * place
            cut = extent - by % extent
            x = OPS["concat"]((x[(*keys, slice(cut, None))], x[(*keys, slice(cut))]), axis=place)
    return x


@public
def repeat(
    x: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None
) -> Tensor:
    """Each element along ``axis`` (None: of all in one row) ``repeats`` times, or as often as a row
    of counts says. Counts that are traced need the length of the result, as in JAX."""
    x = as_tensor(x)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    if isinstance(repeats, int | Dim):
        shape = [*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :]]
        wide = OPS["broadcast_to"](expand_dims(x, axis + 1), shape=shape_of(shape))
        return flatten(wide, axis, axis + 1)
    counts = as_tensor(repeats)
    extent = x.shape[axis]
    if counts.ndim == 0 or counts.shape[0] == 1:
        counts = OPS["broadcast_to"](counts.reshape(1), shape=(extent,))
    ends: Tensor = OPS["cumsum"](counts.astype("si64"), axis=0)
    if total_repeat_length is None:
        if counts.is_traced:
            raise ArgumentError(
                "repeat: the length of the result depends on traced counts",
                fix="give it: total_repeat_length=",
            )
        total_repeat_length = int(np.sum(counts.numpy()))
    places: Tensor = OPS["searchsorted"](ends, positions(total_repeat_length), right=True)
    return rows_at(x, OPS["minimum"](places, extent - 1), axis)


@public(other_names={"reps": "repetitions"})
def tile(x: Any, repetitions: int | Sequence[int]) -> Tensor:
    """``x`` repeated as a whole, so often along each axis, aligned at the right."""
    x = as_tensor(x)
    counts = (repetitions,) if isinstance(repetitions, int) else tuple(repetitions)
    rank = max(len(counts), x.ndim)
    counts = (*(1,) * (rank - len(counts)), *counts)
    wide = x if x.ndim == rank else x.reshape([*(1,) * (rank - x.ndim), *x.shape])
    return OPS["tile"](wide, reps=counts)

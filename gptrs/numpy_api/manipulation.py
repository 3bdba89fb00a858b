"""Shapes and order of elements: concat, stack, split, reshape, transpose, flip, roll, repeat, pad.

NumPy's, torch's and the standard's names side by side where they differ (concat, concatenate, cat).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, normal_axis
from gptrs.numpy_api.creation import Extents, shape_of
from gptrs.numpy_api.function import as_tensor, public

__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "column_stack",
    "concat",
    "dstack",
    "expand_dims",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "hstack",
    "moveaxis",
    "pad",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "transpose",
    "unstack",
    "vstack",
]

Axes = int | Sequence[int]
PadMode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]


def _axes(axes: Axes, rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in the order given."""
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    normal = tuple(normal_axis(axis, rank) for axis in given)
    if len(set(normal)) != len(normal):
        raise ShapeError(f"axes {given} name an axis twice")
    return normal


def _tensors(arrays: Sequence[Any], name: str) -> list[Tensor]:
    if isinstance(arrays, Tensor | np.ndarray):
        arrays = list(as_tensor(arrays))
    if not isinstance(arrays, tuple | list) or not arrays:
        raise ArgumentError(f"{name} takes a tuple or list of at least one array")
    return [as_tensor(array) for array in arrays]


@public(other_names={"xs": "arrays"})
def concat(arrays: Sequence[Any], axis: int | None = 0, *, dtype: object = None) -> Tensor:
    """The arrays one after the other along ``axis``; with None as one row of all elements."""
    made = _tensors(arrays, "concat")
    if dtype is not None:
        made = [x.astype(dtype) for x in made]
    if axis is None:
        made, axis = [x.reshape(-1) for x in made], 0
    return OPS["concat"](tuple(made), axis=axis)


@public(other_names={"tensors": "arrays"})
def stack(arrays: Sequence[Any], axis: int = 0) -> Tensor:
    """Arrays of one shape, one after the other along a new axis."""
    made = _tensors(arrays, "stack")
    for x in made[1:]:
        if x.ndim != made[0].ndim or not all(map(same, x.shape, made[0].shape)):
            raise ShapeError(f"stack: shapes {made[0].shape} and {x.shape} differ")
    return OPS["concat"](tuple(expand_dims(x, axis) for x in made), axis=axis)


@public
def atleast_1d(x: Any) -> Tensor:
    """``x`` with at least one axis."""
    x = as_tensor(x)
    return x if x.ndim else x.reshape(1)


@public
def atleast_2d(x: Any) -> Tensor:
    """``x`` with at least two axes; a vector is a row."""
    x = atleast_1d(x)
    return x if x.ndim > 1 else x.reshape(1, -1)


@public
def atleast_3d(x: Any) -> Tensor:
    """``x`` with at least three axes; a matrix gets a last one."""
    x = as_tensor(x)
    if x.ndim < 2:
        return x.reshape(1, -1, 1)
    return x if x.ndim > 2 else expand_dims(x, -1)


@public
def vstack(arrays: Sequence[Any]) -> Tensor:
    """The arrays below each other; vectors are rows."""
    return concat([atleast_2d(x) for x in arrays], 0)


@public
def hstack(arrays: Sequence[Any]) -> Tensor:
    """The arrays beside each other: along the second axis, vectors along the first."""
    made = [atleast_1d(x) for x in arrays]
    return concat(made, 0 if made and made[0].ndim == 1 else 1)


@public
def dstack(arrays: Sequence[Any]) -> Tensor:
    """The arrays along the third axis."""
    return concat([atleast_3d(x) for x in arrays], 2)


@public
def column_stack(arrays: Sequence[Any]) -> Tensor:
    """Vectors as the columns of a matrix, between matrices."""
    made = [as_tensor(x) for x in arrays]
    return concat([x.reshape(-1, 1) if x.ndim < 2 else x for x in made], 1)


@public
def reshape(
    x: Any, shape: Extents, *more: DimLike, copy: bool | None = None, order: str = "C"
) -> Tensor:
    """The same elements in row-major order in another shape; one extent may be -1."""
    if order != "C":
        raise ArgumentError(f"reshape: order is {order!r}", fix="transpose before and after: x.T")
    wanted = shape_of((shape, *more) if more else shape)  # type: ignore[arg-type]
    return OPS["reshape"](as_tensor(x), shape=wanted)


@public
def ravel(x: Any) -> Tensor:
    """All elements in one row."""
    return as_tensor(x).reshape(-1)


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
def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """All arrays in the shape that they broadcast to."""
    made = [as_tensor(x) for x in arrays]
    shape = broadcast_shapes(*(x.shape for x in made))
    return [broadcast_to(x, shape) for x in made]


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
    return as_tensor(x).squeeze(axis if axis is None or isinstance(axis, int) else tuple(axis))


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
    """The parts of ``x`` at a row of ``places`` along ``axis``."""
    axis = normal_axis(axis, x.ndim)
    return moveaxis(OPS["take"](moveaxis(x, axis, 0), places), 0, axis)


def _places(extent: DimLike) -> Tensor:
    return OPS["iota"](shape=(extent,), dtype="si64")


@public
def flip(x: Any, axis: Axes | None = None) -> Tensor:
    """The elements in reverse order along ``axis``, or along all axes."""
    x = as_tensor(x)
    for each in range(x.ndim) if axis is None else _axes(axis, x.ndim):
        x = rows_at(x, (x.shape[each] - 1) - _places(x.shape[each]), each)
    return x


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
def roll(x: Any, shift: Axes, axis: Axes | None = None) -> Tensor:
    """The elements moved by ``shift`` places along ``axis``; what leaves one end enters the other.
    Without an axis all elements in row-major order."""
    x = as_tensor(x)
    if axis is None:
        steps = shift if isinstance(shift, int) else sum(shift)
        return roll(x.reshape(-1), steps, 0).reshape(x.shape)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    steps = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    axes = axes * len(steps) if len(axes) == 1 else axes
    if len(axes) != len(steps):
        raise ShapeError(f"roll: {len(steps)} shifts for {len(axes)} axes")
    for each, by in zip(axes, steps, strict=True):
        place = normal_axis(each, x.ndim)
        extent = x.shape[place]
        if isinstance(extent, Dim):
            x = rows_at(x, OPS["remainder"](_places(extent) - by, extent), place)
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
    from gptrs.numpy_api.searching import searchsorted

    places = searchsorted(ends, _places(total_repeat_length), side="right")
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


@public
def unstack(x: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of ``x`` along ``axis``, without that axis."""
    x = as_tensor(x)
    place = normal_axis(axis, x.ndim)
    extent = x.shape[place]
    if isinstance(extent, Dim):
        raise ShapeError(f"unstack: axis {axis} has a symbolic extent {extent}")
    return tuple(x[(*(slice(None),) * place, i)] for i in range(extent))


@public
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """``x`` cut along ``axis`` into equal sections, or before each of the given positions, as in
    NumPy. The method ``x.split(size)`` cuts as torch does."""
    x = as_tensor(x)
    extent = x.shape[normal_axis(axis, x.ndim)]
    if isinstance(indices_or_sections, int) and (
        isinstance(extent, Dim) or indices_or_sections < 1 or extent % indices_or_sections
    ):
        raise ShapeError(
            f"split: axis {axis} of extent {extent} has no {indices_or_sections} equal sections",
            fix="array_split allows sections of different extents",
        )
    return array_split(x, indices_or_sections, axis)


@public
def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """`split`, where the first sections may be longer by one."""
    x = as_tensor(x)
    place = normal_axis(axis, x.ndim)
    extent = x.shape[place]
    if isinstance(extent, Dim):
        raise ShapeError(f"split: axis {axis} has a symbolic extent {extent}")
    if isinstance(indices_or_sections, int):
        each, longer = divmod(extent, indices_or_sections)
        sizes = [each + 1] * longer + [each] * (indices_or_sections - longer)
        cuts = np.cumsum([0, *sizes]).tolist()
    else:
        cuts = [0, *(int(i) for i in indices_or_sections), extent]
    keys = (slice(None),) * place
    return [x[(*keys, slice(a, b))] for a, b in pairwise(cuts)]


def _pad_widths(width: Any, rank: int) -> list[tuple[int, int]]:
    try:
        pairs = np.broadcast_to(np.asarray(width), (rank, 2))
    except ValueError:
        raise ArgumentError(
            f"pad: pad_width is {width!r}, expected a number, a pair or {rank} pairs"
        ) from None
    return [(int(a), int(b)) for a, b in pairs.tolist()]


@public
def pad(
    x: Any,
    pad_width: Any = None,
    mode: PadMode = "constant",
    constant_values: Any = 0,
    **schema: Any,
) -> Tensor:
    """``x`` with ``pad_width`` (before, after) elements more at the ends of each axis, as in NumPy:
    a constant, or the elements inside by ``mode``. With ``low=`` and ``high=`` the op itself."""
    x = as_tensor(x)
    if pad_width is None:
        return OPS["pad"](x, **schema)
    if schema:
        raise ArgumentError(f"pad: found pad_width and {', '.join(schema)}")
    widths = _pad_widths(pad_width, x.ndim)
    if mode == "constant":
        low, high = tuple(a for a, _ in widths), tuple(b for _, b in widths)
        value = constant_values.item() if hasattr(constant_values, "item") else constant_values
        return OPS["pad"](x, low=low, high=high, value=value)
    if mode not in _PLACES_OUTSIDE:
        raise ArgumentError(
            f"pad: mode is {mode!r}, expected one of constant, {', '.join(_PLACES_OUTSIDE)}"
        )
    for axis, (before, after) in enumerate(widths):
        if before or after:
            extent = x.shape[axis]
            place = _places(extent + before + after) - before
            x = rows_at(x, _PLACES_OUTSIDE[mode](place, extent), axis)
    return x


def _mirrored(place: Tensor, extent: DimLike) -> Tensor:
    """Positions reflected at the first and last element."""
    period = OPS["maximum"](_number(2 * (extent - 1)), 1)
    place = OPS["remainder"](place, period)
    return OPS["minimum"](place, 2 * (extent - 1) - place)


def _mirrored_with_ends(place: Tensor, extent: DimLike) -> Tensor:
    """Positions reflected beyond the first and last element."""
    place = OPS["remainder"](place, 2 * extent)
    return OPS["minimum"](place, (2 * extent - 1) - place)


def _number(n: DimLike) -> Tensor:
    return OPS["full"](shape=(), value=n, dtype="si64")


def _nearest(place: Tensor, extent: DimLike) -> Tensor:
    """The first and last position again and again."""
    return OPS["clamp"](place, 0, extent - 1)


def _around(place: Tensor, extent: DimLike) -> Tensor:
    """Positions from the other end on."""
    return OPS["remainder"](place, extent)


_PLACES_OUTSIDE: dict[str, Callable[[Tensor, DimLike], Tensor]] = {
    "edge": _nearest,
    "reflect": _mirrored,
    "symmetric": _mirrored_with_ends,
    "wrap": _around,
}

"""Elements at positions: take, take_along_axis; differences of neighbours: diff, unwrap."""

from __future__ import annotations

from math import tau
from typing import Any, Literal

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, normal_axis
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.joining import concat
from gptrs.numpy_api.manipulation import rows_at

__all__ = ["diff", "take", "take_along_axis", "unwrap"]

Mode = Literal["raise", "clip", "wrap"]


def from_front(indices: Tensor, extent: DimLike, mode: Mode = "raise") -> Tensor:
    """Positions counted from the front: negative ones count from the end, as in NumPy.

    "raise" leaves those out of range to the op, which refuses them; "clip" and "wrap" move them
    inside.
    """
    if mode == "clip":
        return OPS["clamp"](indices, 0, extent - 1)
    if mode == "wrap":
        return OPS["remainder"](indices, extent)
    if mode != "raise":
        raise ArgumentError(f"mode is {mode!r}, expected 'raise', 'clip' or 'wrap'")
    if indices.dtype.kind == "uint":
        return indices
    if not indices.is_traced and not isinstance(extent, Dim):
        known = indices.numpy()
        return indices if not known.size or known.min() >= 0 else _wrapped(indices, extent)
    return _wrapped(indices, extent)


def _wrapped(indices: Tensor, extent: DimLike) -> Tensor:
    if indices.dtype.bits < 64:
        indices = indices.astype("si64")
    from_end = OPS["logical_and"](indices < 0, indices >= -extent)  # errors name others as given
    return OPS["select"](from_end, indices + extent, indices)


@public(other_names={"index": "indices"})
def take(x: Any, indices: Any, axis: int | None = None, mode: Mode = "raise") -> Tensor:
    """The parts of ``x`` at ``indices`` (of any shape) along ``axis``; without it, of all elements
    in one row.

    Negative indices count from the end. ``mode`` says what happens to one out of range: an error,
    or it is moved to the end ("clip") or around it ("wrap").
    """
    x, indices = as_tensor(x), as_tensor(indices)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    return rows_at(x, from_front(indices, x.shape[axis], mode), axis)


@public(other_names={"arr": "x", "index": "indices"})
def take_along_axis(x: Any, indices: Any, axis: int | None = -1, mode: Mode = "raise") -> Tensor:
    """result[i, j, ...] = x with the position along ``axis`` replaced by indices[i, j, ...]; the
    other axes broadcast. ``None`` takes from all elements in one row."""
    x, indices = as_tensor(x), as_tensor(indices)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if x.ndim != indices.ndim:
        raise ShapeError(f"take_along_axis: x has rank {x.ndim}, the indices have {indices.ndim}")
    axis = normal_axis(axis, x.ndim)
    others = broadcast_shapes(
        *(tuple(1 if i == axis else n for i, n in enumerate(t.shape)) for t in (x, indices))
    )
    whole = (
        tuple(t.shape[axis] if i == axis else n for i, n in enumerate(others)) for t in (x, indices)
    )
    x, indices = (
        OPS["broadcast_to"](t, shape=shape) for t, shape in zip((x, indices), whole, strict=True)
    )
    return OPS["gather"](x, from_front(indices, x.shape[axis], mode), axis=axis)


@public
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """The ``n``-th differences of neighbours along ``axis``, after putting ``prepend`` and
    ``append`` at its ends. Of bools whether neighbours differ."""
    x = as_tensor(x)
    axis = normal_axis(axis, x.ndim)
    if n < 0:
        raise ArgumentError(f"diff: n is {n}, expected an integer of at least 0")
    ends = [None if end is None else _end(x, end, axis) for end in (prepend, append)]
    x = concat([part for part in (ends[0], x, ends[1]) if part is not None], axis)
    keys = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[(*keys, slice(1, None))], x[(*keys, slice(None, -1))]
        x = OPS["not_equal"](later, earlier) if x.dtype.is_bool else later - earlier
    return x


def _end(x: Tensor, end: Any, axis: int) -> Tensor:
    end = as_tensor(end)
    if end.ndim:
        return end
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    return OPS["broadcast_to"](end, shape=shape)


@public(other_names={"p": "x"})
def unwrap(x: Any, discont: Any = None, axis: int = -1, *, period: Any = tau) -> Tensor:
    """``x`` with multiples of ``period`` added along ``axis``, so that neighbours differ by at most
    half of it. Steps below ``discont`` (at least half a period) stay."""
    x = as_tensor(x)
    if isinstance(period, float) and (x.dtype.is_integer or x.dtype.is_bool):
        x = x.astype("f32")
    axis = normal_axis(axis, x.ndim)
    half = period / 2 if x.dtype.is_float else period // 2
    low = -half
    steps = diff(x, axis=axis)
    near = OPS["remainder"](steps - low, period) + low
    at_end = OPS["logical_and"](near == low, steps > 0)
    if x.dtype.is_float or period % 2 == 0:  # else the interval has no two ends for one step
        near = OPS["select"](at_end, half, near)
    added = near - steps
    least = half if discont is None else discont
    added = OPS["select"](OPS["abs"](steps) < least, 0, added)
    keys = (slice(None),) * axis
    later = x[(*keys, slice(1, None))] + OPS["cumsum"](added, axis=axis)
    return concat([x[(*keys, slice(0, 1))], later], axis)

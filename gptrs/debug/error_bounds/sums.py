"""Error radii of sums, products and sorting, whose results depend on many elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gptrs.debug.error_bounds.balls import (
    Ball,
    Found,
    Radius,
    finfo,
    joined,
    rounding,
    settled,
    unknown,
    wide,
)
from gptrs.ir.ops.reduce import argmax
from gptrs.ir.program import Attrs, Instruction
from gptrs.ir.types import Array, DType, as_dtype


def sum_radius(op: Any, x: Ball, attrs: Attrs, array: Array) -> Radius:
    """Σ|x| times the roundings of any order, twice: the reference rounds as well."""
    axes: tuple[int, ...] = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
    count = math.prod(x.value.shape[axis] for axis in axes)
    seen = x.seen(by_sum=True)
    if count < 2 and seen is None:
        return None
    total = _total_of(attrs)
    size = np.abs(wide(x.value))
    radius = np.zeros(x.value.shape) if seen is None else seen
    each = size + radius
    moved = total(np.where(np.isfinite(size), radius, 0.0))
    accumulator = _accumulator(x.dtype, attrs)
    finite = total(np.where(np.isfinite(each), each, 0.0))
    radius = moved + 2 * count * rounding(accumulator, finite)
    return _bounded(array, radius, finite, x.dtype, accumulator, _known(x))


def _total_of(attrs: Attrs) -> Callable[[Array], Array]:
    """The sum along the same axes, or up to each element."""
    keep = {n: attrs[n] for n in ("axes", "axis", "keepdims") if n in attrs}
    return partial(_plain_sum, **keep)


def _plain_sum(x: Array, *, axes: Any = None, axis: int = 0, keepdims: bool | None = None) -> Array:
    return np.cumsum(x, axis) if keepdims is None else np.sum(x, axes, keepdims=keepdims)


def _accumulator(dtype: DType, attrs: Attrs) -> DType:
    """The coarsest dtype that partial sums are kept in."""
    accum: DType | None = attrs.get("accum_dtype")
    return accum.compute if accum else dtype.compute


def _known(*balls: Ball) -> bool:
    """Whether no operand may be something else than a number near its value."""
    return all(b.seen(by_sum=True) is None or np.isfinite(b.value).all() for b in balls)


def _bounded(
    array: Array, radius: Array, finite: Array, source: DType, accumulator: DType, known: bool
) -> Radius:
    """``radius``, unless sums in another order may overflow."""
    most = float(finfo(accumulator).max)
    if accumulator.bits > as_dtype(array.dtype).bits and array.dtype.kind == "f":
        most = min(most, float(finfo(accumulator).max))
    overflow = finite >= most / 4
    radius = np.where(overflow, np.inf, radius)
    certain = np.full(array.shape, known) & ~overflow
    special = ~np.isfinite(wide(array))
    # Where nothing finite can overflow, what is not finite comes from operands that are not.
    inside = finite < min(most, float(finfo(as_dtype(array.dtype)).max)) / 4
    return settled(array, radius, certain & special & inside)


def product_radius(x: Ball, attrs: Attrs, array: Array) -> Radius:
    """Relative errors add up, as long as no partial product leaves the range."""
    axes: tuple[int, ...] = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
    count = math.prod(x.value.shape[axis] for axis in axes)
    total = _total_of(attrs)
    seen = x.seen()
    if count < 2 and seen is None:
        return None
    size = np.abs(wide(x.value))
    plain = np.isfinite(size) & (size > 0)
    size = np.where(plain, size, 1.0)
    radius = np.zeros(size.shape) if seen is None else np.where(plain, seen, np.inf * (seen > 0))
    accumulator = _accumulator(x.dtype, attrs)
    span = total(np.abs(np.log2(size)))
    relative = total(np.log1p(radius / size))
    eps = float(finfo(accumulator).eps)
    moved = np.abs(wide(array)) * (np.expm1(relative) + 2 * count * eps)
    range_ = math.log2(float(finfo(accumulator).max)) - 4
    inside = span <= range_  # in another order infinity may meet what became 0 before
    moved = np.where(inside & np.isfinite(relative), moved, np.inf)
    moved = np.where(wide(array) == 0, np.where(np.isfinite(moved), 0.0, np.inf), moved)
    infinite = inside & ~np.isfinite(wide(array)) & _known(x)
    return settled(array, moved, np.isfinite(moved) | infinite)


def dot_radius(op: Any, operands: Sequence[Ball], attrs: Attrs, array: Array) -> Radius:
    """As `sum_radius`, over products."""
    x, y = operands
    contracted: tuple[int, ...] = attrs["contract_lhs"]
    count = math.prod(x.value.shape[axis] for axis in contracted)
    seen_x, seen_y = x.seen(), y.seen()
    if count < 2 and seen_x is None and seen_y is None:
        return None
    axes = {n: attrs[n] for n in ("batch_lhs", "batch_rhs", "contract_lhs", "contract_rhs")}
    dot: Callable[[Array, Array], Array] = partial(
        op.meaning, **axes, accum_dtype=None, out_dtype=None
    )
    sizes = [np.abs(wide(b.value)) for b in operands]
    sizes = [np.where(np.isfinite(size), size, 0.0) for size in sizes]
    ex, ey = (
        np.zeros(s.shape) if e is None else e for s, e in zip(sizes, (seen_x, seen_y), strict=True)
    )
    doubtful = ~(np.isfinite(ex).all() and np.isfinite(ey).all())
    if doubtful:  # an infinite radius times 0 is still unknown
        reach = dot((~np.isfinite(ex)).astype(np.float64), np.ones(sizes[1].shape))
        reach = reach + dot(np.ones(sizes[0].shape), (~np.isfinite(ey)).astype(np.float64))
        ex, ey = (np.where(np.isfinite(e), e, 0.0) for e in (ex, ey))
    else:
        reach = np.zeros(array.shape)
    finite = dot(sizes[0] + ex, sizes[1] + ey)
    moved = finite - dot(sizes[0], sizes[1])
    accumulator = _accumulator(x.dtype, attrs)
    exact = ex.any() or ey.any()
    radius = (np.maximum(moved, 0.0) + 1e-12 * finite if exact else 0.0) + 2 * (
        count + 1
    ) * rounding(accumulator, finite)
    radius = np.where(reach > 0, np.inf, radius)
    return _bounded(array, radius, finite, x.dtype, accumulator, _known(x, y))


def position_radius(op: Any, x: Ball, attrs: Attrs, array: Array) -> Radius:
    """Known where the first is ahead of the second by more than both may be off."""
    axis: int = attrs["axis"]
    values = np.moveaxis(wide(x.value), axis, -1)
    radius = np.moveaxis(np.asarray(x.seen()), axis, -1)
    rows = np.sort(values if op is argmax else -values, -1)
    if rows.shape[-1] < 2:
        return None
    ahead = rows[..., -1] - rows[..., -2] > 2 * radius.max(-1)
    certain = (ahead | (radius.max(-1) == 0)) & np.isfinite(values).all(-1)
    return joined(np.where(certain.reshape(array.shape), 0.0, np.inf))


def ordered_radii(instruction: Instruction, x: Ball, arrays: Sequence[Array]) -> list[Found]:
    """Ordered values move no more than the values; places are known where all are far apart."""
    seen = x.seen()
    if seen is None:
        return [(None, None), (None, None)]
    axis: int = instruction.attrs["axis"]
    values, places = arrays
    if not x.dtype.is_float or not np.isfinite(wide(x.value)).all():
        return [(unknown(values), None), (unknown(places), None)]
    most = np.max(seen, axis, keepdims=True, initial=0.0)
    gaps = np.diff(np.sort(wide(x.value), axis), axis=axis)
    apart = np.min(gaps, axis, keepdims=True, initial=np.inf) > 2 * most
    unsure = np.where(apart | (most == 0), 0.0, np.inf)
    radius = settled(values, np.broadcast_to(most, values.shape))
    return [(radius, None), (joined(np.broadcast_to(unsure, places.shape)), None)]

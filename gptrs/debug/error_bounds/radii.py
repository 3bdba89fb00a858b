"""Error radius of each op's results from those of its operands; see `balls`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any
from typing import cast as typed

import numpy as np

from gptrs.debug.error_bounds.balls import (
    Ball,
    Found,
    Radius,
    corners,
    finfo,
    joined,
    rounding,
    settled,
    unknown,
    wide,
)
from gptrs.debug.error_bounds.sums import (
    dot_radius,
    ordered_radii,
    position_radius,
    product_radius,
    sum_radius,
)
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from gptrs.ir.ops.elementary import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    cosh,
    exp2,
    expm1,
    hypot,
    log1p,
    log2,
    log10,
    sinh,
    tan,
)
from gptrs.ir.ops.elementwise import (
    add,
    cast,
    cos,
    div,
    erf,
    exp,
    floor_divide,
    log,
    mul,
    neg,
    pow_,
    reciprocal,
    remainder,
    rsqrt,
    select,
    sin,
    sqrt,
    stop_gradient,
    sub,
    tanh,
)
from gptrs.ir.ops.index import gather, take
from gptrs.ir.ops.literal import constant, full, iota
from gptrs.ir.ops.random import rng_normal
from gptrs.ir.ops.reduce import (
    argmax,
    argmin,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from gptrs.ir.ops.shape import broadcast_to, concat, pad, reshape, slice_, tile, transpose
from gptrs.ir.ops.sort import sort, top_k
from gptrs.ir.ops.window import extract_patches
from gptrs.ir.program import Attrs, Instruction
from gptrs.ir.types import Array, as_dtype

# Ops that place elements; the operands that they place. The others say where.
_MOVED: dict[Any, slice] = {
    **dict.fromkeys((reshape, transpose, broadcast_to, slice_, concat, pad, tile), slice(None)),
    **dict.fromkeys((stop_gradient, extract_patches, neg), slice(None)),
    **dict.fromkeys((take, gather, dynamic_slice), slice(0, 1)),
    dynamic_update_slice: slice(0, 2),
    select: slice(1, 3),
}
# Units in the last place by which a kernel and NumPy may differ together. On f32 the kernels are
# within 1.5 (`gptrs.kernels.vector_math`), NumPy's within 4; all others are those of the C library.
_ULPS: dict[Any, int] = {
    **dict.fromkeys((exp, log, tanh, erf), 6),
    **dict.fromkeys((sin, cos, log1p, log2, log10, expm1, exp2, sinh, cosh, tan, cbrt), 10),
    **dict.fromkeys((asin, acos, atan, asinh, acosh, atanh, atan2, hypot), 10),
    pow_: 20,
}
_NORMAL = 8
"""Roundings of a normal number, beside its mean and its deviation."""
_SUMS = frozenset([reduce_sum, cumsum])
_PRODUCTS = frozenset([reduce_prod, cumprod])
_OF_PARTS = frozenset([*_SUMS, *_PRODUCTS, dot_general])
_OF_BOTH_PARTS = frozenset([*_ULPS, div, reciprocal, rsqrt, sqrt])
"""Functions of complex numbers that round several times on the way."""
_GROWING = frozenset([reduce_max, reduce_min, cummax, cummin])
_DIVIDING = frozenset([div, pow_, reciprocal, rsqrt])
_LITERALS = frozenset([constant, full, iota])


def radii_of(
    instruction: Instruction,
    operands: Sequence[Any],
    values: Sequence[Any],
    arrays: Sequence[Array],
) -> list[Found]:
    """Radius and slack of each result ``arrays`` of one instruction.

    ``operands`` are balls where ``values`` has their arrays.
    """
    op: Any = instruction.op
    with np.errstate(all="ignore"):
        if op in _MOVED or (op is cast and values[0].dtype == arrays[0].dtype):
            return [_moved(instruction, operands, values, arrays[0])]
        if op in (sort, top_k):
            return ordered_radii(instruction, operands[0], arrays)
        if len(arrays) > 1:
            inexact = any(_seen(operand) is not None for operand in operands)
            return [(unknown(array) if inexact else None, None) for array in arrays]
        found = _computed(instruction, operands, values, arrays[0])
        if op is reduce_sum and arrays[0].dtype.kind == "f":
            found = joined(found, _zero_of_any_sign(arrays[0]))
        return [(found, _slack(op, arrays[0], values))]


def _computed(
    instruction: Instruction, operands: Sequence[Any], values: Sequence[Any], array: Array
) -> Radius:
    op: Any = instruction.op
    attrs = instruction.attrs
    if op in _SUMS and as_dtype(values[0].dtype).is_float:
        return sum_radius(op, operands[0], attrs, array)
    if op in _PRODUCTS and as_dtype(values[0].dtype).is_float:
        return product_radius(operands[0], attrs, array)
    if op is dot_general and as_dtype(values[0].dtype).is_float:
        return dot_radius(op, operands, attrs, array)
    if op in _OF_PARTS and as_dtype(values[0].dtype).is_complex:
        return unknown(array)  # sums of parts and products of them, in any order
    if op is rng_normal:
        size = np.abs(wide(array)) + abs(attrs["mean"]) + abs(attrs["std"])
        return settled(array, _NORMAL * rounding(as_dtype(array.dtype).compute, size))
    seen = [_seen(operand, by_sum=op in (add, sub)) for operand in operands]
    inexact = any(radius is not None for radius in seen)
    if op in (argmax, argmin) and inexact:
        return position_radius(op, operands[0], attrs, array)
    if op in _GROWING or op.elementwise:
        return _smooth(instruction, values, seen, array)
    return unknown(array) if inexact else None


def _seen(operand: Any, *, by_sum: bool = False) -> Radius:
    if isinstance(operand, tuple):
        parts = [_seen(part, by_sum=by_sum) for part in typed("tuple[Any, ...]", operand)]
        return next((part for part in parts if part is not None), None)
    return operand.seen(by_sum=by_sum) if isinstance(operand, Ball) else None


def _smooth(
    instruction: Instruction, values: Sequence[Any], seen: Sequence[Radius], array: Array
) -> Radius:
    """An op that works by element, or takes extremes: its corners, and its own error."""
    op: Any = instruction.op
    dtype = as_dtype(array.dtype)
    inexact = any(radius is not None for radius in seen)
    own = np.zeros(array.shape)
    if op in _OF_BOTH_PARTS and dtype.is_complex:
        return unknown(array)
    if op in _ULPS and dtype.is_float:
        size = np.abs(wide(array))
        own = _ULPS[op] * 2 * rounding(dtype.compute, size)
        # Below the normal numbers kernels may give 0.
        own = np.where(size < float(finfo(dtype.compute).smallest_normal), own + size, own)
        own = np.where(np.isfinite(size), own, 0.0)
    if not inexact:
        return joined(own)
    if op in (remainder, floor_divide) or any(
        _is_uncertain_whole(*each) for each in zip(values, seen, strict=True)
    ):
        return unknown(array) if op in _GROWING else _where_any(seen, array)
    if op in (sin, cos):
        moved = np.minimum(np.asarray(seen[0]), 2.0)
    else:
        function = partial(op.meaning, **instruction.attrs)
        moved = corners(function, values, seen, one_way=op in _GROWING)
    lost = _nothing_known(seen, instruction.attrs, array)
    moved = np.where(lost, np.inf, moved)
    if op in _DIVIDING:
        first = int(op is div)  # a numerator of either sign is harmless
        moved = np.where(_crosses(values[first:], seen[first:], array), np.inf, moved)
    total = moved + np.where(moved > 0, own, 0.0)
    both = joined(settled(array, total, _certain(op, values, seen, array) & ~lost))
    return joined(both, np.where(total > 0, 0.0, own))


def _nothing_known(seen: Sequence[Radius], attrs: Attrs, array: Array) -> Array:
    """Where an operand may be anything."""
    found = np.zeros(array.shape, bool)
    for radius in seen:
        if radius is not None:
            each = np.isinf(radius)
            if "axis" in attrs:
                each = np.logical_or.accumulate(each, attrs["axis"])
            elif "axes" in attrs:
                each = np.any(each, attrs["axes"], keepdims=attrs["keepdims"])
            found |= each
    return found


def _is_uncertain_whole(value: Any, radius: Radius) -> bool:
    """Whether an operand is no real number, and not known."""
    return radius is not None and not as_dtype(value.dtype).is_float


def _where_any(seen: Sequence[Radius], array: Array) -> Radius:
    """Nothing is known where an operand is not certain."""
    unsure = np.zeros(array.shape, bool)
    for radius in seen:
        if radius is not None:
            unsure |= radius > 0
    return joined(np.where(unsure, np.inf, 0.0))


def _crosses(values: Sequence[Any], seen: Sequence[Radius], array: Array) -> Array:
    """Where an operand that is not certain may have either sign."""
    crosses = np.zeros(array.shape, bool)
    for value, radius in zip(values, seen, strict=True):
        if radius is not None:
            crosses |= ~(np.abs(wide(value)) > radius) & (radius > 0)  # NaN too
    return crosses


def _certain(op: Any, values: Sequence[Any], seen: Sequence[Radius], array: Array) -> Array:
    """Where a result that is not finite does not depend on roundings: an operand is not finite, and
    the signs of all others are known."""
    if op is pow_ or op in _GROWING:
        return np.full(array.shape, op is not pow_)
    special = np.zeros(array.shape, bool)
    for value in values:
        if isinstance(value, np.ndarray) and as_dtype(typed("Array", value).dtype).is_float:
            special |= ~np.isfinite(wide(value))
        elif isinstance(value, float):
            special |= not math.isfinite(value)
    return special & ~_crosses(values, seen, array)


def _moved(
    instruction: Instruction, operands: Sequence[Any], values: Sequence[Any], array: Array
) -> Found:
    """Radii go where the elements go."""
    op: Any = instruction.op
    which = range(len(operands))[_MOVED.get(op, slice(None))]
    places = [operand for n, operand in enumerate(operands) if n not in which]
    attrs = dict(instruction.attrs)
    if "value" in attrs:
        attrs["value"] = 0
    found: list[Radius] = []
    for part in ("radius", "slack"):
        radii = [_part(o, part) if n in which else values[n] for n, o in enumerate(operands)]
        moved = None
        if any(_has(o, part) for n, o in enumerate(operands) if n in which):
            function = np.asarray if op.elementwise and op is not select else op.meaning
            moved = np.array(
                function(radii[0]) if function is np.asarray else op.meaning(*radii, **attrs)
            )
        found.append(joined(moved))
    if any(_seen(operand) is not None for operand in places):
        radius = unknown(array)
        if op is select:
            unsure = np.asarray(operands[0].radius) > 0
            radius = np.where(unsure, np.inf, 0.0 if found[0] is None else found[0])
        found[0] = joined(radius)
    return found[0], found[1]


def _part(operand: Any, part: str) -> Any:
    """The radii of an operand, zeros where it has none."""
    if isinstance(operand, tuple):
        return tuple(_part(each, part) for each in typed("tuple[Any, ...]", operand))
    if not isinstance(operand, Ball):
        return 0.0
    radius: Radius = getattr(operand, part)
    return np.zeros(operand.value.shape) if radius is None else radius


def _has(operand: Any, part: str) -> bool:
    if isinstance(operand, tuple):
        return any(_has(each, part) for each in typed("tuple[Any, ...]", operand))
    return isinstance(operand, Ball) and getattr(operand, part) is not None


def _slack(op: Any, array: Array, values: Sequence[Any]) -> Radius:
    """What is lost by rounding where a reader may go on with what was there before."""
    dtype = as_dtype(array.dtype)
    narrow = dtype.compute is not dtype
    if not dtype.is_float or not (narrow or op is mul) or op in _LITERALS:
        return None
    size = np.abs(array.astype(np.float64))
    # What is too large to be finite may be so before it is rounded.
    lost = ~np.isfinite(size) & _may_be_finite(values, array)
    slack = np.where(np.isfinite(size), rounding(dtype, size), 0.0)
    return joined(np.where(lost, np.inf, slack))


def _may_be_finite(values: Sequence[Any], array: Array) -> Array:
    """Where a result that is not finite may come from rounding: not from an operand like it, if
    that is found at the same place."""
    found = np.ones(array.shape, bool)
    for value in values:
        if isinstance(value, float | int):
            found &= math.isfinite(value)
        elif isinstance(value, np.ndarray) and typed("Array", value).shape == array.shape:
            each = wide(value)
            found &= np.isfinite(each) if each.dtype == np.float64 else True
    return found


def _zero_of_any_sign(array: Array) -> Array:
    """Zeros get a radius: rules that round a sum in another way may change their sign."""
    least = float(finfo(as_dtype(array.dtype)).smallest_subnormal)
    return np.where(array == 0, least, 0.0)

"""Expansion of ops without a kernel of their own as ops that have one: windows as slices, folded or
concatenated; reductions at indices (`gptrs.backends.index_expansions`).

Input: a program after all passes. Output: the same with ops that loops and block copies do:

    reduce_window(x)    x padded, then the slices of all positions of a window, added (or multiplied
                        or compared) in the order of the positions: one region or a few
    extract_patches(x)  x padded, then a concatenation of these slices along the channels
    argmax(x)           along a last axis of few elements, the least position of an element that is
                        the greatest or NaN: one region, in registers

The plan expands, and no pass: at sizes at which a window does not fit, the error is that of the
program as it was (`gptrs.backends.faer.plan`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product
from typing import Any

from gptrs.backends.expansion import Expansion, Expansions, expandable, with_expansions
from gptrs.backends.faer.calls.arg_extreme import MOST_ELEMENTS, is_short
from gptrs.backends.faer.custom_calls import with_calls
from gptrs.backends.index_expansions import NARROW_SUMS
from gptrs.ir.dims import DimLike
from gptrs.ir.implementations.kernels import kernel_for
from gptrs.ir.ops.elementwise import (
    add,
    equal,
    logical_or,
    maximum,
    minimum,
    mul,
    not_equal,
    select,
)
from gptrs.ir.ops.elementwise import cast as converted
from gptrs.ir.ops.literal import iota
from gptrs.ir.ops.reduce import argmax, argmin, reduce_max, reduce_min
from gptrs.ir.ops.shape import broadcast_to, concat, pad, slice_
from gptrs.ir.ops.window import Counts, extract_patches, neutral_of, reduce_window
from gptrs.ir.program import Instruction, Program
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import si32, si64

_MOST_POSITIONS = 256
"""Sums of larger windows are taken along one axis after the other: in another order."""
_COMBINE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": add,
    "mul": mul,
    "max": maximum,
    "min": minimum,
}


def expanded(program: Program, *, precise: bool = False) -> Program:
    """``program`` with its expansions, and the calls of kernels in them as custom calls."""
    found = expandable(program, _EXPANSIONS)
    if not precise:
        found = {i for i in found if kernel_for(i) is None}
    if not found:
        return program
    made = with_expansions(program, _EXPANSIONS, found)
    return made if precise else with_calls(made)


def _reduced(operands: Sequence[Tensor], instruction: Instruction) -> Tensor:
    (x,) = operands
    attrs, wanted = instruction.attrs, instruction.result.type
    window: Counts = attrs["window"]
    kind, combine = attrs["reduce"], _COMBINE[attrs["reduce"]]
    around = neutral_of(kind, x.dtype)
    wide = (attrs["accum_dtype"] or x.dtype).compute
    x = x if x.dtype is wide else converted(x, dtype=wide)
    x = _padded(x, attrs["padding"], around)
    shape = wanted.shape
    exact = kind in ("max", "min") or x.dtype.is_integer
    if exact or math.prod(window) > _MOST_POSITIONS:
        for axis in reversed(range(len(window))):  # along each axis by itself
            x = reduce(combine, _positions(x, shape, attrs, (axis,)))
        if not window:
            x = reduce(combine, _positions(x, shape, attrs, ()))
    else:
        x = reduce(combine, _positions(x, shape, attrs, range(len(window))))
    return x if x.dtype is wanted.dtype else converted(x, dtype=wanted.dtype)


def _patches(operands: Sequence[Tensor], instruction: Instruction) -> Tensor:
    (x,) = operands
    attrs = instruction.attrs
    x = _padded(x, attrs["padding"], attrs["value"])
    axes = range(len(attrs["window"]))
    parts = [*_positions(x, instruction.result.type.shape, attrs, axes)]
    return concat(tuple(parts), axis=-1) if len(parts) > 1 else parts[0]


def _position(operands: Sequence[Tensor], instruction: Instruction) -> Tensor:
    (x,) = operands
    axis, keepdims = instruction.attrs["axis"], instruction.attrs["keepdims"]
    best = (reduce_max if instruction.op is argmax else reduce_min)(x, axes=axis, keepdims=True)
    found = equal(x, broadcast_to(best, shape=x.shape))
    if x.dtype.is_float:
        found = logical_or(found, not_equal(x, x))
    places = iota(shape=x.shape, dtype=si32, axis=axis)
    places = select(found, places, MOST_ELEMENTS)
    return converted(reduce_min(places, axes=axis, keepdims=keepdims), dtype=si64)


_EXPANSIONS: Expansions = {
    **NARROW_SUMS,
    reduce_window: Expansion(_reduced),
    extract_patches: Expansion(_patches),
    argmax: Expansion(_position, is_short),
    argmin: Expansion(_position, is_short),
}


def _padded(x: Tensor, padding: tuple[tuple[int, int], ...], value: float) -> Tensor:
    if not any(map(any, padding)):
        return x
    low, high = ((0, *(pair[side] for pair in padding), 0) for side in (0, 1))
    return pad(x, low=low, high=high, value=value)


def _positions(
    x: Tensor, shape: tuple[DimLike, ...], attrs: dict[str, Any], axes: Sequence[int]
) -> Iterator[Tensor]:
    """For each position in the window along ``axes``, in row-major order, its elements of all
    windows; other axes are whole."""
    window, strides, dilation = attrs["window"], attrs["strides"], attrs["dilation"]
    for position in product(*(range(window[axis]) for axis in axes)):
        starts, sizes, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
        for axis, place in zip(axes, position, strict=True):
            starts[axis + 1] = place * dilation[axis]
            sizes[axis + 1], steps[axis + 1] = shape[axis + 1], strides[axis]
        yield slice_(x, starts=tuple(starts), sizes=tuple(sizes), strides=tuple(steps))

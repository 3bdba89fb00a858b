"""Slices and updates with a start that is known at run time.

``start`` is a tuple with one entry per axis: an integer, a dimension or an integer tensor of rank
0. One entry per axis, rather than one tensor, shows a backend which axes are fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.errors import DTypeError, ElementError, ShapeError
from gptrs.ir.checks import one_dtype
from gptrs.ir.dims import Dim, Shape, surely_greater
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.literal import check_extents
from gptrs.ir.primitives import primitive
from gptrs.ir.program import Fails
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, shape_text

__all__ = ["dynamic_slice", "dynamic_update_slice"]

Start = tuple[Tensor | int | Dim, ...]


@primitive(kind=OpKind.INDEX)
def dynamic_slice(x: Tensor, start: Start, *, sizes: Shape) -> Type:
    """A box of ``sizes`` elements from ``start``, which is moved so that the box lies in ``x``."""
    check_extents(sizes)
    _check_box(x, start, sizes)
    return x.type.with_shape(sizes)


@dynamic_slice.failing
def _(x: Tensor, start: Start, *, sizes: Shape) -> Fails:
    return _outgrows(x, sizes)


@dynamic_slice.numpy
def _(x: Array, start: tuple[Any, ...], *, sizes: tuple[int, ...]) -> Array:
    return x[_box(x, start, sizes)]


@primitive(kind=OpKind.INDEX)
def dynamic_update_slice(x: Tensor, update: Tensor, start: Start) -> Type:
    """``x`` with ``update`` in place from ``start``, which is moved so that it lies in ``x``."""
    one_dtype(x, update)
    _check_box(x, start, update.shape)
    return x.type


@dynamic_update_slice.failing
def _(x: Tensor, update: Tensor, start: Start) -> Fails:
    return _outgrows(x, update.shape)


@dynamic_update_slice.numpy
def _(x: Array, update: Array, start: tuple[Any, ...]) -> Array:
    result = x.copy()
    result[_box(x, start, update.shape)] = update
    return result


def _check_box(x: Tensor, start: Start, sizes: Shape) -> None:
    if not isinstance(start, tuple) or len(start) != x.ndim:
        raise ShapeError(f"start {start}: expected a tuple with {x.ndim} entries, one per axis")
    if len(sizes) != x.ndim or any(map(surely_greater, sizes, x.shape)):
        raise ShapeError(
            f"a box of shape {shape_text(sizes)} does not lie in x of shape {shape_text(x.shape)}"
        )
    for axis, entry in enumerate(start):
        if isinstance(entry, Tensor):
            if entry.ndim or not entry.dtype.is_integer:
                raise DTypeError(
                    f"start of axis {axis} is {entry.type}, expected an integer of rank 0"
                )
        elif not isinstance(entry, int | Dim) or isinstance(entry, bool):
            raise DTypeError(f"start of axis {axis} is {entry!r}, expected an integer")


def _outgrows(x: Tensor, sizes: Shape) -> Fails:
    """The failure rule: when a box is larger than ``x``."""
    fits = all(surely_greater(n + 1, size) for n, size in zip(x.shape, sizes, strict=True))
    return Fails.NEVER if fits else Fails.AT_SIZES


def _box(x: Array, start: tuple[Any, ...], sizes: tuple[int, ...]) -> tuple[slice, ...]:
    box: list[slice] = []
    for axis, (first, size, extent) in enumerate(zip(start, sizes, x.shape, strict=True)):
        if size > extent:  # a symbolic size: only now known
            raise ElementError(f"axis {axis}: {size} elements do not fit extent {extent}")
        at = int(np.clip(int(first), 0, extent - size))
        box.append(slice(at, at + size))
    return tuple(box)

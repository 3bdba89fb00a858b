"""Queries and small builders over shapes and views, shared by rules."""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.ir.dims import DimLike, Shape, same, same_shape, surely_greater
from gptrs.ir.ops.literal import full
from gptrs.ir.ops.shape import broadcast_to, reshape, slice_ends, transpose
from gptrs.ir.program import Value
from gptrs.ir.tensor import Tensor

Perm = tuple[int, ...]
Dims = tuple[DimLike, ...]


def is_one(extent: DimLike) -> bool:
    """Whether an extent is 1 at all sizes of the symbols."""
    return same(extent, 1)


def has_one_element(x: Tensor) -> bool:
    """Whether every extent of ``x`` is 1."""
    return all(map(is_one, x.shape))


def longer_axes(shape: Shape) -> list[int]:
    """The axes whose extent is not 1."""
    return [axis for axis, extent in enumerate(shape) if not is_one(extent)]


def differ_in_ones(a: Shape, b: Shape) -> bool:
    """Whether two shapes are equal up to axes of extent 1."""
    return same_shape(
        tuple(a[axis] for axis in longer_axes(a)), tuple(b[axis] for axis in longer_axes(b))
    )


def reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """The shape after a reduction."""
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def lies_inside(start: DimLike, size: DimLike, stride: int, extent: DimLike) -> bool:
    """Whether a slice of an axis is in range at all sizes of the symbols."""
    low, end = slice_ends(start, size, stride)
    return surely_greater(low + 1, 0) and surely_greater(extent + 1, end)


def box_lies_inside(starts: Dims, sizes: Dims, strides: Sequence[int], shape: Shape) -> bool:
    """Whether a slice of an array is in range at all sizes of the symbols."""
    return all(map(lies_inside, starts, sizes, strides, shape))


def in_shape(x: Tensor, shape: Shape) -> Tensor:
    """``x`` reshaped to ``shape``, if it has another one."""
    return x if same_shape(x.shape, shape) else reshape(x, shape=tuple(shape))


def repeated(x: Tensor, shape: Shape) -> Tensor:
    """``x`` broadcast to ``shape`` if it has another one."""
    return x if same_shape(x.shape, shape) else broadcast_to(x, shape=tuple(shape))


def permuted(x: Tensor, perm: Sequence[int]) -> Tensor:
    """``x`` transposed by ``perm``, unless it is the identity."""
    return x if list(perm) == list(range(x.ndim)) else transpose(x, perm=tuple(perm))


def filled(like: Tensor, value: float) -> Tensor:
    """full with the shape and dtype of ``like``."""
    return full(shape=like.shape, value=value, dtype=like.dtype)


def beside(x: Tensor, value: object) -> Tensor:
    """A tensor for another value of the program that is being rewritten, which ``x`` belongs to."""
    assert isinstance(value, Value)
    return Tensor.of_value(value, x.recorder)

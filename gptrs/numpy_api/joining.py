"""Joining and splitting: concat, stack, vstack, hstack, block; split, array_split, unstack."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.manipulation import atleast_1d, atleast_2d, atleast_3d, expand_dims

__all__ = [
    "array_split",
    "block",
    "column_stack",
    "concat",
    "dstack",
    "hstack",
    "split",
    "stack",
    "unstack",
    "vstack",
]


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


@public
def stack(arrays: Sequence[Any], axis: int = 0, *, dtype: object = None) -> Tensor:
    """Arrays of one shape, one after the other along a new axis."""
    made = _tensors(arrays, "stack")
    for x in made[1:]:
        if x.ndim != made[0].ndim or not all(map(same, x.shape, made[0].shape)):
            raise ShapeError(f"stack: shapes {made[0].shape} and {x.shape} differ")
    return concat([expand_dims(x, axis) for x in made], axis, dtype=dtype)


@public
def vstack(arrays: Sequence[Any], *, dtype: object = None) -> Tensor:
    """The arrays below each other; vectors are rows."""
    return concat([atleast_2d(x) for x in arrays], 0, dtype=dtype)


@public
def hstack(arrays: Sequence[Any], *, dtype: object = None) -> Tensor:
    """The arrays beside each other: along the second axis, vectors along the first."""
    made = [atleast_1d(x) for x in arrays]
    return concat(made, 0 if made and made[0].ndim == 1 else 1, dtype=dtype)


@public
def block(arrays: Any) -> Tensor:
    """An array from nested lists of blocks: the innermost ones beside each other along the last
    axis, those around them along the axis before, and so on. Blocks of fewer axes get leading
    ones."""

    def depth(value: Any) -> int:
        if not isinstance(value, list):
            return 0
        depths = {depth(part) for part in cast("list[Any]", value)}
        if len(depths) != 1:
            found = "no blocks" if not depths else "blocks of several depths"
            raise ArgumentError(f"block: a list has {found}", fix="nest all blocks alike")
        return 1 + depths.pop()

    def rank(value: Any) -> int:
        if isinstance(value, list):
            return max(rank(part) for part in cast("list[Any]", value))
        return as_tensor(value).ndim

    levels = depth(arrays)
    axes = max(levels, rank(arrays))

    def joined(value: Any, level: int) -> Tensor:
        if not isinstance(value, list):
            x = as_tensor(value)
            return x.reshape((*(1,) * (axes - x.ndim), *x.shape))
        return concat([joined(part, level - 1) for part in cast("list[Any]", value)], -level)

    return joined(arrays, levels)


@public
def dstack(arrays: Sequence[Any], *, dtype: object = None) -> Tensor:
    """The arrays along the third axis."""
    return concat([atleast_3d(x) for x in arrays], 2, dtype=dtype)


@public
def column_stack(arrays: Sequence[Any]) -> Tensor:
    """Vectors as the columns of a matrix, between matrices."""
    made = [as_tensor(x) for x in arrays]
    return concat([x.reshape(-1, 1) if x.ndim < 2 else x for x in made], 1)


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
    extent, cuts = x.shape[place], list[DimLike]([0])
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        for number in range(count):
            cuts.append(cuts[-1] + (extent + (count - 1 - number)) // count)
    else:
        cuts = [0, *(int(i) for i in indices_or_sections), extent]
    keys = (slice(None),) * place
    return [x[(*keys, slice(a, b))] for a, b in pairwise(cuts)]

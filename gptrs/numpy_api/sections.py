"""Parts of tensors and tensors of parts in torch's words: chunk, narrow, unflatten, block_diag."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations as combinations_of
from itertools import combinations_with_replacement
from math import prod
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Shape, normal_axis, shape_text
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.grids import meshgrid
from gptrs.numpy_api.joining import array_split, concat, stack
from gptrs.numpy_api.manipulation import moveaxis, repeat
from gptrs.numpy_api.matrices import placed_on_diagonal
from gptrs.numpy_api.products import conjugate

__all__ = [
    "adjoint",
    "block_diag",
    "broadcast_tensors",
    "cartesian_prod",
    "chunk",
    "combinations",
    "diag_embed",
    "narrow",
    "repeat_interleave",
    "split_with_sizes",
    "t",
    "tensor_split",
    "unflatten",
    "unfold",
]


def _slice(x: Tensor, axis: int, start: DimLike, length: DimLike) -> Tensor:
    return x[(*(slice(None),) * axis, slice(start, start + length))]


@public
def chunk(x: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """``x`` cut along ``dim`` into at most ``chunks`` parts of ⌈extent / chunks⌉, the last of which
    may be shorter. `tensor_split` gives as many as asked."""
    x = as_tensor(x)
    axis = normal_axis(dim, x.ndim)
    extent = x.shape[axis]
    if chunks < 1:
        raise ArgumentError(f"chunks is {chunks}, expected at least 1")
    if isinstance(extent, Dim):
        raise ShapeError(f"chunk: axis {dim} has a symbolic extent {extent}")
    size = max(1, -(-extent // chunks))
    starts = range(0, extent, size) if extent else range(chunks)
    return tuple(_slice(x, axis, start, min(size, extent - start)) for start in starts)


@public
def tensor_split(x: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """``x`` cut along ``dim`` into so many parts, the first of which may be longer by one, or
    before each of the given positions."""
    cuts = indices_or_sections
    cuts = cuts.tolist() if isinstance(cuts, Tensor) else cuts
    return tuple(array_split(x, cuts, dim))


@public
def split_with_sizes(x: Any, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """``x`` cut along ``dim`` into parts of these extents, which have to make up the whole."""
    x = as_tensor(x)
    axis = normal_axis(dim, x.ndim)
    if sum(split_sizes) != x.shape[axis]:
        raise ShapeError(
            f"split_sizes {tuple(split_sizes)} sum to {sum(split_sizes)}, axis {dim} has extent"
            f" {x.shape[axis]}"
        )
    starts = np.cumsum([0, *split_sizes]).tolist()
    return tuple(_slice(x, axis, *each) for each in zip(starts, split_sizes, strict=False))


@public
def narrow(x: Any, dim: int, start: Any, length: DimLike) -> Tensor:
    """The ``length`` parts of ``x`` from ``start`` on along ``dim``; a traced start is moved so
    that all of them are inside."""
    x = as_tensor(x)
    axis = normal_axis(dim, x.ndim)
    if isinstance(start, Tensor) and start.is_traced:
        starts = tuple(start if i == axis else 0 for i in range(x.ndim))
        sizes = tuple(length if i == axis else n for i, n in enumerate(x.shape))
        return OPS["dynamic_slice"](x, starts, sizes=sizes)
    start, extent = int(start), x.shape[axis]
    if isinstance(extent, int) and isinstance(length, int):
        start = start + extent if start < 0 else start
        if start < 0 or length < 0 or start + length > extent:
            raise ShapeError(
                f"narrow: {length} parts from {start} on do not lie in axis {dim} of extent"
                f" {extent}"
            )
    return _slice(x, axis, start, length)


@public
def unflatten(x: Any, dim: int, sizes: Sequence[DimLike]) -> Tensor:
    """``x`` with axis ``dim`` as several of these ``sizes``, one of which may be −1."""
    x = as_tensor(x)
    axis = normal_axis(dim, x.ndim)
    wanted = tuple(sizes)
    if -1 in wanted:
        rest = prod(n for n in wanted if n != -1)
        wanted = tuple(x.shape[axis] // rest if n == -1 else n for n in wanted)
    if prod(wanted) != x.shape[axis]:
        raise ShapeError(f"sizes {tuple(sizes)} do not make up the extent {x.shape[axis]}")
    return x.reshape((*x.shape[:axis], *wanted, *x.shape[axis + 1 :]))


@public(other_names={"axis": "dimension", "dim": "dimension"})
def unfold(x: Any, dimension: int, size: int, step: int = 1) -> Tensor:
    """All windows of ``size`` parts along an axis, ``step`` apart: the axis counts the windows, a
    new last one the parts, as in torch's x.unfold. `ptir.nn.unfold` has the patches of images."""
    x = as_tensor(x)
    axis = normal_axis(dimension, x.ndim)
    extent = x.shape[axis]
    if size < 0 or step < 1 or (isinstance(extent, int) and size > extent):
        raise ShapeError(f"unfold: windows of {size}, {step} apart, along an extent of {extent}")
    count = (extent - size) // step + 1
    shape = (count, size)
    starts = OPS["iota"](shape=shape, axis=0, dtype="si64") * step
    places = starts + OPS["iota"](shape=shape, axis=1, dtype="si64")
    return moveaxis(FUNCTIONS["take"](x, places, axis=axis), axis + 1, -1)


@public
def repeat_interleave(
    x: Any, repeats: Any, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element so often along ``dim``, or in one row of all; ``repeats`` is a number or one
    for each position. Traced ones need the length of the result, ``output_size``."""
    return repeat(x, repeats, axis=dim, total_repeat_length=output_size)


@public
def t(x: Any) -> Tensor:
    """The transpose of a matrix; a vector or a number itself."""
    x = as_tensor(x)
    if x.ndim > 2:
        raise ShapeError(
            f"t takes a matrix, found {shape_text(x.shape)}",
            fix="matrix_transpose exchanges the last two axes of more",
        )
    return OPS["transpose"](x, perm=tuple(reversed(range(x.ndim))))


@public
def adjoint(x: Any) -> Tensor:
    """The transposes of matrices [..., M, N], conjugate where they are complex."""
    return FUNCTIONS["matrix_transpose"](conjugate(as_tensor(x)))


@public
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, all broadcast to one shape."""
    return tuple(FUNCTIONS["broadcast_arrays"](*tensors))


def _matrix(x: Any) -> Tensor:
    x = as_tensor(x)
    if x.ndim > 2:
        raise ShapeError(f"block_diag takes matrices, found {shape_text(x.shape)}")
    return x.reshape((1,) * (2 - x.ndim) + tuple(x.shape))


@public
def block_diag(*tensors: Any) -> Tensor:
    """The matrices along the diagonal of one, zeros elsewhere; vectors are rows."""
    blocks = [_matrix(x) for x in tensors]
    if not blocks:
        raise ArgumentError("block_diag takes at least one matrix")
    width = sum(block.shape[1] for block in blocks)
    before: DimLike = 0
    rows: list[Tensor] = []
    for block in blocks:
        after = width - before - block.shape[1]
        rows.append(OPS["pad"](block, low=(0, before), high=(0, after), value=0))
        before = before + block.shape[1]
    return concat(rows, 0)


@public
def cartesian_prod(*tensors: Any) -> Tensor:
    """All choices of an element from each of the vectors, one in each row; of one vector the
    vector."""
    vectors = [as_tensor(x) for x in tensors]
    if not vectors or any(x.ndim > 1 for x in vectors):
        raise ShapeError("cartesian_prod takes at least one vector")
    if len(vectors) == 1:
        return vectors[0]
    return stack([grid.reshape(-1) for grid in meshgrid(*vectors, indexing="ij")], -1)


@public
def combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements of a vector in their order, one in each row."""
    x = as_tensor(x)
    if x.ndim != 1 or isinstance(x.shape[0], Dim):
        raise ShapeError(f"combinations takes a vector of known length, found {x.type}")
    if r < 0:
        raise ArgumentError(f"r is {r}, expected at least 0")
    choose = combinations_with_replacement if with_replacement else combinations_of
    chosen = [*choose(range(x.shape[0]), r)]
    if r == 0:
        return OPS["full"](shape=(0,), value=0, dtype=x.dtype)
    return OPS["take"](x, Tensor(np.array(chosen, np.int64).reshape(-1, r)))


@public(other_names={"axis1": "dim1", "axis2": "dim2"})
def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last axis of ``x`` on their diagonals, zeros elsewhere; ``dim1`` and
    ``dim2`` are their axes in the result."""
    x = as_tensor(x)
    side = x.shape[-1] + abs(offset)
    shape: Shape = (*x.shape[:-1], side, side)
    zeros = OPS["full"](shape=shape, value=False if x.dtype.is_bool else 0, dtype=x.dtype)
    return moveaxis(placed_on_diagonal(x, zeros, offset), (-2, -1), (dim1, dim2))

"""Matrices and their diagonals: matrix_transpose, diagonal, trace, diag."""

from __future__ import annotations

from typing import Any

from gptrs.errors import ShapeError
from gptrs.ir.dims import DimLike, same, surely_greater
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis, shape_text
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.manipulation import moveaxis, swapaxes

__all__ = ["diag", "diagonal", "matrix_transpose", "trace"]


@public
def matrix_transpose(x: Any) -> Tensor:
    """x [..., M, N] with its last two axes exchanged, [..., N, M]."""
    return swapaxes(_matrices(x, "matrix_transpose"), -1, -2)


def _matrices(x: Any, name: str) -> Tensor:
    x = as_tensor(x)
    if x.ndim < 2:
        raise ShapeError(f"{name} takes matrices [..., M, N], found {shape_text(x.shape)}")
    return x


@public(other_names={"dim1": "axis1", "dim2": "axis2"})
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements x[..., i, i + offset] of two axes, along a new last axis."""
    x = _matrices(x, "diagonal")
    first, second = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    if first == second:
        raise ShapeError(f"axis1 and axis2 are both axis {first}")
    x = moveaxis(x, (first, second), (-2, -1))
    row, column = max(-offset, 0), max(offset, 0)
    *batch, rows, columns = x.shape
    count = _least(rows - row, columns - column)
    places: Tensor = OPS["iota"](shape=(count, 1), dtype="si64") + column
    places = OPS["broadcast_to"](places, shape=(*batch, count, 1))
    x = x[..., row : row + count, :]
    return OPS["gather"](x, places, axis=-1).reshape((*batch, count))


def _least(rows: DimLike, columns: DimLike) -> DimLike:
    """The lesser of two extents, at least 0."""
    if isinstance(rows, int) and isinstance(columns, int):
        return max(0, min(rows, columns))
    if same(rows, columns) or surely_greater(columns, rows):
        return rows
    if surely_greater(rows, columns):
        return columns
    raise ShapeError(
        f"how long the diagonal of {shape_text((rows, columns))} is depends on a symbolic size",
        fix="give the axes one name, or slice the matrix",
    )


@public(other_names={"dim1": "axis1", "dim2": "axis2"})
def trace(
    x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, *, dtype: object = None
) -> Tensor:
    """The sum of the `diagonal`; small integers are summed in si64, as by `sum`."""
    return FUNCTIONS["sum"](diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


@public
def diag(x: Any, k: int = 0) -> Tensor:
    """The ``k``-th diagonal of a matrix; of a vector the matrix that has it there, zeros
    elsewhere."""
    x = as_tensor(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"diag takes a vector or a matrix, found {shape_text(x.shape)}")
    size = x.shape[0] + abs(k)
    zeros = OPS["full"](shape=(size, size), value=False if x.dtype.is_bool else 0, dtype=x.dtype)
    return placed_on_diagonal(x, zeros, k)


def placed_on_diagonal(values: Tensor, matrices: Tensor, k: int) -> Tensor:
    """``matrices`` [..., M, N] with ``values`` [..., count] on their ``k``-th diagonals."""
    rows: Tensor = OPS["iota"](shape=matrices.shape, axis=matrices.ndim - 2, dtype="si64")
    columns: Tensor = OPS["iota"](shape=matrices.shape, axis=matrices.ndim - 1, dtype="si64")
    before = max(k, 0)
    after = matrices.shape[-1] - before - values.shape[-1]
    ends = ((0, 0),) * (values.ndim - 1)
    row = FUNCTIONS["pad"](values, (*ends, (before, after)))
    row = row.reshape((*row.shape[:-1], 1, row.shape[-1]))
    spread = OPS["broadcast_to"](row, shape=matrices.shape)
    return OPS["select"](columns == rows + k, spread, matrices)

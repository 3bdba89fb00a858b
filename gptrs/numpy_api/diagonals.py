"""Positions of diagonals, triangles and masks in arrays that are there; fill_diagonal, ix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from gptrs.errors import ShapeError
from gptrs.ir.dims import Dim, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.conditions import refuse_inplace
from gptrs.numpy_api.creation import ones
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.grids import diag_indices, tril_indices, triu_indices
from gptrs.numpy_api.searching import flatnonzero, nonzero

__all__ = [
    "diag_indices_from",
    "fill_diagonal",
    "ix",
    "mask_indices",
    "tril_indices_from",
    "triu_indices_from",
]


def _extents(name: str, x: Any) -> tuple[int, int]:
    shape = as_tensor(x).shape
    if len(shape) != 2 or any(isinstance(n, Dim) for n in shape):
        raise ShapeError(f"{name} takes a matrix of known extents, found {shape_text(shape)}")
    rows, columns = cast("tuple[int, int]", shape)
    return rows, columns


@public(other_names={"arr": "x"})
def tril_indices_from(x: Any, k: int = 0) -> tuple[Tensor, Tensor]:
    """`tril_indices` of a matrix of the shape of ``x``."""
    rows, columns = _extents("tril_indices_from", x)
    return tril_indices(rows, k, columns)


@public(other_names={"arr": "x"})
def triu_indices_from(x: Any, k: int = 0) -> tuple[Tensor, Tensor]:
    """`triu_indices` of a matrix of the shape of ``x``."""
    rows, columns = _extents("triu_indices_from", x)
    return triu_indices(rows, k, columns)


@public(other_names={"arr": "x"})
def diag_indices_from(x: Any) -> tuple[Tensor, ...]:
    """`diag_indices` of an array of at least two axes, all of one extent."""
    x = as_tensor(x)
    if x.ndim < 2 or not all(same(n, x.shape[0]) for n in x.shape):
        raise ShapeError(
            f"diag_indices_from takes an array with axes of one extent, found {shape_text(x.shape)}"
        )
    return diag_indices(x.shape[0], x.ndim)


@public
def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> tuple[Tensor, ...]:
    """The positions in an [n, n] matrix that ``mask_func(matrix, k)`` (`triu`, `tril`) leaves."""
    left = as_tensor(mask_func(ones((n, n)), k))
    return nonzero(left)


@public(other_names={"a": "x"})
def fill_diagonal(x: Any, val: Any, wrap: bool = False, *, inplace: bool = False) -> Tensor:
    """``x`` with the elements of ``val``, over and over, on its main diagonal, as a new array.

    The diagonal is where all positions are equal. With ``wrap`` that of a tall matrix starts anew,
    a row below its end.
    """
    refuse_inplace("fill_diagonal", inplace)
    x = as_tensor(x)
    if x.ndim < 2 or (x.ndim > 2 and not all(same(n, x.shape[0]) for n in x.shape)):
        raise ShapeError(
            f"fill_diagonal takes a matrix or axes of one extent, found {shape_text(x.shape)}"
        )
    places: list[Tensor] = [
        OPS["iota"](shape=x.shape, axis=axis, dtype="si64") for axis in range(x.ndim)
    ]
    start = number = places[0]
    if x.ndim == 2 and wrap:
        period = x.shape[1] + 1
        start, number = OPS["remainder"](start, period), number - start // period
    mask = start == places[1]
    for place in places[2:]:
        mask = OPS["logical_and"](mask, start == place)
    values = tensor_of(val, x.dtype)
    if values.ndim:
        values = values.reshape(-1)
        values = OPS["take"](values, OPS["remainder"](number, values.shape[0]))
    return OPS["select"](mask, values, x)


@public
def ix(*args: Any) -> tuple[Tensor, ...]:
    """Rows of positions, each along an axis of its own: ``x[ix(rows, columns)]`` is the part of
    ``x`` in these rows and columns. Of bools the positions that hold, in functions that are not
    traced."""
    rows: list[Tensor] = []
    for axis, given in enumerate(args):
        row = as_tensor(given)
        row = row.astype("si64") if row.shape == (0,) else row
        if row.ndim != 1:
            raise ShapeError(f"ix takes rows, found {shape_text(row.shape)}")
        row = flatnonzero(row) if row.dtype.is_bool else row
        rows.append(row.reshape([-1 if i == axis else 1 for i in range(len(args))]))
    return tuple(rows)

"""Rows and grids of numbers and positions: meshgrid, logarithmic ranges, triangles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import as_dtype
from gptrs.ir.types import broadcast_shapes as broadcast_extents
from gptrs.numpy_api.creation import arange, linspace, shape_of
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.joining import stack
from gptrs.numpy_api.manipulation import moveaxis
from gptrs.numpy_api.matrices import diag

__all__ = [
    "broadcast_shapes",
    "diag_indices",
    "diagflat",
    "fromfunction",
    "geomspace",
    "indices",
    "logspace",
    "meshgrid",
    "ravel_multi_index",
    "tril_indices",
    "triu_indices",
    "unravel_index",
]


@public
def meshgrid(
    *arrays: Any,
    indexing: Literal["xy", "ij"] = "xy",
    sparse: bool = False,
    copy: bool = True,
) -> list[Tensor]:
    """The coordinates of a grid: array i repeated along all axes but its own, or, if ``sparse``,
    of extent 1 there; new ones whatever ``copy`` says. With "xy" the first two axes are exchanged.
    The arrays may be in a list."""
    if len(arrays) == 1 and isinstance(arrays[0], list | tuple):
        arrays = tuple(cast("Sequence[Any]", arrays[0]))
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing is {indexing!r}, expected 'xy' or 'ij'")
    lines = [as_tensor(array).reshape(-1) for array in arrays]
    axes = list(range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        axes[:2] = 1, 0
    extents = [lines[i].shape[0] for i in axes]
    grids: list[Tensor] = []
    for axis, line in zip(axes, lines, strict=True):
        shape = [line.shape[0] if i == axis else 1 for i in range(len(lines))]
        grid = line.reshape(shape)
        grids.append(grid if sparse else OPS["broadcast_to"](grid, shape=tuple(extents)))
    return grids


@public
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: object = None,
    axis: int = 0,
    *,
    device: object = None,
) -> Tensor:
    """``base`` to the powers of `linspace`: numbers at equal distances on a logarithmic scale."""
    powers = linspace(start, stop, num, endpoint, dtype="f64", axis=axis, device=device)
    return OPS["pow"](tensor_of(base, "f64"), powers).astype(dtype or DEFAULT_FLOAT)


@public
def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: object = None,
    axis: int = 0,
) -> Tensor:
    """``num`` numbers from ``start`` to ``stop``, each the same multiple of the one before; the new
    axis is ``axis``."""
    first, last = tensor_of(start, "f64"), tensor_of(stop, "f64")
    powers = linspace(0, 1, num, dtype="f64", endpoint=endpoint)
    shape = (num, *(1,) * max(first.ndim, last.ndim))
    values = first * OPS["pow"](last / first, powers.reshape(shape))
    if endpoint and num > 1:
        places: Tensor = OPS["iota"](shape=shape, dtype="si64")
        values = OPS["select"](places == num - 1, last, values)
    values = moveaxis(values, 0, axis) if axis else values
    return values.astype(dtype or DEFAULT_FLOAT)


@public
def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """The shape that arrays of ``shapes`` broadcast to."""
    return broadcast_extents(*map(shape_of, shapes))


@public
def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: object = float, **kwargs: Any
) -> Any:
    """``function`` of the positions along each axis of an array of ``shape``."""
    extents = shape_of(shape)
    kind = DEFAULT_FLOAT if dtype is float else as_dtype(dtype)
    places = [OPS["iota"](shape=extents, axis=i, dtype="si64") for i in range(len(extents))]
    return function(*(place.astype(kind) for place in places), **kwargs)


@public
def indices(dimensions: Sequence[Any], dtype: object = int, sparse: bool = False) -> Any:
    """The positions along each axis of an array of these extents [rank, ...]; if ``sparse``, a
    tuple of arrays that broadcast to it."""
    extents = shape_of(dimensions)
    kind = "si64" if dtype is int else as_dtype(dtype)
    if sparse:
        rows = [arange(extent, dtype=kind) for extent in extents]
        return tuple(meshgrid(*rows, indexing="ij", sparse=True))
    places = [OPS["iota"](shape=extents, axis=i, dtype="si64") for i in range(len(extents))]
    return stack(places).astype(kind)


def _positions(found: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(Tensor.of_array(np.asarray(part).astype(np.int64)) for part in found)


@public
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """The rows and columns of what lies at and below the ``k``-th diagonal of an [n, m] matrix."""
    rows, columns = _positions(np.tril_indices(n, k, m))
    return rows, columns


@public
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """The rows and columns of what lies at and above the ``k``-th diagonal of an [n, m] matrix."""
    rows, columns = _positions(np.triu_indices(n, k, m))
    return rows, columns


@public
def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The positions along each axis of the main diagonal."""
    return _positions(np.diag_indices(n, ndim))


@public
def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """The positions along each axis of elements counted in row-major order."""
    left = tensor_of(indices, "si64")
    places: list[Tensor] = []
    for extent in reversed(shape_of(shape)):
        places.append(OPS["remainder"](left, extent))
        left = left // extent
    return tuple(reversed(places))


@public
def ravel_multi_index(multi_index: Sequence[Any], dims: Any) -> Tensor:
    """The number in row-major order of the elements at positions along each axis."""
    extents = shape_of(dims)
    if len(multi_index) != len(extents):
        raise ShapeError(
            f"ravel_multi_index: positions along {len(multi_index)} axes for {len(extents)}"
        )
    place = as_tensor(multi_index[0]).astype("si64")
    for part, extent in zip(multi_index[1:], extents[1:], strict=True):
        place = place * extent + as_tensor(part)
    return place


@public(other_names={"offset": "k"})
def diagflat(v: Any, k: int = 0) -> Tensor:
    """A matrix with the elements of ``v`` in a row on its ``k``-th diagonal."""
    return diag(as_tensor(v).reshape(-1), k)

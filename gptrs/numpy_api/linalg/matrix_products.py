"""Products of matrices: those of ``ptir`` with the defaults of ``linalg``, chains, powers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api import matrices as diagonals
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.linalg.equations import inv
from gptrs.numpy_api.linalg.factorisations import matrices
from gptrs.numpy_api.matrices import matrix_transpose
from gptrs.numpy_api.products import cross, tensordot, vecdot

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
]

_NOMINAL = 64  # the extent that a symbol counts for in the choice of an order


@public(namespace="linalg", other_names={"x1": "x", "x2": "y"})
def matmul(x: Any, y: Any, /) -> Tensor:
    """The product of matrices [..., M, K] and [..., K, N]; a vector is a row or a column."""
    return OPS["matmul"](as_tensor(x), as_tensor(y))


@public(namespace="linalg", other_names={"x1": "x", "x2": "y"})
def outer(x: Any, y: Any, /) -> Tensor:
    """x[i] · y[j] of two vectors, [size of x, size of y]."""
    x, y = as_tensor(x), as_tensor(y)
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"outer takes two vectors, found ranks {x.ndim} and {y.ndim}")
    return FUNCTIONS["outer"](x, y)


@public(namespace="linalg")
def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The elements x[..., i, i + offset] of matrices [..., M, N]."""
    return diagonals.diagonal(x, offset, -2, -1)


@public(namespace="linalg")
def trace(x: Any, /, *, offset: int = 0, dtype: object = None) -> Tensor:
    """The sum of the `diagonal` of matrices [..., M, N]."""
    return diagonals.trace(x, offset, -2, -1, dtype=dtype)


@public(namespace="linalg", other_names={"a": "x"})
def matrix_power(x: Any, n: int, /) -> Tensor:
    """Square matrices to an integer power, by squaring; a negative one of the inverse."""
    if not isinstance(n, int) or isinstance(n, bool):
        raise ArgumentError(f"n is {n!r}, expected an integer")
    x = as_tensor(x)
    if x.ndim < 2:
        raise ShapeError("matrix_power takes matrices [..., N, N]")
    if n == 0:
        eye = FUNCTIONS["eye"](x.shape[-1], dtype=x.dtype)
        return OPS["broadcast_to"](eye, shape=x.shape)
    if n < 0:
        x, n = inv(matrices(x)), -n
    result: Tensor | None = None
    while n:
        if n & 1:
            result = x if result is None else result @ x
        n >>= 1
        x = x @ x if n else x
    assert result is not None
    return result


@public(namespace="linalg", other_names={"tensors": "arrays"})
def multi_dot(arrays: Sequence[Any], /) -> Tensor:
    """The product of two or more matrices, in the order with the fewest multiplications; the first
    and the last may be vectors."""
    made = [as_tensor(x) for x in arrays]
    if len(made) < 2:
        raise ArgumentError(f"multi_dot takes at least two arrays, found {len(made)}")
    first, last = made[0], made[-1]
    if first.ndim == 1:
        made[0] = first.reshape((1, -1))
    if last.ndim == 1:
        made[-1] = last.reshape((-1, 1))
    if any(x.ndim != 2 for x in made):
        raise ShapeError("multi_dot takes matrices, and vectors at its ends")
    extents = [_known(n) for n in (*(x.shape[0] for x in made), made[-1].shape[1])]
    result = _chain(made, _splits(extents), 0, len(made) - 1)
    shape = (*first.shape[: first.ndim - 1], *last.shape[1:])
    return result.reshape(shape) if result.ndim != len(shape) else result


def _known(extent: DimLike) -> int:
    return _NOMINAL if isinstance(extent, Dim) else extent


def _splits(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where each part (first, last) of a chain is cut in two. Matrix i is [extents[i],
    extents[i + 1]]. Source: Cormen et al., "Introduction to Algorithms", 15.2."""
    count = len(extents) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k)
                for k in range(i, j)
            )
    return split


def _chain(
    arrays: Sequence[Tensor], split: dict[tuple[int, int], int], first: int, last: int
) -> Tensor:
    if last - first < 2:
        return reduce(lambda x, y: x @ y, arrays[first : last + 1])
    cut = split[first, last]
    return _chain(arrays, split, first, cut) @ _chain(arrays, split, cut + 1, last)

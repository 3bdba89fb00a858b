"""P·L·U = x by panels of columns, with the names and pivots of torch.

┌──────┬───────────┐
│ done │ U₁₂       │   a panel: columns one after the other, with row exchanges (`_panel`)
│      ├───┬───────┤   U₁₂ = L₁₁⁻¹·x₁₂ of its rows
│ L    │ P │ x₂₂   │   x₂₂ −= L₂₁·U₁₂: a matrix product, nearly all of the work
└──────┴───┴───────┘
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gptrs.errors import ShapeError
from gptrs.ir.dims import product
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import si32, si64
from gptrs.numpy_api.axis_slices import dynamic_index_in_dim
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.linalg.equations import solve_triangular
from gptrs.numpy_api.linalg.factorisations import floating, matrices
from gptrs.numpy_api.matrices import matrix_transpose
from gptrs.numpy_api.products import conjugate

__all__ = ["lu", "lu_factor", "lu_solve", "lu_unpack"]

_PANEL = 32
"""Columns of a panel."""


class LuFactors(NamedTuple):
    """The results of `lu_factor`."""

    LU: Tensor
    pivots: Tensor


class LuResult(NamedTuple):
    """The results of `lu`."""

    P: Tensor
    L: Tensor
    U: Tensor


@public(namespace="linalg", other_names={"A": "x", "a": "x"})
def lu_factor(x: Any, /, *, pivot: bool = True) -> LuFactors:
    """L and U in one matrix [..., M, N] (the ones on the diagonal of L left out), and ``pivots``
    [..., min(M, N)] in si32: row i was exchanged with row pivots[i], both counted from 1.

    The pivot is the greatest of its column; without ``pivot`` no rows are exchanged. A singular
    matrix has factors too, with a 0 on the diagonal of U.
    """
    x = matrices(x)
    *batch, rows, columns = x.shape
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise ShapeError("lu_factor takes matrices of a known size", fix="give it to the function")
    count = product(tuple(batch))
    x = x.reshape((count, rows, columns))
    # Columns of L and U, pivots and orders of rows, one panel after the other.
    done, pivots, orders = list[Tensor](), list[Tensor](), list[Tensor]()
    for first in range(0, min(rows, columns), _PANEL):
        last = min(first + _PANEL, rows, columns)
        panel, found, order = _panel(x[:, :, : last - first], first, pivot=pivot)
        rest = OPS["gather"](
            x[:, :, last - first :], _along_rows(order, x[:, :, last - first :]), axis=1
        )
        done.append(panel)
        pivots.append(found)
        orders.append(order)
        above, beside = rest[:, :first], rest[:, first:last]
        triangle, below = panel[:, first:last], panel[:, last:]
        upper = beside
        if rest.shape[-1]:
            upper = solve_triangular(triangle, beside, unitriangular=True)
        under = rest[:, last:] - below @ upper
        x = FUNCTIONS["concat"]([above, upper, under], axis=1)
    for number in reversed(range(len(done) - 1)):  # each by the orders of all panels behind it
        order = orders[number + 1]
        done[number] = OPS["gather"](done[number], _along_rows(order, done[number]), axis=1)
        orders[number] = OPS["gather"](orders[number], order, axis=1)
    whole = FUNCTIONS["concat"]([*done, x], axis=2) if done else x
    numbers = FUNCTIONS["concat"](pivots, axis=1) if pivots else _zeros((count, 0))
    numbers = OPS["cast"](numbers + 1, dtype=si32)
    return LuFactors(
        whole.reshape((*batch, rows, columns)), numbers.reshape((*batch, min(rows, columns)))
    )


def _zeros(shape: tuple[Any, ...]) -> Tensor:
    return OPS["full"](shape=shape, value=0, dtype="si64")


def _along_rows(order: Tensor, x: Tensor) -> Tensor:
    """The row numbers of [B, M] as indices of the elements of x [B, M, N]."""
    return OPS["broadcast_to"](order[:, :, None], shape=x.shape)


def _numbers(count: int) -> Tensor:
    return OPS["iota"](shape=(count,), axis=0, dtype="si64")


def _panel(x: Tensor, first: int, *, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The columns of x [B, M, W] as those of L and U from row ``first`` on; the pivots [B, W] and
    the order of the rows [B, M] that comes of them, counted from 0."""
    count, extent, width = x.shape
    assert isinstance(extent, int)
    assert isinstance(width, int)
    rows, columns = _numbers(extent), _numbers(width)

    def step(k: Tensor, state: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        x, pivots, order = state
        at = k + first
        column = dynamic_index_in_dim(x, k, 2, keepdims=False)
        best = OPS["broadcast_to"](at, shape=(count,))
        if pivot:
            size = OPS["select"](rows >= at, _size(column), -1)
            best = OPS["argmax"](size, axis=1)
        swapped = OPS["select"](rows == at, best[:, None], rows)
        swapped = OPS["select"](rows == best[:, None], at, swapped)
        order = OPS["gather"](order, swapped, axis=1)
        x = OPS["gather"](x, _along_rows(swapped, x), axis=1)
        top = dynamic_index_in_dim(x, at, 1)
        divisor = dynamic_index_in_dim(top, k, 2)
        divisor = OPS["select"](divisor == 0, 1, divisor)  # of a column of zeros
        factors = OPS["select"]((rows > at)[:, None], dynamic_index_in_dim(x, k, 2) / divisor, 0)
        reduced = x - factors * OPS["select"](columns > k, top, 0)
        is_column = (rows > at)[:, None] & (columns == k)
        x = OPS["select"](is_column, OPS["broadcast_to"](factors, shape=x.shape), reduced)
        return x, OPS["select"](columns == k, best[:, None], pivots), order

    order = OPS["broadcast_to"](rows, shape=(count, extent))
    state = (x, _zeros((count, width)), order)
    return FUNCTIONS["fori_loop"](0, width, step, state)


def _size(x: Tensor) -> Tensor:
    """What LAPACK compares: the sum of the parts of complex numbers."""
    if x.dtype.is_complex:
        return abs(OPS["real"](x)) + abs(OPS["imag"](x))
    return abs(x)


def _order(pivots: Tensor, rows: int) -> Tensor:
    """The order [B, M] of rows after the exchanges of pivots [B, K], counted from 0."""
    numbers = _numbers(rows)
    count, steps = pivots.shape
    exchanged = OPS["cast"](pivots, dtype=si64) - 1

    def step(k: Tensor, order: Tensor) -> Tensor:
        other = dynamic_index_in_dim(exchanged, k, 1)
        swapped = OPS["select"](numbers == k, other, numbers)
        swapped = OPS["select"](numbers == other, k, swapped)
        return OPS["gather"](order, swapped, axis=1)

    start = OPS["broadcast_to"](numbers, shape=(count, rows))
    return FUNCTIONS["fori_loop"](0, steps, step, start) if steps else start


@public(namespace="linalg", other_names={"LU_data": "factors", "LU": "factors"})
def lu_unpack(factors: Any, pivots: Any, /) -> LuResult:
    """P [..., M, M], L [..., M, K] and U [..., K, N] of the results of `lu_factor`, with
    P·L·U = x and K = min(M, N)."""
    factors, pivots = as_tensor(factors), as_tensor(pivots)
    *batch, rows, columns = factors.shape
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise ShapeError("lu_unpack takes matrices of a known size", fix="give it to the function")
    least, count = min(rows, columns), product(tuple(batch))
    order = _order(pivots.reshape((count, least)), rows)
    # Row i of x is row number i of the order: column i of P has its one there.
    places = order[:, None, :] == _numbers(rows)[:, None]
    permutation = OPS["cast"](places, dtype=factors.dtype).reshape((*batch, rows, rows))
    eye = FUNCTIONS["eye"](rows, least, dtype=factors.dtype)
    lower = FUNCTIONS["tril"](factors[..., :least], -1) + eye
    return LuResult(permutation, lower, FUNCTIONS["triu"](factors[..., :least, :]))


@public(namespace="linalg", other_names={"A": "x", "a": "x"})
def lu(x: Any, /, *, pivot: bool = True) -> LuResult:
    """P·L·U = x [..., M, N]: a permutation [..., M, M], a lower triangle [..., M, K] with ones on
    its diagonal, and an upper one [..., K, N], K = min(M, N)."""
    return lu_unpack(*lu_factor(x, pivot=pivot))


@public(namespace="linalg", other_names={"LU": "factors", "B": "b"})
def lu_solve(
    factors: Any, pivots: Any, b: Any, /, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with x·X = b (X·x = b unless ``left``; xᴴ for ``adjoint``) for the results of `lu_factor`
    of x [..., N, N], and b [..., N, K].

    Raises `MatrixError` where x is singular.
    """
    factors, b = promote((floating(factors), floating(b)))
    if not left:  # X·x = b is xᵀ·Xᵀ = bᵀ, and xᵀ is the adjoint of the conjugate
        turned = conjugate(factors), pivots, matrix_transpose(b)
        return matrix_transpose(lu_solve(*turned, adjoint=not adjoint))
    permutation = lu_unpack(factors, pivots).P
    if not adjoint:
        y = solve_triangular(factors, matrix_transpose(permutation) @ b, unitriangular=True)
        return solve_triangular(factors, y, upper=True)
    turned = conjugate(matrix_transpose(factors))
    y = solve_triangular(turned, b)
    return permutation @ solve_triangular(turned, y, upper=True, unitriangular=True)

"""Equations and inverses: solve, solve_triangular, lstsq, inv, pinv, determinants, rank."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gptrs.errors import ShapeError
from gptrs.ir.dims import Dim, product, same, same_shape, surely_greater
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, broadcast_shapes, normal_axis, shape_text
from gptrs.numpy_api.function import public, tensor_of
from gptrs.numpy_api.linalg.factorisations import floating, matrices, svd, svdvals
from gptrs.numpy_api.matrices import matrix_transpose
from gptrs.numpy_api.products import conjugate, modulus

__all__ = [
    "det",
    "inv",
    "lstsq",
    "matrix_rank",
    "pinv",
    "slogdet",
    "solve",
    "solve_triangular",
    "tensorinv",
    "tensorsolve",
]


class SlogdetResult(NamedTuple):
    """The results of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class LstsqResult(NamedTuple):
    """The results of `lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def adjoint(x: Tensor) -> Tensor:
    """The transposes of matrices, conjugate where they are complex."""
    return matrix_transpose(conjugate(x))


def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next number of a dtype, or of its parts."""
    return float(np.finfo(dtype.numpy).eps)


@public(namespace="linalg", other_names={"A": "a", "B": "b"})
def solve(a: Any, b: Any, /) -> Tensor:
    """X with a·X = b, for a [..., N, N] and b [N] or [..., N, K]; leading axes broadcast.

    Raises `ElementError` where a matrix is singular.
    """
    a, b = promote((floating(a), floating(b)))
    if b.ndim == 1:
        return solve(a, b.reshape((-1, 1)))[..., 0]
    return OPS["solve"](*_one_batch(matrices(a), matrices(b)))


def _one_batch(*operands: Tensor) -> list[Tensor]:
    """Matrices with equal leading axes."""
    batch = broadcast_shapes(*(x.shape[:-2] for x in operands))
    return [OPS["broadcast_to"](x, shape=(*batch, *x.shape[-2:])) for x in operands]


@public(namespace="linalg", other_names={"A": "a", "B": "b", "unit_diagonal": "unitriangular"})
def solve_triangular(
    a: Any, b: Any, /, *, upper: bool = False, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with a·X = b (X·a = b unless ``left``) for triangles a [..., N, N], of which the other half
    is not read; with ``unitriangular`` neither the diagonal, which is taken for ones."""
    a, b = promote((floating(a), floating(b)))
    a = FUNCTIONS["triu" if upper else "tril"](matrices(a))
    if unitriangular:
        eye = FUNCTIONS["eye"](a.shape[-1], dtype=a.dtype)
        a = OPS["select"](OPS["broadcast_to"](eye != 0, shape=a.shape), 1, a)
    if left:
        return solve(a, b)
    return matrix_transpose(solve(matrix_transpose(a), matrix_transpose(b)))


@public(namespace="linalg", other_names={"a": "x"})
def inv(x: Any, /) -> Tensor:
    """The inverse of each matrix of x [..., N, N]. Raises `ElementError` where one is singular."""
    return OPS["inv"](matrices(x))


@public(namespace="linalg", other_names={"a": "x"})
def det(x: Any, /) -> Tensor:
    """The determinant of each matrix of x [..., N, N], [...]."""
    return OPS["det"](matrices(x))


@public(namespace="linalg", other_names={"a": "x"})
def slogdet(x: Any, /) -> SlogdetResult:
    """The sign of the determinant (of modulus 1 if complex) and the logarithm of its modulus."""
    return SlogdetResult(*OPS["slogdet"](matrices(x)))


def _cutoff(values: Tensor, x: Tensor, rtol: Any) -> Tensor:
    """The singular values at and below which a direction counts as zero: ``rtol`` of the largest
    one, by default the extent of the matrix times the precision."""
    if rtol is None:
        rows, columns = x.shape[-2:]
        if isinstance(rows, Dim) or isinstance(columns, Dim):
            extent = rows if same(rows, columns) or surely_greater(rows, columns) else columns
            rtol = tensor_of(extent, values.dtype) * epsilon(x.dtype)
        else:
            rtol = max(rows, columns) * epsilon(x.dtype)
    else:
        rtol = tensor_of(rtol, values.dtype)
        rtol = rtol.reshape((*rtol.shape, 1))
    return values[..., :1] * rtol


@public(namespace="linalg", other_names={"A": "x", "a": "x", "tol": "atol"})
def matrix_rank(x: Any, /, *, rtol: Any = None, atol: Any = None) -> Tensor:
    """How many singular values are above ``rtol`` times the largest one, or above ``atol`` if that
    is given, [...] of si64."""
    x = matrices(x)
    values = svdvals(x)
    least = _cutoff(values, x, rtol)
    if atol is not None:
        bound = tensor_of(atol, values.dtype)
        bound = bound.reshape((*bound.shape, 1))
        least = bound if rtol is None else OPS["maximum"](bound, least)
    return FUNCTIONS["sum"](values > least, axis=-1)


@public(namespace="linalg", other_names={"a": "x", "rcond": "rtol"})
def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse [..., N, M], by singular values above ``rtol`` times the largest one; by
    default max(M, N) times the precision, as in the array API standard."""
    x = matrices(x)
    u, s, vh = svd(x, full_matrices=False)
    return adjoint(vh) @ (_inverted(s, _cutoff(s, x, rtol), x)[..., None] * adjoint(u))


def _inverted(values: Tensor, least: Tensor, x: Tensor) -> Tensor:
    """The reciprocals of singular values above ``least``, 0 for the others."""
    kept = values > least
    one: Tensor = OPS["select"](kept, values, 1)
    return OPS["select"](kept, OPS["reciprocal"](one), 0).astype(x.dtype)


@public(namespace="linalg", other_names={"A": "a", "B": "b"})
def lstsq(a: Any, b: Any, /, rcond: Any = None) -> LstsqResult:
    """The X of least norm that makes |b − a·X| least, for a [..., M, N] and b [M] or [..., M, K].

    As (X, residuals, rank, singular values). The residuals are Σ|b − a·X|² of each column where
    M > N, else there are none. ``rcond`` is as the ``rtol`` of `pinv`.
    """
    a, b = promote((floating(a), floating(b)))
    a = matrices(a)
    if b.ndim == 1:
        x, residuals, rank, values = lstsq(a, b.reshape((-1, 1)), rcond)
        return LstsqResult(x[..., 0], residuals, rank, values)
    if not same(a.shape[-2], b.shape[-2]):
        raise ShapeError(f"a has shape {shape_text(a.shape)} and b {shape_text(b.shape)}")
    u, s, vh = svd(a, full_matrices=False)
    least = _cutoff(s, a, rcond)
    x = adjoint(vh) @ (_inverted(s, least, a)[..., None] * (adjoint(u) @ b))
    rank = FUNCTIONS["sum"](s > least, axis=-1)
    if surely_greater(a.shape[-2], a.shape[-1]):
        apart = modulus(b - a @ x)
        residuals = FUNCTIONS["sum"](apart * apart, axis=-2)
    else:
        residuals = FUNCTIONS["zeros"]((0,), dtype=s.dtype)
    return LstsqResult(x, residuals, rank, s)


@public(namespace="linalg", other_names={"x1": "a", "x2": "b"})
def tensorsolve(a: Any, b: Any, /, axes: Any = None) -> Tensor:
    """X with tensordot(a, X, X.ndim) = b.

    The first axes of ``a`` are those of ``b``, and its other ones, those of X, have as many
    elements; ``axes`` of ``a`` are moved to its end first.
    """
    a, b = floating(a), floating(b)
    if axes is not None:
        moved = [normal_axis(axis, a.ndim) for axis in axes]
        rest = [axis for axis in range(a.ndim) if axis not in moved]
        a = OPS["transpose"](a, perm=(*rest, *moved))
    unknowns = a.shape[b.ndim :]
    if not same_shape(a.shape[: b.ndim], b.shape) or not same(product(unknowns), product(b.shape)):
        raise ShapeError(
            f"a has shape {shape_text(a.shape)} and b has shape {shape_text(b.shape)}, expected the"
            " axes of b first, then others with as many elements"
        )
    found = solve(a.reshape((-1, product(unknowns))), b.reshape(-1))
    return found.reshape(unknowns)


@public(namespace="linalg", other_names={"a": "x"})
def tensorinv(x: Any, /, ind: int = 2) -> Tensor:
    """The inverse of `tensordot` with x: its first ``ind`` axes become the last ones."""
    x = floating(x)
    if not 0 < ind <= x.ndim:
        raise ShapeError(f"ind is {ind}, expected 1 to {x.ndim}, the rank")
    first, last = x.shape[:ind], x.shape[ind:]
    return inv(x.reshape((product(first), -1))).reshape((*last, *first))

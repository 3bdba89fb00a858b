"""Factorisations, equations and determinants of matrices.

What torch keeps for gradients or tells about errors and PTIR has not, such as the factors behind a
determinant, is None: where a graph reads it, torch runs the operator.
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import UnsupportedError, aten, ptir

Maybe = Tensor | None


@aten("_linalg_svd")
def svd(
    x: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Maybe, Tensor, Maybe]:
    if not compute_uv:
        return None, ptir.linalg.svdvals(x), None
    return tuple(ptir.linalg.svd(x, full_matrices=full_matrices))


@aten("_linalg_eigh")
def eigh(x: Tensor, triangle: str = "L", compute_v: bool = True) -> tuple[Tensor, Maybe]:
    if not compute_v:
        return ptir.linalg.eigvalsh(x, UPLO=triangle.upper()), None
    return tuple(ptir.linalg.eigh(x, UPLO=triangle.upper()))


@aten("linalg_eig")
def eig(x: Tensor) -> tuple[Tensor, Tensor]:
    return tuple(ptir.linalg.eig(x))


@aten("linalg_eigvals", "_linalg_eigvals")
def eigvals(x: Tensor) -> Tensor:
    return ptir.linalg.eigvals(x)


@aten("linalg_qr")
def qr(x: Tensor, mode: str = "reduced") -> tuple[Maybe, Tensor]:
    if mode == "r":
        return None, ptir.linalg.qr(x, mode="r")
    return tuple(ptir.linalg.qr(x, mode=mode))


@aten("_linalg_det")
def det(x: Tensor) -> tuple[Tensor, None, None]:
    return ptir.linalg.det(x), None, None


@aten("_linalg_slogdet")
def slogdet(x: Tensor) -> tuple[Tensor, Tensor, None, None]:
    return (*ptir.linalg.slogdet(x), None, None)


def _check(check_errors: bool) -> None:
    """Operators of PTIR raise where a matrix has no result. Raises `UnsupportedError`."""
    if not check_errors:
        raise UnsupportedError("it is to return a number where a matrix has no result")


@aten("linalg_cholesky_ex")
def cholesky_ex(
    x: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, None]:
    _check(check_errors)
    return ptir.linalg.cholesky(x, upper=upper), None


@aten("linalg_inv_ex")
def inv_ex(x: Tensor, *, check_errors: bool = False) -> tuple[Tensor, None]:
    _check(check_errors)
    return ptir.linalg.inv(x), None


@aten("_linalg_solve_ex")
def solve_ex(
    a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, None, None, None]:
    _check(check_errors)
    # A b of one axis less than a is a vector for each matrix, if its shape is one.
    is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if is_vector:
        return _solved(a, b[..., None], left)[..., 0], None, None, None
    return _solved(a, b, left), None, None, None


def _solved(a: Tensor, b: Tensor, left: bool) -> Tensor:
    if left:
        return ptir.linalg.solve(a, b)
    return ptir.matrix_transpose(
        ptir.linalg.solve(ptir.matrix_transpose(a), ptir.matrix_transpose(b))
    )


@aten("linalg_lu_factor_ex")
def lu_factor_ex(
    x: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Maybe]:
    """With the number of the first 0 on the diagonal of U, from 1 on; 0 where there is none."""
    factors, pivots = ptir.linalg.lu_factor(x, pivot=pivot)
    zeros = ptir.diagonal(factors, 0, -2, -1) == 0
    if check_errors:
        ptir.check(~zeros, "U has a 0 on its diagonal: the matrix is singular")
        return factors, pivots, None
    numbers = ptir.where(zeros, ptir.arange(1, zeros.shape[-1] + 1), ptir.iinfo(ptir.si32).max)
    first = ptir.min(numbers, axis=-1, initial=ptir.iinfo(ptir.si32).max)
    return factors, pivots, ptir.where(ptir.any(zeros, axis=-1), first, 0)


@aten("linalg_lu")
def lu(x: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    permutation, lower, upper = ptir.linalg.lu(x, pivot=pivot)
    return permutation if pivot else ptir.zeros((0,), dtype=x.dtype), lower, upper


@aten("lu_unpack")
def lu_unpack(
    factors: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    empty = ptir.zeros((0,), dtype=factors.dtype)
    permutation, lower, upper = ptir.linalg.lu_unpack(factors, pivots)
    data = (lower, upper) if unpack_data else (empty, empty)
    return (permutation if unpack_pivots else empty, *data)


@aten("linalg_lu_solve")
def lu_solve(
    factors: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    return ptir.linalg.lu_solve(factors, pivots, b, left=left, adjoint=adjoint)


@aten("cholesky")
def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    return ptir.linalg.cholesky(x, upper=upper)


@aten("cholesky_inverse")
def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    return ptir.cholesky_inverse(factor, upper=upper)


@aten("cholesky_solve")
def cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    return ptir.cholesky_solve(b, factor, upper=upper)


@aten("linalg_solve_triangular")
def solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    return ptir.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular)


@aten("triangular_solve")
def triangular_solve(
    b: Tensor,
    a: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    turned = ptir.matrix_transpose(a) if transpose else a
    solved = ptir.linalg.solve_triangular(
        turned, b, upper=upper is not transpose, unitriangular=unitriangular
    )
    return solved, a


@aten("linalg_pinv.atol_rtol_tensor")
def pinv(x: Tensor, *, atol: Maybe = None, rtol: Maybe = None, hermitian: bool = False) -> Tensor:
    """V·diag(1 / s)·Uᴴ over the singular values above ``max(atol, rtol · largest)``."""
    values: Any
    if hermitian:
        values, u = ptir.linalg.eigh(x)
        v = u
    else:
        u, values, adjoint = ptir.linalg.svd(x, full_matrices=False)
        v = ptir.conj(ptir.matrix_transpose(adjoint))
    sizes = ptir.abs(values)
    if rtol is None:
        rows, columns = (ptir.asarray(n, dtype=sizes.dtype) for n in x.shape[-2:])
        default = ptir.maximum(rows, columns) * ptir.finfo(sizes.dtype).eps
        rtol = default if atol is None else ptir.where(atol > 0, 0.0, default)
    largest = ptir.max(sizes, axis=-1, keepdims=True, initial=0)
    least = _column(rtol) * largest
    if atol is not None:
        least = ptir.maximum(least, _column(atol))
    inverted = ptir.where(sizes > least, 1 / ptir.where(sizes > least, values, 1), 0)
    return (v * inverted[..., None, :]) @ ptir.conj(ptir.matrix_transpose(u))


def _column(x: Any) -> Any:
    return x[..., None] if isinstance(x, Tensor) else x

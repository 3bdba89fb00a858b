"""Factorisations of matrices [..., M, N]: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import cf32, f32, shape_text
from gptrs.numpy_api.function import as_tensor, public

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]

Triangle = Literal["L", "U"]


class QRResult(NamedTuple):
    """The factors of `qr`."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """The factors of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class EighResult(NamedTuple):
    """The results of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """The results of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def floating(x: Any) -> Tensor:
    """An operand in a dtype that LAPACK has: f32 for integers, bools and narrower floats."""
    x = as_tensor(x)
    if x.dtype.is_complex or (x.dtype.is_float and x.dtype.bits >= 32):
        return x
    return x.astype(DEFAULT_FLOAT)


def matrices(x: Any) -> Tensor:
    """An operand of at least two axes, in a dtype that LAPACK has."""
    x = floating(x)
    if x.ndim < 2:
        raise ShapeError(f"found shape {shape_text(x.shape)}, expected matrices [..., M, N]")
    return x


def wide(x: Tensor) -> Tensor:
    """An operand in double precision, for functions that NumPy has in no other."""
    return x.astype("cf64" if x.dtype.is_complex else "f64")


@public(namespace="linalg", other_names={"a": "x"})
def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """The lower triangle L with L·Lᴴ = x, or the upper one with Uᴴ·U = x; [..., N, N].

    Raises `ElementError` where a matrix is not positive definite.
    """
    return OPS["cholesky"](matrices(x), upper=upper)


@public(namespace="linalg", other_names={"a": "x"})
def qr(x: Any, /, *, mode: Literal["reduced", "complete", "r"] = "reduced") -> Any:
    """Q·R = x with orthonormal columns Q and an upper triangle R, as (Q, R).

    Q is [..., M, K] with K = min(M, N), and R [..., K, N]; with "complete" [..., M, M] and
    [..., M, N]. "r" gives R alone. Computed in double precision.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"mode is {mode!r}, expected 'reduced', 'complete' or 'r'")
    x = matrices(x)
    q, r = OPS["qr"](wide(x), complete=mode == "complete")
    r = r.astype(x.dtype)
    return r if mode == "r" else QRResult(q.astype(x.dtype), r)


@public(namespace="linalg", other_names={"a": "x"})
def svd(x: Any, /, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U·diag(S)·Vᴴ = x, as (U, S, Vh); S [..., K] in descending order with K = min(M, N).

    U is [..., M, M] and Vh [..., N, N], or [..., M, K] and [..., K, N] without ``full_matrices``.
    """
    if not compute_uv:
        return svdvals(x)
    return SVDResult(*OPS["svd"](matrices(x), full_matrices=full_matrices))


@public(namespace="linalg", other_names={"a": "x"})
def svdvals(x: Any, /) -> Tensor:
    """The singular values of each matrix, in descending order, [..., min(M, N)]."""
    return OPS["svdvals"](matrices(x))


def _is_lower(triangle: str) -> bool:
    if triangle.upper() not in ("L", "U"):
        raise ArgumentError(f"UPLO is {triangle!r}, expected 'L' or 'U'")
    return triangle.upper() == "L"


@public(namespace="linalg", other_names={"a": "x"})
def eigh(x: Any, /, UPLO: Triangle = "L") -> EighResult:  # noqa: N803 - the name in NumPy and torch
    """The eigenvalues of symmetric (Hermitian) matrices in ascending order, and the eigenvectors as
    columns. Reads the triangle ``UPLO`` alone."""
    return EighResult(*OPS["eigh"](matrices(x), lower=_is_lower(UPLO)))


@public(namespace="linalg", other_names={"a": "x"})
def eigvalsh(x: Any, /, UPLO: Triangle = "L") -> Tensor:  # noqa: N803 - the name in NumPy and torch
    """The eigenvalues of `eigh` alone."""
    return OPS["eigvalsh"](matrices(x), lower=_is_lower(UPLO))


@public(namespace="linalg", other_names={"a": "x"})
def eig(x: Any, /) -> EigResult:
    """The eigenvalues of square matrices, in no order, and the eigenvectors as columns; both
    complex, also where all are real. Computed in double precision."""
    x = matrices(x)
    values, vectors = OPS["eig"](wide(x))
    return EigResult(_narrow(values, x), _narrow(vectors, x))


@public(namespace="linalg", other_names={"a": "x"})
def eigvals(x: Any, /) -> Tensor:
    """The eigenvalues of `eig` alone."""
    x = matrices(x)
    return _narrow(OPS["eigvals"](wide(x)), x)


def _narrow(result: Tensor, x: Tensor) -> Tensor:
    return result.astype(cf32) if x.dtype in (f32, cf32) else result

"""Linear algebra over matrices x [..., M, N]: factorisations, solutions, determinants, eigenvalues.

f32, f64, cf32 and cf64; batch axes are equal, as functions of ``ptir.linalg`` make them. The
meaning is that of `numpy.linalg`, which computes f32 in f64 and rounds; backends call LAPACK in the
precision of the operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gptrs.errors import MatrixError, ShapeError
from gptrs.ir.checks import one_dtype
from gptrs.ir.dims import DimLike, Shape, same, same_shape, surely_greater
from gptrs.ir.hints import wrong_dtype
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.elementwise import FLOATING
from gptrs.ir.primitives import Primitive
from gptrs.ir.program import Fails
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, cf32, cf64, dim_text, f32, f64, shape_text

__all__ = [
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
]

P = ParamSpec("P")
R = TypeVar("R")

REAL_OF = {f32: f32, f64: f64, cf32: f32, cf64: f64}


def _fails(*_: Any, **__: Any) -> Fails:
    return Fails.AT_ELEMENTS


def _one(fn: Callable[P, Type]) -> Primitive[P, Tensor]:
    """Declare an op with one result over matrices; the body is its type rule."""
    return _declared(fn)


def _two(fn: Callable[P, tuple[Type, Type]]) -> Primitive[P, tuple[Tensor, Tensor]]:
    return _declared(fn)


def _three(
    fn: Callable[P, tuple[Type, Type, Type]],
) -> Primitive[P, tuple[Tensor, Tensor, Tensor]]:
    return _declared(fn)


def _declared(fn: Callable[..., Any]) -> Primitive[..., Any]:
    op = Primitive[..., Any](fn, kind=OpKind.MATRIX)
    op.failing(_fails)
    op.promoting(*op.operand_names, kinds=FLOATING)
    return op


def _matrices(x: Tensor) -> tuple[Shape, DimLike, DimLike]:
    """The batch, the rows and the columns of an operand."""
    if x.dtype not in REAL_OF:
        raise wrong_dtype(f"found dtype {x.dtype}, expected f32, f64, cf32 or cf64", x, "f32")
    if x.ndim < 2:
        raise ShapeError(f"found shape {shape_text(x.shape)}, expected matrices [..., M, N]")
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def _square(x: Tensor) -> tuple[Shape, DimLike]:
    """The batch and the extent of square matrices."""
    batch, rows, columns = _matrices(x)
    if not same(rows, columns):
        raise ShapeError(f"found shape {shape_text(x.shape)}, expected square matrices [..., N, N]")
    return batch, rows


def _wide(x: Tensor) -> tuple[Shape, DimLike, DimLike]:
    """`_matrices` of an operand in double precision."""
    if x.dtype not in (f64, cf64):
        wanted = "cf64" if x.dtype.is_complex else "f64"
        raise wrong_dtype(f"found dtype {x.dtype}, expected f64 or cf64", x, wanted)
    return _matrices(x)


def least(m: DimLike, n: DimLike) -> DimLike:
    """The lesser of two extents. Raises `ShapeError` where symbols leave it open."""
    if isinstance(m, int) and isinstance(n, int):
        return min(m, n)
    if same(m, n) or surely_greater(n, m):
        return m
    if surely_greater(m, n):
        return n
    raise ShapeError(
        f"the lesser of {dim_text(m)} and {dim_text(n)} is not known",
        fix="give the sizes one name, or a size that is known",
    )


class _LinAlgError(MatrixError, np.linalg.LinAlgError):
    """A `MatrixError` for NumPy's users too; `gptrs.errors` is imported without NumPy."""


_LinAlgError.__name__ = _LinAlgError.__qualname__ = "MatrixError"
_LinAlgError.__module__ = MatrixError.__module__


def meaning(fn: Callable[P, R]) -> Callable[P, R]:
    """``fn`` with the errors of `numpy.linalg` as `MatrixError`."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except np.linalg.LinAlgError as error:
            raise _LinAlgError(str(error)) from None

    return call


def _finite(x: Array) -> Array:
    """``x``. Raises `LinAlgError` where an element is infinite or NaN: LAPACK's ``gesdd`` may never
    end, and ``geev`` writes beyond its arrays."""
    if not np.isfinite(x).all():
        raise np.linalg.LinAlgError("Array must not contain infs or NaNs")
    return x


@_one
def cholesky(x: Tensor, *, upper: bool = False) -> Type:
    """The lower triangle L with L·Lᴴ = x (or the upper one with Uᴴ·U = x), zeros elsewhere.

    Reads that triangle of ``x`` [..., N, N] alone. Not positive definite is an error.
    """
    _square(x)
    return x.type


@cholesky.numpy
@meaning
def _(x: Array, *, upper: bool) -> Array:
    if upper:  # NumPy reads the triangle that it is asked for since 2.0
        return np.linalg.cholesky(x, upper=True)
    return np.linalg.cholesky(x)


@_one
def solve(a: Tensor, b: Tensor) -> Type:
    """X [..., N, K] with a·X = b, for a [..., N, N] and b [..., N, K]. A singular matrix is an
    error."""
    one_dtype(a, b)
    batch, extent = _square(a)
    other, rows, _ = _matrices(b)
    if not same_shape(batch, other) or not same(rows, extent):
        raise ShapeError(
            f"a has shape {shape_text(a.shape)} and b {shape_text(b.shape)},"
            " expected [..., N, N] and [..., N, K]"
        )
    return b.type


@solve.numpy
@meaning
def _(a: Array, b: Array) -> Array:
    return np.linalg.solve(a, b)


@_one
def inv(x: Tensor) -> Type:
    """The inverse of each matrix of x [..., N, N]. A singular matrix is an error."""
    _square(x)
    return x.type


@inv.numpy
@meaning
def _(x: Array) -> Array:
    return np.linalg.inv(x)


@_one
def det(x: Tensor) -> Type:
    """The determinant of each matrix of x [..., N, N]."""
    return Type(_square(x)[0], x.dtype)


@det.numpy
def _(x: Array) -> Array:
    return np.linalg.det(x)


@_two
def slogdet(x: Tensor) -> tuple[Type, Type]:
    """The sign of the determinant (of modulus 1 if complex) and the logarithm of its modulus: 0
    and −∞ where it is 0."""
    batch, _ = _square(x)
    return Type(batch, x.dtype), Type(batch, REAL_OF[x.dtype])


@slogdet.numpy
def _(x: Array) -> tuple[Array, Array]:
    sign, log = np.linalg.slogdet(x)
    return np.asarray(sign), np.asarray(log)


@_two
def eigh(x: Tensor, *, lower: bool = True) -> tuple[Type, Type]:
    """The eigenvalues of symmetric (Hermitian) matrices [..., N, N], in ascending order, and the
    eigenvectors as columns. Reads the lower (or upper) triangle alone."""
    batch, extent = _square(x)
    return Type((*batch, extent), REAL_OF[x.dtype]), x.type


@eigh.numpy
@meaning
def _(x: Array, *, lower: bool) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(x, UPLO="L" if lower else "U")
    return values, vectors


@_one
def eigvalsh(x: Tensor, *, lower: bool = True) -> Type:
    """The eigenvalues of `eigh` alone."""
    batch, extent = _square(x)
    return Type((*batch, extent), REAL_OF[x.dtype])


@eigvalsh.numpy
@meaning
def _(x: Array, *, lower: bool) -> Array:
    return np.linalg.eigvalsh(x, UPLO="L" if lower else "U")


@_two
def eig(x: Tensor) -> tuple[Type, Type]:
    """The eigenvalues of square matrices [..., N, N], in no order, and the eigenvectors as columns;
    both cf64. ``x`` is f64 or cf64: NumPy has no loop for cf32. An infinite element or NaN is an
    error."""
    _wide(x)
    batch, extent = _square(x)
    return Type((*batch, extent), cf64), x.type.with_dtype(cf64)


@eig.numpy
@meaning
def _(x: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eig(_finite(x))
    return _as_complex(values), _as_complex(vectors)


@_one
def eigvals(x: Tensor) -> Type:
    """The eigenvalues of `eig` alone."""
    _wide(x)
    batch, extent = _square(x)
    return Type((*batch, extent), cf64)


@eigvals.numpy
@meaning
def _(x: Array) -> Array:
    return _as_complex(np.linalg.eigvals(_finite(x)))


def _as_complex(x: Array) -> Array:
    return x.astype(np.complex128, copy=False)


@_two
def qr(x: Tensor, *, complete: bool = False) -> tuple[Type, Type]:
    """Q·R = x [..., M, N]: orthonormal columns Q [..., M, K], with K = min(M, N), and an upper
    triangle R [..., K, N]; [..., M, M] and [..., M, N] if ``complete``. ``x`` is f64 or cf64: NumPy
    has no loop for the others."""
    batch, rows, columns = _wide(x)
    kept = rows if complete else least(rows, columns)
    return Type((*batch, rows, kept), x.dtype), Type((*batch, kept, columns), x.dtype)


@qr.numpy
def _(x: Array, *, complete: bool) -> tuple[Array, Array]:
    q, r = np.linalg.qr(x, mode="complete" if complete else "reduced")
    return q, r


@_three
def svd(x: Tensor, *, full_matrices: bool = True) -> tuple[Type, Type, Type]:
    """U·diag(S)·Vᴴ = x [..., M, N], S [..., K] in descending order with K = min(M, N).

    U is [..., M, M] and Vᴴ [..., N, N], or [..., M, K] and [..., K, N] without ``full_matrices``.
    An infinite element or NaN is an error.
    """
    batch, rows, columns = _matrices(x)
    rank = least(rows, columns)
    left, right = (rows, columns) if full_matrices else (rank, rank)
    return (
        Type((*batch, rows, left), x.dtype),
        Type((*batch, rank), REAL_OF[x.dtype]),
        Type((*batch, right, columns), x.dtype),
    )


@svd.numpy
@meaning
def _(x: Array, *, full_matrices: bool) -> tuple[Array, Array, Array]:
    u, s, vh = np.linalg.svd(_finite(x), full_matrices=full_matrices)
    return u, s, vh


@_one
def svdvals(x: Tensor) -> Type:
    """The singular values of `svd` alone."""
    batch, rows, columns = _matrices(x)
    return Type((*batch, least(rows, columns)), REAL_OF[x.dtype])


@svdvals.numpy
@meaning
def _(x: Array) -> Array:
    return np.linalg.svd(_finite(x), compute_uv=False)


for _op in (det, qr, slogdet):
    _op.failing(lambda *_, **__: Fails.NEVER)

"""Normal numbers, and what is made of them: normal, truncated_normal, lognormal,
multivariate_normal, orthogonal."""

from __future__ import annotations

import math
from typing import Any, Literal

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import DimLike, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, f32, f64, shape_text
from gptrs.numpy_api.arithmetic import where
from gptrs.numpy_api.creation import Extents, shape_of
from gptrs.numpy_api.linalg.factorisations import cholesky, eigh, qr, svd
from gptrs.numpy_api.linalg.matrix_products import diagonal
from gptrs.numpy_api.random.normal_quantile import lower_tail, normal_quantile
from gptrs.numpy_api.random.operands import (
    as_key,
    common_shape,
    float_dtype,
    normal64,
    random_function,
    real,
    uniform64,
)

__all__ = ["lognormal", "multivariate_normal", "normal", "orthogonal", "truncated_normal"]


@random_function
def normal(key: Any, shape: Extents = (), dtype: object = f32) -> Tensor:
    """Numbers of the normal distribution with mean 0 and variance 1."""
    return OPS["rng_normal"](as_key(key), shape=shape_of(shape), dtype=float_dtype(dtype))


@random_function
def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Extents | None = None, dtype: object = f32
) -> Tensor:
    """Numbers of the normal distribution that lie in [lower, upper]; either may be infinite.

    Φ⁻¹ (Φ(lower) + u (Φ(upper) − Φ(lower))), mirrored where both are positive. Raises
    `ArgumentError` for numbers of which ``lower`` is not below ``upper``; NaN for such arrays.
    """
    kind = float_dtype(dtype)
    if isinstance(lower, int | float) and isinstance(upper, int | float) and not lower < upper:
        raise ArgumentError(f"lower is {lower} and upper {upper}, expected lower < upper")
    low, high = real("lower", lower), real("upper", upper)
    whole = common_shape(shape, lower=low, upper=high)
    mirrored = low > 0
    first, last = where(mirrored, -high, low), where(mirrored, -low, high)
    least, greatest = lower_tail(first), lower_tail(last)
    drawn = normal_quantile(least + uniform64(as_key(key), whole) * (greatest - least))
    drawn = OPS["minimum"](OPS["maximum"](drawn, first), last)
    return where(low < high, where(mirrored, -drawn, drawn), math.nan).astype(kind)


@random_function
def lognormal(
    key: Any, sigma: Any = 1.0, shape: Extents | None = None, dtype: object = f32
) -> Tensor:
    """exp (sigma · z) of normal z."""
    kind = float_dtype(dtype)
    scale = real("sigma", sigma)
    return OPS["exp"](scale * normal64(as_key(key), common_shape(shape, sigma=scale))).astype(kind)


@random_function
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Extents | None = None,
    dtype: object = f32,
    method: Literal["cholesky", "eigh", "svd"] = "cholesky",
) -> Tensor:
    """Normal vectors [*shape, n] of ``mean`` [..., n] and covariance ``cov`` [..., n, n].

    mean + F·z with F·Fᵀ = cov, by the ``method``; "cholesky" needs positive definite matrices and
    raises `ElementError` for others. ``shape`` is that of the leading axes, broadcast without it.
    """
    kind = float_dtype(dtype)
    centre, matrix = real("mean", mean), real("cov", cov)
    if centre.ndim < 1 or matrix.ndim < 2:
        raise ShapeError(
            f"mean has shape {shape_text(centre.shape)} and cov {shape_text(matrix.shape)},"
            " expected vectors and matrices"
        )
    n = centre.shape[-1]
    if not (same(matrix.shape[-1], n) and same(matrix.shape[-2], n)):
        raise ShapeError(
            f"cov has shape {shape_text(matrix.shape)}, expected [..., {n}, {n}] beside mean's {n}"
        )
    batch = broadcast_shapes(centre.shape[:-1], matrix.shape[:-2])
    leading = batch if shape is None else shape_of(shape)
    if len(broadcast_shapes(leading, batch)) > len(leading):
        raise ShapeError(
            f"shape {shape_text(leading)} has fewer axes than {shape_text(batch)}, the leading axes"
            " of mean and cov"
        )
    drawn = normal64(as_key(key), (*leading, n, 1))
    return (centre + (_factor(matrix, method) @ drawn)[..., 0]).astype(kind)


def _factor(matrix: Tensor, method: str) -> Tensor:
    """F with F·Fᵀ = ``matrix``."""
    if method == "cholesky":
        return cholesky(matrix)
    if method == "eigh":
        values, vectors = eigh(matrix)
        return vectors * OPS["sqrt"](OPS["maximum"](values, 0))[..., None, :]
    if method == "svd":
        left, values, _ = svd(matrix)
        return left * OPS["sqrt"](values)[..., None, :]
    raise ArgumentError(f"method is {method!r}, expected 'cholesky', 'eigh' or 'svd'")


@random_function
def orthogonal(key: Any, n: DimLike, shape: Extents = (), dtype: object = f32) -> Tensor:
    """Orthogonal matrices [*shape, n, n], uniform in the group of all: Q of the QR factors of a
    normal matrix, with the sign of R's diagonal. Source: Stewart (1980)."""
    kind = float_dtype(dtype)
    q, r = qr(normal64(as_key(key), (*shape_of(shape), *shape_of((n, n)))))
    signs = OPS["copysign"](OPS["full"](shape=(), value=1.0, dtype=f64), diagonal(r))
    return (q * signs[..., None, :]).astype(kind)

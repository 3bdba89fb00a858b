"""The gamma distribution by rejection, and what is made of it: gamma, loggamma, beta, dirichlet,
chisquare, t, generalized_normal, ball.

Source: Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables" (2000). Of normal x
and uniform u, d·(1 + c·x)³ with d = a − ⅓ and c = 1 / √(9d) is accepted where log u is below
x²/2 + d − d·v + d·log v, v = (1 + c·x)³: 95 of 100 times or more. Below a = 1 a number for a + 1 is
multiplied by u^(1/a), as a logarithm, which does not underflow.
"""

from __future__ import annotations

import math
from typing import Any

from gptrs.errors import ShapeError
from gptrs.ir.dims import DimLike, Shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import f32, f64
from gptrs.numpy_api.arithmetic import where
from gptrs.numpy_api.creation import Extents, shape_of
from gptrs.numpy_api.random.continuous import exponential64
from gptrs.numpy_api.random.keys import split
from gptrs.numpy_api.random.operands import (
    as_key,
    check_positive,
    common_shape,
    float_dtype,
    normal64,
    open64,
    random_function,
    real,
)
from gptrs.numpy_api.random.rejection import first_accepted
from gptrs.numpy_api.random.uniforms import rademacher

__all__ = [
    "ball",
    "beta",
    "chisquare",
    "dirichlet",
    "gamma",
    "generalized_normal",
    "loggamma",
    "t",
]


def loggamma64(key: Tensor, a: Tensor, shape: Shape) -> Tensor:
    """Logarithms of gamma numbers in f64; −∞ for a = 0, NaN below and where a is not finite."""
    valid = (a >= 0) & OPS["is_finite"](a)
    small = a < 1
    d = where(small, a + 1, a) - 1 / 3
    c = 1 / OPS["sqrt"](9 * d)
    proposals, boost = split(key)

    def propose(key: Tensor) -> tuple[Tensor, Tensor]:
        first, second = split(key)
        x, u = normal64(first, shape), open64(second, shape)
        root = 1 + c * x
        v = root * root * root
        log_v = OPS["log"](where(root > 0, v, 1.0))
        accepted = OPS["log"](u) < x * x / 2 + d * (1 - v + log_v)
        return OPS["log"](d) + log_v, (root > 0) & accepted

    drawn = first_accepted(proposals, propose, shape, f64, skip=~valid)
    raised = drawn - where(small, exponential64(boost, shape) / a, 0.0)
    return where(valid, raised, math.nan)


@random_function
def gamma(key: Any, a: Any, shape: Extents | None = None, dtype: object = f32) -> Tensor:
    """The gamma distribution with the density x^(a − 1) · e⁻ˣ / Γ(a)."""
    kind = float_dtype(dtype)
    return OPS["exp"](_loggamma(key, "a", a, shape)).astype(kind)


@random_function
def loggamma(key: Any, a: Any, shape: Extents | None = None, dtype: object = f32) -> Tensor:
    """The logarithm of `gamma`, also where that is 0 in ``dtype``."""
    kind = float_dtype(dtype)
    return _loggamma(key, "a", a, shape).astype(kind)


def _loggamma(key: Any, name: str, a: Any, shape: Extents | None) -> Tensor:
    check_positive(**{name: a})
    a = real(name, a)
    return loggamma64(as_key(key), a, common_shape(shape, **{name: a}))


@random_function
def beta(key: Any, a: Any, b: Any, shape: Extents | None = None, dtype: object = f32) -> Tensor:
    """The beta distribution with the density x^(a − 1) · (1 − x)^(b − 1) / B(a, b)."""
    kind = float_dtype(dtype)
    check_positive(a=a, b=b)
    a, b = real("a", a), real("b", b)
    whole = common_shape(shape, a=a, b=b)
    first, second = split(as_key(key))
    odds = loggamma64(second, b, whole) - loggamma64(first, a, whole)
    return (1 / (1 + OPS["exp"](odds))).astype(kind)


@random_function
def dirichlet(key: Any, alpha: Any, shape: Extents | None = None, dtype: object = f32) -> Tensor:
    """Vectors [*shape, n] whose elements sum to 1, of the Dirichlet distribution of ``alpha``
    [..., n]. ``shape`` is that of the leading axes."""
    kind = float_dtype(dtype)
    alpha = real("alpha", alpha)
    if not alpha.ndim:
        raise ShapeError("alpha is a number, expected vectors [..., n]")
    leading = alpha.shape[:-1] if shape is None else shape_of(shape)
    whole = common_shape((*leading, alpha.shape[-1]), alpha=alpha)
    return OPS["softmax"](loggamma64(as_key(key), alpha, whole), axis=-1).astype(kind)


@random_function
def chisquare(key: Any, df: Any, shape: Extents | None = None, dtype: object = f32) -> Tensor:
    """The χ² distribution of ``df`` degrees of freedom: twice `gamma` of df / 2."""
    kind = float_dtype(dtype)
    check_positive(df=df)
    half = real("df", df) / 2
    return (2 * OPS["exp"](loggamma64(as_key(key), half, common_shape(shape, df=half)))).astype(
        kind
    )


@random_function
def t(key: Any, df: Any, shape: Extents | None = None, dtype: object = f32) -> Tensor:
    """Student's t distribution of ``df`` degrees of freedom: z / √(χ² / df)."""
    kind = float_dtype(dtype)
    check_positive(df=df)
    half = real("df", df) / 2
    whole = common_shape(shape, df=half)
    first, second = split(as_key(key))
    scale = (OPS["log"](half) - loggamma64(second, half, whole)) / 2
    return (normal64(first, whole) * OPS["exp"](scale)).astype(kind)


@random_function
def generalized_normal(key: Any, p: float, shape: Extents = (), dtype: object = f32) -> Tensor:
    """Numbers with a density proportional to exp (−|x|ᵖ)."""
    kind = float_dtype(dtype)
    check_positive(p=p)
    return _generalized_normal(as_key(key), p, shape_of(shape)).astype(kind)


def _generalized_normal(key: Tensor, p: float, shape: Shape) -> Tensor:
    first, second = split(key)
    size = OPS["exp"](loggamma64(first, real("p", 1 / p), shape) / p)
    return size * rademacher(second, shape, f64)


@random_function
def ball(key: Any, d: DimLike, p: float = 2.0, shape: Extents = (), dtype: object = f32) -> Tensor:
    """Points [*shape, d], uniform in the ball Σ|x|ᵖ ≤ 1. Source: Barthe, Guédon, Mendelson and
    Naor, "A probabilistic approach to the geometry of the ℓₚⁿ-ball" (2005)."""
    kind = float_dtype(dtype)
    check_positive(p=p)
    leading = shape_of(shape)
    first, second = split(as_key(key))
    x = _generalized_normal(first, p, (*leading, *shape_of(d)))
    sums = OPS["reduce_sum"](OPS["abs"](x) ** p, axes=-1) + exponential64(second, leading)
    return (x / (sums ** (1 / p))[..., None]).astype(kind)

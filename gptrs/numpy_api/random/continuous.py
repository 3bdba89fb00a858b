"""Distributions by the inverse of their distribution function: exponential, gumbel, laplace,
logistic, cauchy, weibull_min, pareto, rayleigh."""

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import f32
from gptrs.numpy_api.creation import Extents, shape_of
from gptrs.numpy_api.random.operands import (
    as_key,
    common_shape,
    float_dtype,
    open64,
    random_function,
    real,
    uniform64,
)

__all__ = [
    "cauchy",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "pareto",
    "rayleigh",
    "weibull_min",
]


def exponential64(key: Any, shape: Any) -> Tensor:
    """−log (1 − u) in f64."""
    return -OPS["log1p"](-uniform64(key, shape))


@random_function
def exponential(key: Any, shape: Extents = (), dtype: object = f32) -> Tensor:
    """−log u: the exponential distribution with mean 1."""
    kind = float_dtype(dtype)
    return exponential64(as_key(key), shape_of(shape)).astype(kind)


@random_function
def gumbel(key: Any, shape: Extents = (), dtype: object = f32) -> Tensor:
    """−log (−log u): the Gumbel distribution, of the greatest of many numbers."""
    kind = float_dtype(dtype)
    return (-OPS["log"](-OPS["log"](open64(as_key(key), shape_of(shape))))).astype(kind)


@random_function
def laplace(key: Any, shape: Extents = (), dtype: object = f32) -> Tensor:
    """−sign (u) · log (1 − |u|), u in (−1, 1): the Laplace distribution with scale 1."""
    kind = float_dtype(dtype)
    u = 2 * open64(as_key(key), shape_of(shape)) - 1
    return OPS["copysign"](-OPS["log1p"](-OPS["abs"](u)), u).astype(kind)


@random_function
def logistic(key: Any, shape: Extents = (), dtype: object = f32) -> Tensor:
    """log (u / (1 − u)): the logistic distribution with scale 1."""
    kind = float_dtype(dtype)
    u = open64(as_key(key), shape_of(shape))
    return (OPS["log"](u) - OPS["log1p"](-u)).astype(kind)


@random_function
def cauchy(key: Any, shape: Extents = (), dtype: object = f32) -> Tensor:
    """tan (π (u − ½)): the Cauchy distribution with scale 1."""
    kind = float_dtype(dtype)
    return OPS["tan"](math.pi * (open64(as_key(key), shape_of(shape)) - 0.5)).astype(kind)


@random_function
def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Extents | None = None, dtype: object = f32
) -> Tensor:
    """scale · (−log u) ^ (1 / concentration): the Weibull distribution."""
    kind = float_dtype(dtype)
    scale, power = real("scale", scale), 1 / real("concentration", concentration)
    whole = common_shape(shape, scale=scale, concentration=power)
    return (scale * exponential64(as_key(key), whole) ** power).astype(kind)


@random_function
def pareto(key: Any, b: Any, shape: Extents | None = None, dtype: object = f32) -> Tensor:
    """u ^ (−1 / b): the Pareto distribution with the density b / x ^ (b + 1) for x ≥ 1."""
    kind = float_dtype(dtype)
    power = real("b", b)
    whole = common_shape(shape, b=power)
    return OPS["exp"](exponential64(as_key(key), whole) / power).astype(kind)


@random_function
def rayleigh(key: Any, scale: Any, shape: Extents | None = None, dtype: object = f32) -> Tensor:
    """scale · √(−2 log u): the Rayleigh distribution, of a vector of two normal numbers."""
    kind = float_dtype(dtype)
    scale = real("scale", scale)
    whole = common_shape(shape, scale=scale)
    return (scale * OPS["sqrt"](2 * exponential64(as_key(key), whole))).astype(kind)

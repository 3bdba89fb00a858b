"""Discrete distributions: categorical, geometric, poisson, binomial.

Sources: Hörmann, "The transformed rejection method for generating Poisson random variables" (1993),
algorithm PTRS, and "The generation of binomial random variates" (1993), BTRS, for means of 10 and
more; below, inversion by sequential search. The logarithms of probabilities are Loader's ("Fast and
Accurate Computation of Binomial Probabilities", 2000), without the cancellation of factorials.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import f64, normal_axis, si64
from gptrs.numpy_api.arithmetic import where
from gptrs.numpy_api.creation import Extents, shape_of
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.random.continuous import exponential64, gumbel
from gptrs.numpy_api.random.keys import split
from gptrs.numpy_api.random.operands import (
    as_key,
    common_shape,
    integer_dtype,
    random_function,
    real,
    uniform64,
)
from gptrs.numpy_api.random.rejection import first_accepted, searched

__all__ = ["binomial", "categorical", "geometric", "poisson"]

_FEW = 10.0
"""The mean from which on rejection takes less time than a search."""
_EXACT = 16
"""Up to here the error of Stirling's formula is from a table."""
_ERRORS = np.array(
    [0.0, *(math.lgamma(k + 1) - (k + 0.5) * math.log(k) + k for k in range(1, _EXACT))]
) - 0.5 * math.log(2 * math.pi)
"""The one of 0 is never read."""


@random_function
def categorical(key: Any, logits: Any, axis: int = -1, shape: Extents | None = None) -> Tensor:
    """Positions (si64) along ``axis`` of ``logits``, drawn with the probabilities softmax (logits):
    where logits + gumbel is greatest.

    ``shape`` is that of the result, whose last axes are those of ``logits`` without ``axis``.
    """
    key, scores = as_key(key), as_tensor(logits)
    scores = scores if scores.dtype.is_float else real("logits", scores)
    if not scores.ndim:
        raise ShapeError(f"logits has type {scores.type}, expected at least one axis")
    at = normal_axis(axis, scores.ndim)
    batch = (*scores.shape[:at], *scores.shape[at + 1 :])
    whole = batch if shape is None else shape_of(shape)
    leading = len(whole) - len(batch)
    batch = OPS["reduce_max"](scores, axes=at)
    common_shape(whole, logits=batch)
    place = at + leading
    drawn = (*whole[:place], scores.shape[at], *whole[place:])
    noise = gumbel(key, drawn, scores.dtype)
    return OPS["argmax"](scores + noise, axis=place).astype(si64)


@random_function
def geometric(key: Any, p: Any, shape: Extents | None = None, dtype: object = si64) -> Tensor:
    """How many trials the first success of probability ``p`` takes: 1, 2, …"""
    kind = integer_dtype(dtype)
    chance = _probability(p)
    waited = exponential64(as_key(key), common_shape(shape, p=chance))
    number = OPS["floor"](waited / -OPS["log1p"](-chance)) + 1
    valid = (chance > 0) & (chance <= 1)
    return where(valid, OPS["minimum"](number, float(kind.limits[1])), -1).astype(kind)


def _probability(p: Any) -> Tensor:
    if isinstance(p, int | float) and not 0 <= p <= 1:
        raise ArgumentError(f"p is {p}, expected a probability")
    return real("p", p)


@random_function
def poisson(key: Any, lam: Any, shape: Extents | None = None, dtype: object = si64) -> Tensor:
    """The Poisson distribution: how many events there are where their mean number is ``lam``."""
    kind = integer_dtype(dtype)
    if isinstance(lam, int | float) and not 0 <= lam < math.inf:
        raise ArgumentError(f"lam is {lam}, expected a number of at least 0")
    mean = real("lam", lam)
    whole = common_shape(shape, lam=mean)
    low, high = split(as_key(key))
    few, valid = mean < _FEW, (mean >= 0) & OPS["is_finite"](mean)
    small = where(few, mean, 0.0)

    def search() -> Tensor:
        return searched(uniform64(low, whole), OPS["exp"](-small), lambda k: small / k)

    def reject() -> Tensor:
        enough = where(valid & ~few, mean, _FEW)
        return _many_events(high, enough, whole, skip=few | ~valid)

    if isinstance(lam, int | float):
        return (search() if lam < _FEW else reject()).astype(kind)
    return where(valid, where(few, search(), reject()), -1.0).astype(kind)


def _many_events(key: Tensor, mean: Tensor, shape: Any, skip: Tensor) -> Tensor:
    """PTRS, with Hörmann's constants; the mean is at least 10."""
    b = 0.931 + 2.53 * OPS["sqrt"](mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    sure = 0.9277 - 3.6224 / (b - 2)

    def propose(key: Tensor) -> tuple[Tensor, Tensor]:
        first, second = split(key)
        u, v = uniform64(first, shape) - 0.5, uniform64(second, shape)
        away = 0.5 - OPS["abs"](u)
        k = OPS["floor"]((2 * a / away + b) * u + mean + 0.43)
        density = OPS["log"](v * inverse_alpha / (a / (away * away) + b))
        at = OPS["maximum"](k, 1.0)
        log_chance = -_deviance(at, mean) - 0.5 * OPS["log"](2 * math.pi * at) - _stirling_error(at)
        accepted = density <= where(k > 0, log_chance, -mean)
        return k, (k >= 0) & (((away >= 0.07) & (v <= sure)) | accepted)

    return first_accepted(key, propose, shape, f64, skip=skip)


def _deviance(x: Tensor, mean: Tensor) -> Tensor:
    """x log (x / mean) + mean − x, for x > 0."""
    rest = (x - mean) / mean
    return mean * ((1 + rest) * OPS["log1p"](rest) - rest)


def _stirling_error(x: Tensor) -> Tensor:
    """log x! − ½ log (2πx) − x log x + x of whole x > 0."""
    near = OPS["take"](_ERRORS, OPS["minimum"](x, _EXACT - 1.0).astype(si64))
    inverse = 1 / x
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return where(x < _EXACT, near, series)


@random_function
def binomial(
    key: Any, n: Any, p: Any, shape: Extents | None = None, dtype: object = si64
) -> Tensor:
    """How many of ``n`` trials of probability ``p`` succeed."""
    kind = integer_dtype(dtype)
    if isinstance(n, int | float) and not (n >= 0 and n == math.floor(n)):
        raise ArgumentError(f"n is {n}, expected a whole number of at least 0")
    trials, chance = OPS["floor"](real("n", n)), _probability(p)
    whole = common_shape(shape, n=trials, p=chance)
    low, high = split(as_key(key))
    valid = (trials >= 0) & (chance >= 0) & (chance <= 1) & OPS["is_finite"](trials)
    turned = chance > 0.5
    rarer = where(valid, where(turned, 1 - chance, chance), 0.0)
    few = trials * rarer < _FEW
    odds = rarer / (1 - rarer)
    wanted = where(few & valid, trials, 0.0)

    def search() -> Tensor:
        none = OPS["exp"](wanted * OPS["log1p"](-rarer))
        found = searched(uniform64(low, whole), none, lambda k: odds * (wanted - k + 1) / k)
        return OPS["minimum"](found, wanted)

    def reject() -> Tensor:
        skip = few | ~valid
        enough = where(skip, 2 * _FEW, trials), where(skip, 0.5, rarer)
        return _many_successes(high, *enough, whole, skip)

    if isinstance(n, int | float) and isinstance(p, int | float):
        number = search() if n * min(p, 1 - p) < _FEW else reject()
    else:
        number = where(few, search(), reject())
    return where(valid, where(turned, trials - number, number), -1.0).astype(kind)


def _many_successes(key: Tensor, n: Tensor, p: Tensor, shape: Any, skip: Tensor) -> Tensor:
    """BTRS, with Hörmann's constants; n·p is at least 10 and p at most ½."""
    mean = n * p
    spread = OPS["sqrt"](mean * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    sure = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    of_mode = _log_chance(OPS["floor"]((n + 1) * p), n, p)

    def propose(key: Tensor) -> tuple[Tensor, Tensor]:
        first, second = split(key)
        u, v = uniform64(first, shape) - 0.5, uniform64(second, shape)
        away = 0.5 - OPS["abs"](u)
        k = OPS["floor"]((2 * a / away + b) * u + mean + 0.5)
        density = OPS["log"](v * alpha / (a / (away * away) + b))
        inside = (k >= 0) & (k <= n)
        accepted = density <= _log_chance(where(inside, k, 0.0), n, p) - of_mode
        return k, inside & (((away >= 0.07) & (v <= sure)) | accepted)

    return first_accepted(key, propose, shape, f64, skip=skip)


def _log_chance(k: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """The logarithm of the probability of k successes in n trials, of at least 1."""
    x = OPS["minimum"](OPS["maximum"](k, 1.0), n - 1)
    y = n - x
    errors = _stirling_error(n) - _stirling_error(x) - _stirling_error(y)
    between = errors - _deviance(x, n * p) - _deviance(y, n * (1 - p))
    between = between + 0.5 * OPS["log"](n / (2 * math.pi * x * y))
    ends = where(k > 0, n * OPS["log"](p), n * OPS["log1p"](-p))
    return where((k > 0) & (k < n), between, ends)

"""Counter-based random numbers: each element is a function of a seed and its position, no state.

Words come from Philox4x32-10, a bijection of 128-bit counters under a 64-bit key. Source: Salmon,
Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011). The key is the seed
modulo 2⁶⁴, low word first. The counter is (b mod 2³², ⌊b / 2³²⌋, s, 0), where s is 0 in
`rng_uniform` and 1 in `rng_normal`, and block b of four words serves elements 4b to 4b + 3 of the
result in row-major order; in f64, where an element takes two words, elements 2b and 2b + 1. So each
element can be computed alone, and the first n do not depend on how many follow.
"""

from __future__ import annotations

import math
from typing import Any
from typing import cast as typed

import ml_dtypes
import numpy as np

from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.checks import require
from gptrs.ir.dims import Shape
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.literal import check_extents
from gptrs.ir.primitives import primitive
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, Type, f32, f64

__all__ = ["rng_normal", "rng_uniform"]

_ROUNDS = 10
_MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], np.uint64)
_WEYL = (0x9E3779B9, 0xBB67AE85)  # the increment of the key per round
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_UNIFORM, _NORMAL = 0, 1


@primitive(kind=OpKind.RANDOM)
def rng_uniform(
    seed: Tensor, *, shape: Shape, dtype: DType = f32, low: float = 0.0, high: float = 1.0
) -> Type:
    """Numbers of the uniform distribution over [low, high), from the integer ``seed`` (rank 0).

    low + u · (high − low), where u is the upper 24 bits of a word / 2²⁴; in f64 the upper 53 bits
    of two words (the first is the upper one) / 2⁵³. Narrow dtypes are computed in f32. What
    rounding takes out of the interval becomes the nearest number of ``dtype`` in it. Raises
    `ArgumentError` when there is none.
    """
    _check(seed, shape, dtype)
    ends(low, high, dtype)
    return Type(shape, dtype)


@rng_uniform.numpy
def _(seed: Array, *, shape: tuple[int, ...], dtype: DType, low: float, high: float) -> Array:
    check_extents(shape)
    count = math.prod(shape)
    if dtype is f64:
        u = _fractions(_words(seed, (count + 1) // 2, _UNIFORM).reshape(-1, 2)) * 2.0**-53
    else:
        words = _words(seed, (count + 3) // 4, _UNIFORM)
        u = (words.ravel() >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)
    span = u.dtype.type(high - low)
    values = np.clip(u.dtype.type(low) + u * span, *ends(low, high, dtype))
    return values[:count].reshape(shape).astype(dtype.numpy)


@primitive(kind=OpKind.RANDOM)
def rng_normal(
    seed: Tensor, *, shape: Shape, dtype: DType = f32, mean: float = 0.0, std: float = 1.0
) -> Type:
    """Numbers of the normal distribution, from the integer ``seed`` (rank 0).

    mean + std · √(−2 ln u) · cos(2πv) at an even position and sin(2πv) at the odd one after it
    (Box and Muller 1958), with u = (w₀ + 1) / 2³² and v = w₁ / 2³² from words w₀, w₁; in f64 with
    53 bits of two words each. All is computed in f64 and rounded at the end (to f32 first where
    ``dtype`` is narrower), so that f32 does not depend on whose logarithm and cosine it is.
    """
    _check(seed, shape, dtype)
    most = _greatest(dtype)
    if not (abs(mean) <= most and 0 <= std <= most):
        raise ArgumentError(
            f"mean is {mean} and std {std}, expected finite numbers of {dtype}, std at least 0"
        )
    return Type(shape, dtype)


@rng_normal.numpy
def _(seed: Array, *, shape: tuple[int, ...], dtype: DType, mean: float, std: float) -> Array:
    check_extents(shape)
    count = math.prod(shape)
    if dtype is f64:
        words = _words(seed, (count + 1) // 2, _NORMAL).reshape(-1, 2, 2)
        first, second, scale = _fractions(words[:, 0]), _fractions(words[:, 1]), 2.0**-53
    else:
        words = _words(seed, (count + 3) // 4, _NORMAL).reshape(-1, 2).astype(np.float64)
        first, second, scale = words[:, 0], words[:, 1], 2.0**-32
    radius = np.sqrt(-2 * np.log((first + 1) * scale))
    angle = 2 * math.pi * (second * scale)
    values = mean + std * np.stack((radius * np.cos(angle), radius * np.sin(angle)), -1)
    return values.ravel()[:count].reshape(shape).astype(dtype.compute.numpy).astype(dtype.numpy)


def philox(counters: Array, key: tuple[int, int]) -> Array:
    """Philox4x32-10: the words [n, 4] (uint32) of counters [n, 4] (uint32) under a key of 32-bit
    words."""
    c0, c1, c2, c3 = counters.T.astype(np.uint64)
    k0, k1 = key
    for _ in range(_ROUNDS):
        product0, product1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            product1 >> _HALF ^ c1 ^ np.uint64(k0),
            product1 & _LOW,
            product0 >> _HALF ^ c3 ^ np.uint64(k1),
            product0 & _LOW,
        )
        k0, k1 = (k0 + _WEYL[0]) % 2**32, (k1 + _WEYL[1]) % 2**32
    return np.stack((c0, c1, c2, c3), -1).astype(np.uint32)


def _words(seed: Array, blocks: int, stream: int) -> Array:
    """The words [blocks, 4] of the first blocks of a stream."""
    key = int(seed) % 2**64
    block = np.arange(blocks, dtype=np.uint64)
    counters = np.zeros((blocks, 4), np.uint32)
    counters[:, 0], counters[:, 1], counters[:, 2] = block & _LOW, block >> _HALF, stream
    return philox(counters, (key % 2**32, key >> 32))


def _fractions(words: Array) -> Array:
    """The upper 53 bits of each pair of words [n, 2], as whole numbers in f64 [n]."""
    wide = words.astype(np.uint64)
    return ((wide[:, 0] << _HALF | wide[:, 1]) >> np.uint64(11)).astype(np.float64)


def _check(seed: Tensor, shape: Shape, dtype: DType) -> None:
    require(seed, "int", "uint")
    if seed.ndim:
        raise ShapeError(f"seed has type {seed.type}, expected rank 0", fix="seed[0]")
    if not dtype.is_float:
        raise DTypeError(f"dtype is {dtype}, expected a float", fix="dtype='f32'")
    check_extents(shape)


def _greatest(dtype: DType) -> float:
    """The greatest finite number of a float dtype."""
    return float(typed("Any", ml_dtypes.finfo(dtype.numpy)).max)


def ends(low: float, high: float, dtype: DType) -> tuple[float, float]:
    """The least and the greatest number of ``dtype`` in [low, high)."""
    most = _greatest(dtype)
    if not low < high:
        raise ArgumentError(f"low is {low} and high {high}, expected low < high")
    if low < -most or high > most or high - low > _greatest(dtype.compute):
        raise ArgumentError(f"[{low}, {high}) is wider than {dtype} can hold")
    least, greatest = dtype.numpy.type(low), dtype.numpy.type(high)
    if float(least) < low:
        least = np.nextafter(least, dtype.numpy.type(most))
    if float(greatest) >= high:
        greatest = np.nextafter(greatest, dtype.numpy.type(-most))
    if float(least) > float(greatest):
        raise ArgumentError(f"no {dtype} lies in [{low}, {high})")
    return float(least), float(greatest)

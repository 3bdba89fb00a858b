"""Counter-based random numbers: each element is a function of a seed and its position, no state.

Words come from Philox4x32-10, a bijection of 128-bit counters under a 64-bit key. Source: Salmon,
Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011). The key is the seed
modulo 2⁶⁴, low word first. The counter is (b mod 2³², ⌊b / 2³²⌋, s, 0), where s is 0 in
`rng_uniform`, 1 in `rng_normal` and ``stream`` in `random_bits`. Block b of four words serves
elements 4b to 4b + 3 of a seed's numbers in row-major order; where an element takes two words (f64
and ui64), elements 2b and 2b + 1. So each element can be computed alone, and the first n do not
depend on how many follow.
"""

from __future__ import annotations

import math
from typing import Any
from typing import cast as typed

import ml_dtypes
import numpy as np

from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.checks import require
from gptrs.ir.dims import Shape, same_shape
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.literal import check_extents
from gptrs.ir.primitives import primitive
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, Type, f32, f64, ui32, ui64

__all__ = ["random_bits", "rng_normal", "rng_uniform"]

_ROUNDS = 10
_MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], np.uint64)
_WEYL = np.array([0x9E3779B9, 0xBB67AE85], np.uint64)  # the increment of the key per round
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
UNIFORM, NORMAL, BITS = 0, 1, 2


@primitive(kind=OpKind.RANDOM)
def rng_uniform(
    seed: Tensor, *, shape: Shape, dtype: DType = f32, low: float = 0.0, high: float = 1.0
) -> Type:
    """Numbers of the uniform distribution over [low, high), of ``shape`` for each integer in
    ``seed``.

    low + u · (high − low), where u is the upper 24 bits of a word / 2²⁴; in f64 the upper 53 bits
    of two words (the first is the upper one) / 2⁵³. Narrow dtypes are computed in f32. What
    rounding takes out of the interval becomes the nearest number of ``dtype`` in it. Raises
    `ArgumentError` when there is none.
    """
    _check(seed, shape, dtype)
    ends(low, high, dtype)
    return Type((*seed.shape, *shape), dtype)


@rng_uniform.numpy
def _(seed: Array, *, shape: tuple[int, ...], dtype: DType, low: float, high: float) -> Array:
    check_extents(shape)
    count = math.prod(shape)
    if dtype is f64:
        u = _fractions(_words(seed, count, 2, UNIFORM)) * 2.0**-53
    else:
        words = _words(seed, count, 1, UNIFORM)[..., 0]
        u = (words >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)
    span = u.dtype.type(high - low)
    values = np.clip(u.dtype.type(low) + u * span, *ends(low, high, dtype))
    return values.reshape((*seed.shape, *shape)).astype(dtype.numpy)


@primitive(kind=OpKind.RANDOM)
def rng_normal(
    seed: Tensor, *, shape: Shape, dtype: DType = f32, mean: float = 0.0, std: float = 1.0
) -> Type:
    """Numbers of the normal distribution, of ``shape`` for each integer in ``seed``.

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
    return Type((*seed.shape, *shape), dtype)


@rng_normal.numpy
def _(seed: Array, *, shape: tuple[int, ...], dtype: DType, mean: float, std: float) -> Array:
    check_extents(shape)
    count, each = math.prod(shape), 2 if dtype is f64 else 1
    pairs = -(-count // 2)
    words = _words(seed, 2 * pairs, each, NORMAL).reshape((*seed.shape, pairs, 2, each))
    if dtype is f64:
        first, second, scale = _fractions(words[..., 0, :]), _fractions(words[..., 1, :]), 2.0**-53
    else:
        wide = words[..., 0].astype(np.float64)
        first, second, scale = wide[..., 0], wide[..., 1], 2.0**-32
    radius = np.sqrt(-2 * np.log((first + 1) * scale))
    angle = 2 * math.pi * (second * scale)
    values = mean + std * np.stack((radius * np.cos(angle), radius * np.sin(angle)), -1)
    values = values.reshape((*seed.shape, 2 * pairs))[..., :count].reshape((*seed.shape, *shape))
    return values.astype(dtype.compute.numpy).astype(dtype.numpy)


@primitive(kind=OpKind.RANDOM)
def random_bits(
    seed: Tensor,
    start: Tensor | None = None,
    *,
    shape: Shape,
    dtype: DType = ui32,
    stream: int = BITS,
) -> Type:
    """Unsigned integers whose bits are all random, of ``shape`` for each integer in ``seed``.

    A word, or its upper bits; in ui64 two words, the first the upper one. They are those of one of
    2³² streams, from block ``start`` (ui64, of the shape of ``seed``) or 0.
    """
    require(seed, "int", "uint")
    if dtype.kind != "uint":
        raise DTypeError(f"dtype is {dtype}, expected an unsigned integer", fix="dtype='ui32'")
    if start is not None and (start.dtype is not ui64 or not same_shape(start.shape, seed.shape)):
        expected = Type(seed.shape, ui64)
        raise ShapeError(f"start has type {start.type}, expected {expected}, one for each seed")
    if not 0 <= stream < 2**32:
        raise ArgumentError(f"stream is {stream}, expected a number from 0 to 2**32 - 1")
    check_extents(shape)
    return Type((*seed.shape, *shape), dtype)


@random_bits.numpy
def _(
    seed: Array, start: Array | None, *, shape: tuple[int, ...], dtype: DType, stream: int
) -> Array:
    check_extents(shape)
    words = _words(seed, math.prod(shape), 2 if dtype is ui64 else 1, stream, start)
    if dtype is ui64:
        bits = words[..., 0].astype(np.uint64) << _HALF | words[..., 1]
    else:
        bits = words[..., 0] >> np.uint32(32 - dtype.bits)
    return bits.reshape((*seed.shape, *shape)).astype(dtype.numpy)


def philox(counters: Array, key: tuple[Any, Any]) -> Array:
    """Philox4x32-10: the words [..., 4] (uint32) of counters [..., 4] (uint32) under a key of
    32-bit words, or keys that broadcast."""
    c0, c1, c2, c3 = np.moveaxis(counters, -1, 0).astype(np.uint64)
    k0, k1 = (np.asarray(word, np.uint64) for word in key)
    for _ in range(_ROUNDS):
        product0, product1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            product1 >> _HALF ^ c1 ^ k0,
            product1 & _LOW,
            product0 >> _HALF ^ c3 ^ k1,
            product0 & _LOW,
        )
        k0, k1 = k0 + _WEYL[0] & _LOW, k1 + _WEYL[1] & _LOW
    return np.stack(np.broadcast_arrays(c0, c1, c2, c3), -1).astype(np.uint32)


def _words(seed: Array, count: int, each: int, stream: int, start: Array | None = None) -> Array:
    """The words [*seed.shape, count, each] of a stream's first elements, of ``each`` words."""
    keys = seed[..., None].astype(np.int64 if seed.dtype != np.uint64 else np.uint64)
    keys = keys.astype(np.uint64)
    block = np.arange(-(-count * each // 4), dtype=np.uint64)
    if start is not None:
        block = start[..., None] + block
    counters = np.zeros((*np.broadcast_shapes(keys.shape, block.shape), 4), np.uint32)
    counters[..., 0], counters[..., 1], counters[..., 2] = block & _LOW, block >> _HALF, stream
    words = philox(counters, (keys & _LOW, keys >> _HALF))
    return words.reshape((*seed.shape, 4 * block.shape[-1] // each, each))[..., :count, :]


def _fractions(words: Array) -> Array:
    """The upper 53 bits of each pair of words [..., 2], as whole numbers in f64."""
    wide = words.astype(np.uint64)
    return ((wide[..., 0] << _HALF | wide[..., 1]) >> np.uint64(11)).astype(np.float64)


def _check(seed: Tensor, shape: Shape, dtype: DType) -> None:
    require(seed, "int", "uint")
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

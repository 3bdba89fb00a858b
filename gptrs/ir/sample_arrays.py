"""Arrays of sample values, and whether two results are the same: what rules are checked with.

Input: a type and a word that says which values. Output: an array drawn by a seeded generator:

    (nothing)   a few units around 0
    any         NaN, infinities, both zeros, denormals, the largest; for integers the extremes
    special     NaN, infinities and both zeros among ordinary numbers
    positive (of bools: True), nonzero, unit (between -1 and 1)
    0..3        uniform, integers with both ends
    sorted any  and the like: rows in ascending order, NaN last
    definite    symmetric (Hermitian) positive definite matrices, of condition numbers below 10
"""

from __future__ import annotations

import re
from typing import Any, cast

import ml_dtypes
import numpy as np

from gptrs.ir.types import Array, DType, Type, as_dtype


def draw(type: Type, values: str, rng: np.random.Generator) -> Array:
    """An array of ``type`` (whose shape is known); see the head of this file for ``values``."""
    if (drawn := values.removeprefix("sorted ")) != values:
        x = draw(type, drawn, rng)
        keys = _comparable(x, type.dtype)
        return np.take_along_axis(x, np.argsort(keys, axis=-1, kind="stable"), axis=-1)
    shape = [int(n) for n in type.shape]
    dtype = type.dtype
    if dtype.is_bool:
        return np.asarray(rng.random(shape) < (1 if values == "positive" else 0.5))
    if found := re.fullmatch(r"(-?\d+)\.\.(-?\d+)", values):
        low, high = int(found[1]), int(found[2])
        if dtype.is_integer:
            whole = rng.integers(low, high, shape, np.int64, endpoint=True)
            return np.asarray(whole).astype(dtype.numpy)
        return np.asarray(rng.uniform(low, high, shape)).astype(dtype.numpy)
    if values == "definite":
        return _definite(shape, rng, is_complex=dtype.is_complex).astype(dtype.numpy)
    if dtype.is_complex:
        wide = np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape))
        return wide.astype(dtype.numpy)
    plain = _integers(dtype, values, shape, rng) if dtype.is_integer else None
    if plain is None:
        plain = _floats(dtype, values, shape, rng)
    with np.errstate(all="ignore"):
        return np.asarray(plain).astype(dtype.numpy)


def _definite(shape: list[int], rng: np.random.Generator, *, is_complex: bool) -> Array:
    parts = rng.uniform(-1, 1, (2, *shape))
    factor = parts[0] + 1j * parts[1] if is_complex else parts[0]
    product = factor @ factor.conj().swapaxes(-1, -2)
    return product / max(shape[-1], 1) + np.eye(shape[-1])


def _integers(dtype: DType, values: str, shape: list[int], rng: np.random.Generator) -> Array:
    low, high = dtype.limits
    if values in ("any", "special"):
        drawn = rng.integers(low, high, shape, np.uint64 if low == 0 else np.int64, endpoint=True)
        extremes = np.array(
            [low, high, 0, 1, high - 1, low + 1, 1 if low == 0 else -1], drawn.dtype
        )
        return np.where(rng.random(shape) < 0.5, rng.choice(extremes, shape), drawn)
    ends = {"positive": (1, 5), "nonzero": (1, 5)}.get(values, (max(low, -5), 5))
    drawn = rng.integers(*ends, shape, endpoint=True)
    negative = (values == "nonzero") & (low < 0) & (rng.random(shape) < 0.5)
    return np.where(negative, -drawn, drawn)


def _floats(dtype: DType, values: str, shape: list[int], rng: np.random.Generator) -> Array:
    match values:
        case "positive":
            return rng.uniform(0.1, 4, shape)
        case "nonzero":
            return rng.uniform(0.1, 4, shape) * rng.choice([-1.0, 1.0], shape)
        case "unit":
            return rng.uniform(-1, 1, shape)
        case _:
            drawn = np.asarray(rng.normal(scale=2, size=shape))
    info = _finfo(dtype)
    tiny, largest = float(info.smallest_subnormal), float(info.max)
    extremes = {
        "any": (np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, largest, -largest, 0.5, 2.5, -1.5),
        "special": (np.nan, np.inf, -np.inf, 0.0, -0.0),
    }.get(values, ())
    if not extremes:
        return drawn
    return np.where(rng.random(shape) < 0.5, rng.choice(extremes, shape), drawn)


def differences(found: Array, expected: Array, ulps: int = 0, magnitude: float = 0.0) -> str:
    """What is wrong with ``found``; empty when it is close enough to ``expected``.

    With 0 ulps the two are equal (NaN to NaN). Otherwise they may differ by so many
    units in the last place of the dtype that is computed in, below ``magnitude`` in those of
    ``magnitude``; results in a narrow dtype,
    to which slightly different numbers were rounded, may differ by one more unit of that.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"found {Type.of(found)}, expected {Type.of(expected)}"
    dtype = as_dtype(found.dtype)
    a, b = _comparable(found, dtype), _comparable(expected, dtype)
    with np.errstate(all="ignore"):
        good = (a == b) | ((a != a) & (b != b))
        if ulps and (dtype.is_float or dtype.is_complex):
            allowed = ulps * float(_finfo(dtype.compute).eps) * np.maximum(np.abs(b), magnitude)
            if dtype.compute is not dtype:
                info = _finfo(dtype)
                allowed += np.maximum(float(info.eps) * np.abs(b), float(info.smallest_subnormal))
            good |= np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= allowed)
    if good.all():
        return ""
    at = tuple(map(int, np.argwhere(~good)[0]))
    return f"{(~good).sum()} of {good.size} elements, first {at}: found {a[at]}, expected {b[at]}"


def _comparable(array: Array, dtype: DType) -> Array:
    if dtype.bits == 4:
        return array.astype(np.int64)
    with np.errstate(all="ignore"):  # signalling NaNs
        return array.astype(np.float64) if dtype.is_float else array


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays have equal bits, all NaNs taken for one."""
    if differences(a, b):
        return False
    if a.dtype.kind == "c":
        return same_bits(np.real(a), np.real(b)) and same_bits(np.imag(a), np.imag(b))
    if not as_dtype(a.dtype).is_float:
        return True
    with np.errstate(all="ignore"):  # signalling NaNs
        return bool(np.array_equal(np.signbit(a) & (a == a), np.signbit(b) & (b == b)))


def _finfo(dtype: DType) -> Any:
    """Limits of a float dtype, or of the parts of a complex one."""
    parts = {"cf32": np.dtype(np.float32), "cf64": np.dtype(np.float64)}
    return cast("Any", ml_dtypes.finfo(parts.get(dtype.name, dtype.numpy)))

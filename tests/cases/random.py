"""Rows of the random ops: against the definition of Philox, one element at a time."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gptrs.ir.types import DTYPES
from tests.cases.sample import FLOATS, LIBM, Case, S, Sample, sample
from tests.support.lazy_torch import torch

_WORD = 0xFFFFFFFF


def philox_words(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 as its paper defines it, in whole numbers."""
    for _ in range(10):
        first, second = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [
            (second >> 32) ^ counter[1] ^ key[0],
            second & _WORD,
            (first >> 32) ^ counter[3] ^ key[1],
            first & _WORD,
        ]
        key = [(key[0] + 0x9E3779B9) & _WORD, (key[1] + 0xBB67AE85) & _WORD]
    return counter


def _block(seed: int, number: int, stream: int) -> list[int]:
    key = seed & (1 << 64) - 1
    return philox_words([number & _WORD, number >> 32, stream, 0], [key & _WORD, key >> 32])


def _joined(upper: int, lower: int) -> int:
    return (upper << 32 | lower) >> 11


def _each(
    element: Callable[[int, int], float], seed: torch.Tensor, shape: tuple[int, ...], dtype: str
) -> torch.Tensor:
    drawn = [element(int(s), i) for s in seed.flatten() for i in range(math.prod(shape))]
    values = torch.tensor(drawn, dtype=torch.float64)
    return values.to(torch.float64 if dtype == "f64" else torch.float32).reshape(
        (*seed.shape, *shape)
    )


def _uniform(
    seed: torch.Tensor,
    *,
    shape: tuple[int, ...],
    dtype: str = "f32",
    low: float = 0.0,
    high: float = 1.0,
) -> torch.Tensor:
    numbers = DTYPES[dtype].numpy.type
    compute: Any = np.float64 if dtype == "f64" else np.float32

    def element(seed: int, index: int) -> float:
        if dtype == "f64":
            words = _block(seed, index // 2, 0)[index % 2 * 2 :]
            u = _joined(words[0], words[1]) / 2**53
        else:
            u = (_block(seed, index // 4, 0)[index % 4] >> 8) / 2**24
        value = float(numbers(compute(low) + compute(u) * compute(high - low)))
        if value >= high:
            return float(np.nextafter(numbers(value), numbers(low)))
        return value if value >= low else float(np.nextafter(numbers(value), numbers(high)))

    return _each(element, seed, shape, dtype)


def _normal(
    seed: torch.Tensor,
    *,
    shape: tuple[int, ...],
    dtype: str = "f32",
    mean: float = 0.0,
    std: float = 1.0,
) -> torch.Tensor:
    def element(seed: int, index: int) -> float:
        pair = index // 2
        if dtype == "f64":
            words = _block(seed, pair, 1)
            u = (_joined(words[0], words[1]) + 1) / 2**53
            v = _joined(words[2], words[3]) / 2**53
        else:
            words = _block(seed, pair // 2, 1)[pair % 2 * 2 :]
            u, v = (words[0] + 1) / 2**32, words[1] / 2**32
        turn = (math.cos, math.sin)[index % 2]
        return mean + std * math.sqrt(-2 * math.log(u)) * turn(2 * math.pi * v)

    return _each(element, seed, shape, dtype)


def _bits(
    seed: torch.Tensor,
    start: torch.Tensor | None = None,
    *,
    shape: tuple[int, ...],
    dtype: str = "ui32",
    stream: int = 2,
) -> torch.Tensor:
    kind = DTYPES[dtype]
    starts = [0] * seed.numel() if start is None else start.flatten().tolist()

    def element(which: int, index: int) -> int:
        first = starts[which] & (1 << 64) - 1
        if kind.bits == 64:
            block = (first + index // 2) & (1 << 64) - 1
            words = _block(int(seed.flatten()[which]), block, stream)[index % 2 * 2 :]
            return words[0] << 32 | words[1]
        block = (first + index // 4) & (1 << 64) - 1
        return _block(int(seed.flatten()[which]), block, stream)[index % 4] >> (32 - kind.bits)

    drawn = [element(w, i) for w in range(seed.numel()) for i in range(math.prod(shape))]
    return torch.from_numpy(
        np.array(drawn, np.uint64).view(np.int64).reshape((*seed.shape, *shape))
    )


def _shapes(*others: Sample) -> tuple[Sample, ...]:
    return (
        sample("si64[] any", shape=(3, 7), dtype="T"),
        sample("si32[] 7..7", shape=(), dtype="T"),
        sample("ui64[] any", shape=(65,), dtype="T"),
        sample("si4[] -8..-1", shape=(2, 1, 5), dtype="T"),
        sample("ui8[] any", shape=(2, 0), dtype="T"),
        sample("si64[S] any", shape=(), dtype="T"),
        sample("ui64[2,3] any", shape=(130, 2), dtype="T"),
        sample("si32[0] any", shape=(3,), dtype="T"),
        *others,
    )


RANDOM = (
    Case(
        "rng_uniform",
        _shapes(
            sample("si64[] any", shape=(99,), dtype="T", low=-3.0, high=5.0),
            sample("si64[] any", shape=(99,), dtype="T", low=1, high=2),
            sample("si64[] any", shape=(99,), dtype="T", low=0.1, high=0.13),
            sample("si64[] any", shape=(99,), dtype="T", low=-1.0, high=0.0),
        ),
        _uniform,
        FLOATS,
    ),
    Case(
        "rng_normal",
        _shapes(
            sample("si64[] any", shape=(99,), dtype="T", mean=-3.0, std=0.5),
            sample("si64[] any", shape=(9,), dtype="T", mean=2, std=0),
        ),
        _normal,
        FLOATS,
        ulps=4,
        magnitude=1,
        why=LIBM,
    ),
    Case(
        "random_bits",
        _shapes(
            sample("si64[] any", shape=(600,), dtype="T", stream=3),
            sample("ui64[S] any", shape=(S, 2), dtype="T"),
            sample("ui64[S] any", "ui64[S] any", shape=(), dtype="T", stream=4),
            sample("si16[2,2] any", "ui64[2,2] any", shape=(5, 3), dtype="T"),
            sample("ui64[] any", "ui64[] any", shape=(700,), dtype="T"),
        ),
        _bits,
        ("ui4", "ui8", "ui16", "ui32", "ui64"),
    ),
)

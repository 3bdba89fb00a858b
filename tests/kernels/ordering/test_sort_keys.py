"""Networks, partition, quicksort and radix sort of integer keys against NumPy's sort."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.compiler.isa import current
from gptrs.kernels.ordering.partition import SLACK
from gptrs.kernels.ordering.sort_keys import sort_keys
from gptrs.kernels.ordering.sorting_network import block_size
from tests.support.kernels import run

Keys = NDArray[Any]
GUARD = 77
WIDTHS = [bits for bits in (256, 512) if bits == 512 or current().quicksort_bits]
"""Of vectors: LLVM writes compression for any level, a permutation for AVX2 and above."""
KEYS = [pytest.param(np.int32, "int32s", id="32"), pytest.param(np.int64, "words", id="64")]


def drawn(dtype: Any, count: int) -> Iterator[Keys]:
    """Keys of the whole range, its ends, few different ones, and sorted ones."""
    rng, limits = np.random.default_rng(count), np.iinfo(dtype)
    yield rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
    yield rng.integers(-3, 4, count).astype(dtype)
    yield rng.choice(np.array([limits.min, limits.max, 0, limits.max - 1], dtype), count)
    yield np.full(count, limits.max, dtype)
    yield np.arange(count).astype(dtype) * 70_001
    yield np.arange(count)[::-1].astype(dtype) * 70_001
    yield (np.arange(count) % 1000 * 80_000).astype(dtype)


def guarded(keys: Keys) -> Keys:
    """A copy with other elements around it."""
    return np.concatenate([keys[:0], [GUARD], keys, [GUARD]]).astype(keys.dtype)


def check(held: Keys, expected: Keys) -> None:
    np.testing.assert_array_equal(held[1:-1], expected)
    assert held[0] == held[-1] == GUARD, "written outside"


@pytest.mark.parametrize("vector_bits", WIDTHS)
@pytest.mark.parametrize(("dtype", "pointer"), KEYS)
def test_blocks(dtype: Any, pointer: str, vector_bits: int) -> None:
    kernel = compile_source(
        f"""
def block(arguments, first, last):
    w = words(arguments)
    sort_block({pointer}(w[0]), w[1], {vector_bits})
""",
        "block",
    )
    for count in range(block_size(8 * np.dtype(dtype).itemsize, vector_bits) + 1):
        for keys in drawn(dtype, count):
            held = guarded(keys)
            run(kernel, held[1:], count)
            check(held, np.sort(keys))


@pytest.mark.parametrize("vector_bits", WIDTHS)
@pytest.mark.parametrize(("dtype", "pointer"), KEYS)
def test_partition(dtype: Any, pointer: str, vector_bits: int) -> None:
    kernel = compile_source(
        f"""
def divide(arguments, first, last):
    w = words(arguments)
    w[4] = partition({pointer}(w[0]), {pointer}(w[1]), w[2], {pointer}(w[3])[0], {vector_bits})
""",
        "divide",
    )
    limits = np.iinfo(dtype)
    for count in [*range(36), 100, 1001]:
        for keys in drawn(dtype, count):
            for pivot in (limits.min, -1, 0, limits.max):
                held, spare = guarded(keys), np.zeros(count + SLACK, dtype)
                block = np.array(
                    [
                        *(a.ctypes.data for a in (held[1:], spare)),
                        count,
                        (at := np.array([pivot], dtype)).ctypes.data,
                        0,
                    ]
                )
                kernel(block.ctypes.data, 0, 1)
                below = int(block[4])
                assert below == (keys < at).sum()
                held[1 : 1 + below].sort()
                held[1 + below : -1].sort()
                check(held, np.sort(keys))


def sorter(pointer: str, vector_bits: int) -> Kernel:
    source = sort_keys(32 if pointer == "int32s" else 64, vector_bits)
    text = f"""{source}
def whole(arguments, first, last):
    w = words(arguments)
    sort_keys({pointer}(w[0]), {pointer}(w[1]), local_{pointer}(64), w[2], w[3])
"""
    return compile_source(text, "whole")


@pytest.mark.parametrize("vector_bits", [0, *WIDTHS])
@pytest.mark.parametrize(("dtype", "pointer"), KEYS)
def test_any_length(dtype: Any, pointer: str, vector_bits: int) -> None:
    kernel = sorter(pointer, vector_bits)
    for count in [0, 1, 2, 47, 48, 49, 64, 128, 129, 257, 300, 2047, 5000, 70_000]:
        for keys in drawn(dtype, count):
            held = guarded(keys)
            run(kernel, held[1:], np.zeros(count + SLACK, dtype), count, 0)
            check(held, np.sort(keys))


@pytest.mark.parametrize("vector_bits", [0, *WIDTHS])
def test_packed_positions(vector_bits: int) -> None:
    """Positions below keys of 32 bits keep equal keys in their order."""
    kernel = sorter("words", vector_bits)
    for count in (1, 48, 100, 1000, 70_000):
        for keys in drawn(np.int32, count):
            packed = (keys.astype(np.int64) << 32) | np.arange(count)
            held = guarded(packed)
            run(kernel, held[1:], np.zeros(count + SLACK, np.int64), count, 32)
            check(held, np.sort(packed))


def test_every_division_is_bad() -> None:
    """An adversary's keys: wherever the sample is taken, its median is the second least, so that
    the budget of divisions ends and the rest is sorted by radix."""
    count = 60_000
    places, values = np.arange(count), np.zeros(count, np.int64)
    lowest = 0
    while len(places) > 2048:
        step = len(places) // 64
        sample = places[: 64 * step : step]
        values[sample[:33]] = lowest + np.arange(33)
        lowest += 33
        places = np.delete(places, np.arange(0, 33 * step, step))
    values[places] = lowest + np.arange(len(places))
    values *= 2**33
    held = guarded(values)
    run(sorter("words", WIDTHS[-1]), held[1:], np.zeros(count + SLACK, np.int64), count, 0)
    check(held, np.sort(values))

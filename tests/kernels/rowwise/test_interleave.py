"""Rows interleaved and back: any element size and number of parts, at every vector level."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.rowwise.block_copy import ELEMENT_BYTES, ElementBytes
from gptrs.kernels.rowwise.interleave import (
    DEINTERLEAVE_ARGUMENTS,
    INTERLEAVE_ARGUMENTS,
    MOST_PARTS,
    deinterleave_kernel,
    interleave_kernel,
    interleaved_lanes,
)


@pytest.mark.parametrize("parts", range(2, MOST_PARTS + 1))
@pytest.mark.parametrize("size", ELEMENT_BYTES[:-1])
def test_rows(level: isa.Isa, size: ElementBytes, parts: int) -> None:
    """All elements of 2 · 3 rows with other ones between them, in ranges in no order."""
    lanes = interleaved_lanes(level, size)
    kernel = compile_ir(*interleave_kernel(level, size, parts))
    for count in (lanes, lanes + 1, 2 * lanes, 5 * lanes - 1):
        rng, kind = np.random.default_rng(count), f"u{size}"
        source = rng.integers(0, 200, (2, 3, parts, count + 3)).astype(kind)
        held = rng.integers(0, 200, (3, 2, parts * count + 2)).astype(kind)
        wanted = held.copy()
        turned = source[..., :count].transpose(1, 0, 3, 2)
        wanted[:, :, 1:-1] = turned.reshape(3, 2, parts * count)
        steps = [[s // size for s in array.strides] for array in (source, held)]
        ends = [source.ctypes.data, held.ctypes.data + size]
        words = [*ends, count, steps[0][2], 3, steps[0][1], steps[1][0], 1]
        words += [2, steps[0][0], steps[1][1]]
        assert len(words) == len(INTERLEAVE_ARGUMENTS) + 3
        run(kernel, words)
        np.testing.assert_array_equal(held, wanted)


@pytest.mark.parametrize("parts", range(2, MOST_PARTS + 1))
@pytest.mark.parametrize("size", ELEMENT_BYTES[:-1])
def test_parts(level: isa.Isa, size: ElementBytes, parts: int) -> None:
    """The same rows back to their parts, and nothing between these."""
    lanes = interleaved_lanes(level, size)
    kernel = compile_ir(*deinterleave_kernel(level, size, parts))
    for count in (lanes, lanes + 1, 2 * lanes, 5 * lanes - 1):
        rng, kind = np.random.default_rng(count), f"u{size}"
        source = rng.integers(0, 200, (3, 2, parts * count + 2)).astype(kind)
        held = rng.integers(0, 200, (2, 3, parts, count + 3)).astype(kind)
        wanted = held.copy()
        turned = source[:, :, 1:-1].reshape(3, 2, count, parts)
        wanted[..., :count] = turned.transpose(1, 0, 3, 2)
        steps = [[s // size for s in array.strides] for array in (source, held)]
        ends = [source.ctypes.data + size, held.ctypes.data]
        words = [*ends, count, steps[1][2], 3, steps[0][0], steps[1][1], 1]
        words += [2, steps[0][1], steps[1][0]]
        assert len(words) == len(DEINTERLEAVE_ARGUMENTS) + 3
        run(kernel, words)
        np.testing.assert_array_equal(held, wanted)


def run(kernel: Any, words: list[int]) -> None:
    block = np.array(words, np.int64)
    for first, last in reversed([*pairwise((0, 1, 4, 4, 6))]):
        kernel(block.ctypes.data, first, last)

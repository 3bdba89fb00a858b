"""Strided block copy and fill: any element size, strides and range, at every vector level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.rowwise.block_copy import (
    COPY_ARGUMENTS,
    COPY_AT_ARGUMENTS,
    ELEMENT_BYTES,
    FILL_ARGUMENTS,
    START_WORDS,
    ElementBytes,
    copy_at_kernel,
    copy_kernel,
    fill_kernel,
)

Array = NDArray[Any]

KINDS = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}
LONG = 100
"""Elements of a run that the C library copies."""
RUNS = (0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 200)


def bits(shape: Sequence[int], size: int, seed: int = 0) -> Array:
    """Elements of ``size`` bytes with every pattern of bits."""
    found = np.random.default_rng(seed).integers(0, 255, (*shape, size), np.uint8, endpoint=True)
    return found.view(KINDS[size])[..., 0]


def same_bytes(a: Array, b: Array) -> None:
    np.testing.assert_array_equal(
        np.ascontiguousarray(a)[..., None].view(np.uint8),
        np.ascontiguousarray(b)[..., None].view(np.uint8),
    )


def run(text: Any, words: Sequence[int], rows: int) -> None:
    """In parts that begin and end anywhere, in no order."""
    block, kernel = np.array(words, np.int64), compile_ir(*text)
    cuts = sorted({0, 1 % (rows + 1), rows // 3, rows // 3, rows // 2, rows})
    for first, last in reversed([*pairwise(cuts), (rows, rows)]):
        kernel(block.ctypes.data, first, last)


def axes_of(shape: Sequence[int], *arrays: Array) -> list[list[int]]:
    """Extent and strides of each axis, at least two of them."""
    steps = ([s // a.itemsize for s in a.strides] for a in arrays)
    axes = [list(axis) for axis in zip(shape, *steps, strict=True)]
    return [[1] + [0] * len(arrays)] * (2 - len(axes)) + axes


def copy(level: isa.Isa, source: Array, destination: Array) -> None:
    """Of two views of one shape."""
    *outer, rows, run_ = axes_of(source.shape, source, destination)
    ends = [array.ctypes.data for array in (source, destination)]
    words = [*ends, *run_, *rows, LONG, len(outer), *(n for axis in outer for n in axis)]
    assert len(words) == len(COPY_ARGUMENTS) + 3 * len(outer)
    size: ElementBytes = next(n for n in ELEMENT_BYTES if n == source.itemsize)
    run(copy_kernel(level, size), words, math.prod(source.shape[:-1]))


def fill(level: isa.Isa, value: Array, destination: Array) -> None:
    *outer, rows, (count, step) = axes_of(destination.shape, destination)
    assert step == 1 or destination.shape[-1] < 2
    pattern = np.frombuffer(value.tobytes() * (16 // value.itemsize), np.int64).tolist()
    words = [destination.ctypes.data, *pattern, count, *rows, len(outer)]
    words += [n for axis in outer for n in axis]
    assert len(words) == len(FILL_ARGUMENTS) + 2 * len(outer)
    size: ElementBytes = next(n for n in ELEMENT_BYTES if n == value.itemsize)
    run(fill_kernel(level, size), words, math.prod(destination.shape[:-1]))


@pytest.mark.parametrize("size", ELEMENT_BYTES)
def test_runs_of_every_length(level: isa.Isa, size: int) -> None:
    """All elements of a run, and none around it."""
    for count in RUNS:
        source, held = bits((3, count), size), bits((5, count + 4), size, 1)
        wanted = held.copy()
        wanted[1:4, 2 : 2 + count] = source
        copy(level, source, held[1:4, 2 : 2 + count])
        same_bytes(held, wanted)
        value = bits((1,), size, 2)
        wanted[1:4, 2 : 2 + count] = value
        fill(level, value, held[1:4, 2 : 2 + count])
        same_bytes(held, wanted)


@pytest.mark.parametrize("size", ELEMENT_BYTES)
@pytest.mark.parametrize("shape", [(4,), (2, 3), (3, 2, 5), (2, 1, 3, 4), (2, 3, 2, 2, 3, 2)])
def test_any_strides(level: isa.Isa, size: int, shape: tuple[int, ...]) -> None:
    """From a transpose, a broadcast and every second element, into every third."""
    wide = bits([3 * n + 1 for n in shape], size, 1)
    spans = tuple(slice(1, 3 * n, 3) for n in shape)
    turned = bits(shape[::-1], size).T
    repeated = np.broadcast_to(bits((*shape[:-1], 1), size), shape)
    every_second = bits([2 * n for n in shape], size)[tuple(slice(None, None, 2) for _ in shape)]
    for source in (turned, repeated, every_second):
        held, wanted = wide.copy(), wide.copy()
        wanted[spans] = source
        copy(level, source, held[spans])
        same_bytes(held, wanted)


@pytest.mark.parametrize("size", ELEMENT_BYTES)
def test_fill_of_many_axes(level: isa.Isa, size: int) -> None:
    held = bits((3, 4, 2, 5, 37), size)
    wanted, value = held.copy(), bits((1,), size, 3)
    spans = (slice(1, 3), slice(0, 3), slice(1, 2), slice(2, 5), slice(3, 33))
    wanted[spans] = value
    fill(level, value, held[spans])
    same_bytes(held, wanted)


Starts = Sequence[tuple[int, int, Any]]


def copy_at(level: isa.Isa, source: Array, destination: Array, starts: Starts) -> None:
    """Copy the first block of the smaller array's shape, moved in the larger one; ``starts`` are
    axes, places there, and the types of the integers in memory."""
    shape = tuple(map(min, source.shape, destination.shape))
    block = tuple(map(slice, shape))
    *outer, rows, run_ = axes_of(shape, source[block], destination[block])
    ends = [array.ctypes.data for array in (source, destination)]
    around = [n for axis in outer for n in axis]
    words = [*ends, *run_, *rows, LONG, len(outer), len(starts), *around]
    assert len(words) == len(COPY_AT_ARGUMENTS) + 3 * len(outer)
    held = [np.array(place, kind) for _, place, kind in starts]
    for (axis, _, _), integer in zip(starts, held, strict=True):
        unused = 64 - 8 * integer.itemsize
        words += [integer.ctypes.data, integer.itemsize, unused, int(integer.dtype.kind == "i")]
        extents = source.shape[axis], destination.shape[axis]
        words += [max(extents) - min(extents)]
        larger = destination if extents[1] > extents[0] else source
        step = larger.strides[axis] // larger.itemsize
        words += [step, 0] if larger is source else [0, step]
    assert len(words) == len(COPY_AT_ARGUMENTS) + 3 * len(outer) + len(START_WORDS) * len(starts)
    size: ElementBytes = next(n for n in ELEMENT_BYTES if n == source.itemsize)
    run(copy_at_kernel(level, size), words, math.prod(shape[:-1]))


@pytest.mark.parametrize("size", ELEMENT_BYTES)
@pytest.mark.parametrize("count", [1, 15, 64, 147])
def test_a_place_known_at_run_time(level: isa.Isa, size: int, count: int) -> None:
    """From a block and to a block of a larger array, and nothing around it."""
    block, around = bits((2, 3, count), size), bits((5, 4, count + 2), size, 1)
    starts = [(0, 2, np.int64), (1, 1, np.int8), (2, 1, np.uint16)]
    wanted, there = around.copy(), (slice(2, 4), slice(1, 4), slice(1, count + 1))
    wanted[there] = block
    copy_at(level, block, around, starts)
    same_bytes(around, wanted)
    found = np.zeros_like(block)
    copy_at(level, around, found, starts)
    same_bytes(found, block)


@pytest.mark.parametrize(
    ("kind", "start", "place"),
    [
        *((kind, 3, 3) for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")),
        *((kind, np.iinfo(kind).max, 5) for kind in ("i1", "i2", "i4", "i8", "u1", "u4", "u8")),
        *((kind, np.iinfo(kind).min, 0) for kind in ("i1", "i2", "i4", "i8")),
        *((kind, -1, 0) for kind in ("i1", "i2", "i4", "i8")),
    ],
)
def test_starts_of_every_type_are_moved_inside(
    level: isa.Isa, kind: str, start: int, place: int
) -> None:
    around, found = bits((8, 2), 4), np.zeros((3, 2), KINDS[4])
    copy_at(level, around, found, [(0, start, kind)])
    same_bytes(found, around[place : place + 3])


def test_a_block_with_strides(level: isa.Isa) -> None:
    """A cache [B, H, T, D] from tokens [B, S, 3, H, D]; the gaps between its rows stay."""
    tokens = bits((2, 4, 3, 5, 9), 4)
    source = tokens[:, :, 1].transpose(0, 2, 1, 3)
    held = bits((2, 5, 7, 12), 4, 1)
    wanted = held.copy()
    wanted[:, :, 2:6, 1:10] = source
    copy_at(level, source, held[..., 1:10], [(2, 2, np.int32)])
    same_bytes(held, wanted)

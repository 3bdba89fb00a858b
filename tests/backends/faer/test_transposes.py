"""Copies of permuted arrays: the transposing kernel where both sides have a tile, else a loop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.types import Array

SHAPE = (3, 37, 18, 65)


def permuted(x: Array, perm: tuple[int, ...]) -> Array:
    @ptir.jit
    def moved(x: ptir.Tensor) -> ptir.Tensor:
        return ptir.transpose(x, perm=perm)

    return moved(x).numpy()


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8", "c16"])
def test_all_orders_of_four_axes(dtype: str) -> None:
    x = np.random.default_rng(0).integers(-100, 100, SHAPE).astype(dtype)
    for perm in itertools.permutations(range(4)):
        np.testing.assert_array_equal(permuted(x, perm), x.transpose(perm))


@pytest.mark.parametrize("shape", [(1, 1), (5, 300), (300, 5), (16, 16), (129, 257), (0, 4)])
def test_short_sides(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(permuted(x, (1, 0)), x.T)


@pytest.mark.parametrize("shape", [(2, 3136), (3, 5, 65), (4, 2, 40), (5, 3, 2, 33), (0, 2, 64)])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_few_rows_in_turn(
    shape: tuple[int, ...], threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each axis that is not the last one comes last, and the other way round."""
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for axis in range(len(shape) - 1):
        perm = (*(other for other in range(len(shape)) if other != axis), axis)
        moved = x.transpose(perm)
        np.testing.assert_array_equal(permuted(x, perm), moved)
        back = tuple(np.argsort(perm))
        np.testing.assert_array_equal(permuted(np.ascontiguousarray(moved), back), x)


def test_long_rows_in_turn() -> None:
    x = np.random.default_rng(0).normal(size=(3, 3 * 4096)).astype(np.float32)
    np.testing.assert_array_equal(permuted(x, (1, 0)), x.T)
    np.testing.assert_array_equal(permuted(np.ascontiguousarray(x.T), (1, 0)), x)


def test_slices_that_are_transposed() -> None:
    x = np.random.default_rng(0).normal(size=(90, 5, 100)).astype(np.float32)

    @ptir.jit
    def taken(x: ptir.Tensor) -> ptir.Tensor:
        return ptir.transpose(x[10:70:2, 3, 7:], perm=(1, 0))

    np.testing.assert_array_equal(taken(x).numpy(), x[10:70:2, 3, 7:].T)


def test_symbolic_extents_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    @ptir.jit(dynamic={"x": {0: "N", 1: "M"}})
    def function(x: ptir.Tensor) -> ptir.Tensor:
        return x.T

    for threads in ("1", "2"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        for shape in [(3, 400), (40, 50), (500, 301)]:
            x = np.random.default_rng(1).normal(size=shape)
            np.testing.assert_array_equal(function(x).numpy(), x.T)

"""Fused loops in blocks: operands in permuted orders, extents around those of a block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer.blocked_writer import ELEMENTS, ROWS
from gptrs.errors import ElementError
from gptrs.ir.types import Array


def drawn(*shape: int, dtype: str = "f4") -> Array:
    return np.random.default_rng(0).integers(-50, 50, shape).astype(dtype)


@ptir.jit
def sum_of_transposes(x: ptir.Tensor, y: ptir.Tensor) -> ptir.Tensor:
    return x + y.T


SHAPES = [(1, 16), (ROWS, ELEMENTS), (ROWS + 1, ELEMENTS + 1), (3, 1000), (1000, 17), (0, 20)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1"])
def test_extents_around_a_block(shape: tuple[int, int], dtype: str) -> None:
    x, y = drawn(*shape, dtype=dtype), drawn(*shape[::-1], dtype=dtype)
    np.testing.assert_array_equal(sum_of_transposes(x, y).numpy(), x + y.T)


def test_the_loop_is_blocked() -> None:
    x = drawn(40, 40)
    (source,) = sum_of_transposes.explain(x, x).sources.values()
    assert f", {ELEMENTS}):" in source
    assert f"for j in range(begin, min(begin + {ELEMENTS}, " in source


@pytest.mark.parametrize("perm", [(2, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1)])
def test_tiles_that_cross_an_axis(perm: tuple[int, int, int]) -> None:
    @ptir.jit
    def function(x: ptir.Tensor, y: ptir.Tensor, row: ptir.Tensor) -> ptir.Tensor:
        return x * 2.0 + ptir.transpose(y, perm=perm) - row

    y = drawn(21, 35, 19)
    x = drawn(*(y.shape[axis] for axis in perm))
    row = drawn(x.shape[-1])
    found = function(x, y, row).numpy()
    np.testing.assert_array_equal(found, x * np.float32(2) + y.transpose(perm) - row)


def test_symbolic_extents_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    @ptir.jit(dynamic={"x": {0: "N"}, "y": {1: "N"}})
    def function(x: ptir.Tensor, y: ptir.Tensor) -> ptir.Tensor:
        return ptir.exp(x * 0.01) * y.T

    for shape in [(5, 40), (333, 40)]:
        x, y = drawn(*shape), drawn(*shape[::-1])
        found: list[Any] = []
        for threads in ("1", "2"):
            monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
            found.append(function(x, y).numpy())
        np.testing.assert_array_equal(*found)
        np.testing.assert_allclose(found[0], np.exp(x * np.float32(0.01)) * y.T, rtol=1e-6)


def test_an_element_without_a_result_is_reported() -> None:
    @ptir.jit
    def function(x: ptir.Tensor, y: ptir.Tensor) -> ptir.Tensor:
        return x // y.T

    x, y = drawn(40, 50, dtype="i4"), np.ones((50, 40), np.int32)
    np.testing.assert_array_equal(function(x, y).numpy(), x)
    y[49, 39] = 0
    with pytest.raises(ElementError):
        function(x, y)

"""layer_norm, rms_norm and softmax of rows against float64, at every vector level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.rowwise import norm

Array = NDArray[Any]

GUARD = np.float32(-7.25)
COLUMNS = [1, 7, 16, 33, 64, 131, 768, 1600]
UNIT = 2.0**-24


Ranges = list[tuple[int, int]]


def run(
    text: KernelText, x: Array, *more: Array, ranges: Ranges | None = None, pad: int = 3
) -> Array:
    """The kernel's result for x [rows, columns]; the rows of both have ``pad`` between them."""
    rows, columns = x.shape
    source = np.full((rows, columns + pad), np.nan, np.float32)
    source[:, :columns] = x
    held = np.full((rows + 2, columns + pad), GUARD)
    names = list(more) + [np.full(1, np.nan, np.float32)] * (2 - len(more))
    words = [source.ctypes.data, held[1:].ctypes.data]
    if "softmax" not in text.name:
        words += [a.ctypes.data for a in names]
    block = np.array([*words, columns, columns + pad, columns + pad], np.int64)
    kernel = compile_ir(*text)
    for first, last in [(0, rows)] if ranges is None else ranges:
        kernel(block.ctypes.data, first, last)
    result = held[1:-1, :columns].copy()
    held[1:-1, :columns] = GUARD
    assert (held == GUARD).all(), "written outside the rows"
    return result


def samples(columns: int, seed: int = 0) -> Array:
    """Rows of several sizes, some far from zero."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((6, columns)) * np.array([[1], [1e-3], [300], [1], [0], [5]])
    return (x + np.array([[0], [0], [0], [10], [3], [-40]])).astype(np.float32)


def vector(columns: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(columns).astype(np.float32)


def steps(columns: int) -> float:
    return 8 + columns**0.5 / 4


@pytest.mark.parametrize("weight", [True, False], ids=["weight", ""])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", ""])
def test_layer_norm(level: isa.Isa, weight: bool, bias: bool) -> None:
    text = norm.layer_norm_kernel(level, weight=weight, bias=bias, eps=1e-5)
    for columns in COLUMNS:
        x, g, b = samples(columns), vector(columns, 1), vector(columns, 2)
        found = run(text, x, g, b)
        wide = x.astype(np.float64)
        centred = wide - wide.mean(-1, keepdims=True)
        sigma = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        y = centred / sigma
        # The mean is a rounded number of the size of x: so much of y is lost in cancellation.
        size = np.abs(y) + np.abs(wide).max(-1, keepdims=True) / sigma
        exact, size = (y * g, size * np.abs(g)) if weight else (y, size)
        exact, size = (exact + b, size + np.abs(b)) if bias else (exact, size)
        assert (np.abs(found - exact) <= steps(columns) * UNIT * size).all(), columns


@pytest.mark.parametrize("weight", [True, False], ids=["weight", ""])
def test_rms_norm(level: isa.Isa, weight: bool) -> None:
    text = norm.rms_norm_kernel(level, weight=weight, eps=1e-6)
    for columns in COLUMNS:
        x, g = samples(columns), vector(columns, 1)
        found = run(text, x, g)
        wide = x.astype(np.float64)
        exact = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * (g if weight else 1)
        assert (np.abs(found - exact) <= steps(columns) * UNIT * np.abs(exact)).all(), columns


def test_softmax(level: isa.Isa) -> None:
    text = norm.softmax_kernel(level)
    for columns in COLUMNS:
        x = samples(columns)
        x[1, columns // 2] = -np.inf if columns > 1 else 0.0
        found = run(text, x)
        below = x.astype(np.float64) - x.max(-1, keepdims=True)
        e = np.exp(below)
        exact = e / e.sum(-1, keepdims=True)
        # The difference is rounded before exp: an error of half a place of it each.
        seen = np.where(np.isinf(below), 0.0, -below)
        bound = (steps(columns) + 2 * seen) * UNIT * exact + 2.0**-149
        assert (np.abs(found - exact) <= bound).all(), columns


def test_softmax_without_an_answer(level: isa.Isa) -> None:
    x = np.zeros((4, 21), np.float32)
    x[0], x[1, 20], x[2, 3], x[3, 1:] = -np.inf, np.nan, np.inf, -np.inf
    found = run(norm.softmax_kernel(level), x)
    assert np.isnan(found[:3]).all()
    assert found[3].tolist() == [1.0] + [0.0] * 20


def test_nan_stays_in_its_row(level: isa.Isa) -> None:
    x = samples(37)
    x[2, 36] = np.nan
    for text in (
        norm.layer_norm_kernel(level, weight=False, bias=False),
        norm.softmax_kernel(level),
    ):
        found = run(text, x)
        assert np.isnan(found[2]).all()
        assert np.isfinite(np.delete(found, 2, 0)).all()


def test_like_the_ops(level: isa.Isa) -> None:
    """Two roundings of one number are within the bounds of the tests above, added up."""
    x, g, b = samples(50)[:3], vector(50, 1), vector(50, 2)
    wanted = ptir.layer_norm(ptir.tensor(x), ptir.tensor(g), ptir.tensor(b), eps=1e-3).numpy()
    found = run(norm.layer_norm_kernel(level, eps=1e-3), x, g, b)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)
    wanted = ptir.softmax(ptir.tensor(x)).numpy()
    np.testing.assert_allclose(run(norm.softmax_kernel(level), x), wanted, rtol=5e-5, atol=1e-9)


KERNELS: list[Callable[[isa.Isa], KernelText]] = [
    norm.layer_norm_kernel,
    norm.rms_norm_kernel,
    norm.softmax_kernel,
]


@pytest.mark.parametrize("build", KERNELS)
def test_bits_depend_on_the_row_alone(
    level: isa.Isa, build: Callable[[isa.Isa], KernelText]
) -> None:
    text = build(level)
    for columns in (5, 100, 257):
        x, g, b = samples(columns), vector(columns, 1), vector(columns, 2)
        more = () if "softmax" in text.name else (g, b)
        whole = run(text, x, *more)
        for ranges in ([(3, 6), (0, 3)], [(i, i + 1) for i in range(6)], [(0, 0), (0, 6), (6, 6)]):
            np.testing.assert_array_equal(run(text, x, *more, ranges=ranges, pad=0), whole)
        alone = np.concatenate([run(text, row[None], *more, pad=9) for row in x])
        np.testing.assert_array_equal(alone, whole)


@pytest.mark.parametrize("build", KERNELS)
def test_in_place(level: isa.Isa, build: Callable[[isa.Isa], KernelText]) -> None:
    text = build(level)
    x, g, b = samples(45), vector(45, 1), vector(45, 2)
    more = () if "softmax" in text.name else (g, b)
    wanted = run(text, x, *more)
    y = x.copy()
    words = [y.ctypes.data, y.ctypes.data, *(a.ctypes.data for a in more), 45, 45, 45]
    compile_ir(*text)(np.array(words, np.int64).ctypes.data, 0, len(y))
    np.testing.assert_array_equal(y, wanted)


def test_a_row_without_elements(level: isa.Isa) -> None:
    for build in KERNELS:
        text = build(level)
        more = () if "softmax" in text.name else (vector(1, 0), vector(1, 0))
        assert run(text, np.zeros((2, 0), np.float32), *more).size == 0

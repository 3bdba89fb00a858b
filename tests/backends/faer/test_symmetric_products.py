"""Products A·Aᵀ, which are computed by halves: the bits are those of the whole product."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir

Array = np.ndarray[Any, Any]


def left(a: Any, b: Any) -> Any:
    return a @ b.mT


def right(a: Any, b: Any) -> Any:
    return a.mT @ b


def halves(function: Any, x: Array) -> Any:
    return ptir.jit(lambda a: function(a, a), backend="faer")(x).numpy()


def whole(function: Any, x: Array) -> Any:
    return ptir.jit(function, backend="faer")(x, x.copy()).numpy()


@pytest.mark.parametrize("function", [left, right])
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "si8", "si64", "cf32"])
def test_bits_are_those_of_the_whole_product(function: Any, dtype: str) -> None:
    random = np.random.default_rng(1)
    for shape in ((64, 70), (65, 64), (130, 129), (3, 67, 80)):
        numbers = random.standard_normal(shape) * 4
        x = ptir.tensor(numbers.astype(np.float32)).astype(dtype).numpy()
        found = halves(function, x)
        np.testing.assert_array_equal(found, whole(function, x))


def test_a_depth_of_several_blocks_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(2).standard_normal((150, 5000)).astype(np.float32)
    expected = whole(left, x)
    for threads in ("1", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        np.testing.assert_array_equal(halves(left, x), expected)


@pytest.mark.parametrize("dtype", ["f16", "f64", "si32"])
def test_squares_of_any_size(dtype: str) -> None:
    """Whether x·x is x·xᵀ depends on whether the extent is 1."""

    def square(x: Any) -> Any:
        return x @ x

    jitted: Any = ptir.jit(square, dynamic={"x": {1: "S", 2: "S"}}, backend="faer")
    for extent in (70, 3, 1):
        x = ptir.tensor(np.ones((4, extent, extent)) * 2).astype(dtype).numpy()
        np.testing.assert_array_equal(jitted(x).numpy(), np.full_like(x, 4 * extent))
    assert jitted.cache_info().misses == 1


def test_two_parts_of_one_array_are_no_symmetric_product() -> None:
    x = np.random.default_rng(3).standard_normal((140, 80)).astype(np.float32)
    found = ptir.jit(lambda a: a[:70] @ a[70:].T, backend="faer")(x).numpy()
    np.testing.assert_array_equal(found, whole(left, x)[:70, 70:])


def test_the_epilogue_of_a_product_need_not_be_symmetric() -> None:
    x = np.random.default_rng(4).standard_normal((80, 90)).astype(np.float32)
    bias = np.arange(80, dtype=np.float32)
    function = ptir.jit(lambda a, c: a @ a.T + c, backend="faer")
    np.testing.assert_array_equal(function(x, bias).numpy(), whole(left, x) + bias)


def test_symbolic_sizes() -> None:
    function = ptir.jit(lambda a: a.T @ a, backend="faer", dynamic={"a": {0: "N", 1: "M"}})
    for shape in ((5, 3), (100, 90), (7, 200)):
        x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(function(x).numpy(), whole(right, x))

"""sort, top_k and segment reductions at run-time sizes, and with unused results."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ElementError
from gptrs.ir.tensor import Tensor

every_backend = pytest.mark.parametrize("kind", ["faer", "reference"])
X = np.array([[3.0, math.nan, -1.0, 3.0], [0.0, -0.0, math.inf, -math.inf]], np.float32)


@every_backend
def test_either_result_alone(kind: str) -> None:
    values, order = ptir.ops.sort(ptir.tensor(X))
    with ptir.backend(kind):
        first: Any = ptir.jit(lambda x: ptir.ops.sort(x * 1.0)[0] + 1.0)
        np.testing.assert_array_equal(first(X).numpy(), values.numpy() + 1)
        second: Any = ptir.jit(lambda x: ptir.ops.sort(x * 1.0)[1] * 2)
        np.testing.assert_array_equal(second(X).numpy(), order.numpy() * 2)


@every_backend
def test_both_results_between_other_ops(kind: str) -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        wide = x * 2.0
        values, order = ptir.top_k(wide, k=2)
        again = ptir.gather(wide, order, axis=1)
        return values - again, values.sum(axis=0), order

    def check(found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
        for each, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(each.numpy(), right.numpy())

    expected = function(ptir.tensor(X))
    assert expected[2].tolist() == [[1, 0], [2, 0]]
    with ptir.backend(kind):
        check(ptir.jit(function)(X), expected)  # pyright: ignore[reportArgumentType]
        dynamic: Any = ptir.jit(dynamic={"x": {0: "S"}})(function)
        for rows in (1, 2):
            check(dynamic(X[:rows]), function(ptir.tensor(X[:rows])))


@every_backend
def test_more_than_a_symbolic_extent_has(kind: str) -> None:
    function: Any = ptir.jit(dynamic={"x": {0: "S"}})(lambda x: ptir.top_k(x, k=3)[1])
    with ptir.backend(kind):
        assert function(np.array([1, 5, 5, 2])).tolist() == [1, 2, 3]
        with pytest.raises(ElementError, match="k is 3, but axis 0 has extent 2"):
            function(np.array([1, 5]))


@every_backend
def test_as_many_as_a_symbol_says(kind: str) -> None:
    def function(x: Tensor, segments: Tensor) -> tuple[Tensor, Tensor]:
        half = x.shape[0] // 2
        return ptir.top_k(x, k=half)[0], ptir.segment_reduce(x, segments, count=half)

    compiled: Any = ptir.jit(dynamic={"x": {0: "S"}, "segments": {0: "S"}})(function)
    with ptir.backend(kind):
        for size in (2, 4, 7):
            x = np.arange(size)
            best, sums = compiled(x, x % (size // 2))
            assert best.tolist() == x[::-1][: size // 2].tolist()
            assert sums.tolist() == [x[s :: size // 2].sum() for s in range(size // 2)]


@every_backend
def test_a_segment_out_of_range_writes_nothing(kind: str) -> None:
    function: Any = ptir.jit(lambda x, segments: ptir.segment_reduce(x, segments, count=2))
    with ptir.backend(kind):
        for wrong in (2, -1, 2**62):
            with pytest.raises(ElementError, match=f"segment {wrong} is out of range for 2"):
                function(np.ones(3, np.float32), np.array([0, wrong, 1]))
        with pytest.raises(ElementError, match=f"segment {2**64 - 1} is out of range"):
            function(np.ones(2, np.float32), np.array([0, 2**64 - 1], np.uint64))


def test_sums_of_half_floats_are_rounded_once() -> None:
    """1 + 2⁻¹¹ is half way to the next f16, and even is 1."""
    x = np.array([1.0, *[2.0**-11] * 4], np.float16)
    segments = np.zeros(5, np.int32)
    total = ptir.segment_reduce(ptir.tensor(x), ptir.tensor(segments), count=1)
    assert total.tolist() == [1 + 2.0**-9]

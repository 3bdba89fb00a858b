"""Fused loops that fail at elements: they are native, and the error is that of eager mode."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ElementError, PtirError

ARRAY = np.arange(1, 100_001, dtype=np.int32)
ZERO = np.where(np.arange(100_000) == 77_777, 0, ARRAY).astype(np.int32)


def steps(function: Any, *arguments: Any) -> list[str]:
    return [step.kind for step in function.explain(*arguments).report.steps]


@pytest.mark.parametrize(
    ("compute", "divisor", "problem"),
    [
        (lambda x, y: x // y + 1, ZERO, "integer division by zero"),
        (lambda x, y: x % y, ZERO, "integer division by zero"),
        (lambda x, y: x**y, ZERO - 1, "negative integer power"),
        (lambda x, y: x << y, ZERO - 1, "negative number of bits"),
        (lambda x, y: (x // y).reshape(100, 1000).sum(axis=1), ZERO, "integer division by zero"),
        (lambda x, y: (x // y).reshape(100, 1000).sum(axis=0), ZERO, "integer division by zero"),
        (lambda x, y: (x % y).sum() // y, ZERO, "integer division by zero"),
    ],
)
def test_a_loop_fails_where_an_element_has_no_result(
    compute: Callable[[Any, Any], Any], divisor: Any, problem: str
) -> None:
    function = ptir.jit(compute)
    assert set(steps(function, ARRAY, ARRAY)) <= {"region", "view"}
    good: Any = function(ARRAY, np.ones_like(ARRAY))
    with ptir.eager():
        expected: Any = function(ARRAY, np.ones_like(ARRAY))
    np.testing.assert_array_equal(good.numpy(), expected.numpy())
    with pytest.raises(ElementError, match=problem) as found:
        function(ARRAY, divisor)
    assert found.value.where is not None
    assert found.value.where.file == __file__
    again: Any = function(ARRAY, np.ones_like(ARRAY))
    np.testing.assert_array_equal(again.numpy(), expected.numpy())


def test_no_element_fails_in_nothing() -> None:
    function = ptir.jit(lambda x, y: x // y)
    nothing = np.zeros(0, np.int32)
    assert function(nothing, nothing).shape == (0,)
    with pytest.raises(ElementError):  # the number is 0, for as many elements as there are
        ptir.jit(lambda x: x // 0)(nothing)


def test_a_donated_argument_stays_where_a_loop_fails() -> None:
    @ptir.jit(donate=("state",))
    def update(state: Any, x: Any, y: Any) -> Any:
        return ptir.dynamic_update_slice(state, x // y, (0,))

    state = ptir.tensor(np.arange(100_001, dtype=np.int32))
    memory = state.numpy()
    with pytest.raises(ElementError, match="division by zero"):
        update(state, ARRAY, ZERO)
    np.testing.assert_array_equal(memory, np.arange(100_001))


def test_a_loop_of_control_flow_ends_where_an_element_has_no_result() -> None:
    @ptir.jit
    def gcd(a: Any, b: Any, least: Any) -> Any:
        return ptir.while_loop(lambda s: s[1] > least, lambda s: (s[1], s[0] % s[1]), (a, b))[0]

    assert steps(gcd, *map(np.int64, (12, 18, 0))) == ["loop"]
    assert gcd(np.int64(1071), np.int64(462), np.int64(0)).item() == 21
    ended: list[object] = []

    def run() -> None:
        try:
            gcd(np.int64(1071), np.int64(462), np.int64(-1))
        except PtirError as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert len(ended) == 1
    assert isinstance(ended[0], ElementError)


def test_windows_have_the_error_of_the_op() -> None:
    function = ptir.jit(dynamic={"x": {1: "S"}})(
        lambda x: ptir.reduce_window(x, reduce="max", window=(4,))
    )
    assert "reference" not in steps(function, np.zeros((2, 7, 3)))
    with pytest.raises(ElementError, match="axis 1: a window that reaches over 4"):
        function(np.zeros((2, 3, 3)))


def test_what_all_elements_have_in_common_fails_before_them() -> None:
    @ptir.jit(dynamic={"x": {0: "N"}})
    def rest(x: Any, y: Any) -> Any:
        return ptir.remainder(x ^ x, ptir.broadcast_to(y, shape=x.shape))

    x = np.array([3, 4, 5])
    assert rest(x, np.array([7])).tolist() == [0, 0, 0]
    with pytest.raises(ElementError, match="integer division by zero"):
        rest(x, np.array([0]))
    assert rest(x[:0], np.array([0])).tolist() == []

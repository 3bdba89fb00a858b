"""Loops as native steps of the plan that contains them (`gptrs.backends.faer.native_loops`)."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.backends.faer import control_steps, loop_products
from gptrs.backends.faer.plan import FaerPlan
from gptrs.errors import ElementError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from tests.support.loops import (
    FUNCTIONS,
    RNG,
    XS,
    H,
    W,
    backwards,
    counted,
    leaves,
    recurrence,
    same_bits,
    step_by_step,
    swapped,
    unchanged_and_passed_on,
    until_small,
    while_flag,
)
from tests.support.native_calls import NEEDS_NATIVE_CALLS, is_native

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def regions_are_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are enough for a loop that is no kernel of its own."""
    monkeypatch.setattr(loop_products, "MOST_OPERATIONS", 0)
    monkeypatch.setattr(control_steps, "_MOST_WORK", 0)


@pytest.fixture
def python_loops(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The loops that Python drives."""
    driven: list[object] = []
    repeat = FaerPlan.repeat

    def repeating(self: FaerPlan, *given: Any) -> Any:
        driven.append(self)
        return repeat(self, *given)

    monkeypatch.setattr(FaerPlan, "repeat", repeating)
    return driven


def with_weight(function: Function, w: Array = W) -> Function:
    """``function`` of a weight that is packed once."""
    weight = Parameter(w, name="w")
    return lambda h, xs: function(h, xs, weight)


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f is not while_flag])
def test_results(function: Function, python_loops: list[object]) -> None:
    expected = step_by_step(function, H, XS, W)
    made = ptir.jit(with_weight(function))
    for _ in range(3):
        same_bits(leaves(made(H, XS)), expected)
    assert not python_loops
    assert "python" not in str(made.explain(H, XS)).lower()


@NEEDS_NATIVE_CALLS
def test_calls_are_native() -> None:
    made = ptir.jit(with_weight(recurrence))
    for _ in range(3):
        made(H, XS)
    assert is_native(made, H, XS)


def test_other_drivers_leave_loops_to_python(
    python_loops: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_DRIVER", "numba")
    same_bits(leaves(ptir.jit(with_weight(counted))(H, XS)), step_by_step(counted, H, XS, W))
    assert python_loops


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f is not until_small])
def test_other_arrays(function: Function) -> None:
    """Calls bring arrays elsewhere and get results of their own."""
    made, results, expected = ptir.jit(with_weight(function)), list[Any](), list[Any]()
    for n in range(4):
        h, xs = (a * np.float32(1 + n / 8) for a in (H, XS))
        expected.append(step_by_step(function, h, xs, W))
        results.append(leaves(made(h[:, ::-1][:, ::-1] if n % 2 else h, np.asfortranarray(xs))))
    for found, wanted in zip(results, expected, strict=True):
        same_bits(found, wanted)


@pytest.mark.parametrize("function", [recurrence, swapped, counted])
def test_threads(function: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    w = (0.05 * RNG.standard_normal((160, 160))).astype(np.float32)
    h = RNG.standard_normal((70, 160)).astype(np.float32)
    xs = RNG.standard_normal((3, 70, 160)).astype(np.float32)
    expected = step_by_step(function, h, xs, w)
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        same_bits(leaves(ptir.jit(with_weight(function, w))(h, xs)), expected)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 40])
@pytest.mark.parametrize("function", [recurrence, backwards, swapped, unchanged_and_passed_on])
def test_lengths(function: Function, length: int) -> None:
    xs = RNG.standard_normal((length, 9, 12)).astype(np.float32)
    same_bits(leaves(ptir.jit(with_weight(function))(H, xs)), step_by_step(function, H, xs, W))


def blocks(x: Tensor, steps: int) -> Tensor:
    """Each step writes a block, and leaves the edges."""

    def body(x: Tensor, _: Any) -> Any:
        inner = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * 0.25
        return ptir.dynamic_update_slice(x, inner, (1, 1)), None

    return ptir.scan(body, x, length=steps)[0]


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_blocks_of_the_state(steps: int) -> None:
    x = RNG.standard_normal((17, 29)).astype(np.float32)
    found = leaves(ptir.jit(lambda x: blocks(x, steps))(x))
    for _ in range(steps):
        inner = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * np.float32(0.25)
        x = x.copy()
        x[1:-1, 1:-1] = inner
    np.testing.assert_array_equal(found, [x])


def test_symbolic_sizes() -> None:
    weight = Parameter(W, name="w")

    @ptir.jit(dynamic={"h": {0: "N"}, "xs": {0: "T", 1: "N"}})
    def made(h: Tensor, xs: Tensor) -> Any:
        return recurrence(h, xs, weight)

    for count, rows in ((3, 2), (6, 30), (1, 1)):
        h = RNG.standard_normal((rows, 12)).astype(np.float32)
        xs = RNG.standard_normal((count, rows, 12)).astype(np.float32)
        same_bits(leaves(made(h, xs)), step_by_step(recurrence, h, xs, W))


def test_results_among_other_steps() -> None:
    """What a loop reads is computed before it, and what it returns is read after it."""

    def function(h: Tensor, xs: Tensor, w: Any) -> Any:
        last, ys = recurrence(h * 2 - 1, xs + 1, w)
        return ptir.reduce_sum(ys, axes=0) + last @ w, last

    made = ptir.jit(with_weight(function))
    same_bits(leaves(made(H, XS)), step_by_step(function, H, XS, W))


def test_threads_call_at_once() -> None:
    made = ptir.jit(with_weight(recurrence))
    xs = RNG.standard_normal((400, 9, 12)).astype(np.float32)
    states = [(H * (1 + n / 8)).astype(np.float32) for n in range(8)]
    expected = [step_by_step(recurrence, h, xs, W) for h in states]
    made(H, xs)
    with ThreadPoolExecutor(4) as pool:
        many = pool.map(lambda h: [leaves(made(h, xs)) for _ in range(10)], states)
        for found, wanted in zip(many, expected, strict=True):
            for arrays in found:
                same_bits(arrays, wanted)


@pytest.mark.parametrize("reverse", [False, True])
def test_an_iteration_fails(reverse: bool) -> None:
    """The error is that of the iteration, and the next call is right."""

    @ptir.jit
    def function(h: Tensor, rows: Tensor) -> Any:
        def body(h: Tensor, row: Tensor) -> Any:
            return h * 2 + ptir.take(ptir.tensor(H), row, axis=0), None

        return ptir.scan(body, h, rows, reverse=reverse)

    rows = np.zeros((20, 9), np.int32)
    good = leaves(function(H, rows))
    for _ in range(3):
        rows[13, 4] = 77
        with pytest.raises(ElementError, match="77"):
            function(H, rows)
        rows[13, 4] = 0
        same_bits(leaves(function(H, rows)), good)


def test_a_failure_before_a_while_loop_whose_condition_does_not_hold() -> None:
    """What an earlier call left in the status of the body is not read."""

    @ptir.jit
    def function(h: Tensor, rows: Tensor, count: Tensor) -> Any:
        def body(state: Any) -> Any:
            n, h = state
            return n + 1, h * 2 + ptir.take(ptir.tensor(H), rows, axis=0)

        return ptir.while_loop(lambda state: state[0] < count, body, (ptir.tensor(0), h))[1]

    with pytest.raises(ElementError, match="77"):
        function(H, np.full(9, 77, np.int32), np.int32(1))
    same_bits(leaves(function(H, np.full(9, 77, np.int32), np.int32(0))), [H])


def test_a_signal_ends_it(python_loops: list[object]) -> None:
    @ptir.jit
    def endless(h: Tensor) -> Any:
        return ptir.while_loop(lambda a: ptir.reduce_max(a) < 2, lambda a: ptir.tanh(a) * 0.5, h)

    def interrupt(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(TimeoutError):
                endless(H * 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not python_loops


def test_profiles_have_the_time_of_a_loop_without_that_of_its_steps() -> None:
    xs = RNG.standard_normal((50, 9, 12)).astype(np.float32)
    made = ptir.jit(with_weight(recurrence))
    made(H, xs)
    with gptrs.profile() as found:
        made(H, xs)
    (loop,) = [step for step in found.steps if step.kind == "control"]
    inner = [step for step in found.steps if step is not loop]
    assert loop.calls == 1
    assert max(step.calls for step in inner) == 50
    (span,) = [span for span in found.spans if span.step is loop]
    assert 0 < loop.ns < span.end - span.start
    assert found.steps_ms <= found.ms

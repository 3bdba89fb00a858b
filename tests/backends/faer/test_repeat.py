"""Loops over large arrays: the driver repeats the steps of the body.

Where no array has to be packed in each call, that is a step of the plan: see `test_loop_steps`."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import gc
import signal
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import loop_products, repeat
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
    cache,
    counted,
    leaves,
    nested,
    recurrence,
    same_bits,
    step_by_step,
    swapped,
    unchanged_and_passed_on,
    while_flag,
)

RUNS = {f: 1 for f in FUNCTIONS if f is not while_flag} | {nested: 1 + len(XS)}
"""How often Python runs a plan; the condition of `while_flag` has no step to repeat."""


@pytest.fixture(autouse=True)
def products_are_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are enough for a loop that the driver repeats."""
    monkeypatch.setattr(loop_products, "MOST_OPERATIONS", 0)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the runs of plans."""
    counted, run = [0], FaerPlan.run

    def counting(self: FaerPlan, *given: Any) -> Any:
        counted[0] += 1
        return run(self, *given)

    monkeypatch.setattr(FaerPlan, "run", counting)
    return counted


@pytest.mark.parametrize("driver", ["pool", "numba"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_results(
    function: Callable[..., Any], driver: str, runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_DRIVER", driver)
    made = ptir.jit(function)
    found = leaves(made(H, XS, W))
    if function in RUNS:
        assert runs == [1 if driver == "pool" else RUNS[function]]
    same_bits(found, step_by_step(function, H, XS, W))
    same_bits(leaves(made(H, XS, W)), found)
    with ptir.eager():
        expected = leaves(function(*map(ptir.tensor, (H, XS, W))))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", [recurrence, swapped, counted])
def test_threads(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    w = (0.05 * RNG.standard_normal((160, 160))).astype(np.float32)
    h = RNG.standard_normal((70, 160)).astype(np.float32)
    xs = RNG.standard_normal((3, 70, 160)).astype(np.float32)
    expected = step_by_step(function, h, xs, w)
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        same_bits(leaves(ptir.jit(function)(h, xs, w)), expected)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 40])
@pytest.mark.parametrize("function", [recurrence, backwards, swapped, unchanged_and_passed_on])
def test_lengths(function: Callable[..., Any], length: int, runs: list[int]) -> None:
    xs = RNG.standard_normal((length, 9, 12)).astype(np.float32)
    found = leaves(ptir.jit(function)(H, xs, W))
    assert runs == [1]
    same_bits(found, step_by_step(function, H, xs, W))


def test_symbolic_sizes(runs: list[int]) -> None:
    made = ptir.jit(dynamic={"h": {0: "N"}, "xs": {0: "T", 1: "N"}})(recurrence)
    for count, rows in ((3, 2), (6, 30), (1, 1)):
        h = RNG.standard_normal((rows, 12)).astype(np.float32)
        xs = RNG.standard_normal((count, rows, 12)).astype(np.float32)
        same_bits(leaves(made(h, xs, W)), step_by_step(recurrence, h, xs, W))


def test_parameters_and_views() -> None:
    """A weight that is packed once, and arrays that do not lie as kernels read them."""
    w, xs = Parameter(W, name="w"), np.asfortranarray(XS)

    @ptir.jit
    def function(h: Tensor, xs: Tensor) -> Any:
        return recurrence(h, xs, w)

    same_bits(leaves(function(H[::-1], xs)), step_by_step(recurrence, H[::-1], XS, W))


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The loops that are prepared."""
    made: list[Any] = []
    prepare = repeat._prepared  # pyright: ignore[reportPrivateUsage]

    def preparing(*given: Any) -> Any:
        loop = prepare(*given)
        made.append(None if loop is None else weakref.ref(loop))
        return loop

    monkeypatch.setattr(repeat, "_prepared", preparing)
    return made


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f is not nested])
def test_a_prepared_loop_serves_other_arrays(
    function: Callable[..., Any], prepared: list[Any]
) -> None:
    """Later calls bring arrays elsewhere, a larger arena, other weights; results stay theirs."""
    made, results, expected = ptir.jit(function), list[list[Array]](), list[list[Array]]()
    larger = ptir.jit(recurrence)
    for n in range(4):
        h, xs, w = (a * (1 + n / 8) for a in (H, XS, W))
        expected.append(step_by_step(function, h, xs, w))
        results.append(leaves(made(h[:, ::-1][:, ::-1] if n % 2 else h, xs, np.asfortranarray(w))))
        larger(*(np.tile(a, 4) for a in (H, XS)), np.tile(W, (4, 4)))
    if function in RUNS:
        assert len(prepared) == (1 if function is cache else 2)  # one is that of `larger`
    for found, wanted in zip(results, expected, strict=True):
        same_bits(found, wanted)


def test_threads_call_at_once(prepared: list[Any]) -> None:
    """Each call has a prepared loop for itself."""
    made = ptir.jit(recurrence)
    xs = RNG.standard_normal((400, 9, 12)).astype(np.float32)
    scales = [1 + n / 8 for n in range(8)]
    expected = [step_by_step(recurrence, H * s, xs, W * s) for s in scales]

    def call(scale: float) -> list[list[Array]]:
        h, w = (H * scale).astype(np.float32), (W * scale).astype(np.float32)
        return [leaves(made(h, xs, w)) for _ in range(30)]

    call(1)
    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(call, scales), expected, strict=True):
            for arrays in found:
                same_bits(arrays, wanted)
    assert len(prepared) <= 4


def test_prepared_loops_are_few_and_end_with_their_plan(prepared: list[Any]) -> None:
    made = ptir.jit(dynamic={"h": {0: "N"}, "xs": {0: "T", 1: "N"}})(recurrence)
    for length in range(40):
        made(H, np.zeros((length + 1, 9, 12), np.float32), W)
    assert len(prepared) == 40
    gc.collect()
    assert sum(loop() is not None for loop in prepared) == repeat._KEPT  # pyright: ignore[reportPrivateUsage]
    del made
    gc.collect()
    assert not any(loop() for loop in prepared)


def test_arguments_stay_as_they_are() -> None:
    h, xs = H.copy(), XS.copy()
    for function in FUNCTIONS:
        ptir.jit(function)(h, xs, W)
        assert h.tobytes() == H.tobytes()
        assert xs.tobytes() == XS.tobytes()


@pytest.mark.parametrize("reverse", [False, True])
def test_an_iteration_fails(reverse: bool) -> None:
    """The error is that of the iteration, and the next call is right."""

    @ptir.jit
    def function(h: Tensor, rows: Tensor) -> Any:
        def body(h: Tensor, row: Tensor) -> Any:
            return h @ W + ptir.take(ptir.tensor(H), row, axis=0), None

        return ptir.scan(body, h, rows, reverse=reverse)

    rows = np.zeros((20, 9), np.int32)
    good = leaves(function(H, rows))
    rows[13, 4] = 77
    with pytest.raises(ElementError, match="77"):
        function(H, rows)
    rows[13, 4] = 0
    same_bits(leaves(function(H, rows)), good)


def test_a_signal_ends_it() -> None:
    """Python looks for signals between batches, however long a loop is."""

    @ptir.jit
    def endless(h: Tensor) -> Any:
        return ptir.while_loop(lambda a: ptir.reduce_max(a) < 2, lambda a: ptir.tanh(a @ W), h)

    def interrupt(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError):
            endless(H * 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

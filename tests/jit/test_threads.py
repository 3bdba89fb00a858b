"""Jitted functions called by several threads give the results of sequential calls."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.parameter import Parameter
from gptrs.nn.module import Module

THREADS, CALLS = 4, 200
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Layer(Module):
    weight: Parameter

    def __call__(self, x: Any) -> Any:
        return ptir.tanh(x * self.weight)


def together(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results of ``jobs``, begun at the same time."""
    barrier = Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        barrier.wait(timeout=30)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [f.result(timeout=60) for f in [pool.submit(run, job) for job in jobs]]


def test_one_function_cold() -> None:
    function = ptir.jit(lambda x, s: ptir.softmax(x * s))
    plain = ptir.jit(lambda x, s: ptir.softmax(x * s))
    expected = [plain(X, float(i)).numpy() for i in range(CALLS)]

    def job() -> list[Any]:
        return [function(X, float(i)).numpy() for i in range(CALLS)]

    for results in together([job] * THREADS):
        np.testing.assert_array_equal(results, expected)
    assert function.cache_info()[:2] == (THREADS * CALLS - 1, 1)


def test_many_shapes_and_functions() -> None:
    functions = [
        ptir.jit(static_argnames="n")(lambda x, n=n: (x @ x.T) * float(n)) for n in range(3)
    ]

    def job(offset: int) -> list[Any]:
        found: list[Any] = []
        for i in range(CALLS):
            function = functions[(i + offset) % 3]
            rows = 1 + (i * 7 + offset) % 5
            found.append((rows, (i + offset) % 3, function(np.ones((rows, 2), np.float32)).numpy()))
        return found

    for results in together([lambda k=k: job(k) for k in range(THREADS)]):
        for rows, n, result in results:
            np.testing.assert_array_equal(result, np.full((rows, rows), 2.0 * n))
    assert [f.cache_info().misses for f in functions] == [5, 5, 5]


def test_models_that_share_a_program() -> None:
    function = ptir.jit(lambda m, x: m(x))

    def job(k: int) -> bool:
        layer = Layer(Parameter(np.full(3, k, np.float32), f"w{k}"))
        expected = np.tanh(X * np.float32(k))
        return all(np.allclose(function(layer, X).numpy(), expected) for _ in range(CALLS))

    assert together([lambda k=k: job(k) for k in range(THREADS)]) == [True] * THREADS
    assert function.cache_info().misses == 1


@pytest.mark.slow
def test_a_bounded_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_CACHE_SIZE", "2")
    function = ptir.jit(lambda x: x + 1)
    for rows in (1, 2):
        function(np.ones(rows, np.float32))
    with pytest.warns(UserWarning, match="drops the least"):
        function(np.ones(3, np.float32))

    def job() -> bool:
        sizes = [1 + i % 4 for i in range(40)]
        return all(function(np.ones(n, np.float32)).shape == (n,) for n in sizes)

    assert together([job] * THREADS) == [True] * THREADS
    assert function.cache_info().currsize == 2


def test_one_thread_eager_while_another_traces() -> None:
    inside, done = Event(), Event()

    @ptir.jit
    def slow(x: Any) -> Any:
        inside.set()
        assert done.wait(30)
        return x + x

    def eager() -> Any:
        assert inside.wait(30)
        try:
            with ptir.eager():
                y = ptir.tensor(X) * 2
                return OTHER(y).numpy(), bool(y[0, 0] == 0)
        finally:
            done.set()

    traced, (result, truth) = together([lambda: slow(X).numpy(), eager])
    np.testing.assert_array_equal(traced, X + X)
    np.testing.assert_array_equal(result, X * 2 - 1)
    assert truth is True
    assert OTHER.cache_info().misses == 0


OTHER = ptir.jit(lambda x: x - 1)


def test_a_known_program_runs_while_another_is_traced() -> None:
    inside, done = Event(), Event()

    @ptir.jit
    def function(x: Any) -> Any:
        if x.shape[0] == 3:
            inside.set()
            assert done.wait(30)
        return x + 1

    def known() -> Any:
        assert inside.wait(30)
        try:
            return function(X).numpy()
        finally:
            done.set()

    function(X)
    _, result = together([lambda: function(np.ones(3, np.float32)), known])
    np.testing.assert_array_equal(result, X + 1)


def test_an_exception_while_tracing() -> None:
    class Switch:
        fail = True

    switch = Switch()

    def body(x: Any) -> Any:
        if switch.fail:
            raise ValueError("no")
        return x * 3

    function = ptir.jit(body)

    def failing() -> int:
        failures = 0
        for _ in range(20):
            try:
                function(X)
            except ValueError:
                failures += 1
        return failures

    assert together([failing] * THREADS) == [20] * THREADS
    assert function.cache_info().currsize == 0
    switch.fail = False
    for result in together([lambda: function(X).numpy()] * THREADS):
        np.testing.assert_array_equal(result, X * 3)
    assert function.cache_info().misses == 1


def test_a_donated_tensor_is_taken_once() -> None:
    function = ptir.jit(donate="t")(lambda t: t + 1)

    def job() -> Any:
        tensor = ptir.tensor(X.copy())
        for _ in range(50):
            tensor = function(tensor)
        return tensor.numpy()

    for result in together([job] * THREADS):
        np.testing.assert_array_equal(result, X + 50)

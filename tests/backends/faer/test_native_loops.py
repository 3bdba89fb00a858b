"""Branches and loops over small arrays are one kernel, with the results of the reference."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir


def recurrence(xs: Any) -> Any:
    return ptir.scan(lambda s, x: (s * 3 + x, s), xs[0] * 0, xs)


def backwards(xs: Any) -> Any:
    return ptir.scan(lambda s, x: (x - s, s + x), xs[0] * 0, xs, reverse=True)


def swapped(xs: Any) -> Any:
    return ptir.scan(lambda s, x: ((s[1], s[0]), s[0]), (xs[0], xs[-1]), xs)


def nested(xs: Any) -> Any:
    def body(total: Any, x: Any) -> Any:
        _, inner = ptir.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x), (0, total))
        chosen = ptir.cond((x > 1).reshape(-1)[0], lambda: inner + x, lambda: inner - x)
        return chosen, ptir.scan(lambda s, _: (s + x, s), x, length=2)[1]

    return ptir.scan(body, xs[0] * 0, xs)


def constant(xs: Any) -> Any:
    return ptir.scan(lambda s, x: (s, x), xs[0], xs)


LOOPS: list[Callable[..., Any]] = [recurrence, backwards, swapped, nested, constant]


def _results(loop: Callable[..., Any], backend: str, xs: Any) -> list[Any]:
    function: Any = ptir.jit(backend=backend)(loop)
    last, ys = function(xs)
    if backend == "faer":
        kinds = [step.kind for step in function.explain(xs).report.steps]
        assert "loop" in kinds
        assert "control" not in kinds
    last = last if isinstance(last, tuple) else (last,)
    return [np.asarray(part.numpy()) for part in (*last, ys)]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
def test_the_results_are_those_of_the_reference(loop: Callable[..., Any], dtype: str) -> None:
    for shape in ((5,), (4, 3)):
        xs = (np.arange(np.prod(shape)).reshape(shape) % 4).astype(dtype)
        pairs = zip(_results(loop, "faer", xs), _results(loop, "reference", xs), strict=True)
        for found, expected in pairs:  # whole numbers: exact in every dtype
            np.testing.assert_array_equal(found, expected)


def test_not_a_number_runs_through() -> None:
    xs = np.array([1, np.nan, np.inf, -0.0], np.float32)
    pairs = zip(
        *(_results(recurrence, backend, xs) for backend in ("faer", "reference")), strict=True
    )
    for found, expected in pairs:
        np.testing.assert_array_equal(found, expected)


def test_any_length_is_one_program_and_may_be_none() -> None:
    function: Any = ptir.jit(dynamic={"xs": {0: "N"}})(
        lambda xs: ptir.scan(lambda s, x: (s + x, s), 0.0, xs)
    )
    for length in (1, 7, 5000):
        last, ys = function(np.ones(length, np.float32))
        assert last.item() == length
        np.testing.assert_array_equal(ys.numpy(), np.arange(length))
    assert function.cache_info().misses == 1
    none: Any = ptir.jit(lambda xs: ptir.scan(lambda s, x: (s + x, s), 2.0, xs))
    last, ys = none(np.ones(0, np.float32))
    assert (last.item(), ys.shape) == (2, (0,))


def test_large_arrays_run_step_by_step() -> None:
    function: Any = ptir.jit(
        lambda xs: ptir.scan(lambda s, x: (s - s.mean() + x, s), xs[0] * 0, xs)
    )
    xs = np.ones((3, 100_000), np.float32)
    assert "control" in [step.kind for step in function.explain(xs).report.steps]
    np.testing.assert_array_equal(function(xs)[0].numpy(), 1)


def test_arrays_of_unknown_size_are_no_state_of_a_kernel() -> None:
    axes: Any = {"x": {0: "S"}, "y": {0: "S"}}

    @ptir.jit(dynamic=axes)
    def choose(p: Any, x: Any, y: Any) -> Any:
        return ptir.cond(p, lambda: x, lambda: y)

    for size in (3, 70):
        x = np.arange(size, dtype=np.float32)
        for p in (True, False):
            found: Any = choose(np.bool_(p), x, -x - 1)
            np.testing.assert_array_equal(found.numpy(), x if p else -x - 1)

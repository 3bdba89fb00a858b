"""Regions of equal loops that one kernel computes, with several results."""

# Traced functions take any array.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer.backend import FaerBackend
from gptrs.backends.faer.joint_regions import MOST_RESULTS
from gptrs.ir.types import Array, bf16, f32
from gptrs.jit.derived import run_of


def spread(x: Any) -> Any:
    """Mean and variance of rows, and the rows by them."""
    mean = x.mean(1, keepdims=True)
    variance = ((x - mean) ** 2).mean(1, keepdims=True)
    return mean, variance, (x - mean) / ptir.sqrt(variance + 1e-5)


def powers(x: Any) -> Any:
    e = ptir.exp(x)
    return e, e * 2.0, e - x


def shares(x: Any, y: Any) -> Any:
    """What each element of a row is of the sum of its exponentials."""
    e = ptir.exp(x + y[:1])
    return e, e / e.sum(1, keepdims=True)


def arguments(count: int, dtype: Any = np.float32) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((37, 150)).astype(dtype) for _ in range(count)]


def kernels(function: Any, *arrays: Array) -> list[str]:
    """The types of the results of each step."""
    jitted: Any = ptir.jit(backend="faer")(function)
    return [step.result for step in jitted.explain(*arrays).report.steps]


def run(function: Any, *arrays: Array, backend: str = "faer") -> list[Any]:
    jitted: Any = ptir.jit(backend=backend)(function)
    found = jitted(*arrays)
    return [each.numpy() for each in (found if isinstance(found, tuple | list) else [found])]


def check(function: Any, *arrays: Array) -> None:
    """Compare with the reference."""
    expected = run(function, *arrays, backend="reference")
    for ours, theirs in zip(run(function, *arrays), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


ROWS, ALL = "f32[37]", "f32[37,150]"


@pytest.mark.parametrize(
    ("function", "results"),
    [
        (lambda x, y: (x + y, x - y), [f"{ALL}, {ALL}"]),
        (lambda x, y: (x.max(1), x.min(1), x.sum(1)), [f"{ROWS}, {ROWS}, {ROWS}"]),
        (lambda x, y: (x - x.mean(1, keepdims=True), x.sum(1)), [f"{ALL}, {ROWS}"]),
        (lambda x, y: powers(x), [f"{ALL}, {ALL}, {ALL}"]),
        (lambda x, y: spread(x), [f"{ALL}, f32[37,1], f32[37,1]"]),
        (lambda x, y: (x + 1.0, y + 1.0), [ALL, ALL]),  # no array in common
        (lambda x, y: (x + y, (x * y).T), [ALL, "f32[150,37]"]),
        (lambda x, y: (x.sum(0), x.sum(1)), ["f32[150]", ROWS]),
        (shares, [ALL, ALL]),  # one of them would be computed twice
    ],
)
def test_equal_loops_over_an_array_are_one(function: Any, results: list[str]) -> None:
    x, y = arguments(2)
    assert kernels(function, x, y) == results
    check(function, x, y)


def test_results_have_the_bits_of_loops_of_their_own() -> None:
    (x,) = arguments(1)
    parts = (lambda x: x.mean(1, keepdims=True), lambda x: spread(x)[2], lambda x: powers(x)[1])
    together = run(lambda x: [part(x) for part in parts], x)
    for part, found in zip(parts, together, strict=True):
        np.testing.assert_array_equal(found, np.asarray(run(part, x)[0]))


def test_chunks_of_full_reductions_are_read_once() -> None:
    x = np.random.default_rng(0).standard_normal((300, 400), np.float32)

    def function(x: Any) -> Any:
        return x.max(), x.min(), x.sum()

    first, *rest = kernels(function, x)
    assert (first.count("["), len(rest)) == (3, 3)
    most, least, total = run(function, x)
    assert (most, least) == (x.max(), x.min())
    np.testing.assert_allclose(total, x.sum(dtype=np.float64), rtol=1e-6)


def test_a_rounded_result_is_read_as_it_is_stored() -> None:
    (x,) = arguments(1)

    def function(x: Any) -> Any:
        e = ptir.cast(ptir.exp(x), dtype=bf16)
        return e, ptir.cast(e, dtype=f32) * 3.0

    e, tripled = run(function, x)
    np.testing.assert_array_equal(tripled, e.astype(np.float32) * 3.0)


def test_loops_have_few_results() -> None:
    (x,) = arguments(1)
    functions = (ptir.exp, ptir.tanh, ptir.sin, ptir.cos, abs, ptir.neg, ptir.floor, ptir.sign)
    assert len(functions) == 2 * MOST_RESULTS
    steps = kernels(lambda x: [*(f(x) for f in functions), ptir.ceil(x)], x)
    assert [step.count("[") for step in steps] == [MOST_RESULTS, MOST_RESULTS, 1]


def test_a_result_that_an_update_overwrites_is_read_before() -> None:
    """The step between two regions of equal loops changes what the second one reads."""
    x, y = arguments(2)

    def function(x: Any, y: Any) -> Any:
        first = x * y
        changed = ptir.dynamic_update_slice(first, y[:2], (0, 0))
        return changed, first + x, changed - x

    check(function, x, y)


def test_bodies_of_driven_loops_have_joint_regions() -> None:
    x, y = arguments(2)

    def function(x: Any, y: Any) -> Any:
        body = lambda state, _: ((state[0] * 0.5 + state[1], state[0] - state[1] * 0.25), None)
        return ptir.scan(body, (x, y), length=3)[0]

    check(function, x, y)


def test_results_that_nobody_reads() -> None:
    """Without passes, a step may have no reader."""
    text = """# ptir.v0.4
from gptrs.ptir import ops as ptir

def f(x: "f32[20,30]"):
    a = ptir.exp(x)
    b = ptir.mul(x, 2.0)
    c = ptir.reduce_sum(x, axes=(1,))
    d = ptir.sub(x, 1.0)
    return d
"""
    program = ptir.parse(text)
    x = np.random.default_rng(1).standard_normal((20, 30)).astype(np.float32)
    (found,) = run_of(program, FaerBackend().plan(program))([x], {})
    np.testing.assert_array_equal(found, x - 1)

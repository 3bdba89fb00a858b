"""The number of kernels of a program, which bounds its compile time."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends import inlining
from gptrs.backends.fusion import fuse


def test_equal_loops_with_other_numbers_share_a_kernel() -> None:
    """And so do many results of one program."""
    f = ptir.jit(backend="faer")(lambda x: [x * float(i) + 0.3 * i for i in range(2, 40)])
    x = np.linspace(-1, 1, 100, dtype=np.float32)
    for i, result in enumerate(f(x), 2):
        np.testing.assert_array_equal(result.numpy(), x * np.float32(i) + np.float32(0.3 * i))
    assert len(f.explain(x).report.kernels) == 1
    g = ptir.jit(backend="faer")(lambda k: [k * i - 7 * i for i in range(2, 40)])
    k = np.arange(50, dtype=np.int32)
    for i, result in enumerate(g(k), 2):
        np.testing.assert_array_equal(result.numpy(), k * i - 7 * i)
    assert len(g.explain(k).report.kernels) == 1


def rounds(count: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        for _ in range(count):
            y = ptir.exp(x * 0.5) + 1.0
            x = y / y.sum(-1, keepdims=True) - x
        return x

    return function


def chain(count: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        for i in range(count):
            x = ptir.tanh(x) * 1.5 if i % 2 else x + 0.25
        return x

    return function


def fan_out(count: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        y = total = ptir.exp(x)
        for i in range(count):
            total = total + ptir.sin(y * (0.01 * i))
        return total

    return function


def stencils(count: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        for _ in range(count):
            x = x[1:] - x[:-1]
        return x

    return function


STEPS = (
    *(ptir.exp, ptir.tanh, ptir.neg, abs, ptir.sin, ptir.floor, ptir.sign, ptir.cos),
    *(lambda v: v * 1.7, lambda v: v + 0.3, lambda v: ptir.maximum(v, 0.1)),
)


def results(count: int) -> Callable[[Any], Any]:
    """No two results come from equal loops."""

    def function(x: Any) -> Any:
        found: list[Any] = []
        rng = np.random.default_rng(0)
        for _ in range(count):
            value = x
            for step in rng.integers(0, len(STEPS), 5):
                value = STEPS[step](value)
            found.append(value)
        return found

    return function


def quotients(count: int) -> Callable[[Any], Any]:
    return lambda x: [ptir.cast(x * 1e4, dtype=ptir.si32) // i for i in range(3, count)]


PROGRAMS: dict[str, tuple[Callable[[int], Callable[[Any], Any]], int]] = {
    "rounds of ops and sums": (rounds, 100),
    "a chain": (chain, 500),
    "a fan-out": (fan_out, 200),
    "stencils": (stencils, 30),
    "many results": (results, 120),
    "many divisors": (quotients, 120),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_few_kernels(name: str) -> None:
    make, count = PROGRAMS[name]
    function = ptir.jit(backend="faer")(make(count))
    x = np.random.default_rng(0).random((40, 3)).astype(np.float32)
    found, expected = function(x), ptir.jit(backend="reference")(make(count))(x)
    for a, b in zip(*(r if isinstance(r, list) else [r] for r in (found, expected)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-4)
    assert len(function.explain(x).report.kernels) <= 64


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_fusion_takes_steps_in_proportion(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the program takes at most some more than twice the expressions that are looked at."""
    make, count = PROGRAMS[name]
    walked = 0
    walk = inlining.walk

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal walked
        parts = walk(*arguments, **options)
        walked += len(parts)
        return parts

    monkeypatch.setattr(inlining, "walk", counted)
    taken: list[float] = []
    for times in (1, 2):
        x = np.zeros((2 * count + 1, 3), np.float32)
        program = ptir.jit(backend="faer")(make(times * count)).lowered(x)
        walked = len(program.body)
        fuse(program)
        taken.append(walked / len(program.body))
    assert taken[1] <= 1.25 * taken[0]

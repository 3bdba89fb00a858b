"""Regions that write their blocks of concats and pads: which do, and that the results are right."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir

RNG = np.random.default_rng(7)
X = RNG.standard_normal((50, 60)).astype(np.float32)
Y = RNG.standard_normal((50, 70)).astype(np.float32)
Function = Callable[..., Any]


def two_regions(x: Any, y: Any) -> Any:
    return ptir.concat((x * 2, y + 1), axis=1)


def an_argument_too(x: Any, y: Any) -> Any:
    return ptir.concat((y, x * 2, y), axis=1)


def edges(x: Any, y: Any) -> Any:
    v = x[1:-1, 1:-1] * 2
    return ptir.concat((v[:, :1], v, v[:, -1:]), axis=1)


def reversed_parts(x: Any, y: Any) -> Any:
    v = x * 3
    return ptir.concat((v[:, 3:0:-1], v, v[:, ::-1], v), axis=1)


def wrapped(x: Any, y: Any) -> Any:
    """Nested concats, which are one: corners are blocks of their own."""
    v = x * 3
    v = ptir.concat((v[-2:], v, v[:2]), axis=0)
    return ptir.concat((v[:, -2:], v, v[:, :2]), axis=1)


def a_middle_axis(x: Any, y: Any) -> Any:
    v = ptir.reshape(x, shape=(5, 10, 60)) * 3
    return ptir.concat((v, v[:, :2]), axis=1)


def sums(x: Any, y: Any) -> Any:
    return ptir.concat((y, x - ptir.reduce_sum(y, axes=1, keepdims=True)), axis=1)


def border(x: Any, y: Any) -> Any:
    return ptir.pad(x * 2, low=(1, 2), high=(3, 0), value=5.0)


def rows_around(x: Any, y: Any) -> Any:
    return ptir.pad(x - 1, low=(2, 0), high=(3, 0), value=-1.0)


def nothing_around(x: Any, y: Any) -> Any:
    return ptir.pad(x - 1, low=(0, 0), high=(0, 0), value=-1.0)


def in_a_loop(x: Any, y: Any) -> Any:
    def step(p: Any, _: Any) -> Any:
        v = (p[1:-1, 2:] + p[1:-1, :-2]) * 0.5
        v = ptir.concat((v[:, :1], v, v[:, -1:]), axis=1)
        return ptir.concat((v[:1], v, v[-1:] * 0.0), axis=0), None

    return ptir.scan(step, x, length=3)[0]


def read_twice(x: Any, y: Any) -> Any:
    v = x * 2
    return ptir.concat((v, y), axis=1) + ptir.reduce_sum(v)


def short_rows(x: Any, y: Any) -> Any:
    return ptir.concat((x[:, :20] * 2, y), axis=1)


def between_elements(x: Any, y: Any) -> Any:
    return ptir.pad(x * 2, low=(0, 1), high=(3, 0), interior=(1, 0), value=5.0)


def part_of_two_rows(x: Any, y: Any) -> Any:
    """In the result these elements are not evenly spaced."""
    v = x * 2
    part = ptir.reshape(ptir.reshape(v, shape=(3000,))[30:80], shape=(50, 1))
    return ptir.concat((part, v), axis=1)


WRITTEN: dict[Function, list[str]] = {
    two_regions: ["region", "region"],
    an_argument_too: ["region", "call"],
    edges: ["region", "call"],
    reversed_parts: ["region", "call"],
    wrapped: ["region", "call"],
    a_middle_axis: ["region", "call"],
    sums: ["region", "call"],
    border: ["region", "call"],
    rows_around: ["region", "call"],
}


def _check(function: Function, monkeypatch: pytest.MonkeyPatch) -> Any:
    compiled = ptir.jit(function)
    found = compiled(X, Y).numpy()
    monkeypatch.setenv("GPTRS_EAGER", "1")
    np.testing.assert_allclose(found, ptir.jit(function)(X, Y).numpy(), rtol=1e-6, atol=1e-5)
    monkeypatch.delenv("GPTRS_EAGER")
    return compiled.explain(X, Y).report


@pytest.mark.parametrize("function", WRITTEN, ids=lambda f: f.__name__)
def test_a_region_writes_its_block(function: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    report = _check(function, monkeypatch)
    assert [step.kind for step in report.steps] == WRITTEN[function]
    assert [step.note for step in report.steps] == ["", "in place"]
    assert str(report.steps[0].result) == str(report.steps[1].result)


@pytest.mark.parametrize(
    "function",
    [read_twice, short_rows, between_elements, part_of_two_rows, nothing_around, in_a_loop],
    ids=lambda f: f.__name__,
)
def test_others_are_right(function: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(function, monkeypatch)


def test_a_block_that_is_read_twice_is_an_array() -> None:
    report = ptir.jit(read_twice).explain(X, Y).report
    assert "in place" not in {step.note for step in report.steps}


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_threads_share_blocks(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    x = RNG.standard_normal((300, 400)).astype(np.float32)
    v = x * 2
    padded = ptir.jit(lambda x: ptir.pad(x * 2, low=(1, 1), high=(1, 1), value=0.0))
    np.testing.assert_array_equal(padded(x).numpy(), np.pad(v, 1))
    wide = ptir.jit(lambda x: ptir.concat((x * 2, x, x * 2), axis=1))
    np.testing.assert_array_equal(wide(x).numpy(), np.concatenate((v, x, v), axis=1))


def test_symbolic_sizes_are_copied() -> None:
    double = ptir.jit(two_regions, dynamic={"x": {0: "N"}, "y": {0: "N"}})
    for count in (3, 50):
        found = double(X[:count], Y[:count]).numpy()
        np.testing.assert_array_equal(found, np.concatenate((X[:count] * 2, Y[:count] + 1), axis=1))

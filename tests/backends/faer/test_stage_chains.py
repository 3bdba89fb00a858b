"""Stages of stencils that run block by block, as one native step."""

# Traced functions take any array.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import binding
from gptrs.ir.types import Array

TOGETHER = "with the one before"


def along(x: Any) -> Any:
    """A value of rows that three rows read."""
    e = ptir.exp(x)
    return e[2:] + e[1:-1] * e[:-2]


def around(x: Any) -> Any:
    e = ptir.exp(x)
    return e[2:, 1:-1] + e[:-2, 1:-1] + e[1:-1, 2:] - e[1:-1, :-2]


def thrice(x: Any) -> Any:
    """Three stages, of which the last reads two."""
    e = ptir.exp(x[:, 1:] - x[:, :-1])
    s = ptir.sin(e[1:] - e[:-1])
    return s[3:] * s[:-3] + s[1:-2] + e[2:-2]


def inside(x: Any) -> Any:
    """Of three axes, the outer two of one in a loop and of the other not."""
    e = ptir.exp(x.reshape(100, 40, 100))
    return e[1:-1, 1:-1] + e[2:, :-2] - e[:-2, 2:]


def backwards(x: Any) -> Any:
    e = ptir.exp(x)
    return e[4:, ::-1] - e[:-4]


def rows(x: Any) -> Any:
    """Reductions of rows, which two rows each read."""
    total = ptir.exp(x).sum(1, keepdims=True)
    return x[1:] * total[1:] + ptir.log(total[:-1])


def upside_down(x: Any) -> Any:
    e = ptir.exp(x)
    return e[::-1] + e


def kept(x: Any) -> Any:
    """A stage that the caller has as well."""
    e = ptir.exp(x)
    return e, e[1:] - e[:-1]


def across(x: Any) -> Any:
    e = ptir.exp(x)
    return e[1:, 1:].T - e.T[:-1, :-1]


def run(function: Any, x: Array) -> tuple[list[Array], list[str]]:
    """The results, and the notes of the steps."""
    jitted: Any = ptir.jit(backend="faer")(function)
    found = jitted(x)
    notes = [step.note for step in jitted.explain(x).report.steps]
    return [each.numpy() for each in (found if isinstance(found, tuple) else [found])], notes


@pytest.mark.parametrize(
    ("function", "stages"),
    [
        (along, 2),
        (around, 2),
        (thrice, 3),
        (inside, 2),
        (backwards, 2),
        (rows, 2),
        (upside_down, 1),
        (kept, 1),
        (across, 1),
    ],
)
def test_stages_are_one_step(function: Any, stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal((500, 800)).astype(np.float32)
    several: list[list[Array]] = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        results, notes = run(function, x)
        several.append(results)
        assert notes.count(TOGETHER) == stages - 1
    monkeypatch.setattr(binding, "chains_of", lambda *_: {})
    alone, notes = run(function, x)
    assert TOGETHER not in notes
    for results in several:
        for ours, theirs in zip(results, alone, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_small_arrays_are_stages_alone() -> None:
    assert TOGETHER not in run(along, np.ones((50, 80), np.float32))[1]


def test_stages_in_a_loop_of_any_length() -> None:
    """A symbolic size: whether stages are a chain is known when they are bound."""

    @ptir.jit(backend="faer", dynamic={"x": {0: "n"}})
    def twice(x: Any) -> Any:
        return around(x)

    rng = np.random.default_rng(0)
    for count in (7, 600, 30):
        x = rng.standard_normal((count, 700)).astype(np.float32)
        e = np.exp(x.astype(np.float64))
        expected = e[2:, 1:-1] + e[:-2, 1:-1] + e[1:-1, 2:] - e[1:-1, :-2]
        np.testing.assert_allclose(twice(x).numpy(), expected, rtol=1e-5, atol=1e-4)
    found = [step.note for step in twice.explain(x).report.steps]
    assert TOGETHER not in found

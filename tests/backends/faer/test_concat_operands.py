"""Operands of a concat that are made at their places in its result."""

# Traced functions take any array.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.types import Array

PLACED = "operands are made in place"


def computed(x: Any, y: Any) -> Any:
    return ptir.concat((x * 2.0, y + 1.0), axis=0)


def product(x: Any, y: Any) -> Any:
    return ptir.concat((x @ y, x, ptir.exp(y)), axis=0)


def border(x: Any, y: Any) -> Any:
    """Rows of an operand at the ends, too."""
    e = ptir.exp(x)
    return ptir.concat((e[-1:], e, e[:1] * 0.0), axis=0)


def twice(x: Any, y: Any) -> Any:
    e = ptir.exp(x)
    return ptir.concat((e, e, e[::-1]), axis=0)


def stacked(x: Any, y: Any) -> Any:
    return ptir.stack((ptir.exp(x), y - x, x), axis=0)


def nested(x: Any, y: Any) -> Any:
    """What is a part of a result that is a part of another one, and is read as well."""
    inner = ptir.concat((x * 2.0, y + 1.0), axis=0)
    return ptir.concat((inner.sum(0, keepdims=True), inner), axis=0)


def reshaped(x: Any, y: Any) -> Any:
    return ptir.concat(((x * 2.0).reshape(-1), (y + 1.0).reshape(-1)), axis=0)


def updated(x: Any, y: Any) -> Any:
    both = ptir.concat((x * 2.0, y + 1.0), axis=0)
    return ptir.dynamic_update_slice(both, x[:2] - 3.0, (1, 0))


def read_later(x: Any, y: Any) -> Any:
    e = ptir.exp(x)
    both = ptir.concat((e, y), axis=0)
    return ptir.sort(both, axis=0), ptir.cumsum(e, axis=0) @ ptir.sort(both, axis=0)[:20]


def returned(x: Any, y: Any) -> Any:
    e = ptir.exp(x)
    return ptir.concat((e, y), axis=0), e


def columns(x: Any, y: Any) -> Any:
    return ptir.concat((x * 2.0, y + 1.0), axis=1)


def looped(x: Any, y: Any) -> Any:
    def step(p: Any, _: Any) -> Any:
        inner = (p[:-2] + p[2:]) * 0.5 - y[1:-1]
        return ptir.concat((inner[:1], inner, inner[-1:] * 0.0), axis=0), None

    return ptir.scan(step, x, length=5)[0]


def run(function: Any, backend: str) -> tuple[list[Array], int]:
    """The results, and how many steps have operands at their places."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((20, 20)).astype(np.float32) for _ in range(2))
    jitted: Any = ptir.jit(backend=backend)(function)
    found = jitted(x, y)
    notes = [step.note for step in jitted.explain(x, y).report.steps]
    results = [each.numpy() for each in (found if isinstance(found, tuple) else [found])]
    return results, sum(PLACED in note for note in notes)


@pytest.mark.parametrize(
    ("function", "placed"),
    [
        (computed, 1),
        (product, 1),
        (border, 1),
        (twice, 1),
        (stacked, 1),
        (nested, 2),
        (reshaped, 1),
        (updated, 1),
        (read_later, 0),
        (returned, 0),
        (columns, 0),
        (looped, None),  # of a small body nothing is stored
    ],
)
def test_operands_at_their_places(
    function: Any, placed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = run(function, "reference")
    for threads in ("1", "2"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        results, count = run(function, "faer")
        assert placed in (None, count)
        for ours, theirs in zip(results, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def test_operands_of_symbolic_sizes() -> None:
    @ptir.jit(backend="faer", dynamic={"x": {0: "n"}, "y": {0: "m"}})
    def joined(x: Any, y: Any) -> Any:
        return computed(x, y)

    for n, m in ((3, 5), (1, 200), (40, 1)):
        x, y = np.ones((n, 30), np.float32), np.ones((m, 30), np.float32)
        np.testing.assert_array_equal(joined(x, y).numpy(), np.concatenate((x * 2, y + 1)))
    assert PLACED in [step.note for step in joined.explain(x, y).report.steps]

"""Loops that read neighbours: blocks of half a cache line, the last of which repeats elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir


def smoothed(x: Any) -> Any:
    """An eighth of the sum of each element and its neighbours in three rows."""
    rows = x[:-2] + x[1:-1] + x[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) * 0.125


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 9, 15, 16, 17, 38])
def test_rows_of_any_length(dtype: Any, width: int) -> None:
    x = np.random.default_rng(width).standard_normal((7, width + 2)).astype(dtype)
    jitted = ptir.jit(smoothed)
    with ptir.eager():
        expected = jitted(x).numpy()
    np.testing.assert_array_equal(jitted(x).numpy(), expected)
    if width > 1:
        assert "for k in range(" in "".join(jitted.explain(x).sources.values())


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_steps_of_a_stencil(monkeypatch: pytest.MonkeyPatch, threads: str, steps: int) -> None:
    """The state of a loop begins at another place than a cache line: its block does."""
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)

    def stepped(x: Any) -> Any:
        def body(x: Any, _: Any) -> Any:
            return ptir.dynamic_update_slice(x, smoothed(x), (1, 1)), None

        return ptir.scan(body, x, length=steps)[0]

    x = np.random.default_rng(0).standard_normal((301, 259)).astype(np.float32)
    expected = x.copy()
    for _ in range(steps):
        rows = expected[:-2] + expected[1:-1] + expected[2:]
        expected[1:-1, 1:-1] = (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) * np.float32(0.125)
    before = x.copy()
    np.testing.assert_array_equal(ptir.jit(stepped)(x).numpy(), expected)
    np.testing.assert_array_equal(x, before)

"""Short sums between pairs of rows have loops of known length, and the bits of other loops."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import render

RNG = np.random.default_rng(11)


def drawn(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def distances(x: Any, c: Any) -> Any:
    return ((x[:, None] - c[None]) ** 2).sum(-1)


def roots(x: Any, c: Any) -> Any:
    return ptir.sqrt(((x[:, None] - c[None]) ** 2).sum(-1)) + c[:, 0]


def shares(x: Any, c: Any) -> Any:
    return (x[:, None] * c[None]).sum(-1) / (ptir.abs(x[:, None] - c[None]).sum(-1) + 1)


def of_slices(x: Any, c: Any) -> Any:
    return ((x[::2, None, 1:] - c[None, :, 1:]) ** 2).sum(-1)


def in_batches(x: Any, c: Any) -> Any:
    x = x.reshape(3, -1, x.shape[1])
    return ((x[:, :, None] - c) ** 2).sum(-1)


@pytest.mark.parametrize("function", [distances, roots, shares, of_slices, in_batches])
@pytest.mark.parametrize(("columns", "depth"), [(2, 6), (10, 8), (16, 16), (33, 6)])
def test_bits_are_those_of_other_loops(
    function: Any, columns: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = drawn(48, depth), drawn(columns, depth)
    chosen: list[bool] = []
    original = render.is_short_sum

    def noted(region: Any) -> bool:
        chosen.append(original(region))
        return chosen[-1]

    monkeypatch.setattr(render, "is_short_sum", noted)
    made: Any = ptir.jit(function)
    found = made(*given).numpy()
    assert any(chosen)
    monkeypatch.setattr(render, "is_short_sum", lambda _: False)
    other: Any = ptir.jit(function)
    np.testing.assert_array_equal(found, other(*given).numpy())
    reference: Any = ptir.jit(backend="reference")(function)
    np.testing.assert_allclose(found, reference(*given).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_threads_and_zeros(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    x, c = drawn(4000, 8), drawn(16, 8)
    x[7] = -0.0
    made: Any = ptir.jit(lambda x, c: (x[:, None] * c[None]).sum(-1))
    found = made(x, c).numpy()
    assert not np.signbit(found[7]).any()
    np.testing.assert_allclose(found, x @ c.T, rtol=1e-4, atol=1e-5)

"""Fusion recomputes no value many times: the scalar operations of a plan are bounded.
`tests.support.scalar_operations` checks every plan of the test run; here are functions that once
failed.
"""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends import fusion
from tests.support.scalar_operations import MOST


def over_its_sum(y: Any) -> Any:
    return y / y.sum(-1, keepdims=True)


def standard(x: Any) -> Any:
    return (x - x.mean()) / ptir.sqrt(((x - x.mean()) ** 2).mean())


def stencils(x: Any) -> Any:
    for _ in range(6):
        e = ptir.exp(x * 0.01)
        x = e[1:] - e[:-1]
    return x


def histogram(x: Any) -> Any:
    low, high = x.min(), x.max()
    bins = ptir.floor((x - low) / (high - low) * 9.0)
    return [ptir.cast(ptir.equal(bins, float(i)), dtype=ptir.f32).sum() for i in range(10)]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "centred": lambda x: x - x.mean(),
    "over the maximum": lambda x: x / x.max(),
    "from 0 to 1": lambda x: (x - x.min()) / (x.max() - x.min()),
    "unit length": lambda x: x / ptir.sqrt((x * x).sum()),
    "times the sum of a row": lambda x: x * x[0].sum(),
    "softmax of all": lambda x: ptir.exp(x) / ptir.exp(x).sum(),
    "a sum of a column": lambda x: x + ptir.tanh(x[:, :1]).sum(),
    "gelu over its row": lambda x: over_its_sum(ptir.gelu(2 * x)),
    "exp over its row": lambda x: over_its_sum(ptir.exp(x)),
    "standard": standard,
    "a row for all rows": lambda x: x + ptir.tanh(x[0]),
    "a column for all columns": lambda x: x * ptir.exp(x[:, :1] * 2.0),
    "rows and columns": lambda x: ptir.exp(x[0][:, None] * 2.0) + ptir.exp(x[1][None, :]),
    "three sums": lambda x: x - x.mean(0, keepdims=True) - x.mean(1, keepdims=True) + x.mean(),
    "stencils": stencils,
    "neighbours": lambda x: x[:, 2:] - 2.0 * x[:, 1:-1] + x[:, :-2],
    "histogram": histogram,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(2, 3), (30, 40)])
def test_few_scalar_operations(name: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).random(shape, np.float32)
    x = x if name != "stencils" else np.concatenate([x] * 8)
    function = FUNCTIONS[name]
    found = ptir.jit(backend="faer")(function)(x)  # the plan is checked when it is bound
    expected = ptir.jit(backend="reference")(function)(x)
    for a, b in zip(*(r if isinstance(r, list) else [r] for r in (found, expected)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-4, atol=1e-5)


def test_more_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    patient = replace(fusion.MACHINE, recomputation=100 * MOST)
    monkeypatch.setattr(fusion, "MACHINE", patient)
    with pytest.raises(AssertionError, match=r"2400 scalar operations, 1240 op by op"):
        ptir.jit(backend="faer")(FUNCTIONS["a row for all rows"])(np.ones((30, 40), np.float32))

"""Values that a row keeps in the memory of its result, between a reduction and its elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer.render import render
from gptrs.backends.fusion import fuse
from gptrs.ir.types import Type
from tests.backends.faer.test_render import record

SHAPE = (3, 700, 130)


def shares(x: Any, axes: tuple[int, ...]) -> Any:
    e = ptir.exp(x - ptir.reduce_max(x, axes=axes, keepdims=True))
    return e / ptir.reduce_sum(e, axes=axes, keepdims=True)


def rest(x: Any, axes: tuple[int, ...]) -> Any:
    """Reads the argument again after its exponentials have been kept."""
    e = ptir.exp(x)
    return x * ptir.reduce_sum(e, axes=axes, keepdims=True) - e


def two_sums(x: Any, axes: tuple[int, ...]) -> Any:
    e = ptir.tanh(x)
    sums = [ptir.reduce_sum(v, axes=axes, keepdims=True) for v in (e, e * e)]
    return e * sums[0] + sums[1]


def cheap(x: Any, axes: tuple[int, ...]) -> Any:
    doubled = x * 2.0
    return doubled / ptir.reduce_sum(doubled, axes=axes, keepdims=True)


FUNCTIONS = {"shares": shares, "rest": rest, "two sums": two_sums, "cheap": cheap}


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2)], ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_numpy(name: str, dtype: str, axes: tuple[int, ...]) -> None:
    kind: Any = getattr(ptir, dtype).numpy

    def function(x: Any) -> Any:
        return FUNCTIONS[name](x, axes)

    x = np.random.default_rng(0).uniform(0.1, 1, SHAPE).astype(kind)
    found = ptir.jit(backend="faer")(function)(x).numpy().astype(np.float64)
    exact = ptir.jit(backend="reference")(function)(x.astype(np.float64)).numpy()
    tolerance = {"f32": 2e-5, "f64": 1e-12, "bf16": 4e-2}[dtype]
    np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "kept"), [("shares", True), ("rest", True), ("cheap", False)])
@pytest.mark.parametrize("axes", [(0,), (1,)], ids=str)
def test_what_is_kept(name: str, kept: bool, axes: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        return FUNCTIONS[name](x, axes)

    (region,) = fuse(record(function, Type((1000, 1000), ptir.f32))).regions
    assert ("kept0 = out[" in render(region).canonical) is kept

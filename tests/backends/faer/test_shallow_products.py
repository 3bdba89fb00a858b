"""Products of depth 2 and 3: which are sums in loops, and that they are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.dims import dim
from gptrs.ir.types import Array, as_dtype

N = dim("N")


def axes(contract: tuple[int, int], batch: tuple[int, int] | None = None) -> dict[str, Any]:
    pairs = {"contract": [contract], "batch": [] if batch is None else [batch]}
    sides = enumerate(("lhs", "rhs"))
    return {f"{k}_{s}": tuple(p[i] for p in pairs[k]) for i, s in sides for k in pairs}


@pytest.mark.parametrize(
    ("lhs", "rhs", "given", "formula"),
    [
        ((20, 3), (3, 40), axes((1, 0)), "ik,kj->ij"),
        ((3, 20), (3, 40), axes((0, 0)), "ki,kj->ij"),
        ((2,), (2, 16), axes((0, 0)), "k,kj->j"),
        ((4, 5, 3), (3, 2, 16), axes((2, 0)), "abk,kcj->abcj"),
        ((4, 5, 2), (4, 2, 17), axes((2, 1), (0, 0)), "bik,bkj->bij"),
        ((5, 4, 3), (3, 4, 16), axes((2, 0), (1, 1)), "ibk,kbj->bij"),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_a_shallow_product_is_a_sum(
    lhs: tuple[int, ...], rhs: tuple[int, ...], given: dict[str, Any], formula: str, dtype: str
) -> None:
    kind, rng = as_dtype(dtype), np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(kind.numpy) for shape in (lhs, rhs))

    @ptir.jit
    def of(x: ptir.Tensor, y: ptir.Tensor) -> ptir.Tensor:
        return ptir.dot_general(x, y, **given)

    assert_one_loop(of, x, y)
    exact = np.einsum(formula, x.astype("f8"), y.astype("f8"))
    found = of(x, y).numpy()
    assert found.dtype == kind.numpy
    unit = {"f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}[dtype]
    np.testing.assert_allclose(found.astype("f8"), exact, rtol=unit, atol=8e-7)


def assert_one_loop(function: Any, *arguments: Array) -> None:
    assert [step.kind for step in function.explain(*arguments).report.steps] == ["region"]


@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [((20, 4), (4, 40)), ((20, 3), (3, 15)), ((20, 1, 3), (3, 1))],
    ids=["deeper", "few columns", "one column"],
)
def test_others_are_products(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> None:
    @ptir.jit
    def of(x: ptir.Tensor, y: ptir.Tensor) -> ptir.Tensor:
        return x @ y

    x, y = np.ones(lhs, np.float32), np.ones(rhs, np.float32)
    assert "call" in {step.kind for step in of.explain(x, y).report.steps}


def test_rows_of_the_second_operand_that_run_along_the_depth_are_products() -> None:
    @ptir.jit
    def of(x: ptir.Tensor, y: ptir.Tensor) -> ptir.Tensor:
        return x @ y.T

    x = np.ones((40, 3), np.float32)
    assert "call" in {step.kind for step in of.explain(x, x + 1).report.steps}


def test_what_follows_is_fused() -> None:
    @ptir.jit
    def layer(x: ptir.Tensor, w: ptir.Tensor, b: ptir.Tensor) -> ptir.Tensor:
        return ptir.maximum(x @ w + b, 0.0)

    rng = np.random.default_rng(1)
    x, w, b = (rng.standard_normal(s).astype("f4") for s in ((50, 3), (3, 64), (64,)))
    assert_one_loop(layer, x, w, b)
    np.testing.assert_allclose(layer(x, w, b).numpy(), np.maximum(x @ w + b, 0), atol=1e-5)


def test_the_columns_may_be_symbolic() -> None:
    @ptir.jit(dynamic={"points": {1: N}})
    def turned(rotation: ptir.Tensor, points: ptir.Tensor) -> ptir.Tensor:
        return rotation @ points

    rng = np.random.default_rng(2)
    rotation = rng.standard_normal((3, 3)).astype("f4")
    for count in (5, 100, 2000):
        points = rng.standard_normal((3, count)).astype("f4")
        np.testing.assert_allclose(turned(rotation, points).numpy(), rotation @ points, atol=1e-5)

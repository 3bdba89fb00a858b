"""Rounding of fused loops: each operation once, as in NumPy; sums at least as exact as NumPy's."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array

CHAINS: dict[str, Callable[..., Any]] = {
    "difference of squares": lambda x, y: ptir.sqrt(x * x - y * y),
    "discriminant": lambda x, y: ptir.sqrt(x * x - 4.0 * (y * (x * x / (y * 4.0)))),
    "product and sum": lambda x, y: x * y + x,
    "sum of products": lambda x, y: x * y - y * x + x * x,
    "polynomial": lambda x, y: ((x * 0.3 + 0.7) * x - y) * x + 1.5,
    "real part of a product": lambda x, y: (x * x - y * y) - (x * y - y * x),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("precise", [False, True])
def test_each_operation_rounds_once(name: str, dtype: str, precise: bool) -> None:
    """The bits of eager, which computes one operation after the other."""
    x: Array = np.random.default_rng(0).standard_normal(4099).astype(dtype)
    y = np.where(np.arange(x.size) % 2, x, np.random.default_rng(1).standard_normal(x.size))
    given = x, y.astype(dtype)
    found = ptir.jit(backend="faer", precise=precise)(CHAINS[name])(*given).numpy()
    with ptir.eager():
        expected = CHAINS[name](*map(Tensor, given)).numpy()
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))


def test_equal_squares_have_a_root() -> None:
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    root = ptir.jit(backend="faer")(lambda x, y: ptir.sqrt(x * x - y * y))
    np.testing.assert_array_equal(root(x, x).numpy(), np.zeros(1000, np.float32))


def pairwise(x: Array) -> float:
    return float(np.sum(x))


REDUCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Array], float]]] = {
    "sum": (lambda x: x.sum(), pairwise),
    "mean": (lambda x: x.mean(), lambda x: float(np.mean(x))),
    "var": (lambda x: ptir.var(x + 1000.0), lambda x: float(np.var(x + x.dtype.type(1000)))),
}


LONG = [(name, 10**power) for name in REDUCTIONS for power in range(3, 8)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [*LONG, ("sum", 10**8)])
def test_long_sums_are_as_exact_as_numpys(name: str, size: int) -> None:
    """At most twice the error of NumPy's pairwise sums, where that is not below a rounding."""
    ours, theirs = REDUCTIONS[name]
    function = ptir.jit(backend="faer")(ours)
    found: list[float] = []
    errors: list[float] = []
    for seed in range(max(1, min(8, 10**7 // size))):
        x = np.random.default_rng(seed).random(size, np.float32)
        wide = x + np.float32(1000) if name == "var" else x
        exact = float(getattr(np, name)(wide, dtype=np.float64))
        found.append(abs(float(function(x).numpy()) - exact) / exact)
        errors.append(abs(theirs(x) - exact) / exact)
    half_an_ulp = 2.0**-24
    assert np.mean(found) <= 2 * max(float(np.mean(errors)), half_an_ulp)


@pytest.mark.slow
def test_sums_of_f64_carry_their_rounding_errors() -> None:
    """Over one axis, over several that are not one, and over infinities."""
    x = np.random.default_rng(0).random((200, 30, 1000))
    x[:, :, 500:] *= 1e-9
    given: Any = x
    for axes in ((0, 1, 2), (0, 2)):
        total = ptir.jit(backend="faer", static_argnames=("axes",))(ptir.reduce_sum)
        exact = np.sum(x.astype(np.longdouble), axes).astype(np.float64)
        np.testing.assert_array_max_ulp(total(given, axes=axes).numpy(), exact, 1)
    first = ptir.jit(backend="faer")(lambda x: x.sum(-1))
    x[0, 0, 7], x[0, 1, 3], x[0, 1, 600], x[0, 2, 0] = np.inf, np.inf, -np.inf, np.nan
    np.testing.assert_array_equal(first(x).numpy()[0, :3], [np.inf, np.nan, np.nan])

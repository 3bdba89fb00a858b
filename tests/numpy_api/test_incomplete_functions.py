"""zeta, polygamma, incomplete gamma and beta functions against sums with 90 digits."""

# mpmath has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gptrs import ptir as namespace
from gptrs.errors import ArgumentError

ptir: Any = namespace  # arrays in place of Tensors
mpmath: Any = pytest.importorskip("mpmath")
RANDOM = np.random.default_rng(3)
inf, nan = np.inf, np.nan


def _exact(function: Any, *operands: Any) -> Any:
    with mpmath.workdps(90):
        numbers = zip(*(map(float, x) for x in operands), strict=True)
        return np.array([float(function(*map(mpmath.mpf, each))) for each in numbers])


def _lower(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def _upper(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def _beta(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


@pytest.mark.parametrize("most", [2, 60, 5e3])
def test_incomplete_gamma(most: float) -> None:
    a = RANDOM.uniform(most / 50, most, 30)
    x = a * RANDOM.uniform(0.5, 2, 30)
    for name, function in (("gammainc", _lower), ("gammaincc", _upper)):
        found = getattr(ptir, name)(a, x).numpy()
        np.testing.assert_allclose(found, _exact(function, a, x), rtol=1e-12, atol=1e-290)


def test_incomplete_beta() -> None:
    a, b, x = RANDOM.uniform(0.1, 200, 30), RANDOM.uniform(0.1, 200, 30), RANDOM.uniform(0, 1, 30)
    found = ptir.betainc(a, b, x).numpy()
    np.testing.assert_allclose(found, _exact(_beta, a, b, x), rtol=1e-12, atol=1e-290)


def test_zeta() -> None:
    s, q = RANDOM.uniform(1.01, 30, 30), RANDOM.uniform(0.01, 60, 30)
    np.testing.assert_allclose(ptir.zeta(s, q).numpy(), _exact(mpmath.zeta, s, q), rtol=1e-14)
    assert abs(float(ptir.zeta(2.0, 1.0)) - math.pi**2 / 6) < 1e-6


@pytest.mark.parametrize("n", [1, 2, 5])
def test_polygamma(n: int) -> None:
    x = np.concatenate([RANDOM.uniform(0, 20, 20), RANDOM.uniform(-5, 0, 10)])
    expected = _exact(lambda v: mpmath.polygamma(n, v), x)
    np.testing.assert_allclose(ptir.polygamma(n, x).numpy(), expected, rtol=1e-13)
    assert ptir.polygamma(n, x.astype("f4")).dtype is ptir.f32


def test_logarithms_of_many_gammas() -> None:
    x = np.array([1.2, 3.5, 40.0])
    expected = _exact(
        lambda v: (
            mpmath.log(mpmath.pi ** mpmath.mpf(1.5) * mpmath.gammaprod([v, v - 0.5, v - 1], []))
            if v > 1
            else mpmath.nan
        ),
        x,
    )
    np.testing.assert_allclose(ptir.multigammaln(x, 3).numpy(), expected, rtol=1e-14)
    np.testing.assert_array_equal(ptir.mvlgamma(np.array([1.0, 0.0, -2.0]), 3).numpy(), [nan] * 3)


def test_ends() -> None:
    a = np.array([0.0, 0.0, 1.0, inf, 1.0, -1.0, 1.0, nan, inf, 1e-300])
    x = np.array([0.0, 1.0, 0.0, 1.0, inf, 1.0, -1.0, 1.0, inf, 2.0])
    lower = np.array([nan, 1, 0, 0, 1, nan, nan, nan, nan, 1])
    np.testing.assert_array_equal(ptir.gammainc(a, x).numpy(), lower)
    np.testing.assert_allclose(ptir.gammaincc(a, x).numpy(), 1 - lower, atol=1e-300)
    s = np.array([1.0, 0.5, 2.0, 2.0, 2.0, 2.5, inf, 3.0, 2.0, nan])
    q = np.array([3.0, 3.0, 0.0, -2.0, inf, -0.5, 2.0, -1e9 - 0.5, nan, 2.0])
    expected = [inf, nan, inf, inf, 0, nan, 0, nan, nan, nan]
    np.testing.assert_array_equal(ptir.zeta(s, q).numpy(), expected)
    x = np.array([0.0, 1.0, -0.1, 1.1, 0.5, nan])
    b = np.array([2.0, 2.0, 2.0, 2.0, -1.0, 2.0])
    np.testing.assert_array_equal(ptir.betainc(2.0, b, x).numpy(), [0, 1, nan, nan, nan, nan])
    x, y = np.array([0.0, 0.0, 1.0, 1.0, -1.0, nan]), np.array([0.0, 1.0, 0.0, 2.0, 1.0, 1.0])
    expected = [0, 0, inf, -math.log(2), inf, nan]
    np.testing.assert_allclose(ptir.rel_entr(x, y).numpy(), expected, rtol=1e-15)


def test_wrong_orders() -> None:
    with pytest.raises(ArgumentError, match="n is -1, expected 0 or more"):
        ptir.polygamma(-1, 2.0)
    with pytest.raises(ArgumentError, match="p is 0, expected 1 or more"):
        ptir.multigammaln(2.0, 0)


def test_compiled() -> None:
    a, x = RANDOM.uniform(0.1, 20, 50), RANDOM.uniform(0, 30, 50)
    for name in ("gammaincc", "zeta"):
        function = getattr(ptir, name)
        traced = ptir.jit(lambda a, x, function=function: function(a + 1, x + 1))
        np.testing.assert_allclose(traced(a, x).numpy(), function(a + 1, x + 1).numpy(), rtol=1e-12)
        assert {step.kind for step in traced.explain(a, x).report.steps} <= {"region", "loop"}

"""Python's floats beside f64: 0.3 is that of f64, and not f32's."""

# Functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir

X = np.random.default_rng(3).standard_normal((4, 5))
ROW = np.sort(X[0])

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda np, x: x + 0.3,
    "append": lambda np, x: np.append(x[0], [0.1, 0.7]),
    "average": lambda np, x: np.average(x, axis=1, weights=[0.1, 0.2, 0.3, 0.4, 0.7]),
    "clip": lambda np, x: np.clip(x, -0.3, 0.7),
    "convolve": lambda np, x: np.convolve(x[0], [0.1, 0.3, 0.7]),
    "digitize": lambda np, x: np.digitize(x, [-0.7, 0.1, 0.3]),
    "full_like": lambda np, x: np.full_like(x, 0.1),
    "geomspace": lambda np, x: np.geomspace(0.1, 0.7, 7, dtype="float64") * x[0, 0],
    "gradient": lambda np, x: np.gradient(x, 2.3, axis=1),
    "gradient of places": lambda np, x: np.gradient(x, [0.1, 0.3, 0.7, 0.9, 1.3], axis=1),
    "heaviside": lambda np, x: np.heaviside(x * 0, 0.3),
    "insert": lambda np, x: np.insert(x[0], 2, 0.1),
    "interp": lambda np, x: np.interp(x, [-0.7, 0.1, 0.9], [0.3, 0.1, 0.7]),
    "linspace": lambda np, x: np.linspace(0.1, 0.7, 7, dtype="float64") * x[0, 0],
    "nan_to_num": lambda np, x: np.nan_to_num(x / (x * 0), nan=0.3, posinf=0.1, neginf=0.7),
    "nanquantile": lambda np, x: np.nanquantile(x, 0.3, axis=0),
    "pad": lambda np, x: np.pad(x, 1, constant_values=0.1),
    "percentile": lambda np, x: np.percentile(x, 30.1, axis=1),
    "percentiles": lambda np, x: np.percentile(x, [10.1, 30], axis=1),
    "polyval": lambda np, x: np.polyval([0.1, 0.3, 0.7], x),
    "power": lambda np, x: np.power(np.abs(x), 0.3),
    "quantile": lambda np, x: np.quantile(x, 0.3, axis=1),
    "quantiles": lambda np, x: np.quantile(x, [0.1, 0.3, 0.7], axis=1),
    "select": lambda np, x: np.select([x > 0.3, x < -0.3], [x, 0.1], 0.7),
    "trapezoid": lambda np, x: np.trapezoid(x, dx=0.1),
    "unwrap": lambda np, x: np.unwrap(x, period=0.7),
    "var": lambda np, x: np.var(x, axis=0, ddof=1.3),
    "std": lambda np, x: np.std(x, axis=0, ddof=0.7),
    "where": lambda np, x: np.where(x > 0.1, x, 0.3),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_beside_f64(name: str) -> None:
    function = FUNCTIONS[name]
    expected = np.asarray(function(np, X))
    eager = function(ptir, ptir.tensor(X))
    compiled: Any = ptir.jit(lambda x: function(ptir, x))
    for found in (eager, compiled(X)):
        assert found.numpy().dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-14, atol=1e-15)

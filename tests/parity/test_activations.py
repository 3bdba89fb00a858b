"""Activations against those that transformers calls by the same names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.nn.activations import ACTIVATIONS
from tests.support.lazy_torch import torch, torch_activations

pytestmark = pytest.mark.slow

Doubles = NDArray[np.float64]

GRIDS = [np.linspace(-bound, bound, 20_001) for bound in (1e-3, 1.0, 8.0, 40.0, 1e4)]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30]
X = np.concatenate([*GRIDS, SPECIAL]).astype(np.float32)

# Two have parameters of their own, and one scores experts: no hidden layer uses it.
OTHERS = {"prelu", "xielu", "sqrtsoftplus"}


def their_functions() -> Any:
    return import_module("transformers.activations").ACT2FN


def theirs(name: str, x: NDArray[Any]) -> NDArray[Any]:
    return their_functions()[name](torch.as_tensor(x)).numpy()


def assert_close(name: str, found: NDArray[Any]) -> None:
    """``found``, for `X`, is what transformers gives, within half a unit in the last place for each
    of the few operations; torch itself is 2 off."""
    expected, exact = theirs(name, X), theirs(name, X.astype(np.float64))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    # laplace adds 1 to numbers near -1, here and there.
    least = 0.5 if name == "laplace" else 0.0
    scale: Doubles = np.maximum(np.maximum(np.abs(X), np.abs(exact)), least)[finite]
    error: Doubles = np.abs(found[finite] - exact[finite])
    assert (error <= 2 * 2.0**-23 * scale).all()


def test_every_name_is_known() -> None:
    assert set(ACTIVATIONS) == set(their_functions()) - OTHERS
    assert set(torch_activations.ACTIVATIONS) == set(ACTIVATIONS)


@pytest.mark.parametrize("eager", [False, True], ids=["jit", "eager"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_ours(name: str, eager: bool) -> None:
    with ptir.eager(eager), np.errstate(all="ignore"):
        function: Any = ptir.jit(ACTIVATIONS[name])
        assert_close(name, function(X).numpy())


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_those_of_the_bench(name: str) -> None:
    assert_close(name, torch_activations.ACTIVATIONS[name](torch.as_tensor(X)).numpy())

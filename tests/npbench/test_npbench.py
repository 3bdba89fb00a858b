"""Kernels in NumPy's words: `ptir` gives what NumPy gives, op by op and compiled."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from gptrs import ptir, tree
from tests.npbench import (
    deep_learning,
    factorizations,
    products,
    recurrences,
    statistics,
    stencils,
)
from tests.npbench.kernel import Kernel

KERNELS: list[Kernel] = [
    *products.KERNELS,
    *stencils.KERNELS,
    *factorizations.KERNELS,
    *statistics.KERNELS,
    *recurrences.KERNELS,
    *deep_learning.KERNELS,
]


def copies(arguments: Any) -> Any:
    return tuple(np.array(argument) for argument in arguments)


def _leaves(results: Any) -> list[Any]:
    return list(tree.flatten(results)[0])


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_kernel(kernel: Kernel) -> None:
    arguments = kernel.make(np.random.default_rng(0))
    expected = _leaves(kernel.function(np, *copies(arguments)))
    given = copies(arguments)
    found = _leaves(ptir.jit(partial(kernel.function, ptir))(*given))
    for array, argument in zip(given, arguments, strict=True):
        np.testing.assert_array_equal(array, argument)  # the caller's arrays are never written
    assert len(found) == len(expected)
    for part, wanted in zip(found, expected, strict=True):
        tolerance = 1e-5 if np.asarray(wanted).dtype == np.float32 else 1e-10
        np.testing.assert_allclose(part.numpy(), wanted, rtol=tolerance, atol=tolerance)

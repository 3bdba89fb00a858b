"""Sums of a known length of a few whole lanes are written out, in the order of other sums."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.kernels.rowwise.reduce import LANES


def in_lanes(products: Any) -> Any:
    """The sums of [n, m, length] products: element i goes to lane i mod `LANES`, halves join."""
    total: Any = np.zeros((*products.shape[:2], LANES), np.float32)
    for begin in range(0, products.shape[2], LANES):
        total = total + products[..., begin : begin + LANES]
    while (width := total.shape[2] // 2) > 0:
        total = total[..., :width] + total[..., width:]
    return total[..., 0]


@pytest.mark.parametrize("length", [LANES, 2 * LANES, 4 * LANES, 5 * LANES])
def test_bits_are_those_of_lanes(length: int) -> None:
    rng = np.random.default_rng(length)
    x, y = (rng.standard_normal((n, length)).astype(np.float32) for n in (7, 70))
    made: Any = ptir.jit(lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1))
    difference = x[:, None] - y[None]
    np.testing.assert_array_equal(made(x, y).numpy(), in_lanes(difference * difference))

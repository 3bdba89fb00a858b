"""Remainders and floored quotients of floats have the bits of their NumPy meanings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from tests.support.kernels import HERE

SPECIAL = (0.0, 1.0, 2.5, 0.1, 7.0, 3e-42, 1e-30, 1e30, 2.0**23, 2.0**60, np.inf, np.nan)


def divided(x: Any, y: Any) -> Any:
    return ptir.remainder(x, y), ptir.floor_divide(x, y)


@pytest.mark.parametrize("isa", HERE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("numbers", ["special", "random", "multiples"])
def test_bits_of_numpy(numbers: str, dtype: Any, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_ISA", isa)
    compiled = ptir.jit(divided)
    rng = np.random.default_rng(0)
    if numbers == "special":
        signed = np.array([*SPECIAL, *(-x for x in SPECIAL)]).astype(dtype)
        x, y = (part.ravel() for part in np.meshgrid(signed, signed))
    elif numbers == "random":
        scales = 10.0 ** rng.integers(-6, 7, (2, 5000))
        x, y = (rng.standard_normal((2, 5000)) * scales).astype(dtype)
    else:  # quotients that round to whole numbers
        y = rng.integers(1, 60, 5000).astype(dtype) * dtype(0.1)
        x = np.nextafter(y * rng.integers(-2000, 2000, 5000).astype(dtype), dtype(0))
    found = [part.numpy() for part in compiled(x, y)]
    with ptir.eager(), np.errstate(all="ignore"):
        expected = [part.numpy() for part in compiled(x, y)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        known = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(one[known]), np.signbit(other[known]))

"""Bessel and Airy functions against mpmath's, with 30 digits."""

# mpmath has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir as namespace

ptir: Any = namespace  # arrays in place of Tensors
mpmath: Any = pytest.importorskip("mpmath")  # which torch brings
inf, nan = np.inf, np.nan
RANDOM = np.random.default_rng(4)
EXACT: dict[str, Callable[[Any], Any]] = {
    "bessel_j0": lambda x: mpmath.besselj(0, x),
    "bessel_j1": lambda x: mpmath.besselj(1, x),
    "bessel_y0": lambda x: mpmath.bessely(0, x),
    "bessel_y1": lambda x: mpmath.bessely(1, x),
    "modified_bessel_k0": lambda x: mpmath.besselk(0, x),
    "modified_bessel_k1": lambda x: mpmath.besselk(1, x),
    "scaled_modified_bessel_k0": lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
    "scaled_modified_bessel_k1": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
}
"""Ours, and the exact one of a positive number."""
_Y = (-inf, -inf, 0.0, nan, nan, nan)
_K = (inf, inf, 0.0, nan, nan, nan)
AT_ENDS = {
    "bessel_j0": (1.0, 1.0, 0.0, 0.0, 0.7651976865579666, nan),
    "bessel_j1": (0.0, -0.0, 0.0, -0.0, -0.4400505857449335, nan),
    **dict.fromkeys(("bessel_y0", "bessel_y1"), _Y),
    **dict.fromkeys((name for name in EXACT if "modified" in name), _K),
}
"""Of 0, -0, ∞, -∞, -1 and NaN."""


def _exact(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with mpmath.workdps(30):
        return np.array([float(EXACT[name](mpmath.mpf(float(each)))) for each in x])


@pytest.mark.parametrize("name", EXACT)
def test_values(name: str) -> None:
    spans = ((1e-12, 2.0), (1.9, 8.1), (8.0, 40.0), (40.0, 700.0))
    x = np.concatenate([RANDOM.uniform(*span, 40) for span in spans])
    found = getattr(ptir, name)(x).numpy()
    waves = name.startswith("bessel")
    np.testing.assert_allclose(found, _exact(name, x), rtol=4e-15, atol=3e-15 if waves else 0)
    narrow = x[x < 85].astype(np.float32)  # beyond, K is below f32's normal numbers
    found = getattr(ptir, name)(narrow).numpy()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, _exact(name, narrow), rtol=8e-8)


@pytest.mark.parametrize("name", EXACT)
def test_ends(name: str) -> None:
    found = getattr(ptir, name)(np.array([0.0, -0.0, inf, -inf, -1.0, nan])).numpy()
    np.testing.assert_allclose(found, AT_ENDS[name], rtol=1e-15)
    expected = np.array(AT_ENDS[name])
    np.testing.assert_array_equal(
        np.signbit(found)[expected == 0], np.signbit(expected[expected == 0])
    )


def test_airy() -> None:
    x = np.concatenate([RANDOM.uniform(*span, 60) for span in ((-30, -3.9), (-4.1, 2.1), (2, 30))])
    with mpmath.workdps(30):
        expected = np.array([float(mpmath.airyai(float(each))) for each in x])
    found = ptir.airy_ai(x).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found[x > 2.1], expected[x > 2.1], rtol=1e-13)
    ends = ptir.airy_ai(np.array([0.0, inf, -inf, nan])).numpy()
    np.testing.assert_allclose(ends, [0.3550280538878172, 0.0, 0.0, nan], rtol=1e-15)

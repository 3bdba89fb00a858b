"""Quantization against torch's, and its rounding."""

# torch is only partly typed, and dtypes are given by name.
# pyright: reportUnknownMemberType=false, reportArgumentType=false

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.types import as_dtype
from tests.support.lazy_torch import torch

RNG = np.random.default_rng(0)
X = RNG.normal(scale=40, size=(6, 50)).astype(np.float32)
# torch multiplies by 1 / scale, which is the same as to divide where that is exact.
EXACT = (0.25, 0.5, 1.0, 2.0)


def saturated(value: float, low: int, high: int) -> int:
    return int(min(max(value, low), high))


@pytest.mark.parametrize("scale", EXACT)
@pytest.mark.parametrize(
    ("dtype", "point"), [("si8", -3), ("si8", 17), ("ui8", 130), ("si4", 2), ("ui4", 15)]
)
def test_there_and_back_per_tensor_as_torch(dtype: str, point: int, scale: float) -> None:
    limits = as_dtype(dtype).limits
    expected = torch.fake_quantize_per_tensor_affine(torch.from_numpy(X), scale, point, *limits)
    s, z = ptir.tensor(scale), ptir.tensor(point, dtype=dtype)
    q = ptir.quantize(ptir.tensor(X), s, z, dtype=dtype)
    np.testing.assert_array_equal(ptir.dequantize(q, s, z).numpy(), expected.numpy())
    np.testing.assert_array_equal(q.numpy().astype(int), expected.numpy() / scale + point)


def test_there_and_back_per_axis_as_torch() -> None:
    scales, points = np.resize(EXACT, 6).astype(np.float32), RNG.integers(0, 255, 6)
    expected = torch.fake_quantize_per_channel_affine(
        torch.from_numpy(X), torch.from_numpy(scales), torch.from_numpy(points).int(), 0, 0, 255
    )
    s, z = ptir.tensor(scales), ptir.tensor(points, dtype="ui8")
    q = ptir.quantize(ptir.tensor(X), s, z, dtype="ui8", axis=0)
    back = ptir.dequantize(q, s, z, axis=0)
    np.testing.assert_array_equal(back.numpy(), expected.numpy())


def test_halves_go_to_the_even_integer_and_the_rest_saturates() -> None:
    x = ptir.tensor(np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e30, -1e30, math.inf, math.nan]))
    one = ptir.tensor(np.array(1.0))
    expected = [0, 2, 2, 0, -2, -2, 127, -128, 127, 0]
    assert ptir.quantize(x, one, dtype="si8").tolist() == expected
    # The zero point is added to the rounded number.
    odd = ptir.quantize(x, one, ptir.tensor(1, dtype="si8"), dtype="si8")
    assert odd.tolist() == [1, 3, 3, 1, -1, -1, 127, -128, 127, 0]


@pytest.mark.parametrize(
    ("dtype", "expected"), [("fp8_e4m3", (2.25, 448.0)), ("fp8_e5m2", (2.0, 57344.0))]
)
def test_fp8_saturates_and_keeps_nan(dtype: str, expected: tuple[float, float]) -> None:
    x = ptir.tensor(np.array([1.1, -1e9, 1e9, math.inf, math.nan], np.float32))
    found = ptir.quantize(x, ptir.tensor(0.5), dtype=dtype).numpy().astype(np.float64)
    near, most = expected
    np.testing.assert_array_equal(found, [near, -most, most, most, math.nan])


def test_requantize_rounds_once() -> None:
    """Against exact fractions."""
    q = np.arange(-128, 128, dtype=np.int8)
    scales = RNG.integers(1, 99, (2, 40)).astype(np.float32) / np.float32(10)
    for scale, new in scales.T:
        found = ptir.requantize(ptir.tensor(q), ptir.tensor(scale), ptir.tensor(new), dtype="si8")
        ratio = Fraction(float(scale)) / Fraction(float(new))
        expected = [saturated(round(int(n) * ratio), -128, 127) for n in q]
        assert found.tolist() == expected


def test_requantize_to_the_same_scale_changes_nothing() -> None:
    q = ptir.tensor(np.arange(-128, 128, dtype=np.int8))
    for scale in RNG.uniform(1e-3, 1e3, 50).astype(np.float32):
        s = ptir.tensor(scale)
        assert ptir.requantize(q, s, s, dtype="si8").tolist() == q.tolist()


def test_large_integers_are_exact() -> None:
    """f32 has 24 bits, and 32-bit integers are computed in f64."""
    x = np.array([2**24 + 1, -(2**31), 2**31 - 1, 2**40], np.float64)
    one = ptir.tensor(np.array(1.0, np.float32))
    q = ptir.quantize(ptir.tensor(x), one, dtype="si32")
    assert q.tolist() == [2**24 + 1, -(2**31), 2**31 - 1, 2**31 - 1]
    back = ptir.dequantize(q, one, ptir.tensor(1, dtype="si32"), dtype="f64")
    assert back.tolist() == [2**24, -(2**31) - 1, 2**31 - 2, 2**31 - 2]


def test_one_number_of_four_bits_stays_an_array() -> None:
    """NumPy gives a scalar for arithmetic on rank 0."""
    for dtype in ("ui4", "si4"):
        one = ptir.cast(ptir.tensor(np.array(3, np.int32)), dtype=as_dtype(dtype))
        shifted = ptir.shift_left(one, 1)
        assert isinstance(shifted.numpy(), np.ndarray)
        assert ptir.dequantize(shifted, ptir.tensor(np.float32(0.5))).item() == 3.0

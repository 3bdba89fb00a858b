"""``ptir.fft`` against `numpy.fft`, traced and eager, in every precision."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.types import Array

RANDOM = np.random.default_rng(3)
DTYPES = ("f4", "f8", "c8", "c16")
NORMS = ("backward", "ortho", "forward", None)


def _array(dtype: str, *shape: int) -> Array:
    parts = RANDOM.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if "c" in dtype else parts[0]).astype(dtype)


def _check(name: str, x: Array, *args: Any, **kwargs: Any) -> None:
    """A function eager and traced: f64 has NumPy's bits; f32 that NumPy computes in f64 is near."""
    function: Callable[..., Any] = getattr(ptir.fft, name)
    expected = getattr(np.fft, name)(x, *args, **kwargs)
    for found in (
        function(x, *args, **kwargs),
        ptir.jit(lambda x: function(x, *args, **kwargs))(x),
    ):
        assert found.dtype.numpy == expected.dtype
        assert found.shape == expected.shape
        if x.dtype.name in ("float64", "complex128"):
            np.testing.assert_array_equal(found.numpy(), expected)
        else:
            size = float(np.abs(expected).max(initial=0))
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-6 * size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_axis(dtype: str) -> None:
    real = ("rfft", "ihfft") if "f" in dtype else ()
    for name in ("fft", "ifft", "irfft", "hfft", *real):
        for number, norm in enumerate(NORMS):
            x = _array(dtype, 3, 6 + number, 17)
            _check(name, x, norm=norm)
            _check(name, x, 4 + number, 1, norm)
            _check(name, x, n=20, axis=number % 3, norm=norm)


@pytest.mark.parametrize("dtype", DTYPES)
def test_several_axes(dtype: str) -> None:
    x = _array(dtype, 3, 4, 6)
    real = ("rfft", "irfft") if "f" in dtype else ("irfft",)
    for name in ("fft", "ifft", *real):
        for norm in NORMS[:3]:
            _check(f"{name}n", x, norm=norm)
            _check(f"{name}2", x, norm=norm)
        _check(f"{name}n", x, axes=(2, 0))
        _check(f"{name}n", x, s=(5, 4), axes=(0, 1))
        _check(f"{name}n", x, s=(5, -1), axes=(-1, 0))
        _check(f"{name}2", x, s=(3, 7), axes=(0, 2))
    assert ptir.fft.fftn(x, s=(2, 8)).shape == (3, 2, 8)


def test_frequencies_and_shifts() -> None:
    for n in (1, 2, 7, 8):
        for name in ("fftfreq", "rfftfreq"):
            expected = getattr(np.fft, name)(n, 0.1)
            found = getattr(ptir.fft, name)(n, 0.1)
            assert found.dtype is ptir.f32
            np.testing.assert_array_equal(found.numpy(), expected.astype("f4"))
            found = getattr(ptir.fft, name)(n, d=0.1, dtype=ptir.f64)
            np.testing.assert_array_equal(found.numpy(), expected)
    for shape in ((5,), (3, 4, 5)):
        for axes in (None, 0, (0, -1)[: len(shape)]):
            for name in ("fftshift", "ifftshift"):
                _check(name, _array("f8", *shape), axes=axes)


def test_dtypes_that_have_no_transform() -> None:
    assert ptir.fft.fft(np.arange(4)).dtype is ptir.cf32
    assert ptir.fft.rfft(np.arange(4, dtype=np.float16)).dtype is ptir.cf32
    assert ptir.fft.irfft(np.array([True, False])).dtype is ptir.f32


def test_no_step_is_in_python() -> None:
    @ptir.jit(dynamic={"x": {0: "B", 1: "N"}})
    def f(x: Any) -> Any:
        return ptir.fft.ifft(ptir.fft.fft(x, axis=0)), ptir.fft.rfft(x.T, axis=-1, norm="ortho")

    for shape in ((4, 6), (5, 3), (2, 40)):
        x = _array("f8", *shape)
        both, half = f(x)
        np.testing.assert_array_equal(both.numpy(), np.fft.ifft(np.fft.fft(x, axis=0)))
        np.testing.assert_array_equal(half.numpy(), np.fft.rfft(x.T, norm="ortho"))
    assert {step.kind for step in f.explain(x).report.steps} <= {"call", "region"}
    assert len(f.retraces()) == 1


def test_symbolic_frequencies() -> None:
    @ptir.jit(dynamic={"x": {0: "N"}})
    def f(x: Any) -> Any:
        n = x.shape[0]
        return ptir.fft.fftshift(x), ptir.fft.fftfreq(n, 0.5), ptir.fft.rfftfreq(n)

    for n in (5, 8):
        shifted, every, half = f(np.arange(n))
        np.testing.assert_array_equal(shifted.numpy(), np.fft.fftshift(np.arange(n)))
        np.testing.assert_array_equal(every.numpy(), np.fft.fftfreq(n, 0.5).astype("f4"))
        np.testing.assert_array_equal(half.numpy(), np.fft.rfftfreq(n).astype("f4"))


def test_examples_of_a_batch() -> None:
    x = _array("f8", 4, 5, 6)
    found = ptir.vmap(lambda x: ptir.fft.irfft2(ptir.fft.rfft2(x)))(x)
    np.testing.assert_array_equal(found.numpy(), np.fft.irfft2(np.fft.rfft2(x)))


def test_wrong_arguments() -> None:
    x = np.ones((2, 4))
    for call, error, message in (
        (lambda: ptir.fft.fft(x, norm=cast("Any", "best")), ArgumentError, "norm is 'best'"),
        (lambda: ptir.fft.fftn(x, norm=cast("Any", 2)), ArgumentError, "norm is 2"),
        (lambda: ptir.fft.rfft(x, 0), ArgumentError, "n is 0"),
        (lambda: ptir.fft.irfft(np.ones(1)), ArgumentError, "n is 0"),
        (lambda: ptir.fft.fft2(x, s=(2, 0)), ArgumentError, "n is 0"),
        (lambda: ptir.fft.fft(x, axis=2), ShapeError, "axis 2 is out of range"),
        (lambda: ptir.fft.fft(1.0), ShapeError, "rank 0"),
        (lambda: ptir.fft.fftn(x, axes=(0, -2)), ShapeError, "an axis twice"),
        (lambda: ptir.fft.fftn(x, s=(2,), axes=(0, 1)), ShapeError, "1 sizes for 2 axes"),
        (lambda: ptir.fft.fftn(x, s=(2, 2, 2)), ShapeError, "3 sizes, the operand 2 axes"),
        (lambda: ptir.fft.rfftn(x, axes=()), ArgumentError, "at least one"),
        (lambda: ptir.fft.rfft(x + 1j), DTypeError, "found dtype cf64, expected real numbers"),
        (lambda: ptir.fft.fftfreq(0), ArgumentError, "n is 0"),
        (lambda: ptir.fft.fftfreq(4, dtype=ptir.si32), DTypeError, "expected a float"),
        (lambda: ptir.ops.fft_c2c(x, n=4, axis=1), DTypeError, "expected cf32 or cf64"),
        (lambda: ptir.ops.fft_r2c(x, n=0, axis=1), ShapeError, "n is 0"),
    ):
        with pytest.raises(error, match=message):
            call()

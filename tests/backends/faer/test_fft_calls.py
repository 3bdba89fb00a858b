"""Fourier transforms in plans: strides, threads, and a NumPy without the loops."""

# Traced functions take any array.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer.calls import fft

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_bits_do_not_depend_on_threads(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = RANDOM.standard_normal((37, 300, 19)).astype(dtype)
    calls = (
        lambda x: ptir.fft.rfft(x, axis=1),
        lambda x: ptir.fft.fft(x, axis=-1),
        lambda x: ptir.fft.irfft(x, axis=0),
        lambda x: ptir.fft.fft(x[0], 4096),
    )
    for call in calls:
        found: list[Any] = []
        for threads in ("1", "2", "3", "5"):
            monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
            found.append(ptir.jit(call)(x).numpy())
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])


def test_lines_without_elements_are_zeros() -> None:
    function: Any = ptir.jit(lambda x: (ptir.fft.irfft(x, 8), ptir.fft.fft(x, 8)))
    x = np.zeros((7, 9, 0), np.complex128)
    with ptir.eager():
        eager = function(x)
    for found in (*function(x), *eager):
        np.testing.assert_array_equal(found.numpy(), np.zeros((7, 9, 8)))


def test_views_are_read_where_they_lie() -> None:
    x = RANDOM.standard_normal((4, 6, 10))
    for view in (
        lambda x: x.T,
        lambda x: x[:, ::2, 1:7],
        lambda x: x[1],
        lambda x: x.reshape(24, 10),
        lambda x: x[:1, :, :1],
    ):
        f = ptir.jit(lambda x, view=view: ptir.fft.rfft(view(x), axis=0))
        np.testing.assert_array_equal(f(x).numpy(), np.fft.rfft(view(x), axis=0))
        assert [step.kind for step in f.explain(x).report.steps] == ["call"]


def test_without_the_loops_numpy_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fft, "_POCKETFFT", "numpy.fft.of_another_version")
    x = RANDOM.standard_normal((3, 8)).astype("f4")
    f = ptir.jit(lambda x: ptir.fft.irfft(ptir.fft.rfft(x)))
    np.testing.assert_allclose(f(x).numpy(), x, rtol=1e-5, atol=1e-6)
    assert [step.kind for step in f.explain(x).report.steps] == ["reference", "reference"]

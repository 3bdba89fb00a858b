"""stft and istft against torch."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gptrs import ptir as namespace
from gptrs.errors import ArgumentError, ShapeError

ptir: Any = namespace  # of which the checker knows the ops alone
RANDOM = np.random.default_rng(0)
SIGNAL = RANDOM.standard_normal((2, 900), np.float32)
HANN = np.hanning(201)[:-1].astype(np.float32)

CALLS: dict[str, dict[str, Any]] = {
    "a window": {"n_fft": 200, "hop_length": 80, "window": HANN},
    "a shorter window": {"n_fft": 256, "hop_length": 60, "win_length": 200, "window": HANN},
    "no window": {"n_fft": 64},
    "a short window of ones": {"n_fft": 64, "win_length": 50},
    "normalized": {"n_fft": 200, "window": HANN, "normalized": True},
    "all frequencies": {"n_fft": 64, "onesided": False},
    "not centred": {"n_fft": 60, "hop_length": 15, "center": False},
}


def theirs(function: Callable[..., Any], x: Any, options: dict[str, Any]) -> Any:
    given = {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in options.items()
    }
    return function(torch.from_numpy(x), **given).numpy()


@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize("name", CALLS)
def test_spectra_and_back(name: str) -> None:
    options = CALLS[name]
    wanted = theirs(torch.stft, SIGNAL, {**options, "return_complex": True})
    made = ptir.jit(lambda x: ptir.stft(x, **options))(SIGNAL).numpy()
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-4)
    for length in (None, 850, 900):
        signal = theirs(torch.istft, wanted, {**options, "length": length})
        back = ptir.jit(lambda x: ptir.istft(x, length=length, **options))(wanted)  # noqa: B023
        np.testing.assert_allclose(back.numpy(), signal, rtol=1e-4, atol=1e-5)


def test_real_parts_and_modes_of_padding() -> None:
    options = {"n_fft": 64, "window": HANN[:64], "pad_mode": "constant"}
    wanted = theirs(torch.stft, SIGNAL[0], {**options, "return_complex": True})
    found = ptir.stft(SIGNAL[0], return_complex=False, **options)
    np.testing.assert_allclose(found.numpy()[..., 0], wanted.real, rtol=1e-5, atol=1e-4)
    back = ptir.istft(found, n_fft=64, window=HANN[:64]).numpy()
    np.testing.assert_allclose(back, SIGNAL[0, :896], rtol=1e-4, atol=1e-4)


def test_a_signal_of_any_length() -> None:
    stft = ptir.jit(dynamic={"x": {0: "L"}})(lambda x: abs(ptir.stft(x, 64, 16, window=HANN[:64])))
    for length in (500, 700):
        given = {"n_fft": 64, "hop_length": 16, "window": HANN[:64], "return_complex": True}
        wanted = abs(theirs(torch.stft, SIGNAL[0, :length], given))
        np.testing.assert_allclose(stft(SIGNAL[0, :length]).numpy(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_padding_of_any_length(mode: Any) -> None:
    padded = ptir.jit(dynamic={"x": {0: "L"}})(lambda x: ptir.pad(x, [(2, 3)], mode))
    for length in (1, 2, 3, 5):
        x = np.arange(1.0, length + 1)
        assert np.array_equal(padded(x).numpy(), np.pad(x, (2, 3), mode=mode))


def test_wrong_operands() -> None:
    with pytest.raises(ArgumentError, match="expected 0 < win_length <= n_fft"):
        ptir.stft(SIGNAL, 64, win_length=100)
    with pytest.raises(ShapeError, match="window has shape"):
        ptir.stft(SIGNAL, 64, window=HANN)
    with pytest.raises(ShapeError, match="expected 33 for n_fft=64"):
        ptir.istft(np.zeros((10, 5), np.complex64), 64)
    with pytest.raises(ShapeError, match="takes spectra"):
        ptir.istft(np.zeros(5, np.complex64), 8)

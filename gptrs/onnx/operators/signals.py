"""Windows, filters and Fourier transforms of signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.nn.operands import fixed
from gptrs.onnx.table import UnsupportedOperatorError, onnx, ptir
from gptrs.onnx.tensors import dtype_of


def _window(name: str, terms: Sequence[float]) -> None:
    """Enter a sum of cosines under ``name``."""

    @onnx(name, known=("size",))
    def window(size: Any, output_datatype: int = 1, periodic: int = 1) -> Any:
        count = int(size)
        turns = 2 * np.pi * np.arange(count) / max(count if periodic else count - 1, 1)
        made = sum((-1) ** i * a * np.cos(i * turns) for i, a in enumerate(terms))
        return np.asarray(made).astype(dtype_of(output_datatype).numpy)


_window("BlackmanWindow", (0.42, 0.5, 0.08))
_window("HammingWindow", (25 / 46, 21 / 46))
_window("HannWindow", (0.5, 0.5))


@onnx("MelWeightMatrix", known=("bins", "length", "rate", "low", "high"))
def mel_weight_matrix(
    bins: Any, length: Any, rate: Any, low: Any, high: Any, output_datatype: int = 1
) -> Any:
    """Triangular filters, equally wide on the mel scale, for the bins of a spectrum."""
    count = int(length) // 2 + 1
    ends = [2595 * np.log10(1 + float(f) / 700) for f in (low, high)]
    edges = ends[0] + np.arange(int(bins) + 2) * (ends[1] - ends[0]) / (int(bins) + 2)
    places = ((int(length) + 1) * (700 * (10 ** (edges / 2595) - 1)) / int(rate)).astype(int)
    made = np.zeros((count, int(bins)))
    for i in range(int(bins)):
        first, middle, last = places[i : i + 3]
        if middle == first:
            made[middle, i] = 1
        for j in range(first, middle + 1) if middle != first else ():
            made[j, i] = (j - first) / (middle - first)
        for j in range(middle, last) if last != middle else ():
            made[j, i] = (last - j) / (last - middle)
    return made.astype(dtype_of(output_datatype).numpy)


@onnx("DFT", known=("dft_length", "axis"), since=20)
def dft(
    x: Tensor, dft_length: Any = None, axis: Any = -2, inverse: int = 0, onesided: int = 0
) -> Tensor:
    """The Fourier transform along ``axis``; the last axis has the real and imaginary parts."""
    return _transformed(x, dft_length, int(np.asarray(axis)), inverse, onesided)


@onnx("DFT", known=("dft_length",), until=19)
def dft_by_attribute(
    x: Tensor, dft_length: Any = None, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return _transformed(x, dft_length, axis, inverse, onesided)


def _transformed(x: Tensor, length: Any, axis: int, inverse: int, onesided: int) -> Tensor:
    along = axis % x.ndim
    count = None if length is None else int(length)
    values = x[..., 0] if x.shape[-1] == 1 else ptir.view_as_complex(x)
    if onesided and inverse:
        return ptir.expand_dims(ptir.fft.irfft(values, count, axis=along), -1)
    if onesided:
        made = ptir.fft.rfft(ptir.real(values), count, axis=along)
    else:
        run = ptir.fft.ifft if inverse else ptir.fft.fft
        made = run(values, count, axis=along)
    return ptir.view_as_real(made)


@onnx("STFT", known=("frame_step", "frame_length"))
def stft(
    signal: Tensor,
    frame_step: Any,
    window: Tensor | None = None,
    frame_length: Any = None,
    onesided: int = 1,
) -> Tensor:
    """The transforms of frames of a signal [batch, samples, 1 or 2]."""
    step = int(np.asarray(frame_step).reshape(-1)[0])
    if frame_length is not None:
        length = int(np.asarray(frame_length).reshape(-1)[0])
    elif window is not None:
        length = int(window.shape[0])
    else:
        raise UnsupportedOperatorError("STFT without a window and a length")
    (samples,) = fixed(signal.shape[1:2], "the signal")
    count = (samples - length) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(length)
    frames = ptir.take(signal, places, axis=1)
    if window is not None:
        frames = frames * window[None, None, :, None]
    is_real = signal.ndim == 2 or signal.shape[-1] == 1
    return _transformed(frames, None, 2, 0, int(onesided and is_real))

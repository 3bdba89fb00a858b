"""Spectra of the windows of a signal, and the signal of such spectra: torch's stft and istft.

    x [..., L]  ─▶  frames [..., T, n_fft], hop_length apart, times a window  ─▶  [..., F, T]

F is ⌊n_fft / 2⌋ + 1 frequencies of a real signal (``onesided``), else n_fft.
"""

from __future__ import annotations

import math
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.locks import late_import
from gptrs.numpy_api.element_views import view_as_complex, view_as_real
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.manipulation import moveaxis
from gptrs.numpy_api.padding import PadMode, pad
from gptrs.numpy_api.sections import unfold

__all__ = ["istft", "stft"]


@public(other_names={"input": "x"})
def stft(
    x: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: PadMode = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool = True,
) -> Tensor:
    """The spectra of the windows of x [..., L], [..., F, T].

    Windows have ``n_fft`` elements, times ``window`` [win_length] in their middle, and follow each
    other every ``hop_length`` (n_fft // 4). With ``center`` the first one is around the first
    element, and ``pad_mode`` says what is outside. ``normalized`` divides by √n_fft.
    """
    x = as_tensor(x)
    hop, weights = _frames("stft", n_fft, hop_length, win_length, window, x)
    if center:
        x = pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], pad_mode)
    frames = unfold(x, -1, n_fft, hop)
    if weights is not None:
        frames = frames * weights
    halves = onesided if onesided is not None else not frames.dtype.is_complex
    transform = _fft("rfft" if halves else "fft")
    found = moveaxis(transform(frames, norm="ortho" if normalized else "backward"), -1, -2)
    return found if return_complex else view_as_real(found)


@public(other_names={"input": "x"})
def istft(
    x: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: DimLike | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal [..., L] whose `stft` x [..., F, T] is, or the nearest one to it in the sense of
    least squares; the other arguments are those of `stft`.

    ``length`` is L if the windows do not end with the signal. Where the windows sum to 0 the signal
    is not known, and the result has infinities or NaN.
    """
    x = as_tensor(x)
    if not x.dtype.is_complex:
        x = view_as_complex(x)
    if x.ndim < 2:
        raise ShapeError(f"istft takes spectra [..., F, T], found {shape_text(x.shape)}")
    halves = onesided if onesided is not None else x.shape[-2] != n_fft
    count = n_fft // 2 + 1 if halves else n_fft
    if x.shape[-2] != count:
        raise ShapeError(f"istft: {x.shape[-2]} frequencies, expected {count} for n_fft={n_fft}")
    norm = "ortho" if normalized else "backward"
    spectra = moveaxis(x, -2, -1)
    if halves:
        frames = _fft("irfft")(spectra, n=n_fft, norm=norm)
    else:
        frames = _fft("ifft")(spectra, norm=norm)
        frames = frames if return_complex else OPS["real"](frames)
    hop, weights = _frames("istft", n_fft, hop_length, win_length, window, frames)
    if weights is None:
        weights = FUNCTIONS["ones"]((n_fft,), dtype=frames.dtype)
    total = _overlapped(frames * weights, n_fft, hop)
    squares = OPS["broadcast_to"](weights * weights, shape=frames.shape[-2:])
    signal = total / _overlapped(squares, n_fft, hop)
    first = n_fft // 2 if center else 0
    if length is None:
        return signal[..., first : signal.shape[-1] - first]
    signal = signal[..., first:]
    missing = length - signal.shape[-1]
    if isinstance(missing, int) and missing > 0:
        signal = pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, missing)])
    return signal[..., :length]


def _fft(name: str) -> Any:
    return getattr(late_import("gptrs.numpy_api.fft"), name)


def _frames(
    name: str, n_fft: int, hop: int | None, win_length: int | None, window: Any, like: Tensor
) -> tuple[int, Tensor | None]:
    """The distance of windows, and the weights of their ``n_fft`` elements; None for ones."""
    hop = n_fft // 4 if hop is None else hop
    size = n_fft if win_length is None else win_length
    if not 0 < size <= n_fft or hop < 1:
        raise ArgumentError(
            f"{name}: n_fft={n_fft}, win_length={size} and hop_length={hop}, expected"
            " 0 < win_length <= n_fft and hop_length > 0"
        )
    if window is None:
        if size == n_fft:
            return hop, None
        window = FUNCTIONS["ones"]((size,), dtype=like.dtype)
    weights = as_tensor(window)
    if weights.shape != (size,):
        raise ShapeError(
            f"{name}: window has shape {shape_text(weights.shape)}, expected [{size}]",
            fix="pass its length as win_length",
        )
    before = (n_fft - size) // 2
    return hop, pad(weights, [(before, n_fft - size - before)])


def _overlapped(frames: Tensor, size: int, hop: int) -> Tensor:
    """Frames [..., T, size] added up at distances of ``hop``: [..., (T − 1) · hop + size]."""
    *batch, count, _ = frames.shape
    parts = math.ceil(size / hop)
    around = [(0, 0)] * len(batch)
    padded = pad(frames, [*around, (0, 0), (0, parts * hop - size)])
    pieces = OPS["reshape"](padded, shape=(*batch, count, parts, hop))
    # Part j of frame t lies where part 0 of frame t + j does.
    rows = [pad(pieces[..., j, :], [*around, (j, parts - 1 - j), (0, 0)]) for j in range(parts)]
    total = OPS["reshape"](sum(rows[1:], rows[0]), shape=(*batch, (count + parts - 1) * hop))
    return total[..., : (count - 1) * hop + size]

"""Windows by torch's names: periodic unless asked otherwise. See `gptrs.numpy_api.signal`."""

from __future__ import annotations

from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import public
from gptrs.numpy_api.signal import windows

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]


@public
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: object = None) -> Tensor:
    """The triangular window, 0 at the ends: [window_length]."""
    return windows.bartlett(window_length, not periodic, dtype=dtype)


@public
def blackman_window(window_length: int, periodic: bool = True, *, dtype: object = None) -> Tensor:
    """The Blackman window [window_length]."""
    return windows.blackman(window_length, not periodic, dtype=dtype)


@public
def hann_window(window_length: int, periodic: bool = True, *, dtype: object = None) -> Tensor:
    """The Hann window, a raised cosine: [window_length]."""
    return windows.hann(window_length, not periodic, dtype=dtype)


@public
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: object = None,
) -> Tensor:
    """alpha − beta cos(2πn / N): [window_length]."""
    return windows.general_cosine(window_length, (alpha, beta), not periodic, dtype=dtype)


@public
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: object = None
) -> Tensor:
    """The Kaiser window of shape ``beta``: [window_length]."""
    return windows.kaiser(window_length, beta, not periodic, dtype=dtype)

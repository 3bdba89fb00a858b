"""Windows by NumPy's names, symmetric, and by torch's, periodic unless asked otherwise.

`gptrs.numpy_api.signal` computes them.
"""

from __future__ import annotations

from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import public
from gptrs.numpy_api.signal import windows

__all__ = [
    "bartlett",
    "bartlett_window",
    "blackman",
    "blackman_window",
    "hamming",
    "hamming_window",
    "hann_window",
    "hanning",
    "kaiser",
    "kaiser_window",
]


@public
def bartlett(m: int) -> Tensor:
    """The triangular window of ``m`` points, 0 at the ends."""
    return windows.bartlett(m)


@public
def blackman(m: int) -> Tensor:
    """The Blackman window of ``m`` points."""
    return windows.blackman(m)


@public
def hamming(m: int) -> Tensor:
    """The Hamming window of ``m`` points."""
    return windows.hamming(m)


@public
def hanning(m: int) -> Tensor:
    """The Hann window of ``m`` points."""
    return windows.hann(m)


@public
def kaiser(m: int, beta: float) -> Tensor:
    """The Kaiser window of ``m`` points and shape ``beta``."""
    return windows.kaiser(m, beta)


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

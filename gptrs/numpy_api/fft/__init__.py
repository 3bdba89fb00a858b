"""``ptir.fft``: discrete Fourier transforms by the names of the array API standard and of NumPy.

f32 and cf32 give cf32, f64 and cf64 give cf64, or real numbers of that precision; other real dtypes
are computed as f32.

| module | functions |
|---|---|
| `transforms` | along one axis: fft, ifft, rfft, irfft, hfft, ihfft |
| `several_axes` | along several or two: fftn, ifftn, rfftn, irfftn, fft2, ifft2, rfft2, irfft2 |
| `frequencies` | fftfreq, rfftfreq, fftshift, ifftshift |
"""

from typing import NoReturn

from gptrs.ir.names import unknown_name
from gptrs.numpy_api.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from gptrs.numpy_api.fft.several_axes import (
    fft2,
    fftn,
    ifft2,
    ifftn,
    irfft2,
    irfftn,
    rfft2,
    rfftn,
)
from gptrs.numpy_api.fft.transforms import fft, hfft, ifft, ihfft, irfft, rfft

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def __getattr__(name: str) -> NoReturn:
    """The error for a name that is not there."""
    raise unknown_name("ptir.fft", name)

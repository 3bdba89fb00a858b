"""``ptir.fft``: discrete Fourier transforms by the names of the array API standard and of NumPy.

f32 and cf32 give cf32, f64 and cf64 give cf64, or real numbers of that precision; other real dtypes
are computed as f32. NumPy's compiled pocketfft does the work, one call per batch of lines.

| module | functions |
|---|---|
| `transforms` | along one axis: fft, ifft, rfft, irfft, hfft, ihfft |
| `several_axes` | along several or two: fftn, ifftn, rfftn, irfftn, fft2, ifft2, rfft2, irfft2 |
| `frequencies` | fftfreq, rfftfreq, fftshift, ifftshift |
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.names import unknown_name
from gptrs.locks import late_import

MODULES: dict[str, tuple[str, ...]] = {
    "transforms": ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft"),
    "several_axes": (*("fft2", "fftn", "ifft2", "ifftn", "irfft2", "irfftn", "rfft2", "rfftn"),),
    "frequencies": ("fftfreq", "fftshift", "ifftshift", "rfftfreq"),
}
"""The names of each module, its ``__all__``."""

_PLACES = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """The function called ``name``."""
    if name not in _PLACES:
        raise unknown_name("ptir.fft", name)
    return getattr(late_import(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_PLACES)

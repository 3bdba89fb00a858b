"""Rows of Fourier transforms."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from tests.cases.sample import COMPLEX, Case, S, Sample, sample
from tests.support.lazy_torch import torch

POCKETFFT = "torch has transforms of its own, and NumPy computes some of f32 in f64"


def _lines(**attrs: Any) -> tuple[Sample, ...]:
    """Transforms of all of a line, of its beginning, and of more than it has."""
    return (
        sample("T[S,8] unit", n=8, axis=1, **attrs),
        sample("T[2,S,5] unit", n=S, axis=1, **attrs),
        sample("T[S,5] unit", n=2 * S + 1, axis=0, **attrs),
        sample("T[2,3,7] unit", n=4, axis=-1, norm="ortho", **attrs),
        sample("T[3,2,2,3] unit", n=5, axis=1, norm="forward", **attrs),
        sample("T[20] unit", n=1, axis=0, **attrs),
        sample("T[0,3] unit", n=3, axis=1, **attrs),
        sample("T[2,S,17] unit", n=12, axis=1, norm="forward", **attrs),
    )


def _torch(x: torch.Tensor, name: str, *options: Any) -> torch.Tensor:
    """A function of `torch.fft`, which takes no empty batch."""
    function = getattr(torch.fft, name)
    if not x.numel():
        return function(x.new_ones((1, *x.shape[1:])), *options)[:0]
    return function(x, *options)


FFT = (
    Case(
        "fft_c2c",
        (*_lines(), *_lines(inverse=True)),
        lambda x, *, n, axis, inverse=False, norm="backward": _torch(
            x, "ifft" if inverse else "fft", n, axis, norm
        ),
        COMPLEX,
        ulps=16,
        magnitude=1,
        why=POCKETFFT,
    ),
    Case(
        "fft_r2c",
        _lines(),
        lambda x, *, n, axis, norm="backward": _torch(x, "rfft", n, axis, norm),
        ("f32", "f64"),
        ulps=16,
        magnitude=1,
        why=POCKETFFT,
    ),
    Case(
        "fft_c2r",
        _lines(),
        lambda x, *, n, axis, norm="backward": _torch(x, "irfft", n, axis, norm),
        COMPLEX,
        ulps=16,
        magnitude=1,
        why=POCKETFFT,
    ),
)

"""Fourier transforms along one axis."""

from __future__ import annotations

from typing import Any, Literal

from gptrs.errors import ArgumentError, DTypeError
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis
from gptrs.numpy_api.function import as_tensor, public

__all__ = ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"]

Norm = Literal["backward", "ortho", "forward"]
X = {"a": "x", "input": "x"}
"""What NumPy, JAX and torch call the operand."""
_OPPOSITE: dict[Norm, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def floating(x: Any) -> Tensor:
    """An operand in a dtype that there are transforms of: f32 for integers, bools and narrower
    floats."""
    x = as_tensor(x)
    if x.dtype.is_complex or (x.dtype.is_float and x.dtype.bits >= 32):
        return x
    return x.astype(DEFAULT_FLOAT)


def complex_of(x: Any) -> Tensor:
    """An operand as complex numbers of its precision."""
    x = floating(x)
    if x.dtype.is_complex:
        return x
    return x.astype("cf64" if x.dtype.bits == 64 else "cf32")


def real(x: Any) -> Tensor:
    """An operand that has to be real. Raises `DTypeError` for complex numbers."""
    x = floating(x)
    if x.dtype.is_complex:
        raise DTypeError(
            f"found dtype {x.dtype}, expected real numbers",
            fix="fft transforms complex numbers; ptir.real(x) has the real parts",
        )
    return x


def norm_of(norm: Any) -> Norm:
    """``norm`` in full: None is "backward"."""
    if norm is not None and norm not in _OPPOSITE:
        raise ArgumentError(f"norm is {norm!r}, expected 'backward', 'ortho' or 'forward'")
    return norm or "backward"


def along(x: Tensor, n: DimLike | None, axis: int, *, half: bool = False) -> tuple[DimLike, int]:
    """The points of a transform, by default those of ``x`` (of which ``half`` may be left out), and
    the axis from the front."""
    axis = normal_axis(axis, x.ndim)
    if n is None:
        n = 2 * (x.shape[axis] - 1) if half else x.shape[axis]
    if not isinstance(n, Dim) and n < 1:
        raise ArgumentError(f"n is {n}, expected a transform of at least 1 point")
    return n, axis


@public(namespace="fft", other_names=X)
def fft(
    x: Any, /, n: DimLike | None = None, axis: int = -1, norm: Norm | None = "backward"
) -> Tensor:
    """Σⱼ xⱼ·exp(−2πi·jk/n) for k < n along ``axis``, complex.

    ``x`` is cut to ``n`` elements along the axis or continued by zeros; by default n is its extent.
    ``norm`` says which direction is scaled: "backward" the inverse by 1/n, "forward" this one,
    "ortho" both by 1/√n.
    """
    x = complex_of(x)
    n, axis = along(x, n, axis)
    return OPS["fft_c2c"](x, n=n, axis=axis, norm=norm_of(norm))


@public(namespace="fft", other_names=X)
def ifft(
    x: Any, /, n: DimLike | None = None, axis: int = -1, norm: Norm | None = "backward"
) -> Tensor:
    """The inverse of `fft`: Σⱼ xⱼ·exp(2πi·jk/n) / n for k < n."""
    x = complex_of(x)
    n, axis = along(x, n, axis)
    return OPS["fft_c2c"](x, n=n, axis=axis, inverse=True, norm=norm_of(norm))


@public(namespace="fft", other_names=X)
def rfft(
    x: Any, /, n: DimLike | None = None, axis: int = -1, norm: Norm | None = "backward"
) -> Tensor:
    """The first ⌊n/2⌋ + 1 elements of the `fft` of real ``x``; the others are their conjugates."""
    x = real(x)
    n, axis = along(x, n, axis)
    return OPS["fft_r2c"](x, n=n, axis=axis, norm=norm_of(norm))


@public(namespace="fft", other_names=X)
def irfft(
    x: Any, /, n: DimLike | None = None, axis: int = -1, norm: Norm | None = "backward"
) -> Tensor:
    """The inverse of `rfft`: ``n`` real numbers, by default 2·(extent − 1)."""
    x = complex_of(x)
    n, axis = along(x, n, axis, half=True)
    return OPS["fft_c2r"](x, n=n, axis=axis, norm=norm_of(norm))


@public(namespace="fft", other_names=X)
def hfft(
    x: Any, /, n: DimLike | None = None, axis: int = -1, norm: Norm | None = "backward"
) -> Tensor:
    """The `fft`, which is real, of ``n`` numbers with xₙ₋ⱼ = conj xⱼ; ``x`` holds the first half of
    them. By default n is 2·(extent − 1)."""
    x = complex_of(x)
    n, axis = along(x, n, axis, half=True)
    return OPS["fft_c2r"](OPS["conj"](x), n=n, axis=axis, norm=_OPPOSITE[norm_of(norm)])


@public(namespace="fft", other_names=X)
def ihfft(
    x: Any, /, n: DimLike | None = None, axis: int = -1, norm: Norm | None = "backward"
) -> Tensor:
    """The inverse of `hfft`: the first ⌊n/2⌋ + 1 elements of the `ifft` of real ``x``."""
    x = real(x)
    n, axis = along(x, n, axis)
    return OPS["conj"](OPS["fft_r2c"](x, n=n, axis=axis, norm=_OPPOSITE[norm_of(norm)]))

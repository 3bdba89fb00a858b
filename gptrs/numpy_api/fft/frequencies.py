"""Frequencies of the elements of a transform, and shifts that centre them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.errors import ArgumentError, DTypeError
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, as_dtype, normal_axes
from gptrs.numpy_api.creation import arange, asarray, check_device
from gptrs.numpy_api.fft.transforms import X
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.manipulation import roll

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


@public(namespace="fft")
def fftfreq(
    n: DimLike, /, d: float = 1.0, *, dtype: object = None, device: object = None
) -> Tensor:
    """The frequency of each element of an `fft` of ``n`` points at distances ``d``, [n]:
    0, 1, ... ⌊(n−1)/2⌋, −⌊n/2⌋, ... −1, each over n·d. f32 unless ``dtype`` says otherwise."""
    check_device(device)
    kind, places = _check(n, d, dtype), arange(n)
    return _over(OPS["select"](places > (n - 1) // 2, places - n, places), n, d, kind)


@public(namespace="fft")
def rfftfreq(
    n: DimLike, /, d: float = 1.0, *, dtype: object = None, device: object = None
) -> Tensor:
    """The frequencies of an `rfft` of ``n`` points at distances ``d``: 0, 1, ... ⌊n/2⌋, each over
    n·d; [⌊n/2⌋ + 1]. f32 unless ``dtype`` says otherwise."""
    check_device(device)
    return _over(arange(n // 2 + 1), n, d, _check(n, d, dtype))


def _check(n: DimLike, d: Any, dtype: object) -> DType:
    if not isinstance(n, Dim) and n < 1:
        raise ArgumentError(f"n is {n}, expected at least 1 point")
    if not isinstance(d, Tensor) and d == 0:
        raise ArgumentError("d is 0, expected the distance of the points")
    found = DEFAULT_FLOAT if dtype is None else as_dtype(dtype)
    if not found.is_float:
        raise DTypeError(f"dtype is {found}, expected a float")
    return found


def _over(places: Tensor, n: DimLike, d: Any, dtype: DType) -> Tensor:
    """places / (n·d), computed in f64 as NumPy does and rounded once."""
    scale = 1.0 / (asarray(n, dtype="f64") * asarray(d, dtype="f64"))
    return (places.astype("f64") * scale).astype(dtype)


@public(namespace="fft", other_names=X)
def fftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """The elements along ``axes`` (None: all) moved by half the extent, so that frequency 0 is in
    the middle."""
    x = as_tensor(x)
    places = normal_axes(axes, x.ndim)
    return roll(x, [x.shape[axis] // 2 for axis in places], places) if places else x


@public(namespace="fft", other_names=X)
def ifftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    x = as_tensor(x)
    places = normal_axes(axes, x.ndim)
    return roll(x, [-(x.shape[axis] // 2) for axis in places], places) if places else x

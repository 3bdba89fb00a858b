"""Fourier transforms along several axes, one after the other as NumPy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis
from gptrs.numpy_api.fft.transforms import (
    Norm,
    X,
    complex_of,
    fft,
    ifft,
    irfft,
    norm_of,
    real,
    rfft,
)
from gptrs.numpy_api.function import public

__all__ = ["fft2", "fftn", "ifft2", "ifftn", "irfft2", "irfftn", "rfft2", "rfftn"]

Sizes = Sequence[DimLike | None]
Axes = Sequence[int]
_LAST_TWO = (-2, -1)


def _sizes(
    x: Tensor, s: Sizes | None, axes: Axes | None, *, half: bool = False
) -> list[tuple[int, DimLike]]:
    """By axis its points: those of ``s``, or of ``x`` for None and -1; without axes the last ones,
    all of them without ``s`` too."""
    if axes is None:
        count = x.ndim if s is None else len(s)
        if count > x.ndim:
            raise ShapeError(f"s has {count} sizes, the operand {x.ndim} axes")
        axes = range(x.ndim - count, x.ndim)
    places = [normal_axis(axis, x.ndim) for axis in axes]
    if len(set(places)) != len(places):
        raise ShapeError(f"axes {tuple(axes)} name an axis twice")
    given = [None] * len(places) if s is None else list(s)
    if len(given) != len(places):
        raise ShapeError(f"s has {len(given)} sizes for {len(places)} axes")
    found: list[tuple[int, DimLike]] = []
    for axis, n in zip(places, given, strict=True):
        if n is None or (not isinstance(n, Dim) and n == -1):
            last = half and len(found) == len(places) - 1
            n = 2 * (x.shape[axis] - 1) if last and n is None else x.shape[axis]
        found.append((axis, n))
    return found


def _in_turn(
    function: Callable[..., Tensor], x: Tensor, sizes: Sequence[tuple[int, DimLike]], norm: Any
) -> Tensor:
    for axis, n in sizes:
        x = function(x, n, axis, norm)
    return x


@public(namespace="fft", other_names=X)
def fftn(
    x: Any, /, s: Sizes | None = None, axes: Axes | None = None, norm: Norm | None = "backward"
) -> Tensor:
    """The `fft` along each of ``axes``, by default all of them, or the last ones that ``s`` has
    sizes for.

    ``s`` holds the points by axis (-1: those of ``x``); ``norm`` as in `fft`.
    """
    x, norm = complex_of(x), norm_of(norm)
    return _in_turn(fft, x, _sizes(x, s, axes)[::-1], norm)


@public(namespace="fft", other_names=X)
def ifftn(
    x: Any, /, s: Sizes | None = None, axes: Axes | None = None, norm: Norm | None = "backward"
) -> Tensor:
    """The inverse of `fftn`."""
    x, norm = complex_of(x), norm_of(norm)
    return _in_turn(ifft, x, _sizes(x, s, axes)[::-1], norm)


@public(namespace="fft", other_names=X)
def rfftn(
    x: Any, /, s: Sizes | None = None, axes: Axes | None = None, norm: Norm | None = "backward"
) -> Tensor:
    """The `fftn` of real ``x``, of which the last axis holds the first ⌊n/2⌋ + 1 elements."""
    x, norm = real(x), norm_of(norm)
    *others, (axis, n) = _with_last(_sizes(x, s, axes))
    return _in_turn(fft, rfft(x, n, axis, norm), others[::-1], norm)


@public(namespace="fft", other_names=X)
def irfftn(
    x: Any, /, s: Sizes | None = None, axes: Axes | None = None, norm: Norm | None = "backward"
) -> Tensor:
    """The inverse of `rfftn`; the last axis has by default 2·(extent − 1) elements."""
    x, norm = complex_of(x), norm_of(norm)
    *others, (axis, n) = _with_last(_sizes(x, s, axes, half=True))
    return irfft(_in_turn(ifft, x, others, norm), n, axis, norm)


def _with_last(sizes: list[tuple[int, DimLike]]) -> list[tuple[int, DimLike]]:
    if not sizes:
        raise ArgumentError("axes are (), expected at least one: real transforms halve the last")
    return sizes


@public(namespace="fft", other_names=X)
def fft2(
    x: Any, /, s: Sizes | None = None, axes: Axes = _LAST_TWO, norm: Norm | None = "backward"
) -> Tensor:
    """The `fftn` along the last two axes, or along ``axes``."""
    return fftn(x, s, axes, norm)


@public(namespace="fft", other_names=X)
def ifft2(
    x: Any, /, s: Sizes | None = None, axes: Axes = _LAST_TWO, norm: Norm | None = "backward"
) -> Tensor:
    """The inverse of `fft2`."""
    return ifftn(x, s, axes, norm)


@public(namespace="fft", other_names=X)
def rfft2(
    x: Any, /, s: Sizes | None = None, axes: Axes = _LAST_TWO, norm: Norm | None = "backward"
) -> Tensor:
    """The `rfftn` along the last two axes, or along ``axes``."""
    return rfftn(x, s, axes, norm)


@public(namespace="fft", other_names=X)
def irfft2(
    x: Any, /, s: Sizes | None = None, axes: Axes = _LAST_TWO, norm: Norm | None = "backward"
) -> Tensor:
    """The inverse of `rfft2`."""
    return irfftn(x, s, axes, norm)

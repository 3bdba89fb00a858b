"""Images at positions that are computed: grid_sample, and affine_grid for such positions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as fold
from itertools import product
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import same
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.nn.operands import as_float, fixed, nn_function
from gptrs.numpy_api.nn.resampling import CUBIC

__all__ = ["affine_grid", "grid_sample"]

_PADDINGS = ("zeros", "border", "reflection")


@nn_function
def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The positions θ · (x, y, 1) of each pixel, for `grid_sample`: [N, H, W, 2] of θ [N, 2, 3] and
    ``size`` (N, C, H, W), or [N, D, H, W, 3] of θ [N, 3, 4] and (N, C, D, H, W).

    −1 and 1 are the centres of the outer pixels with ``align_corners``, else the outer edges.
    """
    maps = as_float(theta)
    extents = tuple(int(n) for n in size[2:])
    rank = len(extents)
    if rank not in (2, 3) or maps.ndim != 3 or maps.shape[1:] != (rank, rank + 1):
        raise ShapeError(
            f"theta has shape {shape_text(maps.shape)} and size {tuple(size)}, expected [N, 2, 3]"
            " and (N, C, H, W), or [N, 3, 4] and (N, C, D, H, W)"
        )
    if not same(maps.shape[0], size[0]) or min(extents) < 1:
        raise ShapeError(f"size is {tuple(size)}, expected {maps.shape[0]} images of some pixels")
    wide = widen(maps)
    one = (slice(None), *(None,) * rank)  # a column of θ as [N, 1, ..., rank]
    total = wide[:, :, rank][one]
    for i, extent in enumerate(reversed(extents)):  # x is the last axis
        ends = 1 if align_corners else (extent - 1) / extent
        along = np.linspace(-ends, ends, extent) if extent > 1 else np.zeros(1)
        shape = [1] * (rank + 2)
        shape[rank - i] = extent
        places = Tensor(along.astype(wide.dtype.numpy).reshape(shape))
        total = total + wide[:, :, i][one] * places
    return narrow(total, maps)


@nn_function
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """x [N, C, H, W] at the positions (x, y) of grid [N, H', W', 2]: [N, C, H', W']; with three
    spatial axes likewise.

    −1 and 1 are the centres of the outer pixels with ``align_corners``, else the outer edges.
    ``mode`` is "bilinear", "nearest" or "bicubic" (two axes alone). Outside are zeros, the nearest
    pixel ("border"), or the image mirrored ("reflection"). Source: Jaderberg et al.,
    arXiv:1506.02025.
    """
    x, places = promote((as_float(input), as_float(grid)))
    rank = x.ndim - 2
    if rank not in (2, 3) or places.ndim != x.ndim or not same(places.shape[-1], rank):
        raise ShapeError(
            f"input has shape {shape_text(x.shape)} and grid {shape_text(places.shape)}, expected"
            " [N, C, H, W] and [N, H', W', 2], or one axis more and 3"
        )
    if not same(x.shape[0], places.shape[0]):
        raise ShapeError(f"input has {x.shape[0]} images, grid {places.shape[0]}")
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and rank == 3):
        raise ArgumentError(f"mode is {mode!r}, expected bilinear, nearest or (for images) bicubic")
    if padding_mode not in _PADDINGS:
        raise ArgumentError(
            f"padding_mode is {padding_mode!r}, expected one of {', '.join(_PADDINGS)}"
        )
    extents = fixed(x.shape[2:], "input")
    wide = widen(places)
    axes = [
        _Axis(wide[..., rank - 1 - i], extent, padding_mode, bool(align_corners))
        for i, extent in enumerate(extents)
    ]
    rows = widen(x).reshape([*x.shape[:2], -1])
    total: Tensor | None = None
    for taps in product(*(axis.taps(mode) for axis in axes)):
        part = _at(rows, taps, extents, zeros=padding_mode == "zeros")
        total = part if total is None else total + part
    assert total is not None
    return narrow(total.reshape([*x.shape[:2], *places.shape[1:-1]]), x)


Tap = tuple[Tensor, Tensor | None]
"""Positions (whole numbers, maybe outside) and weights, [N, H', W']."""


def _at(x: Tensor, taps: tuple[Tap, ...], extents: tuple[int, ...], *, zeros: bool) -> Tensor:
    """The elements of x [N, C, H·W] at one tap of each axis, weighted: [N, C, H'·W']."""
    index: Any = 0
    for (place, _), extent in zip(taps, extents, strict=True):
        inside = OPS["select"](place >= 0, OPS["minimum"](place, extent - 1), 0.0)  # NaN gives 0
        index = index * extent + inside.astype("si64")

    def rows(t: Tensor) -> Tensor:
        return t.reshape([t.shape[0], 1, -1])

    flat = rows(index)
    full = (*x.shape[:2], flat.shape[-1])
    value: Tensor = OPS["gather"](x, OPS["broadcast_to"](flat, shape=full), axis=-1)
    if zeros:
        checks = [
            OPS["logical_and"](place > -1, place < extent)
            for (place, _), extent in zip(taps, extents, strict=True)
        ]
        value = OPS["select"](rows(fold(OPS["logical_and"], checks)), value, 0.0)
    weights = [weight for _, weight in taps if weight is not None]
    return value * rows(fold(OPS["mul"], weights)) if weights else value


class _Axis:
    """Positions along an axis, from those of the grid in [−1, 1]."""

    def __init__(self, grid: Tensor, extent: int, padding: str, align_corners: bool) -> None:
        self.extent, self.padding, self.align_corners = extent, padding, align_corners
        if align_corners:
            self.place = (grid + 1.0) * ((extent - 1) / 2)
        else:
            self.place = ((grid + 1.0) * extent - 1.0) * 0.5

    def taps(self, mode: str) -> list[Tap]:
        """The whole positions next to each place, and their weights."""
        if mode == "bicubic":
            first = OPS["floor"](self.place)
            share = self.place - first
            return [
                (self._inside(first + float(k)), weight)
                for k, weight in zip((-1, 0, 1, 2), _cubic(share), strict=True)
            ]
        place = self._inside(self.place)
        if mode == "nearest":
            return [(OPS["round"](place), None)]
        first = OPS["floor"](place)
        share = place - first
        return [(first, 1.0 - share), (first + 1.0, share)]

    def _inside(self, place: Tensor) -> Tensor:
        """``place`` moved into the image, unless zeros stand outside."""
        if self.padding == "zeros":
            return place
        if self.padding == "reflection":
            place = self._mirrored(place)
        return OPS["clamp"](place, 0.0, float(self.extent - 1))

    def _mirrored(self, place: Tensor) -> Tensor:
        """Mirrored at the centres of the outer pixels, or at the edges."""
        low, span = (0.0, self.extent - 1) if self.align_corners else (-0.5, self.extent)
        if not span:
            return place * 0.0
        distance = OPS["abs"](place - low)
        turned = OPS["remainder"](distance, float(2 * span))
        return OPS["minimum"](turned, 2.0 * span - turned) + low


def _cubic(share: Tensor) -> list[Tensor]:
    """The weights of the four neighbours, as in `gptrs.numpy_api.nn.resampling`."""
    rest = 1.0 - share

    def near(d: Tensor) -> Tensor:
        return (d * (CUBIC + 2) - (CUBIC + 3)) * d * d + 1.0

    def far(d: Tensor) -> Tensor:
        return ((d * CUBIC - 5 * CUBIC) * d + 8 * CUBIC) * d - 4 * CUBIC

    return [far(share + 1.0), near(share), near(rest), far(rest + 1.0)]

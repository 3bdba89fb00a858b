"""Channels moved to pixels and among groups: pixel_shuffle, pixel_unshuffle, channel_shuffle."""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import same
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.operands import nn_function

__all__ = ["channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]


def _images(input: Any, name: str, factor: int) -> Tensor:
    x = as_tensor(input)
    if factor < 1:
        raise ArgumentError(f"{name} is {factor}, expected at least 1")
    if x.ndim < 3:
        raise ShapeError(f"input has shape {shape_text(x.shape)}, expected [..., C, H, W]")
    return x


def _turned(x: Tensor, rank: int, order: tuple[int, ...]) -> Tensor:
    """The axes after the first ``rank`` in another order."""
    return OPS["transpose"](x, perm=(*range(rank), *(rank + i for i in order)))


@nn_function
def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """x [..., C·r², H, W] as [..., C, H·r, W·r]. Source: Shi et al., arXiv:1609.05158."""
    r = upscale_factor
    x = _images(input, "upscale_factor", r)
    *outer, channels, height, width = x.shape
    if not same(channels % (r * r), 0):
        raise ShapeError(f"{channels} channels are no multiple of upscale_factor², {r * r}")
    rank = len(outer)
    parts = x.reshape([*outer, channels // (r * r), r, r, height, width])
    return _turned(parts, rank, (0, 3, 1, 4, 2)).reshape(
        [*outer, channels // (r * r), height * r, width * r]
    )


@nn_function
def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """x [..., C, H·r, W·r] as [..., C·r², H, W]: the inverse of `pixel_shuffle`."""
    r = downscale_factor
    x = _images(input, "downscale_factor", r)
    *outer, channels, height, width = x.shape
    if not same(height % r, 0) or not same(width % r, 0):
        raise ShapeError(f"extents {height} and {width} are no multiples of downscale_factor {r}")
    rank = len(outer)
    parts = x.reshape([*outer, channels, height // r, r, width // r, r])
    return _turned(parts, rank, (0, 2, 4, 1, 3)).reshape(
        [*outer, channels * r * r, height // r, width // r]
    )


@nn_function
def channel_shuffle(input: Any, groups: int) -> Tensor:
    """The channels of x [N, g·n, ...] read as a matrix [g, n] by columns. Source: Zhang et al.,
    arXiv:1707.01083."""
    x = as_tensor(input)
    if groups < 1:
        raise ArgumentError(f"groups is {groups}, expected at least 1")
    if x.ndim < 3 or not same(x.shape[1] % groups, 0):
        raise ShapeError(
            f"input has shape {shape_text(x.shape)}, expected [N, C, ...] with a multiple of"
            f" {groups} channels"
        )
    parts = x.reshape([x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]])
    return parts.transpose(1, 2).reshape(x.shape)


@nn_function
def native_channel_shuffle(input: Any, groups: int) -> Tensor:
    """`channel_shuffle`, under torch's other name."""
    return channel_shuffle(input, groups)

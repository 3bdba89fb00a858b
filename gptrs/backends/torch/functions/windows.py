"""Sliding windows over x [N, spatial..., C]: reductions, patches, convolutions, pooling.

torch takes channels first: the permuted view of x is torch's memory format "channels last".
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce as fold
from itertools import product
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from gptrs.backends.torch.functions.elementwise import maximum, minimum

Counts: TypeAlias = tuple[int, ...]
Padding: TypeAlias = tuple[tuple[int, int], ...]


def reduce_window(
    x: Tensor,
    reduce: str,
    window: Counts,
    strides: Counts,
    dilation: Counts,
    padding: Padding,
    neutral: float,
) -> Tensor:
    """The elements of each window combined; padding is ``neutral``."""
    parts = _positions(x, neutral, window, strides, dilation, padding)
    if reduce in ("add", "mul"):
        first = next(parts).clone()
        for part in parts:
            first = first.add_(part) if reduce == "add" else first.mul_(part)
        return first
    return fold(maximum if reduce == "max" else minimum, parts).clone()


def extract_patches(
    x: Tensor,
    window: Counts,
    strides: Counts,
    dilation: Counts,
    padding: Padding,
    value: float,
) -> Tensor:
    """The elements of each window as a row, positions in row-major order and channels fastest."""
    return torch.cat([*_positions(x, value, window, strides, dilation, padding)], -1)


def _positions(
    x: Tensor, fill: float, window: Counts, strides: Counts, dilation: Counts, padding: Padding
) -> Iterator[Tensor]:
    """For each position in a window its elements [N, out..., C]."""
    x = padded(x, padding, fill)
    counts = [
        (extent - (d * (size - 1) + 1)) // s + 1
        for extent, size, s, d in zip(x.shape[1:-1], window, strides, dilation, strict=True)
    ]
    for position in product(*map(range, window)):
        yield x[
            (
                slice(None),
                *(
                    slice(p * d, p * d + (n - 1) * s + 1, s)
                    for p, d, n, s in zip(position, dilation, counts, strides, strict=True)
                ),
            )
        ]


def padded(x: Tensor, padding: Padding, value: float) -> Tensor:
    """``value`` around the spatial axes."""
    if not any(map(any, padding)):
        return x
    low = [0, *(before for before, _ in padding), 0]
    shape = [x.shape[0], *(n + sum(p) for n, p in zip(x.shape[1:-1], padding, strict=True))]
    result = x.new_full([*shape, x.shape[-1]], value)
    result[tuple(slice(b, b + n) for b, n in zip(low, x.shape, strict=True))] = x
    return result


def _same(padding: Padding) -> bool:
    """Whether padding is the same on both sides of each axis."""
    return all(low == high for low, high in padding)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    strides: Counts,
    padding: Padding,
    dilation: Counts,
    groups: int,
) -> Tensor:
    """x [N, H, W, C] by weight [KH, KW, C/groups, O], and a bias [O]."""
    if not _same(padding):
        x, padding = padded(x, padding, 0), ((0, 0), (0, 0))
    around = [low for low, _ in padding]
    y = functional.conv2d(
        x.permute(0, 3, 1, 2), weight.permute(3, 2, 0, 1), bias, strides, around, dilation, groups
    )
    return y.permute(0, 2, 3, 1)


def depthwise_conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    strides: Counts,
    padding: Padding,
    dilation: Counts,
) -> Tensor:
    """Each channel of x by its kernels, weight [KH, KW, C, M]."""
    height, width, channels, outputs = weight.shape
    flat = weight.reshape(height, width, 1, channels * outputs)
    return conv2d(x, flat, bias, strides, padding, dilation, channels)


def max_pool2d(
    x: Tensor, window: Counts, strides: Counts, padding: Padding, dilation: Counts
) -> Tensor:
    """The greatest element of each window; padding never wins."""
    if not _same(padding) or any(2 * low > n for (low, _), n in zip(padding, window, strict=True)):
        x, padding = padded(x, padding, float("-inf")), ((0, 0), (0, 0))
    around = [low for low, _ in padding]
    y = functional.max_pool2d(x.permute(0, 3, 1, 2), window, strides, around, dilation)
    return y.permute(0, 2, 3, 1)


def avg_pool2d(
    x: Tensor, window: Counts, strides: Counts, padding: Padding, count_include_pad: bool
) -> Tensor:
    """The mean of each window; padding is the same on both sides, at most half of the window."""
    y = functional.avg_pool2d(
        x.permute(0, 3, 1, 2),
        window,
        strides,
        [low for low, _ in padding],
        count_include_pad=count_include_pad,
    )
    return y.permute(0, 2, 3, 1)

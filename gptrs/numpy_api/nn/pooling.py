"""Pooling of one to three spatial axes, channels second; an example without a batch axis gives one
without."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.manipulation import positions
from gptrs.numpy_api.nn.operands import as_float, fixed, per_axis
from gptrs.numpy_api.nn.pool_windows import Ints, Windows, element_counts
from gptrs.numpy_api.nn.spatial import at_rank, batched, channels_last, channels_second

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
]


def max_pool_nd(
    rank: int,
    input: Any,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of each window of x [N, C, spatial...]; NaN wins. With
    ``return_indices`` also its position in the row-major order of a plane."""
    x, has_batch = batched(as_tensor(input), rank)
    windows = Windows(x, kernel_size, stride, padding, dilation, ceil_mode)
    attrs = {**windows.attrs, "dilation": windows.dilation}
    if rank == 2:
        pooled = OPS["max_pool2d"](channels_last(x), **attrs)
    else:
        pooled = OPS["reduce_window"](channels_last(x), reduce="max", **attrs)
    greatest = channels_second(pooled, has_batch)
    if not return_indices:
        return greatest
    return greatest, channels_second(_places(x, windows, attrs), has_batch)


def _places(x: Tensor, windows: Windows, attrs: dict[str, Any]) -> Tensor:
    """The position of the greatest element of each window in the row-major order of a plane."""
    least = x.dtype.limits[0] if x.dtype.is_integer else -math.inf
    patches: Tensor = OPS["extract_patches"](channels_last(x), value=least, **attrs)
    channels = x.shape[1]
    taps = patches.reshape([*patches.shape[:-1], math.prod(windows.window), channels])
    best: Tensor = OPS["argmax"](taps, axis=-2)
    total: Any = 0
    for axis, inside in enumerate(np.indices(windows.window)):
        low, apart = windows.low[axis], windows.dilation[axis]
        shape: list[Any] = [1] * best.ndim
        shape[axis + 1] = count = best.shape[axis + 1]
        start = positions(count) * windows.strides[axis] - low
        place = OPS["take"](Tensor(inside.reshape(-1) * apart), best) + start.reshape(shape)
        if low:  # where all is −∞ the padding comes first, and stands for the first element
            place = OPS["maximum"](place, OPS["remainder"](place, apart))
        total = total * x.shape[axis + 2] + place
    return total


def max_pool_nd_with_indices(
    rank: int,
    input: Any,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The greatest element of each window of x [N, C, spatial...], and its position in the
    row-major order of a plane."""
    return max_pool_nd(rank, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def avg_pool_nd(
    rank: int,
    input: Any,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of x [N, C, spatial...]; ``divisor_override`` replaces the number of
    its elements."""
    x, has_batch = batched(as_float(input), rank)
    windows = Windows(x, kernel_size, stride, padding, ceil_mode=ceil_mode)
    if rank == 2 and not any(windows.over) and divisor_override is None:
        pooled = OPS["avg_pool2d"](
            channels_last(x), count_include_pad=count_include_pad, **windows.attrs
        )
        return channels_second(pooled, has_batch)
    total: Tensor = OPS["reduce_window"](widen(channels_last(x)), reduce="add", **windows.attrs)
    if divisor_override == 0:
        raise ArgumentError("divisor_override is 0")
    divisor: Any = divisor_override or math.prod(windows.window)
    partial = any(windows.over) or (not count_include_pad and any(windows.low))
    if divisor_override is None and partial:
        counts = element_counts(windows, fixed(x.shape[2:], "input"), count_include_pad)
        divisor = Tensor(counts.astype(total.dtype.numpy)[None, ..., None])
    return channels_second(narrow(total / divisor, x), has_batch)


def lp_pool_nd(
    rank: int,
    input: Any,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Σ xᵖ)^(1/p) over each window of x [N, C, spatial...], with p = ``norm_type``; for ±∞ the
    greatest or least |x|."""
    x = as_float(input)
    if math.isinf(norm_type):
        sign = math.copysign(1.0, norm_type)
        size = OPS["abs"](x) * sign
        return max_pool_nd(rank, size, kernel_size, stride, 0, 1, ceil_mode) * sign
    powers = widen(x) ** norm_type
    mean = avg_pool_nd(rank, powers, kernel_size, stride, 0, ceil_mode)
    size = math.prod(per_axis("kernel_size", kernel_size, rank))
    total = OPS["sign"](mean) * OPS["relu"](OPS["abs"](mean)) * size
    return narrow(total ** (1.0 / norm_type), x)


max_pool1d, max_pool2d, max_pool3d = (at_rank(max_pool_nd, n) for n in (1, 2, 3))
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    at_rank(max_pool_nd_with_indices, n) for n in (1, 2, 3)
)
avg_pool1d, avg_pool2d, avg_pool3d = (at_rank(avg_pool_nd, n) for n in (1, 2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = (at_rank(lp_pool_nd, n) for n in (1, 2, 3))

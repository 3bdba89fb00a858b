"""Pooling of one to three spatial axes, channels second; an example without a batch axis gives one
without."""

from __future__ import annotations

import math
from functools import reduce as fold
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.manipulation import rows_at
from gptrs.numpy_api.nn.operands import as_float, fixed, nn_function, per_axis
from gptrs.numpy_api.nn.pool_windows import Ints, Windows, element_counts

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]


def _batched(x: Tensor, rank: int) -> tuple[Tensor, bool]:
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"input has rank {x.ndim}, expected {rank + 2}, or {rank + 1} of one")
    return (x, True) if x.ndim == rank + 2 else (x.unsqueeze(0), False)


def _last(x: Tensor) -> Tensor:
    return OPS["transpose"](x, perm=(0, *range(2, x.ndim), 1))


def _second(y: Tensor, batched: bool) -> Tensor:
    turned: Tensor = OPS["transpose"](y, perm=(0, y.ndim - 1, *range(1, y.ndim - 1)))
    return turned if batched else turned.squeeze(0)


def _max_pool(
    rank: int,
    input: Any,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    x, batched = _batched(as_tensor(input), rank)
    windows = Windows(x, kernel_size, stride, padding, dilation, ceil_mode)
    attrs = {**windows.attrs, "dilation": windows.dilation}
    if return_indices:
        return tuple(_second(part, batched) for part in _max_and_place(x, windows, attrs))
    if rank == 2:
        return _second(OPS["max_pool2d"](_last(x), **attrs), batched)
    return _second(OPS["reduce_window"](_last(x), reduce="max", **attrs), batched)


def _max_and_place(x: Tensor, windows: Windows, attrs: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The greatest element of each window, and its position in the row-major order of a plane."""
    extents = fixed(x.shape[2:], "input")
    least = x.dtype.limits[0] if x.dtype.is_integer else -math.inf
    patches: Tensor = OPS["extract_patches"](_last(x), value=least, **attrs)
    channels = x.shape[1]
    taps = patches.reshape([*patches.shape[:-1], math.prod(windows.window), channels])
    best: Tensor = OPS["argmax"](taps, axis=-2)
    steps = [math.prod(extents[i + 1 :]) for i in range(len(extents))]
    inside = [np.arange(n) * d for n, d in zip(windows.window, windows.dilation, strict=True)]
    offsets = fold(np.add.outer, (a * s for a, s in zip(inside, steps, strict=True)))
    starts = [windows.starts(i, n) * steps[i] for i, n in enumerate(extents)]
    first = fold(np.add.outer, starts)[None, ..., None]
    place = OPS["take"](Tensor(offsets.reshape(-1)), best) + Tensor(first)
    return OPS["reduce_max"](taps, axes=-2), place


def _avg_pool(
    rank: int,
    input: Any,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Tensor:
    x, batched = _batched(as_float(input), rank)
    windows = Windows(x, kernel_size, stride, padding, ceil_mode=ceil_mode)
    if rank == 2 and not any(windows.over) and divisor_override is None:
        pooled = OPS["avg_pool2d"](_last(x), count_include_pad=count_include_pad, **windows.attrs)
        return _second(pooled, batched)
    total: Tensor = OPS["reduce_window"](widen(_last(x)), reduce="add", **windows.attrs)
    if divisor_override == 0:
        raise ArgumentError("divisor_override is 0")
    divisor: Any = divisor_override or math.prod(windows.window)
    partial = any(windows.over) or (not count_include_pad and any(windows.low))
    if divisor_override is None and partial:
        counts = element_counts(windows, fixed(x.shape[2:], "input"), count_include_pad)
        divisor = Tensor(counts.astype(total.dtype.numpy)[None, ..., None])
    return _second(narrow(total / divisor, x), batched)


def _adaptive(rank: int, input: Any, output_size: Any, reduce: str) -> Tensor:
    """Each axis in ``output_size`` parts of extents that differ by one at most; None keeps it."""
    x = as_float(input) if reduce == "mean" else as_tensor(input)
    x, batched = _batched(x, rank)
    given = (output_size,) * rank if isinstance(output_size, int | None) else tuple(output_size)
    given = given * rank if len(given) == 1 else given
    sizes = [x.shape[i + 2] if n is None else n for i, n in enumerate(given)]
    if len(sizes) != rank:
        raise ShapeError(f"output_size is {output_size}, expected one number or {rank}")
    even = [not isinstance(n, Dim) and n and not x.shape[i + 2] % n for i, n in enumerate(sizes)]
    if all(even):
        window = tuple(x.shape[i + 2] // n for i, n in enumerate(sizes))
        pool = _avg_pool if reduce == "mean" else _max_pool
        more = (False, True) if reduce == "mean" else (1, False, False)
        pooled = pool(rank, x, window, None, 0, *more)  # type: ignore[arg-type]
        return pooled if batched else pooled.squeeze(0)
    y = widen(x)
    for i, n in enumerate(fixed(sizes, "output_size")):
        y = _parts(y, i + 2, n, reduce)
    return narrow(y if batched else y.squeeze(0), x)


def _parts(x: Tensor, axis: int, count: int, reduce: str) -> Tensor:
    """The mean or greatest element of each of ``count`` parts of an axis."""
    (extent,) = fixed(x.shape[axis : axis + 1], "input")
    first = np.arange(count) * extent // max(count, 1)
    end = -(-(np.arange(count) + 1) * extent // max(count, 1))
    width = int(np.max(end - first, initial=1))
    place = first[:, None] + np.arange(width)
    inside = Tensor((place < end[:, None]).reshape([count, width, *(1,) * (x.ndim - axis - 1)]))
    taken = rows_at(x, Tensor(np.minimum(place, extent - 1).reshape(-1)), axis)
    parts = taken.reshape([*x.shape[:axis], count, width, *x.shape[axis + 1 :]])
    if reduce == "max":
        least = x.dtype.limits[0] if x.dtype.is_integer else -math.inf
        return OPS["reduce_max"](OPS["select"](inside, parts, least), axes=axis + 1)
    total = OPS["reduce_sum"](OPS["select"](inside, parts, 0.0), axes=axis + 1)
    sizes = (end - first).astype(x.dtype.numpy).reshape([count, *(1,) * (x.ndim - axis - 1)])
    return total / Tensor(sizes)


def _lp_pool(
    rank: int, input: Any, norm_type: float, kernel_size: Ints, stride: Any, ceil_mode: bool
) -> Tensor:
    x = as_float(input)
    powers = widen(x) ** norm_type
    mean = _avg_pool(rank, powers, kernel_size, stride, 0, ceil_mode, True)
    size = math.prod(per_axis("kernel_size", kernel_size, rank))
    total = OPS["sign"](mean) * OPS["relu"](OPS["abs"](mean)) * size
    return narrow(total ** (1.0 / norm_type), x)


@nn_function
def max_pool1d(
    input: Any,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of each window of x [N, C, L]; NaN wins. With
    ``return_indices`` also its position in the row-major order of a plane."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@nn_function
def avg_pool1d(
    input: Any,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of x [N, C, L]."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@nn_function
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """The mean of each of ``output_size`` parts of the spatial axes of x [N, C, L]."""
    return _adaptive(1, input, output_size, "mean")


@nn_function
def adaptive_max_pool1d(input: Any, output_size: Any) -> Tensor:
    """The greatest element of each of ``output_size`` parts of the axes of x [N, C, L]."""
    return _adaptive(1, input, output_size, "max")


@nn_function
def lp_pool1d(
    input: Any,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Σ xᵖ)^(1/p) over each window of x [N, C, L], with p = ``norm_type``."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@nn_function
def max_pool2d(
    input: Any,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of each window of x [N, C, H, W]; NaN wins. With
    ``return_indices`` also its position in the row-major order of a plane."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@nn_function
def avg_pool2d(
    input: Any,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of x [N, C, H, W]; ``divisor_override``
    replaces the number of its elements."""
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@nn_function
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """The mean of each of ``output_size`` parts of the spatial axes of x [N, C, H, W]."""
    return _adaptive(2, input, output_size, "mean")


@nn_function
def adaptive_max_pool2d(input: Any, output_size: Any) -> Tensor:
    """The greatest element of each of ``output_size`` parts of the axes of x [N, C, H, W]."""
    return _adaptive(2, input, output_size, "max")


@nn_function
def lp_pool2d(
    input: Any,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Σ xᵖ)^(1/p) over each window of x [N, C, H, W], with p = ``norm_type``."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@nn_function
def max_pool3d(
    input: Any,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of each window of x [N, C, D, H, W]; NaN wins. With
    ``return_indices`` also its position in the row-major order of a plane."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@nn_function
def avg_pool3d(
    input: Any,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of x [N, C, D, H, W]; ``divisor_override``
    replaces the number of its elements."""
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@nn_function
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """The mean of each of ``output_size`` parts of the spatial axes of x [N, C, D, H, W]."""
    return _adaptive(3, input, output_size, "mean")


@nn_function
def adaptive_max_pool3d(input: Any, output_size: Any) -> Tensor:
    """The greatest element of each of ``output_size`` parts of the axes of x [N, C, D, H, W]."""
    return _adaptive(3, input, output_size, "max")

"""Pooling to given extents: adaptive means and maxima, fractional maxima."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, shape_text
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.operands import as_float, fixed, per_axis
from gptrs.numpy_api.nn.pool_windows import Ints
from gptrs.numpy_api.nn.pooling import avg_pool_nd, max_pool_nd
from gptrs.numpy_api.nn.resampling import at_positions
from gptrs.numpy_api.nn.spatial import at_rank, batched
from gptrs.numpy_api.nn.stochastic import uniform

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]

Sizes = int | None | Sequence[int | None]


def _sizes(x: Tensor, rank: int, output_size: Sizes) -> list[Any]:
    """The extents of the result; None keeps that of the input."""
    given = (output_size,) * rank if isinstance(output_size, int | None) else tuple(output_size)
    given = given * rank if len(given) == 1 else given
    if len(given) != rank:
        raise ShapeError(f"output_size is {output_size}, expected one number or {rank}")
    return [x.shape[i + 2] if n is None else n for i, n in enumerate(given)]


def _window(x: Tensor, sizes: list[Any]) -> tuple[Any, ...] | None:
    """The window that all parts have where they are equal, else None."""
    even = [not isinstance(n, Dim) and n and not x.shape[i + 2] % n for i, n in enumerate(sizes)]
    return tuple(x.shape[i + 2] // n for i, n in enumerate(sizes)) if all(even) else None


def _parts(extent: int, count: int) -> tuple[Array, Array]:
    """The first position of each of ``count`` parts of an axis, and the end of each."""
    first = np.arange(count) * extent // max(count, 1)
    return first, -(-(np.arange(count) + 1) * extent // max(count, 1))


def adaptive_avg_pool_nd(rank: int, input: Any, output_size: Any) -> Tensor:
    """The mean of each of ``output_size`` parts of the spatial axes of x [N, C, spatial...], whose
    extents differ by one at most; None keeps an axis."""
    x, has_batch = batched(as_float(input), rank)
    sizes = _sizes(x, rank, output_size)
    if (window := _window(x, sizes)) is not None:
        pooled = avg_pool_nd(rank, x, window)
        return pooled if has_batch else pooled.squeeze(0)
    y = widen(x)
    for i, count in enumerate(fixed(sizes, "output_size")):
        axis = i + 2
        (extent,) = fixed(y.shape[axis : axis + 1], "input")
        first, end = _parts(extent, count)
        place = first[:, None] + np.arange(int(np.max(end - first, initial=1)))
        taken = at_positions(y, np.minimum(place, extent - 1).reshape(-1), axis)
        parts = taken.reshape([*y.shape[:axis], *place.shape, *y.shape[axis + 1 :]])
        ones = (1,) * (y.ndim - axis - 1)
        inside = Tensor((place < end[:, None]).reshape([*place.shape, *ones]))
        total = OPS["reduce_sum"](OPS["select"](inside, parts, 0.0), axes=axis + 1)
        y = total / Tensor((end - first).astype(y.dtype.numpy).reshape([count, *ones]))
    return narrow(y if has_batch else y.squeeze(0), x)


def adaptive_max_pool_nd(
    rank: int, input: Any, output_size: Any, return_indices: bool = False
) -> Any:
    """The greatest element of each of ``output_size`` parts of the spatial axes of x
    [N, C, spatial...], as in `adaptive_avg_pool2d`; with ``return_indices`` also its position in
    the row-major order of a plane."""
    x, has_batch = batched(as_tensor(input), rank)
    sizes = _sizes(x, rank, output_size)
    if (window := _window(x, sizes)) is not None:
        pooled = max_pool_nd(rank, x, window, return_indices=return_indices)
        each = pooled if return_indices else (pooled,)
    else:
        each = _greatest(x, fixed(sizes, "output_size"))[: 2 if return_indices else 1]
    results = tuple(part if has_batch else part.squeeze(0) for part in each)
    return results if return_indices else results[0]


def adaptive_max_pool_nd_with_indices(
    rank: int, input: Any, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` with positions."""
    return adaptive_max_pool_nd(rank, input, output_size, return_indices=True)


def _greatest(x: Tensor, sizes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The greatest element of each part, and its position. A shorter part has its last position
    more than once."""
    extents = fixed(x.shape[2:], "input")
    places: list[Array] = []
    for extent, count in zip(extents, sizes, strict=True):
        first, end = _parts(extent, count)
        place = first[:, None] + np.arange(int(np.max(end - first, initial=1)))
        places.append(np.minimum(place, end[:, None] - 1))
    rank = len(sizes)
    table: Any = 0
    for i, place in enumerate(places):  # [sizes..., widths...]
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = place.shape
        table = table * extents[i] + place.reshape(shape)
    index = Tensor(np.ascontiguousarray(table).reshape([1, 1, *sizes, -1]))
    return _greatest_at(x, OPS["broadcast_to"](index, shape=(*x.shape[:2], *index.shape[2:])))


def _greatest_at(x: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The greatest element of x [N, C, spatial...] among those at index [N, C, ..., taps] of the
    row-major order of a plane, and its position."""
    plane = x.reshape([*x.shape[:2], -1])
    taps: Tensor = OPS["gather"](plane, index.reshape([*x.shape[:2], -1]), axis=-1)
    taps = taps.reshape(index.shape)
    best: Tensor = OPS["argmax"](taps, axis=-1, keepdims=True)
    place: Tensor = OPS["gather"](index, best, axis=-1)
    return OPS["reduce_max"](taps, axes=-1), place.squeeze(-1)


def fractional_max_pool_nd_with_indices(
    rank: int,
    input: Any,
    kernel_size: Ints,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
    *,
    key: Any = None,
    seed: Any = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` with positions in the row-major order of a plane."""
    x, has_batch = batched(as_float(input), rank)
    extents = fixed(x.shape[2:], "input")
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError("expected one of output_size and output_ratio")
    if output_size is None:
        ratios = [output_ratio] * rank if isinstance(output_ratio, float) else list(output_ratio)
        output_size = [int(n * ratio) for n, ratio in zip(extents, ratios, strict=True)]
    sizes = per_axis("output_size", output_size, rank)
    window = per_axis("kernel_size", kernel_size, rank)
    if any(n + k - 1 > extent for n, k, extent in zip(sizes, window, extents, strict=True)):
        raise ShapeError(f"{sizes} windows {window} do not fit an input {shape_text(x.shape)}")
    if _random_samples is None:
        samples = uniform((*x.shape[:2], rank), x.dtype, key, seed)
    else:
        samples = as_float(_random_samples).reshape([-1, *x.shape[1:2], rank])
    index: Any = 0
    for i in range(rank):
        # torch gives the first sample of two to the last axis, the first of three to the first
        sample = samples[..., rank - 1 - i if rank == 2 else i].unsqueeze(-1)
        starts = _fractional_starts(widen(sample), extents[i], sizes[i], window[i])
        shape = [1] * (2 * rank)
        shape[rank + i] = window[i]
        inside = Tensor(np.arange(window[i]).reshape(shape))
        places = starts.reshape(
            [*x.shape[:2], *(sizes[i] if j == i else 1 for j in range(rank)), *(1,) * rank]
        )
        index = index * extents[i] + (places + inside)
    full = (*x.shape[:2], *sizes, *window)
    index = OPS["broadcast_to"](index, shape=full).reshape([*full[: rank + 2], math.prod(window)])
    value, place = _greatest_at(x, index)
    return (value, place) if has_batch else (value.squeeze(0), place.squeeze(0))


def _fractional_starts(sample: Tensor, extent: int, count: int, size: int) -> Tensor:
    """The first positions of windows, about (extent − size) / (count − 1) apart."""
    last = OPS["full"](shape=(*sample.shape[:-1], 1), value=extent - size, dtype="si64")
    if count == 1:
        return last
    step = float(
        np.dtype(sample.dtype.numpy).type(extent - size)
        / np.dtype(sample.dtype.numpy).type(count - 1)
    )
    i = OPS["iota"](shape=(1, 1, count - 1), axis=2, dtype="si64").astype(sample.dtype)
    before = (sample * step).astype("si64")
    return OPS["concat"]((((i + sample) * step).astype("si64") - before, last), axis=-1)


def fractional_max_pool_nd(
    rank: int,
    input: Any,
    kernel_size: Ints,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
    *,
    key: Any = None,
    seed: Any = None,
) -> Any:
    """The greatest element of each of ``output_size`` windows, or of ``output_ratio`` times as many
    as elements, at random distances. Numbers from 0 to 1 that place them, [N, C, axes], are given
    or drawn by a ``seed``. Source: Graham, arXiv:1412.6071."""
    both = fractional_max_pool_nd_with_indices(
        rank,
        input,
        kernel_size,
        output_size,
        output_ratio,
        return_indices,
        _random_samples,
        key=key,
        seed=seed,
    )
    return both if return_indices else both[0]


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    at_rank(adaptive_avg_pool_nd, n) for n in (1, 2, 3)
)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    at_rank(adaptive_max_pool_nd, n) for n in (1, 2, 3)
)
(
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
) = (at_rank(adaptive_max_pool_nd_with_indices, n) for n in (1, 2, 3))
fractional_max_pool2d, fractional_max_pool3d = (at_rank(fractional_max_pool_nd, n) for n in (2, 3))
fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = (
    at_rank(fractional_max_pool_nd_with_indices, n) for n in (2, 3)
)

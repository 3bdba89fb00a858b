"""Resizing, grids, and regions of interest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from gptrs.numpy_api.nn.operands import fixed
from gptrs.onnx.table import UnsupportedOperatorError, onnx, ptir
from gptrs.onnx.tensors import sizes_in


@onnx("Resize", since=11, known=("roi", "scales", "sizes"))
def resize(
    x: Tensor,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    """``x`` resampled along each axis whose size changes, one after the other."""
    places = list(range(x.ndim)) if axes is None else [a % x.ndim for a in axes]
    factors, wanted = _extents(x, places, scales, sizes, keep_aspect_ratio_policy)
    count, own = len(places), fixed(x.shape, "the operand of Resize")
    region = [0.0] * count + [1.0] * count if roi is None or not len(roi) else sizes_in(roi)
    is_outside: Any = None
    is_crop = coordinate_transformation_mode == "tf_crop_and_resize"
    for i, place in enumerate(places):
        if wanted[i] == own[place] and factors[i] == 1 and not is_crop:
            continue
        ends = region[i], region[i + count]
        at = _coordinates(own[place], wanted[i], factors[i], coordinate_transformation_mode, ends)
        extent = own[place]
        if is_crop:
            here = (at < 0) | (at > extent - 1)
            shape = [-1 if j == place else 1 for j in range(x.ndim)]
            here = here.reshape(shape)
            is_outside = here if is_outside is None else is_outside | here
        if mode == "nearest":
            x = ptir.take(x, np.clip(_nearest(at, nearest_mode), 0, extent - 1), axis=place)
        else:
            narrowing = factors[i] if antialias and factors[i] < 1 else 1.0
            taps = _taps(at, extent, mode, cubic_coeff_a, narrowing, exclude_outside)
            x = _combined(x, place, *taps)
    return x if is_outside is None else ptir.where(is_outside, extrapolation_value, x)


@onnx("Upsample", "Resize", until=10, known=("scales",))
def upsample(x: Tensor, scales: Any, mode: str = "nearest") -> Tensor:
    """Resampling by factors, as it was before opset 11."""
    return resize(
        x,
        scales=scales,
        mode="linear" if mode == "bilinear" else mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def _extents(
    x: Tensor, places: Sequence[int], scales: Any, sizes: Any, policy: str
) -> tuple[list[float], list[int]]:
    """The factor and the new size of each axis."""
    own = [fixed(x.shape, "the operand of Resize")[p] for p in places]
    if sizes is None or not len(sizes):
        factors = [float(f) for f in sizes_in(scales)]
        return factors, [int(np.floor(n * f)) for n, f in zip(own, factors, strict=True)]
    wanted = [int(n) for n in sizes_in(sizes)]
    factors = [w / n for w, n in zip(wanted, own, strict=True)]
    if policy != "stretch":
        one = min(factors) if policy == "not_larger" else max(factors)
        factors = [one] * len(own)
        wanted = [int(np.floor(n * one + 0.5)) for n in own]
    return factors, wanted


def _coordinates(
    extent: int, wanted: int, factor: float, mode: str, ends: tuple[float, float]
) -> Array:
    """Where in ``x`` each new element lies."""
    at = np.arange(wanted, dtype=np.float64)
    if mode == "asymmetric":
        return at / factor
    if mode == "align_corners":
        whole = factor * extent  # before it is cut off to an integer
        return at * (extent - 1) / (whole - 1) if whole != 1 else np.zeros(wanted)
    if mode == "pytorch_half_pixel":
        return (at + 0.5) / factor - 0.5 if wanted > 1 else np.full(wanted, -0.5)
    if mode == "half_pixel_symmetric":
        adjusted = wanted / (factor * extent)  # what floor took off the size
        return extent / 2 * (1 - adjusted) + (at + 0.5) / factor - 0.5
    if mode == "tf_crop_and_resize":
        first, last = ends
        if wanted == 1:
            return np.full(1, 0.5 * (first + last) * (extent - 1))
        return first * (extent - 1) + at * (last - first) * (extent - 1) / (wanted - 1)
    if mode != "half_pixel":
        raise UnsupportedOperatorError(f"Resize with coordinates {mode}")
    return (at + 0.5) / factor - 0.5


def _nearest(at: Array, mode: str) -> Array:
    if mode == "floor":
        made = np.floor(at)
    elif mode == "ceil":
        made = np.ceil(at)
    elif mode == "round_prefer_ceil":
        made = np.floor(at + 0.5)
    else:
        made = np.ceil(at - 0.5)
    return made.astype(np.int64)


def _taps(
    at: Array, extent: int, mode: str, a: float, narrowing: float, exclude_outside: int
) -> tuple[Array, Array]:
    """The places [wanted, taps] that each new element is made of, and their weights."""
    reach = (2 if mode == "cubic" else 1) / narrowing
    first = np.floor(at - reach).astype(np.int64) + 1
    count = int(np.ceil(2 * reach))
    places = first[:, None] + np.arange(count + (narrowing != 1))
    distance = np.abs(at[:, None] - places) * narrowing
    weights = _cubic(distance, a) if mode == "cubic" else np.maximum(1 - distance, 0)
    if exclude_outside:
        weights = np.where((places < 0) | (places >= extent), 0, weights)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(places, 0, extent - 1), weights


def _cubic(x: Array, a: float) -> Array:
    """The cubic kernel of a distance."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _combined(x: Tensor, axis: int, places: Array, weights: Array) -> Tensor:
    """The sum over the taps of elements times weights."""
    wide = ptir.astype(x, ptir.f32) if x.dtype.bits < 32 or x.dtype.is_integer else x
    total: Any = None
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    for tap in range(places.shape[1]):
        weight = ptir.asarray(weights[:, tap].reshape(shape), dtype=wide.dtype)
        part = ptir.take(wide, places[:, tap], axis=axis) * weight
        total = part if total is None else total + part
    return ptir.astype(total, x.dtype)


@onnx("GridSample")
def grid_sample(
    x: Tensor,
    grid: Tensor,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Tensor:
    names = {"linear": "bilinear", "cubic": "bicubic"}
    chosen = names.get(mode, mode)
    return ptir.nn.grid_sample(x, grid, chosen, padding_mode, bool(align_corners))


@onnx("AffineGrid", known=("size",))
def affine_grid(theta: Tensor, size: Any, align_corners: int = 0) -> Tensor:
    return ptir.nn.affine_grid(theta, tuple(sizes_in(size)), bool(align_corners))


@onnx("RoiAlign")
def roi_align(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    """The mean or the greatest of bilinear samples in each cell of each region."""
    if sampling_ratio <= 0:
        raise UnsupportedOperatorError("RoiAlign whose number of samples depends on the regions")
    shift = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    ends = rois * spatial_scale - shift
    low, size = ends[:, :2], ends[:, 2:] - ends[:, :2]
    if not shift:
        size = ptir.maximum(size, 1.0)
    own = x[batch_indices]
    samples: list[Tensor] = []
    for i in range(sampling_ratio):
        for j in range(sampling_ratio):
            y = _cells(low[:, 1], size[:, 1], output_height, (i + 0.5) / sampling_ratio)
            z = _cells(low[:, 0], size[:, 0], output_width, (j + 0.5) / sampling_ratio)
            samples.append(_sampled(own, y, z, mode))
    stacked = ptir.stack(samples)
    return ptir.mean(stacked, axis=0) if mode == "avg" else ptir.amax(stacked, axis=0)


def _cells(low: Tensor, size: Tensor, count: int, offset: float) -> Tensor:
    """Where the samples of each cell lie along an axis: [regions, count]."""
    steps = ptir.asarray((np.arange(count, dtype=np.float32) + np.float32(offset)) / count)
    return low[:, None] + size[:, None] * steps


def _sampled(x: Tensor, y: Tensor, z: Tensor, mode: str) -> Tensor:
    """``x`` [regions, C, H, W] at the rows ``y`` and columns ``z``: [regions, C, h, w]."""
    parts = [_neighbours(at, n) for at, n in ((y, x.shape[2]), (z, x.shape[3]))]
    number = ptir.arange(x.shape[0])[:, None, None]
    weighted: list[Tensor] = []
    for rows, of_row in parts[0]:
        for columns, of_column in parts[1]:
            values = ptir.moveaxis(x, 1, -1)[number, rows[:, :, None], columns[:, None, :]]
            weight = of_row[:, :, None] * of_column[:, None, :]
            weighted.append(ptir.moveaxis(values * weight[..., None], -1, 1))
    total = weighted[0]
    for part in weighted[1:]:
        total = total + part if mode == "avg" else ptir.maximum(total, part)
    return total


def _neighbours(at: Tensor, extent: Any) -> list[tuple[Tensor, Tensor]]:
    """The places before and after, with their weights; outside by more than 1 both are 0."""
    is_near = ptir.logical_and(at >= -1, at <= extent)
    inside = ptir.clip(at, 0, extent - 1)
    before = ptir.floor(inside)
    part = inside - before
    index = ptir.astype(before, ptir.si64)
    after = ptir.minimum(index + 1, extent - 1)
    return [
        (index, ptir.where(is_near, 1 - part, 0)),
        (after, ptir.where(is_near, part, 0)),
    ]

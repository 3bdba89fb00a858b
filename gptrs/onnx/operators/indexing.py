"""Gather, scatter, top k, and results whose size depends on values."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.ir.tensor import Tensor
from gptrs.onnx.table import enter_all, onnx, ptir
from gptrs.onnx.tensors import sizes_in


@onnx("Gather")
def gather(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    """Slices of ``x`` along ``axis``; negative indices count from the end."""
    return x[(*(slice(None),) * (axis % x.ndim), indices)]


@onnx("GatherElements")
def gather_elements(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    """For each index the element of ``x`` at its own place, but for ``axis``."""
    axis %= x.ndim
    kept = tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(indices.shape))
    return ptir.take_along_axis(x[kept], indices, axis)


@onnx("GatherND")
def gather_nd(x: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """Slices of ``x`` at the places in the last axis of ``indices``."""
    depth = indices.shape[-1]
    last = tuple(indices[..., i] for i in range(depth))
    if not batch_dims:
        return x[last]
    rank = indices.ndim - 1
    own = [
        ptir.reshape(ptir.arange(x.shape[i]), [-1 if j == i else 1 for j in range(rank)])
        for i in range(batch_dims)
    ]
    return x[(*own, *last)]


_REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@onnx("Scatter", "ScatterElements")
def scatter_elements(
    x: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """``x`` with ``updates`` at the indices along ``axis``."""
    axis %= x.ndim
    places: Any = ptir.where(indices < 0, indices + x.shape[axis], indices)
    if reduction == "none":
        return ptir.scatter(x, axis, places, updates)
    return ptir.scatter_reduce(x, axis, places, updates, _REDUCE[reduction])


@onnx("ScatterND")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, reduction: str = "none") -> Tensor:
    """``x`` with ``updates`` at the places in the last axis of ``indices``."""
    at = x.at[tuple(indices[..., i] for i in range(indices.shape[-1]))]
    functions = {"none": at.set, "add": at.add, "mul": at.multiply, "max": at.max, "min": at.min}
    return functions[reduction](updates)


@onnx("TensorScatter")
def tensor_scatter(
    x: Tensor,
    updates: Tensor,
    starts: Tensor | None = None,
    axis: int = -2,
    mode: str = "linear",
) -> Tensor:
    """A cache with ``updates`` along ``axis``, for each batch from its start on."""
    axis %= x.ndim
    extent, count = x.shape[axis], updates.shape[axis]
    batch = x.shape[0]
    first = ptir.zeros((batch,), dtype=ptir.si64) if starts is None else starts
    place = first[:, None] + ptir.arange(count)[None, :]
    if mode == "circular":
        place = ptir.remainder(place, extent)
    moved, news = ptir.moveaxis(x, axis, 1), ptir.moveaxis(updates, axis, 1)
    made = moved.at[ptir.arange(batch)[:, None], place].set(news)
    return ptir.moveaxis(made, 1, axis)


@onnx("TopK", known=("k",))
def top_k(
    x: Tensor, k: Any, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Tensor, Tensor]:
    """The greatest or least elements along ``axis``, and their places."""
    (count,) = sizes_in(k)
    values, places = ptir.top_k(x, k=count, axis=axis % x.ndim, largest=bool(largest))
    return values, ptir.astype(places, ptir.si64)


@onnx("OneHot", known=("depth",))
def one_hot(indices: Tensor, depth: Any, values: Tensor, axis: int = -1) -> Tensor:
    """``values[1]`` at the index along a new axis, else ``values[0]``."""
    (extent,) = (int(n) for n in sizes_in(depth))
    axis = axis if axis >= 0 else axis + indices.ndim + 1
    index = ptir.expand_dims(ptir.astype(indices, ptir.si64), axis)
    index = ptir.where(index < 0, index + extent, index)
    places = ptir.reshape(
        ptir.arange(extent), [-1 if i == axis else 1 for i in range(indices.ndim + 1)]
    )
    return ptir.where(ptir.equal(index, places), values[1], values[0])


@onnx("NonZero", known=("x",))
def non_zero(x: Any) -> Any:
    return np.stack(np.nonzero(x)).astype(np.int64)


@onnx("Compress", known=("condition",))
def compress(x: Tensor, condition: Any, axis: int | None = None) -> Tensor:
    """The slices along ``axis``, or the elements, where the condition holds."""
    places = np.flatnonzero(np.asarray(condition))
    if axis is None:
        return ptir.reshape(x, (-1,))[places]
    return ptir.take(x, places, axis=axis)


@onnx("Unique", known=("x",))
def unique(x: Any, axis: int | None = None, sorted: int = 1) -> tuple[Any, ...]:
    """The different elements, their first places, the place of each, and how often each is."""
    found, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = np.asarray(inverse).reshape(-1)
    if not sorted:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        found = np.take(found, order, axis=0 if axis is None else axis)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return found, *(np.asarray(a, np.int64) for a in (first, inverse, counts))


@onnx("ArrayFeatureExtractor")
def array_feature_extractor(x: Tensor, indices: Tensor) -> Tensor:
    return ptir.take(x, ptir.reshape(indices, (-1,)), axis=-1)


@onnx("Binarizer")
def binarizer(x: Tensor, threshold: float = 0.0) -> Tensor:
    return ptir.astype(x > threshold, x.dtype)


@onnx("NonMaxSuppression", known=("boxes", "scores", "most", "iou", "score"))
def non_max_suppression(
    boxes: Any,
    scores: Any,
    most: Any = None,
    iou: Any = None,
    score: Any = None,
    center_point_box: int = 0,
) -> Any:
    """The boxes that are kept, as rows of (batch, class, box)."""
    limit = 0 if most is None else int(np.asarray(most).reshape(-1)[0])
    overlap = 0.0 if iou is None else float(np.asarray(iou).reshape(-1)[0])
    least = -np.inf if score is None else float(np.asarray(score).reshape(-1)[0])
    kept: list[tuple[int, int, int]] = []
    for batch, kind in np.ndindex(*scores.shape[:2]):
        corners = _corners(np.asarray(boxes[batch], np.float64), center_point_box)
        of_class = scores[batch, kind]
        order: list[int] = np.argsort(-of_class, kind="stable").tolist()
        chosen: list[int] = []
        for i in order:
            if len(chosen) == limit or not of_class[i] > least:
                break
            if all(_overlap(corners[i], corners[j]) <= overlap for j in chosen):
                chosen.append(i)
        kept += [(batch, kind, i) for i in chosen]
    return np.array(kept, np.int64).reshape(-1, 3)


def _corners(boxes: Any, is_center: int) -> Any:
    """Boxes as least and greatest corner."""
    if is_center:
        return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, high], 1)


def _overlap(a: Any, b: Any) -> float:
    """The area that two boxes share, of that which they cover together."""
    height, width = (max(min(a[i + 2], b[i + 2]) - max(a[i], b[i]), 0.0) for i in (0, 1))
    shared = float(height * width)
    areas = [float((box[2] - box[0]) * (box[3] - box[1])) for box in (a, b)]
    both = sum(areas) - shared
    return shared / both if both > 0 else 0.0


enter_all({"Det": ptir.linalg.det, "OptionalGetElement": ptir.asarray})


@onnx("OptionalHasElement")
def optional_has_element(x: Tensor | None = None) -> Any:
    return np.array(x is not None)

"""Sizes, reshapes, slices, joins and padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gptrs.ir.tensor import Tensor
from gptrs.onnx.table import UnsupportedOperatorError, onnx, ptir
from gptrs.onnx.tensors import of_sizes, sizes_in


@onnx("Shape")
def shape(x: Tensor, start: int = 0, end: int | None = None) -> Any:
    """The sizes of ``x``, known when it is traced."""
    return of_sizes(x.shape[slice(start, end)])


@onnx("Size")
def size(x: Tensor) -> Any:
    """The number of elements, known when it is traced."""
    return of_sizes([math.prod(x.shape)])[0]


@onnx("Reshape", known=("shape",))
def reshape(x: Tensor, shape: Any, allowzero: int = 0) -> Tensor:
    """``x`` in another shape, in which 0 stands for the size that x has there."""
    sizes = sizes_in(shape)
    if not allowzero:
        sizes = [x.shape[i] if isinstance(n, int) and n == 0 else n for i, n in enumerate(sizes)]
    if 0 in x.shape and -1 in sizes:
        sizes[sizes.index(-1)] = 0
    return ptir.reshape(x, sizes)


@onnx("Flatten")
def flatten(x: Tensor, axis: int = 1) -> Tensor:
    """The matrix that ``x`` is when it is cut before ``axis``."""
    axis = axis if axis >= 0 else axis + x.ndim
    return ptir.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@onnx("Transpose")
def transpose(x: Tensor, perm: Sequence[int] | None = None) -> Tensor:
    return ptir.transpose(x, perm)


@onnx("Squeeze", known=("axes",))
def squeeze(x: Tensor, axes: Any = None) -> Tensor:
    return ptir.squeeze(x, None if axes is None else tuple(sizes_in(axes)))


@onnx("Unsqueeze", known=("axes",))
def unsqueeze(x: Tensor, axes: Any) -> Tensor:
    return ptir.expand_dims(x, tuple(sizes_in(axes)))


@onnx("Expand", known=("shape",))
def expand(x: Tensor, shape: Any) -> Tensor:
    """``x`` repeated to its common shape with ``shape``."""
    sizes = sizes_in(shape)
    own = [1] * (len(sizes) - x.ndim) + list(x.shape)
    sizes = [1] * (x.ndim - len(sizes)) + sizes
    wide = [o if isinstance(n, int) and n == 1 else n for o, n in zip(own, sizes, strict=True)]
    return ptir.broadcast_to(x, wide)


@onnx("Tile", known=("repeats",))
def tile(x: Tensor, repeats: Any) -> Tensor:
    return ptir.tile(x, tuple(sizes_in(repeats)))


@onnx("Concat")
def concat(*operands: Tensor, axis: int = 1) -> Tensor:
    return ptir.concat(operands, axis)


@onnx("Split", known=("split",))
def split(
    x: Tensor, split: Any = None, axis: int = 0, num_outputs: int | None = None, outputs: int = 1
) -> tuple[Tensor, ...]:
    """Parts of the sizes ``split``, or of equal size, of which the last may be smaller."""
    if split is None:
        parts = num_outputs or outputs
        each = -(-x.shape[axis] // parts)
        sizes = [each] * (parts - 1) + [x.shape[axis] - each * (parts - 1)]
    else:
        sizes = sizes_in(split)
    places: list[Any] = [0]
    for extent in sizes:
        places.append(places[-1] + extent)
    before = (slice(None),) * (axis % x.ndim)
    return tuple(x[(*before, slice(start, stop))] for start, stop in pairwise(places))


@onnx("Slice", known=("starts", "ends", "axes", "steps"))
def slice_(x: Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Tensor:
    """The elements from ``starts`` to ``ends``, which may lie outside."""
    first, last = sizes_in(starts), sizes_in(ends)
    places = list(range(len(first))) if axes is None else sizes_in(axes)
    by = [1] * len(first) if steps is None else sizes_in(steps)
    key: list[Any] = [slice(None)] * x.ndim
    for place, start, stop, step in zip(places, first, last, by, strict=True):
        extent = x.shape[place]
        if isinstance(stop, int) and stop >= (1 << 31) - 1:
            stop = None  # to the end, however long
        if isinstance(stop, int) and isinstance(extent, int) and step < 0 and stop < -extent:
            stop = None
        key[place % x.ndim] = slice(start, stop, step)
    return x[tuple(key)]


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@onnx("Pad", known=("pads", "axes"))
def pad(
    x: Tensor,
    pads: Any,
    value: Tensor | float | None = None,
    axes: Any = None,
    mode: str = "constant",
) -> Tensor:
    """``x`` with a border; where the numbers are negative, without its own."""
    widths = sizes_in(pads)
    places = list(range(x.ndim)) if axes is None else [a % x.ndim for a in sizes_in(axes)]
    count = len(places)
    grown = [(0, 0)] * x.ndim
    for i, place in enumerate(places):
        low, high = widths[i], widths[i + count]
        stop = x.shape[place] + min(high, 0)
        if low < 0 or high < 0:
            x = x[(*(slice(None),) * place, slice(max(-low, 0), stop))]
        grown[place] = (max(low, 0), max(high, 0))
    if mode != "constant":
        return ptir.pad(x, tuple(grown), _MODES[mode])
    made = ptir.pad(x, tuple(grown))
    if value is None:
        return made
    is_own = ptir.pad(ptir.ones(x.shape, dtype=bool), tuple(grown))
    return ptir.where(is_own, made, ptir.reshape(ptir.asarray(value, dtype=x.dtype), ()))


@onnx("CenterCropPad", known=("shape",))
def center_crop_pad(x: Tensor, shape: Any, axes: Sequence[int] | None = None) -> Tensor:
    """``x`` cut, or padded with zeros, on both sides to ``shape``."""
    places = range(x.ndim) if axes is None else [a % x.ndim for a in axes]
    for place, wanted in zip(places, sizes_in(shape), strict=True):
        extent = x.shape[place]
        before = (slice(None),) * place
        if wanted < extent:
            start = (extent - wanted) // 2
            x = x[(*before, slice(start, start + wanted))]
        else:
            low = (wanted - extent) // 2
            widths = [(0, 0)] * x.ndim
            widths[place] = (low, wanted - extent - low)
            x = ptir.pad(x, tuple(widths))
    return x


@onnx("DepthToSpace")
def depth_to_space(x: Tensor, blocksize: int, mode: str = "DCR") -> Tensor:
    """Channels into blocks of pixels; in the order of ``mode``."""
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        parts = ptir.transpose(ptir.reshape(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = ptir.transpose(ptir.reshape(x, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return ptir.reshape(parts, (n, c // (b * b), h * b, w * b))


@onnx("SpaceToDepth")
def space_to_depth(x: Tensor, blocksize: int, mode: str = "DCR") -> Tensor:
    """Blocks of pixels into channels."""
    n, c, h, w = x.shape
    b = blocksize
    parts = ptir.reshape(x, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return ptir.reshape(ptir.transpose(parts, order), (n, c * b * b, h // b, w // b))


@onnx("ReverseSequence", known=())
def reverse_sequence(x: Tensor, lengths: Tensor, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """The first ``lengths[i]`` steps of each sequence in reverse."""
    if {batch_axis, time_axis} != {0, 1}:
        raise UnsupportedOperatorError("ReverseSequence of other axes than 0 and 1")
    rows = x if batch_axis == 0 else ptir.swapaxes(x, 0, 1)
    step = ptir.arange(rows.shape[1], dtype=lengths.dtype)[None, :]
    length = lengths[:, None]
    place = ptir.where(step < length, length - 1 - step, step)
    place = ptir.reshape(place, (*place.shape, *(1,) * (rows.ndim - 2)))
    made = ptir.take_along_axis(rows, ptir.broadcast_to(place, rows.shape), 1)
    return made if batch_axis == 0 else ptir.swapaxes(made, 0, 1)


@onnx("Trilu", known=("k",))
def trilu(x: Tensor, k: Any = None, upper: int = 1) -> Tensor:
    """The upper or lower triangle of each matrix."""
    return (ptir.triu if upper else ptir.tril)(x, 0 if k is None else int(k))


@onnx("Col2Im", known=("image_shape", "block_shape"))
def col2im(
    x: Tensor,
    image_shape: Any,
    block_shape: Any,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The sum of blocks at their places in an image."""
    sizes, block = tuple(sizes_in(image_shape)), tuple(sizes_in(block_shape))
    rank = len(sizes)
    widths = tuple(pads) if pads else (0,) * 2 * rank
    by, steps = tuple(dilations or (1,) * rank), tuple(strides or (1,) * rank)
    whole = tuple(n + widths[i] + widths[i + rank] for i, n in enumerate(sizes))
    count = [
        (n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(whole, by, block, steps, strict=True)
    ]
    batch, channels = x.shape[0], x.shape[1] // math.prod(block)
    parts = ptir.reshape(x, (batch, channels, *block, *count))
    made = ptir.zeros((batch, channels, *whole), dtype=x.dtype)
    for at in np.ndindex(*block):
        starts = [a * d for a, d in zip(at, by, strict=True)]
        key = tuple(
            slice(b, b + s * (n - 1) + 1, s) for b, s, n in zip(starts, steps, count, strict=True)
        )
        made = made.at[(slice(None), slice(None), *key)].add(parts[(slice(None), slice(None), *at)])
    inner = tuple(slice(widths[i], widths[i] + n) for i, n in enumerate(sizes))
    return made[(slice(None), slice(None), *inner)]

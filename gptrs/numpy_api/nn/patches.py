"""Patches of images as columns, and their sum: unfold, fold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from gptrs.errors import ShapeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.operands import fixed, nn_function, per_axis
from gptrs.numpy_api.nn.pool_windows import Ints

__all__ = ["fold", "unfold"]


class _Blocks:
    """The sliding blocks of a plane of ``extents``: their number along each axis, and where each
    element of a block stands in the padded plane."""

    def __init__(
        self, extents: Any, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
    ) -> None:
        self.window = per_axis("kernel_size", kernel_size, 2)
        self.dilation = per_axis("dilation", dilation, 2)
        self.padding = per_axis("padding", padding, 2)
        self.strides = per_axis("stride", stride, 2)
        self.extents = fixed(extents, "the image")
        self.counts = tuple(
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, d, p, s in zip(
                self.extents, self.window, self.dilation, self.padding, self.strides, strict=True
            )
        )
        if min(*self.window, *self.dilation, *self.strides, *self.counts) < 1:
            raise ShapeError(
                f"blocks {self.window} with dilation {self.dilation}, padding {self.padding} and"
                f" stride {self.strides} do not fit an image {list(self.extents)}"
            )

    def starts(self) -> Iterator[tuple[int, int]]:
        """For each element of a block, in row-major order, its place in the first block."""
        for i in range(self.window[0]):
            for j in range(self.window[1]):
                yield i * self.dilation[0], j * self.dilation[1]


@nn_function
def unfold(
    input: Any, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """The blocks of x [N, C, H, W] as columns: [N, C · KH · KW, blocks]; x may be [C, H, W]."""
    x = as_tensor(input)
    if x.ndim not in (3, 4):
        raise ShapeError(f"input has shape {shape_text(x.shape)}, expected [N, C, H, W]")
    *outer, channels, height, width = x.shape
    blocks = _Blocks((height, width), kernel_size, dilation, padding, stride)
    around = (*(0,) * (x.ndim - 2), *blocks.padding)
    padded: Tensor = OPS["pad"](x, low=around, high=around) if any(around) else x
    keys = (slice(None),) * (x.ndim - 2)
    parts = [
        padded[
            (
                *keys,
                *(
                    slice(first, first + (n - 1) * s + 1, s)
                    for first, n, s in zip(start, blocks.counts, blocks.strides, strict=True)
                ),
            )
        ].unsqueeze(-3)
        for start in blocks.starts()
    ]
    columns: Tensor = OPS["concat"](tuple(parts), axis=-3)
    taps = math.prod(blocks.window)
    return columns.reshape([*outer, channels * taps, math.prod(blocks.counts)])


@nn_function
def fold(
    input: Any,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """The image [N, C, H, W] in which blocks, the columns of x [N, C · KH · KW, blocks], are added
    up; x may be [C · KH · KW, blocks]."""
    x = as_tensor(input)
    if x.ndim not in (2, 3):
        raise ShapeError(f"input has shape {shape_text(x.shape)}, expected [N, C·KH·KW, blocks]")
    extents = per_axis("output_size", output_size, 2)
    blocks = _Blocks(extents, kernel_size, dilation, padding, stride)
    taps, count = math.prod(blocks.window), math.prod(blocks.counts)
    rows, columns = fixed(x.shape[-2:], "input")
    if rows % taps or columns != count:
        raise ShapeError(
            f"input has shape {shape_text(x.shape)}, expected [N, C · {taps}, {count}] for blocks"
            f" {blocks.window} of an image {list(extents)}"
        )
    outer = [*x.shape[:-2], rows // taps]
    each = widen(x).reshape([*outer, taps, *blocks.counts])
    none = (0,) * len(outer)
    total: Tensor | None = None
    for tap, start in enumerate(blocks.starts()):
        part = each[(*(slice(None),) * len(outer), tap)]
        padded = [n + 2 * p for n, p in zip(extents, blocks.padding, strict=True)]
        reach = [(n - 1) * s + 1 for n, s in zip(blocks.counts, blocks.strides, strict=True)]
        spread: Tensor = OPS["pad"](
            part,
            low=(*none, *start),
            high=(*none, *(n - a - r for n, a, r in zip(padded, start, reach, strict=True))),
            interior=(*none, *(s - 1 for s in blocks.strides)),
        )
        total = spread if total is None else total + spread
    assert total is not None
    inside = [slice(p, p + n) for p, n in zip(blocks.padding, extents, strict=True)]
    return narrow(total[(*(slice(None),) * len(outer), *inside)], x)

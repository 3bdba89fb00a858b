"""The windows of a pooling call: extents, strides, padding, and what ``ceil_mode`` adds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as fold
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.nn.operands import fixed, per_axis

Ints = int | Sequence[int]


class Windows:
    """The windows of a call, and how far the last ones reach over the end with ``ceil_mode``."""

    def __init__(
        self,
        x: Tensor,
        kernel_size: Ints,
        stride: Ints | None,
        padding: Ints,
        dilation: Ints = 1,
        ceil_mode: bool = False,
    ) -> None:
        rank = x.ndim - 2
        self.window = per_axis("kernel_size", kernel_size, rank)
        # torch's own samples give () for the kernel's extents
        given = stride is None or (not isinstance(stride, int) and not tuple(stride))
        self.strides = self.window if given else per_axis("stride", stride, rank)  # type: ignore[arg-type]
        self.low = per_axis("padding", padding, rank)
        self.dilation = per_axis("dilation", dilation, rank)
        for size, low, d in zip(self.window, self.low, self.dilation, strict=True):
            if low > (d * (size - 1) + 1) // 2:
                raise ArgumentError(
                    f"padding is {padding}, expected at most half of kernel_size {kernel_size}"
                )
        over = [0] * rank
        if ceil_mode:
            over = [self._over(i, n) for i, n in enumerate(fixed(x.shape[2:], "input"))]
        self.over = over
        self.padding = tuple((n, n + more) for n, more in zip(self.low, over, strict=True))

    def _over(self, axis: int, extent: int) -> int:
        """How far the last window reaches beyond the padding; it has to start before that."""
        step, low = self.strides[axis], self.low[axis]
        reach = self.dilation[axis] * (self.window[axis] - 1) + 1
        count = -((reach - extent - 2 * low) // step)
        count = count if count * step >= extent + low else count + 1
        return max((count - 1) * step + reach - extent - 2 * low, 0)

    @property
    def attrs(self) -> dict[str, Any]:
        return {
            "window": self.window,
            "strides": self.strides,
            "padding": self.padding,
        }

    def starts(self, axis: int, extent: int) -> np.ndarray[Any, Any]:
        """The first position of each window along an axis, negative in the padding."""
        low, high = self.padding[axis]
        reach = self.dilation[axis] * (self.window[axis] - 1) + 1
        count = (extent + low + high - reach) // self.strides[axis] + 1
        return np.arange(count) * self.strides[axis] - low


def element_counts(
    windows: Windows, extents: tuple[int, ...], count_include_pad: bool
) -> np.ndarray[Any, Any]:
    """The number of elements by which the sum of each window is divided."""
    along: list[Any] = []
    for axis, extent in enumerate(extents):
        first = windows.starts(axis, extent)
        pad = windows.low[axis] if count_include_pad else 0
        end = np.minimum(first + windows.window[axis], extent + pad)
        along.append(end - np.maximum(first, -pad))
    return fold(np.multiply.outer, along)

"""Convolutions and pooling, in the layout [N, C, spatial...]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptrs.ir.dims import DimLike
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.nn.operands import fixed
from gptrs.onnx.operators.broadcasting import along
from gptrs.onnx.table import UnsupportedOperatorError, enter_all, onnx, ptir
from gptrs.onnx.tensors import sizes_in

Ints = Sequence[int] | None
Margins = list[tuple[int, int]]
_CONVOLUTIONS = {1: ptir.nn.conv1d, 2: ptir.nn.conv2d, 3: ptir.nn.conv3d}
_TRANSPOSED = {
    1: ptir.nn.conv_transpose1d,
    2: ptir.nn.conv_transpose2d,
    3: ptir.nn.conv_transpose3d,
}


def margins_of(
    x: Tensor, window: Sequence[DimLike], strides: Ints, dilations: Ints, pads: Ints, auto_pad: str
) -> Margins:
    """What is added before and after each spatial axis."""
    rank = len(window)
    if auto_pad == "VALID" or (auto_pad == "NOTSET" and not pads):
        return [(0, 0)] * rank
    if auto_pad == "NOTSET":
        assert pads is not None
        return [(pads[i], pads[i + rank]) for i in range(rank)]
    made: Margins = []
    for i, n in enumerate(fixed(x.shape[2:], "x")):
        step = strides[i] if strides else 1
        reach = (int(window[i]) - 1) * (dilations[i] if dilations else 1) + 1
        total = max((-(-n // step) - 1) * step + reach - n, 0)
        small, large = total // 2, total - total // 2
        made.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    return made


@onnx("Conv")
def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Tensor:
    """The convolution of one to three spatial axes."""
    rank = x.ndim - 2
    window = weight.shape[2:]
    margins = margins_of(x, window, strides, dilations, pads, auto_pad)
    return convolved(x, weight, bias, margins, strides, dilations, group, rank)


def convolved(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    margins: Margins,
    strides: Ints,
    dilations: Ints,
    group: int,
    rank: int,
) -> Tensor:
    if rank not in _CONVOLUTIONS:
        raise UnsupportedOperatorError(f"a convolution of {rank} axes")
    if any(low != high for low, high in margins):
        x = ptir.pad(x, ((0, 0), (0, 0), *margins))
        margins = [(0, 0)] * rank
    return _CONVOLUTIONS[rank](
        x,
        weight,
        bias,
        tuple(strides or (1,) * rank),
        tuple(low for low, _ in margins),
        tuple(dilations or (1,) * rank),
        group,
    )


@onnx("ConvTranspose")
def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    output_padding: Ints = None,
    output_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Tensor:
    """The transposed convolution; what pads and output_shape say is cut off or added after."""
    rank = x.ndim - 2
    by, steps = tuple(dilations or (1,) * rank), tuple(strides or (1,) * rank)
    more = tuple(output_padding or (0,) * rank)
    made = _TRANSPOSED[rank](x, weight, None, steps, 0, 0, group, by)
    full = made.shape[2:]
    if output_shape or auto_pad.startswith("SAME"):
        wanted = tuple(output_shape or (n * s for n, s in zip(x.shape[2:], steps, strict=True)))
        margins: Margins = []
        for n, w, m in zip(full, wanted[-rank:], more, strict=True):
            total = n + m - w
            small, large = total // 2, total - total // 2
            margins.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    else:
        given = tuple(pads or (0,) * 2 * rank)
        margins = [(given[i], given[i + rank]) for i in range(rank)]
    grown = [max(m - high, 0) for m, (_, high) in zip(more, margins, strict=True)]
    if any(grown):
        made = ptir.pad(made, ((0, 0), (0, 0), *((0, g) for g in grown)))
    key = [slice(low, n + m - high) for n, m, (low, high) in zip(full, more, margins, strict=True)]
    made = made[(slice(None), slice(None), *key)]
    return made if bias is None else made + along(bias, made.ndim, 1)


class _Pool:
    """The windows of a pooling: what is added around, and what a last window sticks out by."""

    def __init__(
        self,
        x: Tensor,
        window: Sequence[int],
        strides: Ints,
        dilations: Ints,
        pads: Ints,
        auto_pad: str,
        ceil_mode: int,
    ) -> None:
        rank = len(window)
        self.window = tuple(window)
        self.strides = tuple(strides or (1,) * rank)
        self.dilations = tuple(dilations or (1,) * rank)
        self.margins = margins_of(x, window, self.strides, self.dilations, pads, auto_pad)
        self.over = [0] * rank
        for i, n in enumerate(fixed(x.shape[2:], "x")) if ceil_mode else ():
            low, high = self.margins[i]
            reach = (self.window[i] - 1) * self.dilations[i] + 1
            count = -(-(n + low + high - reach) // self.strides[i]) + 1
            if (count - 1) * self.strides[i] >= n + low:
                count -= 1  # it would begin in the margin
            self.over[i] = max((count - 1) * self.strides[i] + reach - (n + low + high), 0)

    @property
    def widths(self) -> Margins:
        """What the windows reach before and after each spatial axis."""
        pairs = zip(self.margins, self.over, strict=True)
        return [(low, high + over) for (low, high), over in pairs]

    def padded(self, x: Tensor, value: Any) -> Tensor:
        """``x`` with all that its windows reach."""
        return ptir.pad(x, ((0, 0), (0, 0), *self.widths), "constant", value)

    def reduced(self, x: Tensor, how: str, *, pads: bool = True) -> Tensor:
        """The sum or the greatest element of each window, of x and its margins, or of what has
        them."""
        made = ptir.reduce_window(
            ptir.moveaxis(x, 1, -1),
            reduce=how,
            window=self.window,
            strides=self.strides,
            dilation=self.dilations,
            padding=tuple(self.widths) if pads else None,
        )
        return ptir.moveaxis(made, -1, 1)


@onnx("MaxPool")
def max_pool(
    x: Tensor,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    pads: Ints = None,
    storage_order: int = 0,
    strides: Ints = None,
    outputs: int = 1,
) -> Any:
    """The greatest element of each window, and its place in the whole of x."""
    pool = _Pool(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    best = pool.reduced(x, "max")
    if outputs == 1:
        return best
    leading, sizes = fixed(x.shape[:2], "x"), fixed(x.shape[2:], "x")
    order = "F" if storage_order else "C"
    inside = np.arange(math.prod(sizes)).reshape(sizes, order=order)
    shape = (*leading, *(1,) * len(sizes))
    planes = np.arange(math.prod(leading)).reshape(shape) * math.prod(sizes)
    places = pool.padded(ptir.asarray(planes + inside), -1)
    taps = [
        tuple(
            slice(a * d, a * d + s * (n - 1) + 1, s)
            for a, d, s, n in zip(at, pool.dilations, pool.strides, best.shape[2:], strict=True)
        )
        for at in np.ndindex(*pool.window)
    ]
    both = (slice(None), slice(None))
    least = float("-inf") if x.dtype.is_float else x.dtype.limits[0]
    wide, found = pool.padded(x, least), None
    for tap in reversed(taps):  # the first of equals wins
        is_best = ptir.equal(wide[(*both, *tap)], best)
        place = places[(*both, *tap)]
        found = place if found is None else ptir.where(is_best, place, found)
    return best, found


@onnx("AveragePool")
def average_pool(
    x: Tensor,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
) -> Tensor:
    """The mean of each window, of its elements in x or in the margins too."""
    pool = _Pool(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    total = pool.reduced(x, "add")
    inside = np.ones((1, 1, *fixed(x.shape[2:], "x")), np.float32)
    margins = [(0, 0), (0, 0), *pool.margins]
    if count_include_pad:
        counted = np.pad(inside, margins, constant_values=1)
        counted = np.pad(counted, [(0, 0), (0, 0), *((0, n) for n in pool.over)])
        count = pool.reduced(ptir.asarray(counted), "add", pads=False)
    else:
        count = pool.reduced(ptir.asarray(inside), "add")
    return ptir.astype(total / ptir.astype(count, total.dtype), x.dtype)


@onnx("LpPool")
def lp_pool(
    x: Tensor,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    p: int = 2,
    pads: Ints = None,
    strides: Ints = None,
) -> Tensor:
    """The p-norm of each window."""
    pool = _Pool(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    total = pool.reduced(ptir.abs(x) ** p, "add")
    return ptir.astype(total ** (1 / p), x.dtype)


@onnx("MaxUnpool", known=("output_shape",))
def max_unpool(
    x: Tensor,
    indices: Tensor,
    output_shape: Any = None,
    kernel_shape: Sequence[int] = (),
    pads: Ints = None,
    strides: Ints = None,
) -> Tensor:
    """Zeros, and the elements of ``x`` at their places in the whole result."""
    rank = len(kernel_shape)
    steps, given = tuple(strides or (1,) * rank), tuple(pads or (0,) * 2 * rank)
    sizes = [
        (n - 1) * s - given[i] - given[i + rank] + k
        for i, (n, s, k) in enumerate(zip(x.shape[2:], steps, kernel_shape, strict=True))
    ]
    whole = (*x.shape[:2], *sizes)
    flat = ptir.zeros((math.prod(whole),), dtype=x.dtype)
    made = ptir.reshape(flat.at[ptir.reshape(indices, (-1,))].set(ptir.reshape(x, (-1,))), whole)
    if output_shape is None:
        return made
    wanted = sizes_in(output_shape)
    return ptir.pad(made, tuple((0, w - n) for w, n in zip(wanted, whole, strict=True)))


def _over_space(function: Any) -> Any:
    """``function`` over all spatial axes, which stay with an extent of 1."""

    def call(x: Tensor) -> Tensor:
        return function(x, axis=tuple(range(2, x.ndim)), keepdims=True)

    return call


enter_all({"GlobalAveragePool": _over_space(ptir.mean), "GlobalMaxPool": _over_space(ptir.amax)})


@onnx("GlobalLpPool")
def global_lp_pool(x: Tensor, p: int = 2) -> Tensor:
    total = ptir.sum(ptir.abs(x) ** p, axis=tuple(range(2, x.ndim)), keepdims=True)
    return total ** (1 / p)

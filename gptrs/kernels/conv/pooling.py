"""Pooling: the maximum, or the mean, of each window and channel of x [N, H, W, C].

    for row of the result:                      # extent
        for tile of neighbouring outputs, lanes of channels:
            total[outputs] = −∞ or 0            # registers
            for element of the window inside the image:
                total[output] = max(total, x) or total + x
            store total, or total / count

Loops and tiles are those of `gptrs.kernels.conv.window_loops`; the global mean is one window per
image and some channels.

Order rule: a window's elements that are inside the image in row-major order, in one chain.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, POINTER, Function, KernelText, i64, like
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.conv.window_loops import CHANNELS, channel_pieces, channels_of, window_kernel
from gptrs.kernels.conv.window_tiles import Body, Given, Place, Window, edge_part
from gptrs.lazy_dataclass import dataclass

GLOBAL_POOL_ARGUMENTS = ("x", "result", "height", "width", "channels")
"""The argument block of `global_avg_pool_kernel`, in order. x [N, height, width, channels] and the
result [N, channels] are contiguous and do not overlap."""


@dataclass(frozen=True)
class _Greatest(Body):
    name = "max_pool"
    start = -math.inf

    def combine(self, f: Function, total: Any, x: Any, weight: Any) -> Any:
        return f.maximum(total, x)

    def finish(self, f: Function, given: Given, total: Any, place: Place) -> Any:
        return total


@dataclass(frozen=True)
class _Mean(Body):
    divisor: int | None
    """The number of elements of a window; None: of its elements inside the image."""

    name = "avg_pool"

    @property
    def label(self) -> str:
        return self.name if self.divisor is not None else f"{self.name}_inside"

    def combine(self, f: Function, total: Any, x: Any, weight: Any) -> Any:
        return f.fadd(total, x)

    def finish(self, f: Function, given: Given, total: Any, place: Place) -> Any:
        if self.divisor is not None:
            return f.fdiv(total, like(total, float(self.divisor)))
        count = f.sitofp(f.mul(given.rows, given.taps), F32)
        return f.fdiv(total, f.splat(count))


def max_pool_kernel(isa: Isa, window: Window) -> KernelText:
    """The greatest element of each window, −∞ where it is nothing but padding; NaN wins.

    Arguments: `gptrs.kernels.conv.window_loops.WINDOW_ARGUMENTS`, weight and bias unused.
    """
    return window_kernel(isa, window, _Greatest())


def avg_pool_kernel(isa: Isa, window: Window, *, count_padding: bool = True) -> KernelText:
    """The sum of each window over its number of elements, or of its elements inside the image.

    NaN for a window of nothing but padding that does not count. Arguments:
    `gptrs.kernels.conv.window_loops.WINDOW_ARGUMENTS`, weight and bias unused.
    """
    height, width = window.size
    return window_kernel(isa, window, _Mean(height * width if count_padding else None))


def global_avg_pool_kernel(isa: Isa) -> KernelText:
    """The sum of each channel of an image over its number of pixels; NaN if it has none.

    Arguments: `GLOBAL_POOL_ARGUMENTS`; extent: `global_pool_extent`.
    """
    name = "global_avg_pool"
    module = ir.Module(f"{name} {isa.name}")
    edge = edge_part(module, isa, Window((1, 1)), _Mean(None))
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    arguments = f.argument_block(address, GLOBAL_POOL_ARGUMENTS[:2], GLOBAL_POOL_ARGUMENTS[2:])
    height, width, channels = (arguments[size] for size in GLOBAL_POOL_ARGUMENTS[2:])
    line = f.mul(width, channels)
    parts = channel_pieces(f, channels)
    none = ir.Constant(POINTER, None)
    with f.loop(first, last) as piece:
        image = f.udiv(piece.index, parts)
        channel, count = channels_of(f, f.urem(piece.index, parts), channels)
        x = f.at(arguments["x"], f.add(f.mul(image, f.mul(height, line)), channel))
        result = f.at(arguments["result"], f.add(f.mul(image, channels), channel))
        sizes = (i64(0), i64(0), height, i64(0), width, line, channels, count)
        f.call(edge, Given(x, result, none, none, *sizes))
    f.ret_void()
    return KernelText(str(module), name)


def global_pool_extent(images: int, channels: int) -> int:
    """The extent: pieces of some channels of an image each."""
    return images * max(1, channels // CHANNELS)

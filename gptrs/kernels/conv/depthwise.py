"""Depthwise convolution: each channel of x [N, H, W, C] with its own taps of weight [KH, KW, C].

    for row of the result:                      # extent
        for tile of neighbouring outputs, lanes of channels:
            total[outputs] = 0                  # registers
            for row of the window:
                for column that the outputs read:
                    total[output] += x[row, column, channels] · weight[row, tap, channels]
            store act(total + bias)

Loops and tiles are those of `gptrs.kernels.conv.window_loops`; this module has the body.

Order rule: every output is one chain of multiply-adds from zero, over the taps in the padding and
then those inside the image, both in row-major order; then bias, then activation. The padding's
zeros are multiplied: they change no sum of finite weights, and a weight that is infinite or NaN
makes NaN of it.
"""

from __future__ import annotations

from typing import Any

from gptrs.kernels.compiler.ir_builder import Function, KernelText
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.conv.window_loops import window_kernel
from gptrs.kernels.conv.window_tiles import Body, Given, Place, Window
from gptrs.kernels.vector_math import ACTIVATIONS
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Depthwise(Body):
    """The body of a depthwise convolution: parameters of its code besides the window."""

    bias: bool = True
    activation: str | None = None
    """One of `gptrs.kernels.vector_math.ACTIVATIONS`, applied after the bias."""

    name = "depthwise"
    reads_weights = True

    @property
    def label(self) -> str:
        parts = [self.name, *(["bias"] if self.bias else [])]
        return "_".join([*parts, *([self.activation] if self.activation else [])])

    def combine(self, f: Function, total: Any, x: Any, weight: Any) -> Any:
        return f.multiply_add(x, weight, total)

    def finish(self, f: Function, given: Given, total: Any, place: Place) -> Any:
        if self.bias:
            bias = f.read(f.at(given.bias, place.channel), mask=place.mask)
            total = f.fadd(total, bias)
        return ACTIVATIONS[self.activation](f, total) if self.activation else total


def depthwise_kernel(isa: Isa, window: Window, follows: Depthwise) -> KernelText:
    """act(Σ x·weight + bias). Arguments: `gptrs.kernels.conv.window_loops.WINDOW_ARGUMENTS`."""
    return window_kernel(isa, window, follows)

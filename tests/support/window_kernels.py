"""Images for window kernels, and how tests run these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.conv.window_tiles import Pair, Window

Array = NDArray[Any]
Ranges = Sequence[tuple[int, int]]
GUARD = np.float32(-7.25)


@dataclass(frozen=True)
class Sample:
    """A window, the size [H, W, C] of images, and padding ((low, high), (low, high))."""

    window: Window
    image: tuple[int, int, int]
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0))

    def __str__(self) -> str:
        image = "x".join(map(str, self.image))
        return f"{self.window.label}-{image}-{self.padding}".replace(" ", "")

    @property
    def outputs(self) -> Pair:
        """How many windows there are along the axes."""
        counts = [
            (extent + sum(pad) - (size - 1) * dilation - 1) // stride + 1
            for extent, pad, size, stride, dilation in zip(
                self.image[:2],
                self.padding,
                self.window.size,
                self.window.strides,
                self.window.dilation,
                strict=True,
            )
        ]
        return counts[0], counts[1]

    def images(self, count: int = 2, seed: int = 0) -> Array:
        """Random images [count, H, W, C]."""
        return np.random.default_rng(seed).standard_normal((count, *self.image), np.float32)

    def positions(self, x: Array, fill: float) -> Iterator[tuple[Pair, Array]]:
        """Each place in a window, and the elements [N, H', W', C] that stand there."""
        padded = np.pad(x, ((0, 0), *self.padding, (0, 0)), constant_values=fill)
        for place in np.ndindex(*self.window.size):
            spans = [
                slice(p * d, p * d + (n - 1) * s + 1, s)
                for p, d, n, s in zip(
                    place, self.window.dilation, self.outputs, self.window.strides, strict=True
                )
            ]
            yield (place[0], place[1]), padded[:, spans[0], spans[1]]


SAMPLES = (
    # One output, and a window as large as the image
    Sample(Window((1, 1)), (1, 1, 1)),
    Sample(Window((3, 3)), (3, 3, 8)),
    # Rows of all sizes that tiles are put together to, with edges and without
    *(Sample(Window((3, 3)), (4, w, 17), ((1, 1), (1, 1))) for w in (1, 2, 5, 9, 18)),
    Sample(Window((3, 3), (2, 2)), (11, 33, 40), ((1, 1), (1, 1))),
    Sample(Window((3, 3), (2, 2)), (8, 24, 9), ((0, 1), (0, 1))),
    # Windows of other shapes, steps that pass elements over
    Sample(Window((5, 5)), (7, 26, 12), ((2, 2), (2, 2))),
    Sample(Window((7, 7), (1, 2)), (9, 21, 33), ((3, 3), (3, 3))),
    Sample(Window((2, 4), (3, 5)), (13, 31, 5), ((1, 0), (3, 2))),
    Sample(Window((1, 18)), (3, 30, 10), ((0, 0), (4, 9))),
    Sample(Window((4, 1)), (9, 11, 3), ((3, 2), (0, 0))),
    # Dilation, so much of it that of some windows nothing but the middle is inside
    Sample(Window((3, 3), (1, 1), (2, 3)), (9, 22, 19), ((2, 2), (3, 3))),
    Sample(Window((3, 3), (2, 1), (5, 7)), (6, 8, 24), ((5, 5), (7, 7))),
    # Windows of nothing but padding, and more channels and rows than are done at once
    Sample(Window((2, 2)), (2, 3, 11), ((3, 4), (4, 3))),
    Sample(Window((3, 3)), (19, 4, 531), ((1, 1), (1, 1))),
)


def guarded(x: Array) -> Array:
    """A copy of ``x`` with NaN before and behind it."""
    held = np.full(x.size + 64, np.nan, np.float32)
    held[32 : 32 + x.size] = x.ravel()
    return held[32 : 32 + x.size].reshape(x.shape)


def run(
    text: KernelText,
    sample: Sample,
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    ranges: Ranges | None = None,
) -> Array:
    """The kernel's result for images x [N, H, W, C], done in these ranges of the extent."""
    nothing = np.full(1, np.nan, np.float32)
    given = [guarded(nothing if a is None else a) for a in (x, weight, bias)]
    shape = (len(x), *sample.outputs, x.shape[-1])
    size = int(np.prod(shape))
    held = np.full(size + 64, GUARD)
    places = given[0].ctypes.data, held[32:].ctypes.data, *(a.ctypes.data for a in given[1:])
    pads = [low for low, _ in sample.padding]
    block = np.array([*places, *x.shape[1:], *sample.outputs, *pads], np.int64)
    kernel = compile_ir(*text)
    for first, last in [(0, len(x) * sample.outputs[0])] if ranges is None else ranges:
        kernel(block.ctypes.data, first, last)
    assert (held[:32] == GUARD).all(), "written before the result"
    assert (held[32 + size :] == GUARD).all(), "written behind the result"
    return held[32 : 32 + size].reshape(shape)


def cut(extent: int) -> list[Ranges]:
    """Ways to split an extent."""
    each = [(i, i + 1) for i in range(extent)]
    middle = extent // 3
    return [each, each[::-1], [(middle, extent), (0, 0), (0, middle)]]

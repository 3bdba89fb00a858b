"""Winograd's matrices, and how tests run its kernels: one by one, and all on some images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.conv.indirect_gemm import Epilogue
from gptrs.kernels.conv.winograd import (
    WINOGRAD_INPUT_ARGUMENTS,
    WINOGRAD_OUTPUT_ARGUMENTS,
    Outputs,
    planes,
    winograd_filter_kernel,
    winograd_input_kernel,
    winograd_output_kernel,
)
from gptrs.kernels.conv.winograd_product import WINOGRAD_PRODUCT_ARGUMENTS, winograd_product_kernel
from gptrs.kernels.gemm.packing import panel_count
from tests.support.kernels import run, text_of
from tests.support.window_kernels import GUARD, Array, Ranges, Sample, guarded

PLAIN = Epilogue()
_GAP = 16  # elements between planes

# Lavin and Gray, arXiv:1509.09308, §4.1 and §4.3: Aᵀ, G and Bᵀ for tiles of m × m outputs
SUMS: dict[int, Array] = {
    2: np.array([[1, 1, 1, 0], [0, 1, -1, -1]]),
    4: np.array(
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]
    ),
}
TAPS: dict[int, Array] = {
    2: np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]) / 2,
    4: np.array(
        [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]],
    )
    / 24,
}
PIXELS: dict[int, Array] = {
    2: np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]]),
    4: np.array(
        [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ]
    ),
}


def twice(matrix: Array, x: Array) -> Array:
    """M·x·Mᵀ of the first two axes of x [p, q, ...], in float64."""
    return np.einsum("ip,pq...,jq->ij...", matrix, x.astype(np.float64), matrix)


def call(text: KernelText, words: Sequence[Array | int], ranges: Ranges) -> None:
    """The kernel with these words, over ``ranges``."""
    kernel = compile_ir(*text)
    for extent in ranges:
        run(kernel, *words, extent=extent)


def transformed(level: isa.Isa, m: Outputs, taps: Array, ranges: Ranges | None = None) -> Array:
    """U [planes, panels, C, w] of taps [3, 3, C, O]."""
    *_, channels, columns = taps.shape
    panels = panel_count(level, columns)
    shape = planes(m), panels, channels, level.tile_columns
    held = np.full(int(np.prod(shape)) + 64, GUARD)
    words = [guarded(taps), held[32:].ctypes.data, channels, columns]
    text = text_of(winograd_filter_kernel, level, m)
    call(text, words, [(0, panels)] if ranges is None else ranges)
    assert (held[:32] == GUARD).all(), "written before the panels"
    assert (held[-32:] == GUARD).all(), "written behind the panels"
    return held[32:-32].reshape(shape)


class Tiles:
    """Images [N, H, W, C] of a sample, as tiles of m × m of its outputs [N, H', W', O]."""

    def __init__(
        self, level: isa.Isa, m: Outputs, sample: Sample, images: int, columns: int
    ) -> None:
        self.level, self.sample = level, sample
        self.m: Outputs = m
        self.down, self.across = (-(-n // m) for n in sample.outputs)
        self.count = images * self.down * self.across
        self.shape = images, *sample.outputs, columns
        self._places = {"down": self.down, "across": self.across}

    def corner(self, number: int) -> tuple[int, int, int]:
        """The image of a tile, and the row and column of its first output."""
        rest, across = divmod(number, self.across)
        image, down = divmod(rest, self.down)
        return image, down * self.m, across * self.m

    def pixels(
        self, x: Array, tiles: tuple[int, int] | None = None, ranges: Ranges | None = None
    ) -> Array:
        """V [planes, tiles, C], of ``tiles`` first to last."""
        (first, last), channels = tiles or (0, self.count), x.shape[-1]
        step = (last - first) * channels + _GAP
        held = np.full((planes(self.m), step), GUARD)
        (top, _), (left, _) = self.sample.padding
        words = {**self._places, "x": guarded(x), "v": held, "first": first, "v_step": step}
        words.update(zip(("height", "width", "channels"), x.shape[1:], strict=True))
        words.update(top=top, left=left)
        text = text_of(winograd_input_kernel, self.level, self.m)
        given = [words[name] for name in WINOGRAD_INPUT_ARGUMENTS]
        call(text, given, [(0, last - first)] if ranges is None else ranges)
        assert (held[:, -_GAP:] == GUARD).all(), "written between planes"
        return held[:, :-_GAP].reshape(planes(self.m), last - first, channels)

    def products(self, v: Array, u: Array, ranges: Ranges | None = None) -> Array:
        """Sums [planes, tiles, panels·w]."""
        count, tiles, channels = v.shape
        panels, row = u.shape[1], u.shape[1] * u.shape[3]
        apart = np.pad(v.reshape(count, -1), ((0, 0), (0, _GAP)), constant_values=np.nan)
        held = np.full((count, tiles * row + _GAP), GUARD)
        words: dict[str, Any] = {"v": apart, "u": guarded(u), "sums": held, "tiles": tiles}
        words.update(
            channels=channels, panels=panels, v_step=apart.shape[1], sums_step=held.shape[1]
        )
        text = text_of(winograd_product_kernel, self.level)
        given = [words[name] for name in WINOGRAD_PRODUCT_ARGUMENTS]
        call(text, given, [(0, count * panels)] if ranges is None else ranges)
        assert (held[:, -_GAP:] == GUARD).all(), "written between planes"
        return held[:, :-_GAP].reshape(count, tiles, row)

    def results(
        self,
        blocks: Sequence[Array],
        *,
        bias: Array | None = None,
        residual: Array | None = None,
        epilogue: Epilogue = PLAIN,
        split: Callable[[int], Ranges] = lambda extent: [(0, extent)],
    ) -> Array:
        """Outputs [N, H', W', O] of sums, some tiles after the other."""
        size, first = int(np.prod(self.shape)), 0
        held = np.full(size + 64, GUARD)
        words: dict[str, Any] = {**self._places, "result": held[32:].ctypes.data}
        words["bias"], words["residual"] = (
            0 if a is None else guarded(a) for a in (bias, residual)
        )
        words.update(zip(("height", "width", "columns"), self.shape[1:], strict=True))
        text = text_of(winograd_output_kernel, self.level, self.m, epilogue)
        for sums in blocks:
            count, tiles, row = sums.shape
            apart = np.pad(sums.reshape(count, -1), ((0, 0), (0, _GAP)), constant_values=np.nan)
            words.update(sums=apart, first=first, step=apart.shape[1], row_step=row)
            call(text, [words[name] for name in WINOGRAD_OUTPUT_ARGUMENTS], split(tiles))
            first += tiles
        assert (held[:32] == GUARD).all(), "written before the result"
        assert (held[32 + size :] == GUARD).all(), "written behind the result"
        return held[32 : 32 + size].reshape(self.shape)

    def convolved(self, x: Array, taps: Array, block: int | None = None, **added: Any) -> Array:
        """The result for images x, so many tiles at a time."""
        u = transformed(self.level, self.m, taps)
        firsts = range(0, self.count, block or self.count)
        blocks = [
            self.products(self.pixels(x, tiles), u) for tiles in pairwise([*firsts, self.count])
        ]
        return self.results(blocks, **added)

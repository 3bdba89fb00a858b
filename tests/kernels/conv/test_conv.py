"""Direct convolution against float64, and its bits, at every vector level."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.conv.direct import (
    CONV_ARGUMENTS,
    Bands,
    bands_of,
    conv_extent,
    conv_kernel,
    reach,
)
from gptrs.kernels.conv.indirect_gemm import Epilogue
from gptrs.kernels.conv.window_tiles import Window
from gptrs.kernels.gemm.packed_gemv import packed_gemv_kernel
from gptrs.kernels.gemm.packing import panel_count
from gptrs.kernels.gemm.product import GEMM_ARGUMENTS, Product
from gptrs.kernels.vector_math import ACTIVATIONS, elementwise_kernel
from tests.support.kernels import run, text_of
from tests.support.window_kernels import GUARD, Array, Ranges, Sample, cut, guarded

UNIT = 2.0**-24
PLAIN = Epilogue()
SAMPLES = (
    # Pixels alone: some are passed over, and the others do not lie side by side
    Sample(Window((1, 1), (2, 2)), (7, 12, 8)),
    Sample(Window((1, 1), (1, 1), (2, 2)), (3, 29, 1), ((0, 0), (1, 0))),
    # One output, and rows of more strips than one
    Sample(Window((3, 3)), (3, 3, 8)),
    Sample(Window((2, 2)), (4, 31, 3)),
    Sample(Window((3, 3)), (5, 30, 17), ((1, 1), (1, 1))),
    Sample(Window((7, 7), (2, 2)), (17, 37, 3), ((3, 3), (3, 3))),
    Sample(Window((1, 5)), (3, 16, 17), ((0, 0), (2, 2))),
    # Strides that differ, padding that does, more of it than there is image
    Sample(Window((3, 2), (2, 1)), (9, 11, 8), ((1, 0), (0, 1))),
    Sample(Window((2, 3), (1, 2)), (6, 21, 1), ((0, 2), (3, 1))),
    Sample(Window((3, 3)), (1, 2, 3), ((4, 3), (5, 6))),
    # Padding, and columns behind it that no tap meets, or none but those of the padding
    Sample(Window((2, 2), (2, 3)), (5, 9, 8), ((1, 0), (0, 0))),
    Sample(Window((1, 1), (1, 4)), (2, 1, 3), ((1, 0), (3, 0))),
    # Dilation along rows, columns, both
    Sample(Window((3, 3), (1, 1), (2, 1)), (9, 13, 8), ((2, 2), (1, 1))),
    Sample(Window((3, 3), (1, 1), (1, 2)), (6, 17, 8)),
    Sample(Window((3, 3), (1, 2), (2, 2)), (8, 15, 8), ((2, 1), (0, 2))),
    # An image of several bands
    Sample(Window((3, 3)), (62, 33, 17), ((1, 1), (1, 1))),
)


def widths(level: isa.Isa) -> list[int]:
    """Outputs of a pixel: less than a panel has, one, some, and parts of one behind them."""
    width = level.tile_columns
    return [1, width - 3, width, 2 * width + level.lanes + 1]


def random(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def packed(level: isa.Isa, taps: Array) -> Array:
    """Taps [KH, KW, C, O] as panels [⌈O/w⌉, KH·KW·C, w], with zeros for outputs that miss."""
    columns, width = taps.shape[-1], level.tile_columns
    full = np.zeros((taps[..., 0].size, panel_count(level, columns) * width), np.float32)
    full[:, :columns] = taps.reshape(-1, columns)
    return guarded(np.stack(np.split(full, full.shape[1] // width, axis=1)))


class Convolution:
    """Images and taps, and the guarded result of the kernel for them."""

    def __init__(self, level: isa.Isa, sample: Sample, x: Array, taps: Array) -> None:
        self.level, self.sample, self.x, self.taps = level, sample, guarded(x), taps
        self._panels = packed(level, taps)
        self.shape = (len(x), *sample.outputs, taps.shape[-1])
        self._sizes = (*sample.outputs, x.shape[-1], taps.shape[-1])

    def bands(self, threads: int) -> Bands:
        return bands_of(self.level, self.sample.window, self._sizes, threads=threads)

    def run(
        self,
        *,
        bias: Array | None = None,
        residual: Array | None = None,
        epilogue: Epilogue = PLAIN,
        threads: int = 1,
        ranges: Ranges | None = None,
    ) -> Array:
        window, bands = self.sample.window, self.bands(threads)
        extent = conv_extent(len(self.x), bands)
        added = [None if a is None else guarded(a) for a in (bias, residual)]
        size, room_size = int(np.prod(self.shape)), extent * bands.workspace_step
        result, room = np.full(size + 64, GUARD), np.full(room_size + 64, np.nan, np.float32)
        room[room_size:] = GUARD
        (top, _), (left, _) = self.sample.padding
        words: dict[str, Any] = dict(zip(CONV_ARGUMENTS[3:5], map(address, added), strict=True))
        words.update(x=address(self.x), panels=address(self._panels), workspace=address(room))
        words.update(result=result[32:].ctypes.data, top=top, left=left, **bands._asdict())
        _, words["height"], words["width"], words["channels"] = self.x.shape
        _, words["out_height"], words["out_width"], words["columns"] = self.shape
        words["taps_down"], words["taps_across"] = window.size
        words["stride_down"], words["stride_across"] = window.strides
        words["far_down"], words["far_across"] = window.dilation
        words["padded"] = int(any(n for pair in self.sample.padding for n in pair))
        block = np.array([words[name] for name in CONV_ARGUMENTS], np.int64)
        kernel = compile_ir(*text_of(conv_kernel, self.level, epilogue))
        for first, last in [(0, extent)] if ranges is None else ranges:
            kernel(block.ctypes.data, first, last)
        assert (result[:32] == GUARD).all(), "written before the result"
        assert (result[32 + size :] == GUARD).all(), "written behind the result"
        assert (room[room_size:] == GUARD).all(), "written behind the copy with padding"
        return result[32 : 32 + size].reshape(self.shape)

    def patches(self) -> Array:
        """The elements [N·H'·W', KH·KW·C] that taps meet."""
        found = [elements for _, elements in self.sample.positions(self.x, 0.0)]
        return np.stack(found, axis=3).reshape(-1, self._panels.shape[1])

    def as_product(self) -> Array:
        """The result by the kernel of matrix products."""
        patches, (_, depth, _) = self.patches(), self._panels.shape
        result = np.full(self.shape, GUARD)
        words = dict.fromkeys(GEMM_ARGUMENTS, 0)
        words.update(a=address(patches), panels=address(self._panels), c=address(result))
        words.update(rows=len(patches), depth=depth, lda=depth)
        words.update(columns=self.shape[-1], ldc=self.shape[-1])
        kernel = compile_ir(*text_of(packed_gemv_kernel, self.level, Product()))
        run(kernel, *words.values(), extent=(0, len(self._panels)))
        return result


def address(a: Array | None) -> int:
    return 0 if a is None else a.ctypes.data


def convolution(level: isa.Isa, sample: Sample, columns: int, images: int = 1) -> Convolution:
    shape = (*sample.window.size, sample.image[-1], columns)
    return Convolution(level, sample, sample.images(images), random(*shape))


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_conv(level: isa.Isa, sample: Sample) -> None:
    for columns, images in zip(widths(level), (3, 1, 1, 3), strict=True):
        conv = convolution(level, sample, columns, images)
        bias, residual = random(columns, seed=2), random(*conv.shape, seed=3)
        exact = np.zeros(conv.shape) + bias + residual
        size = np.zeros(conv.shape) + np.abs(bias) + np.abs(residual)
        for place, elements in sample.positions(conv.x.astype(np.float64), 0.0):
            exact += elements @ conv.taps[place].astype(np.float64)
            size += np.abs(elements) @ np.abs(conv.taps[place])
        # Higham, Accuracy and Stability of Numerical Algorithms, (3.5), for two terms more
        bound = (conv.taps[..., 0].size + 2) * UNIT * size * 1.001
        assert (np.abs(conv.run(bias=bias, residual=residual) - exact) <= bound).all()


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_order_of_sums_is_that_of_products(level: isa.Isa, sample: Sample) -> None:
    conv = convolution(level, sample, level.tile_columns + 5, 2)
    np.testing.assert_array_equal(conv.run(), conv.as_product())


def test_panels_of_few_columns(level: isa.Isa) -> None:
    """Row blocks of every height, of as many columns as fill some vectors of a panel or do not."""
    for columns in range(1, level.tile_columns + 2):
        for rows in (level.tile_rows, 2 * level.tile_rows - 1):
            conv = convolution(level, Sample(Window((1, 1)), (1, rows, 5)), columns)
            bias, residual = random(columns, seed=2), random(*conv.shape, seed=3)
            expected = (conv.as_product() + bias) + residual
            np.testing.assert_array_equal(conv.run(bias=bias, residual=residual), expected)


@pytest.mark.parametrize("sample", SAMPLES[4::3], ids=str)
def test_bits_depend_on_the_image_alone(level: isa.Isa, sample: Sample) -> None:
    """However the work is cut, whatever else is in the batch."""
    conv = convolution(level, sample, 3 * level.tile_columns - 1, 3)
    bias = random(conv.shape[-1], seed=2)
    whole = conv.run(bias=bias)
    for threads in (2, 3, 5, 40):
        for ranges in cut(conv_extent(3, conv.bands(threads))):
            found = conv.run(bias=bias, threads=threads, ranges=ranges)
            np.testing.assert_array_equal(found, whole)
    alone = [Convolution(level, sample, x[None], conv.taps).run(bias=bias)[0] for x in conv.x]
    np.testing.assert_array_equal(np.stack(alone), whole)


def elementwise(level: isa.Isa, function: str, x: Array) -> Array:
    y = np.empty_like(x)
    run(compile_ir(*text_of(elementwise_kernel, level, function)), x, y, extent=(0, x.size))
    return y


def check_following(level: isa.Isa, activation: str | None) -> None:
    """What follows sums, in both orders, by the bits of doing it after the kernel."""
    sample = Sample(Window((2, 3)), (3, 19, 3), ((0, 1), (1, 1)))
    conv = convolution(level, sample, level.tile_columns + level.lanes + 2, 2)
    operands: dict[str, Any] = {
        "bias": random(conv.shape[-1], seed=2),
        "residual": random(*conv.shape, seed=3),
    }
    plain = conv.run()
    for last in (False, True):
        for given in ((), ("bias",), ("residual",), ("bias", "residual")):
            expected = plain + operands["bias"] if "bias" in given else plain
            if activation is not None and not last:
                expected = elementwise(level, activation, expected)
            expected = expected + operands["residual"] if "residual" in given else expected
            if activation is not None and last:
                expected = elementwise(level, activation, expected)
            more = {name: operands[name] for name in given}
            found = conv.run(**more, epilogue=Epilogue(activation, last), threads=5)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("activation", [None, "relu6"])
def test_what_follows(level: isa.Isa, activation: str | None) -> None:
    check_following(level, activation)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation: str) -> None:
    check_following(isa.current(), activation)


@pytest.mark.parametrize("dilation", [(1, 1), (2, 3)])
def test_nan_stays_in_its_windows(level: isa.Isa, dilation: tuple[int, int]) -> None:
    padding = (dilation[0], dilation[0]), (dilation[1], dilation[1])
    sample = Sample(Window((3, 3), (1, 1), dilation), (9, 14, 3), padding)
    conv = convolution(level, sample, level.tile_columns + 1, 2)
    conv.x[1, 4, 6, 2], conv.x[0, 0, 0, 0] = np.nan, np.inf
    found = conv.run()
    down, across = dilation
    nan, infinite = np.zeros(found.shape, bool), np.zeros(found.shape, bool)
    nan[1, 4 - down : 5 + down : down, 6 - across : 7 + across : across] = True
    infinite[0, : 1 + down : down, : 1 + across : across] = True
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(np.isinf(found), infinite)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_tap_that_is_not_finite_reaches_padding(level: isa.Isa, sample: Sample) -> None:
    """Zeros around the image are multiplied, though those that finite taps meet are left out."""
    width = level.tile_columns
    conv = convolution(level, sample, 3 * width)
    taps = conv.taps.copy()
    down, across = sample.window.size
    taps[0, 0, 0, 1], taps[down - 1, across - 1, 0, width + 1] = np.inf, np.nan
    conv = Convolution(level, sample, conv.x, taps)
    for threads in (1, 5):
        found = conv.run(threads=threads)
        np.testing.assert_array_equal(found, conv.as_product())
    assert np.isnan(found[..., width + 1]).all()
    assert not np.isfinite(found[..., 1]).any()
    assert np.isfinite(np.delete(found, [1, width + 1], axis=-1)).all()


def test_nothing_to_do(level: isa.Isa) -> None:
    sample = Sample(Window((3, 3)), (4, 5, 3), ((1, 1), (1, 1)))
    assert convolution(level, sample, 4, 0).run().size == 0
    assert (convolution(level, sample, 4).run(ranges=[(0, 0)]) == GUARD).all()


def edges(bands: Bands, height: int) -> list[int]:
    """Where the bands of an image begin and end."""
    return [i * height // bands.bands for i in range(bands.bands + 1)]


def test_bands() -> None:
    """None is empty, the room holds the highest, and there is work for all threads where rows and
    panels are enough."""
    for level in isa.ISAS.values():
        for sample in SAMPLES:
            (height, width), channels = sample.outputs, sample.image[-1]
            for threads in (1, 2, 7, 1000):
                sizes = height, width, channels, 5 * level.tile_columns
                bands = bands_of(level, sample.window, sizes, threads=threads)
                heights = [b - a for a, b in pairwise(edges(bands, height))]
                assert sum(heights) == height
                assert min(heights) > 0
                assert 1 <= bands.parts <= 5
                assert bands.bands * bands.parts >= min(threads, 5)
                down, across = reach(sample.window, max(heights), width)
                assert bands.workspace_step >= down * across * channels
    large = bands_of(isa.ISAS["avx2"], Window((3, 3)), (62, 33, 33, 64))
    assert large.bands > 1
    assert large.workspace_step * 4 <= 3 * 2**16, "copies stay in a cache"


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("images", [1, 8])
@pytest.mark.parametrize("side", [7, 14, 28, 56])
def test_threads_get_equal_work(side: int, images: int, threads: int) -> None:
    """Of the layers of a ResNet: in tiles, whoever is free takes the next item."""
    level, channels = isa.ISAS["avx2"], 64 * 56 // side
    sizes = side, side, channels, channels
    bands = bands_of(level, Window((3, 3)), sizes, images=images, threads=threads)
    per_part = -(-channels // (level.tile_columns * bands.parts))
    heights = [b - a for a, b in pairwise(edges(bands, side))]
    items = [-(-rows * side // level.tile_rows) * per_part for rows in heights]
    done = [0] * threads
    for item in np.repeat(items, bands.parts).tolist() * images:
        done[done.index(min(done))] += item
    fewest = images * side**2 / level.tile_rows * channels / level.tile_columns
    assert max(done) * threads <= 1.16 * fewest, bands

"""Winograd transforms and products, one by one and together, at every vector level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.conv.indirect_gemm import Epilogue
from gptrs.kernels.conv.window_tiles import Window
from gptrs.kernels.conv.winograd import MOST_CHANNELS, Outputs, planes
from gptrs.kernels.gemm.packing import panel_count
from gptrs.kernels.vector_math import ACTIVATIONS, elementwise_kernel
from tests.kernels.conv.test_conv import Convolution
from tests.support.kernels import run, text_of
from tests.support.window_kernels import GUARD, Array, Sample, cut
from tests.support.winograd_tiles import PIXELS, SUMS, TAPS, Tiles, transformed, twice

UNIT = 2.0**-24 * 1.001  # and what products of such roundings add
# How often a term is rounded at most on its way through a transform, along both axes
TAP_STEPS, PIXEL_STEPS, SUM_STEPS = {2: 4, 4: 8}, {2: 2, 4: 6}, {2: 4, 4: 6}
SAMPLES = [
    Sample(Window((3, 3)), image, padding)
    for image, padding in (
        # One tile, whole or not, inside of the image or mostly not
        ((6, 6, 16), ((0, 0), (0, 0))),
        ((3, 3, 16), ((0, 0), (0, 0))),
        ((1, 1, 16), ((1, 1), (1, 1))),
        # Several of them, which overhang
        ((9, 12, 16), ((1, 1), (1, 1))),
        ((7, 10, 48), ((0, 0), (0, 0))),
        ((8, 5, 32), ((0, 2), (2, 1))),
        # Tiles of nothing but padding
        ((2, 3, 16), ((6, 7), (8, 6))),
    )
]


@pytest.fixture(params=get_args(Outputs))
def m(request: pytest.FixtureRequest) -> Outputs:
    return request.param


def random(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def test_matrices(m: Outputs) -> None:
    """Those that the tests below rest on make a convolution."""
    x, taps = random(m + 2, m + 2).astype(np.float64), random(3, 3, seed=2).astype(np.float64)
    found = twice(SUMS[m], twice(TAPS[m], taps) * twice(PIXELS[m], x))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3))
    np.testing.assert_allclose(found, np.einsum("ijpq,pq->ij", windows, taps), rtol=0, atol=1e-13)


@pytest.mark.parametrize(("channels", "past"), [(1, 1), (5, -3), (16, 0), (33, 20)])
def test_taps(level: isa.Isa, m: Outputs, channels: int, past: int) -> None:
    columns = level.tile_columns + past
    taps = random(3, 3, channels, columns)
    u = transformed(level, m, taps)
    found = u.transpose(0, 2, 1, 3).reshape(m + 2, m + 2, channels, -1)
    exact, size = twice(TAPS[m], taps), twice(np.abs(TAPS[m]), np.abs(taps))
    assert (np.abs(found[..., :columns] - exact) <= TAP_STEPS[m] * UNIT * size).all()
    np.testing.assert_array_equal(found[..., columns:], 0)
    for ranges in cut(panel_count(level, columns)):
        np.testing.assert_array_equal(transformed(level, m, taps, ranges), u)


def squares(tiles: Tiles, x: Array) -> Array:
    """Pixels [m + 2, m + 2, tiles, C], zero outside of the images."""
    side, before = tiles.m + 2, [low for low, _ in tiles.sample.padding]
    behind = [high + side for _, high in tiles.sample.padding]
    padded = np.pad(x, ((0, 0), *zip(before, behind, strict=True), (0, 0)))
    corners = [tiles.corner(i) for i in range(tiles.count)]
    return np.stack([padded[n, y : y + side, z : z + side] for n, y, z in corners], axis=2)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_pixels(level: isa.Isa, m: Outputs, sample: Sample) -> None:
    x, tiles = sample.images(2), Tiles(level, m, sample, 2, 16)
    v, given = tiles.pixels(x), squares(tiles, x)
    found = v.reshape(given.shape)
    exact, size = twice(PIXELS[m], given), twice(np.abs(PIXELS[m]), np.abs(given))
    assert (np.abs(found - exact) <= PIXEL_STEPS[m] * UNIT * size).all()
    for ranges in cut(tiles.count):
        np.testing.assert_array_equal(tiles.pixels(x, ranges=ranges), v)
    for first, last in ((1, tiles.count), (tiles.count // 2, tiles.count - 1)):
        np.testing.assert_array_equal(tiles.pixels(x, (first, last)), v[:, first:last])


@pytest.mark.parametrize("count", [1, 5, 29])
def test_products(level: isa.Isa, m: Outputs, count: int) -> None:
    sample = Sample(Window((3, 3)), (2 + m, 2 + m * count, 48))
    tiles = Tiles(level, m, sample, 1, 2 * level.tile_columns)
    v, u = random(planes(m), count, 48), random(planes(m), 2, 48, level.tile_columns, seed=2)
    found = tiles.products(v, u)
    right = np.moveaxis(u, 2, 1).reshape(planes(m), 48, -1)
    exact, size = v.astype(np.float64) @ right.astype(np.float64), np.abs(v) @ np.abs(right)
    # Higham, Accuracy and Stability of Numerical Algorithms, (3.5)
    assert (np.abs(found - exact) <= 48 * UNIT * size).all()
    for ranges in cut(planes(m) * 2):
        np.testing.assert_array_equal(tiles.products(v, u, ranges), found)


def sewn(tiles: Tiles, squares: Array) -> Array:
    """Outputs [N, H', W', O] of tiles [m, m, tiles, O], without what overhangs."""
    images, height, width, columns = tiles.shape
    whole = np.empty((images, height + tiles.m, width + tiles.m, columns))
    for number in range(tiles.count):
        n, y, x = tiles.corner(number)
        whole[n, y : y + tiles.m, x : x + tiles.m] = squares[:, :, number]
    return whole[:, :height, :width]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_sums(level: isa.Isa, m: Outputs, sample: Sample) -> None:
    tiles = Tiles(level, m, sample, 2, 48)
    sums = random(planes(m), tiles.count, panel_count(level, 48) * level.tile_columns)
    given: dict[str, Any] = {"bias": random(48, seed=2), "residual": random(*tiles.shape, seed=3)}
    square = sums[..., :48].reshape(m + 2, m + 2, tiles.count, 48)

    def exactly(f: Callable[[Array], Array]) -> Array:
        """With the sizes of all terms, if ``f`` is the magnitude."""
        return sewn(tiles, twice(f(SUMS[m]), f(square))) + f(given["bias"]) + f(given["residual"])

    found = tiles.results([sums], **given)
    error = np.abs(found - exactly(np.positive))
    assert (error <= (SUM_STEPS[m] + 2) * UNIT * exactly(np.abs)).all()
    for ranges in cut(tiles.count):
        np.testing.assert_array_equal(
            tiles.results([sums], **given, split=lambda _, ranges=ranges: ranges), found
        )
    parts = np.array_split(sums, 3, axis=1)
    np.testing.assert_array_equal(tiles.results(parts, **given), found)


def check_following(level: isa.Isa, m: Outputs, activation: str | None) -> None:
    """What follows sums, in both orders, by the bits of doing it after the kernel."""
    tiles = Tiles(level, m, Sample(Window((3, 3)), (8, 13, 16)), 2, 32)
    sums = random(planes(m), tiles.count, panel_count(level, 32) * level.tile_columns)
    operands: dict[str, Any] = {
        "bias": random(32, seed=2),
        "residual": random(*tiles.shape, seed=3),
    }
    plain = tiles.results([sums])

    def activated(x: Array, now: bool) -> Array:
        if activation is None or not now:
            return x
        y = np.empty_like(x)
        kernel = compile_ir(*text_of(elementwise_kernel, level, activation))
        run(kernel, x, y, extent=(0, x.size))
        return y

    for last in (False, True):
        for given in ((), ("bias",), ("residual",), ("bias", "residual")):
            more = {name: operands[name] for name in given}
            expected = plain + operands["bias"] if "bias" in given else plain
            expected = activated(expected, not last)
            expected = expected + operands["residual"] if "residual" in given else expected
            found = tiles.results([sums], **more, epilogue=Epilogue(activation, last))
            np.testing.assert_array_equal(found, activated(expected, last))


@pytest.mark.parametrize("activation", [None, "silu"])
def test_what_follows(level: isa.Isa, m: Outputs, activation: str | None) -> None:
    check_following(level, m, activation)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation: str) -> None:
    check_following(isa.current(), 4, activation)


def terms(sample: Sample, x: Array, taps: Array) -> tuple[Array, Array]:
    """The convolution in float64, and the sum of the sizes of its terms."""
    wide, shape = x.astype(np.float64), (len(x), *sample.outputs, taps.shape[-1])
    exact, size = np.zeros(shape), np.zeros(shape)
    for place, elements in sample.positions(wide, 0.0):
        exact += elements @ taps[place].astype(np.float64)
        size += np.abs(elements) @ np.abs(taps[place]).astype(np.float64)
    return exact, size


def bound(tiles: Tiles, x: Array, taps: Array) -> Array:
    """How far off outputs may be, as every term goes through all transforms and a sum."""
    m, channels = tiles.m, x.shape[-1]
    v = twice(np.abs(PIXELS[m]), np.abs(squares(tiles, x)))
    u = twice(np.abs(TAPS[m]), np.abs(taps))
    steps = TAP_STEPS[m] + PIXEL_STEPS[m] + SUM_STEPS[m] + channels
    return steps * UNIT * sewn(tiles, twice(np.abs(SUMS[m]), v @ u))


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_convolution(level: isa.Isa, m: Outputs, sample: Sample) -> None:
    x, tiles = sample.images(3), Tiles(level, m, sample, 3, 48)
    taps = random(3, 3, sample.image[-1], 48)
    exact, _ = terms(sample, x, taps)
    found = tiles.convolved(x, taps)
    assert (np.abs(found - exact) <= bound(tiles, x, taps)).all()
    for block in (1, 7):
        np.testing.assert_array_equal(tiles.convolved(x, taps, block), found)
    one = Tiles(level, m, sample, 1, 48)
    alone = [one.convolved(image[None], taps)[0] for image in x]
    np.testing.assert_array_equal(np.stack(alone), found)


# The greatest error and the root of the mean square, in units of 2⁻²⁴·Σ|x|·|w|, of normal numbers.
# Of six draws with 16, 64 and 256 channels: directly 5.7 and 0.48, with m = 2 3.1 and 0.40 (its
# sums have a ninth of the terms), with m = 4 40 and 2.3.
ACCURACY = {1: (6.0, 0.5), 2: (3.5, 0.42), 4: (42.0, 2.4)}


@pytest.mark.parametrize("channels", [16, 64])
def test_accuracy(level: isa.Isa, channels: int) -> None:
    sample = Sample(Window((3, 3)), (18, 18, channels), ((1, 1), (1, 1)))
    x, taps = sample.images(1), random(3, 3, channels, 64)
    exact, size = terms(sample, x, taps)
    results = {m: Tiles(level, m, sample, 1, 64).convolved(x, taps) for m in get_args(Outputs)}
    results[1] = Convolution(level, sample, x, taps).run()
    for m, found in results.items():
        error = np.abs(found - exact) / (2.0**-24 * size)
        assert error.max() <= ACCURACY[m][0]
        assert np.sqrt((error**2).mean()) <= ACCURACY[m][1]


def test_most_channels(level: isa.Isa, m: Outputs) -> None:
    """As many as the kernels have room for, where tiles are at an edge."""
    sample = Sample(Window((3, 3)), (3, 3, MOST_CHANNELS), ((1, 1), (1, 1)))
    x, taps = sample.images(1), random(3, 3, MOST_CHANNELS, 16)
    tiles = Tiles(level, m, sample, 1, 16)
    found, (exact, _) = tiles.convolved(x, taps), terms(sample, x, taps)
    assert (np.abs(found - exact) <= bound(tiles, x, taps)).all()
    tiles = Tiles(level, m, sample, 1, MOST_CHANNELS)
    x, taps = x[..., :16], random(3, 3, 16, MOST_CHANNELS)
    residual = random(*tiles.shape, seed=3)
    found = tiles.convolved(x, taps, residual=residual)
    np.testing.assert_array_equal(found, tiles.convolved(x, taps) + residual)


def test_nothing_to_do(level: isa.Isa, m: Outputs) -> None:
    sample = Sample(Window((3, 3)), (4, 5, 16), ((1, 1), (1, 1)))
    tiles = Tiles(level, m, sample, 1, 16)
    for ranges in ([(0, 0)], [(2, 2)]):
        assert (tiles.pixels(sample.images(1), ranges=ranges) == GUARD).all()
        v, u = random(planes(m), tiles.count, 16), random(planes(m), 1, 16, level.tile_columns)
        assert (tiles.products(v, u, ranges=ranges) == GUARD).all()
        sums = random(planes(m), tiles.count, level.tile_columns)
        assert (tiles.results([sums], split=lambda _, ranges=ranges: ranges) == GUARD).all()

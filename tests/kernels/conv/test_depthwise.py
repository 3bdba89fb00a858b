"""Depthwise convolution against float64, at every vector level."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.conv.depthwise import Depthwise, depthwise_kernel
from gptrs.kernels.conv.window_tiles import Window
from gptrs.kernels.vector_math import ACTIVATIONS, elementwise_kernel
from tests.support.window_kernels import SAMPLES, Array, Sample, cut, run

UNIT = 2.0**-24


def weights(sample: Sample) -> tuple[Array, Array]:
    """Random weight [KH, KW, C] and bias [C]."""
    random, channels = np.random.default_rng(1), sample.image[-1]
    shape = (*sample.window.size, channels)
    return random.standard_normal(shape, np.float32), random.standard_normal(channels, np.float32)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_depthwise(level: isa.Isa, sample: Sample) -> None:
    x, (weight, bias) = sample.images(), weights(sample)
    found = run(depthwise_kernel(level, sample.window, Depthwise()), sample, x, weight, bias)
    wide = x.astype(np.float64)
    exact = np.zeros(found.shape) + bias
    size = np.abs(exact)
    for place, elements in sample.positions(wide, 0.0):
        exact += elements * weight[place]
        size += np.abs(elements * weight[place])
    # Each tap is rounded twice at most, the bias once more.
    steps = 2 * weight[..., 0].size + 1
    assert (np.abs(found - exact) <= steps * UNIT * size).all()


@pytest.mark.parametrize("sample", SAMPLES[::3], ids=str)
def test_bits_depend_on_the_window_alone(level: isa.Isa, sample: Sample) -> None:
    text = depthwise_kernel(level, sample.window, Depthwise(bias=False))
    x, (weight, _) = sample.images(3), weights(sample)
    whole = run(text, sample, x, weight)
    for ranges in cut(len(x) * sample.outputs[0]):
        np.testing.assert_array_equal(run(text, sample, x, weight, ranges=ranges), whole)
    alone = [run(text, sample, image[None], weight)[0] for image in x]
    np.testing.assert_array_equal(np.stack(alone), whole)


@pytest.mark.parametrize("sample", SAMPLES[::2], ids=str)
def test_edges_have_the_bits_of_tiles(level: isa.Isa, sample: Sample) -> None:
    """What is computed at an edge, over images that have the zeros of the padding in them."""
    text = depthwise_kernel(level, sample.window, Depthwise())
    x, (weight, bias) = sample.images(), weights(sample)
    padded = np.pad(x, ((0, 0), *sample.padding, (0, 0)))
    _, height, width, channels = padded.shape
    whole = replace(sample, image=(height, width, channels), padding=((0, 0), (0, 0)))
    expected = run(text, whole, padded, weight, bias)
    np.testing.assert_array_equal(run(text, sample, x, weight, bias), expected)


def test_each_channel_is_by_itself(level: isa.Isa) -> None:
    sample = Sample(Window((3, 3)), (6, 12, 21), ((1, 1), (1, 1)))
    text = depthwise_kernel(level, sample.window, Depthwise())
    x, (weight, bias) = sample.images(), weights(sample)
    whole = run(text, sample, x, weight, bias)
    for first, last in ((0, 1), (3, 12), (20, 21)):
        some = replace(sample, image=(6, 12, last - first))
        found = run(text, some, x[..., first:last], weight[..., first:last], bias[first:last])
        np.testing.assert_array_equal(found, whole[..., first:last])


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation: str) -> None:
    level, sample = isa.current(), Sample(Window((3, 3)), (5, 13, 20), ((1, 1), (1, 1)))
    x, (weight, bias) = sample.images(), weights(sample)
    x *= 3
    for given in (None, bias):
        follows = Depthwise(bias=given is not None)
        plain = run(depthwise_kernel(level, sample.window, follows), sample, x, weight, given)
        expected = np.empty_like(plain)
        block = np.array([plain.ctypes.data, expected.ctypes.data], np.int64)
        apply = compile_ir(*elementwise_kernel(level, activation))
        apply(block.ctypes.data, 0, plain.size)
        text = depthwise_kernel(level, sample.window, replace(follows, activation=activation))
        np.testing.assert_array_equal(run(text, sample, x, weight, given), expected)


def test_nan_stays_in_its_windows(level: isa.Isa) -> None:
    sample = Sample(Window((3, 3)), (9, 14, 11), ((1, 1), (1, 1)))
    x, (weight, bias) = sample.images(1), weights(sample)
    x[0, 4, 6, 10], x[0, 0, 0, 3] = np.nan, np.inf
    follows = Depthwise(activation="relu6")
    found = run(depthwise_kernel(level, sample.window, follows), sample, x, weight, bias)
    expected = np.zeros(found.shape, bool)
    expected[0, 3:6, 5:8, 10] = True
    np.testing.assert_array_equal(np.isnan(found), expected)
    near = weight[1::-1, 1::-1, 3]  # of the outputs that have the infinite element
    np.testing.assert_array_equal(found[0, :2, :2, 3], np.where(near > 0, np.float32(6), 0))


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_padding_is_multiplied(level: isa.Isa, sample: Sample) -> None:
    """A weight that is infinite or NaN, at each place of the window in another channel, or none."""
    taps = sample.window.size[0] * sample.window.size[1]
    sample = replace(sample, image=(*sample.image[:2], taps + 16))
    x = np.ones((2, *sample.image), np.float32)
    text = depthwise_kernel(level, sample.window, Depthwise(bias=False))
    for value in (np.inf, -np.inf, np.nan):
        weight = np.ones((*sample.window.size, sample.image[-1]), np.float32)
        for channel, place in enumerate(np.ndindex(*sample.window.size)):
            weight[(*place, channel)] = value
        found = run(text, sample, x, weight)
        expected = np.zeros(found.shape, np.float32)
        with np.errstate(invalid="ignore"):
            for place, elements in sample.positions(x, 0.0):
                expected += elements * weight[place]
        np.testing.assert_array_equal(found, expected)


def test_one_weight_is_infinite(level: isa.Isa) -> None:
    sample = Sample(Window((3, 3)), (2, 2, 5), ((1, 1), (1, 1)))
    text = depthwise_kernel(level, sample.window, Depthwise(bias=False))
    x = np.ones((1, *sample.image), np.float32)
    inside = [place for _, place in sample.positions(x, 0.0)]
    for number in range(45):
        weight = np.zeros((3, 3, 5), np.float32)
        weight.flat[number] = np.inf
        expected = np.zeros((1, 2, 2, 5), np.float32)
        tap, channel = divmod(number, 5)
        expected[..., channel] = np.where(inside[tap][..., channel] > 0, np.inf, np.nan)
        np.testing.assert_array_equal(run(text, sample, x, weight), expected)


def test_nothing_to_do(level: isa.Isa) -> None:
    for image, count in (((3, 3, 0), 2), ((3, 3, 4), 0)):
        sample = Sample(Window((3, 3)), image)
        weight, bias = weights(sample)
        text = depthwise_kernel(level, sample.window, Depthwise())
        assert run(text, sample, sample.images(count), weight, bias).size == 0

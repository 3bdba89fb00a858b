"""Pooling against NumPy in the order of its definition, at every vector level."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.conv.pooling import (
    avg_pool_kernel,
    global_avg_pool_kernel,
    global_pool_extent,
    max_pool_kernel,
)
from gptrs.kernels.conv.window_tiles import Window
from tests.support.lazy_torch import torch
from tests.support.window_kernels import GUARD, SAMPLES, Array, Ranges, Sample, cut, guarded, run


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_max_pool(level: isa.Isa, sample: Sample) -> None:
    x = sample.images()
    x[0, 0, -1] = -np.inf
    x[:, :, :: max(2, sample.image[1] // 3), 0] = np.nan
    expected = reduce(np.maximum, [part for _, part in sample.positions(x, -np.inf)])
    found = run(max_pool_kernel(level, sample.window), sample, x)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("sample", SAMPLES[::2], ids=str)
def test_avg_pool(level: isa.Isa, sample: Sample) -> None:
    x = sample.images()
    total = reduce(np.add, [part for _, part in sample.positions(x, 0.0)])
    ones = np.ones((1, *sample.image[:2], 1), np.float32)
    count = reduce(np.add, [part for _, part in sample.positions(ones, 0.0)])
    whole = np.float32(np.prod(sample.window.size))
    found = run(avg_pool_kernel(level, sample.window), sample, x)
    np.testing.assert_array_equal(found, total / whole)
    found = run(avg_pool_kernel(level, sample.window, count_padding=False), sample, x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, total / count)


def test_like_torch() -> None:
    """The meaning of padding and strides is that of another library."""
    level, sample = isa.current(), Sample(Window((3, 3), (2, 2)), (15, 20, 10), ((1, 1), (1, 1)))
    x = sample.images()
    first = torch.tensor(x).permute(0, 3, 1, 2)

    def last(y: torch.Tensor) -> Array:
        return y.numpy().transpose(0, 2, 3, 1)

    found = run(max_pool_kernel(level, sample.window), sample, x)
    expected = torch.nn.functional.max_pool2d(first, 3, 2, 1)
    np.testing.assert_array_equal(found, last(expected))
    for count in (True, False):
        found = run(avg_pool_kernel(level, sample.window, count_padding=count), sample, x)
        expected = torch.nn.functional.avg_pool2d(first, 3, 2, 1, count_include_pad=count)
        # Sums of nine in another order
        np.testing.assert_allclose(found, last(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sample", SAMPLES[::4], ids=str)
def test_bits_depend_on_the_window_alone(level: isa.Isa, sample: Sample) -> None:
    x = sample.images(3)
    for text in (max_pool_kernel(level, sample.window), avg_pool_kernel(level, sample.window)):
        whole = run(text, sample, x)
        for ranges in cut(len(x) * sample.outputs[0]):
            np.testing.assert_array_equal(run(text, sample, x, ranges=ranges), whole)
        alone = [run(text, sample, image[None])[0] for image in x]
        np.testing.assert_array_equal(np.stack(alone), whole)


def test_each_channel_is_by_itself(level: isa.Isa) -> None:
    sample = Sample(Window((3, 2)), (6, 12, 35), ((1, 1), (1, 0)))
    x = sample.images()
    text = avg_pool_kernel(level, sample.window, count_padding=False)
    whole = run(text, sample, x)
    for first, last in ((0, 1), (3, 12), (30, 35)):
        some = replace(sample, image=(6, 12, last - first))
        np.testing.assert_array_equal(run(text, some, x[..., first:last]), whole[..., first:last])


def run_global(text: KernelText, x: Array, ranges: Ranges | None = None) -> Array:
    """The kernel's result for images x [N, H, W, C]."""
    held = np.full((len(x) + 2, x.shape[-1]), GUARD)
    given = guarded(x)
    words = [given.ctypes.data, held[1:].ctypes.data, *x.shape[1:]]
    block = np.array(words, np.int64)
    kernel = compile_ir(*text)
    for first, last in ranges or [(0, global_pool_extent(len(x), x.shape[-1]))]:
        kernel(block.ctypes.data, first, last)
    assert (held[[0, -1]] == GUARD).all(), "written outside the result"
    return held[1:-1]


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 7, 40), (1, 9, 3), (5, 2, 531), (33, 30, 17)])
def test_global_avg_pool(level: isa.Isa, shape: tuple[int, int, int]) -> None:
    text = global_avg_pool_kernel(level)
    x = np.random.default_rng(2).standard_normal((3, *shape), np.float32)
    found = run_global(text, x)
    pixels = x.reshape(3, -1, shape[-1])
    total = reduce(np.add, pixels.transpose(1, 0, 2))
    np.testing.assert_array_equal(found, total / np.float32(pixels.shape[1]))
    for ranges in cut(global_pool_extent(3, shape[-1])):
        np.testing.assert_array_equal(run_global(text, x, ranges), found)
    np.testing.assert_array_equal(run_global(text, x[1:2])[0], found[1])


def test_no_pixels(level: isa.Isa) -> None:
    found = run_global(global_avg_pool_kernel(level), np.zeros((2, 0, 4, 5), np.float32))
    assert found.shape == (2, 5)
    assert np.isnan(found).all()

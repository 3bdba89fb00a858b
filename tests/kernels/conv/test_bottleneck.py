"""The fused inverted bottleneck against the kernels of its parts, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.ir_builder import KernelText
from gptrs.kernels.conv.depthwise import Depthwise, depthwise_kernel
from gptrs.kernels.conv.direct import conv_kernel
from gptrs.kernels.conv.indirect_gemm import Epilogue
from gptrs.kernels.conv.inverted_bottleneck import (
    BOTTLENECK_ARGUMENTS,
    Cut,
    bottleneck_kernel,
    cut_of,
    reach_of,
)
from gptrs.kernels.conv.window_tiles import Window
from tests.kernels.conv.test_conv import Convolution, packed
from tests.support import window_kernels
from tests.support.kernels import run, text_of
from tests.support.window_kernels import GUARD, Array, Ranges, Sample, cut, guarded

RELU6 = Epilogue("relu6")
SAMPLES = (
    # As in networks: the image keeps its size, or is halved with padding on all or on two sides
    Sample(Window((3, 3)), (13, 14, 7), ((1, 1), (1, 1))),
    Sample(Window((3, 3), (2, 2)), (13, 17, 7), ((1, 1), (1, 1))),
    Sample(Window((3, 3), (2, 2)), (12, 14, 16), ((0, 1), (0, 1))),
    # One row of outputs, one output, no padding
    Sample(Window((3, 3)), (3, 19, 5)),
    Sample(Window((5, 3)), (5, 3, 1)),
    # Bands that share many rows with the next one, or none, and rows that none reads
    Sample(Window((5, 5), (1, 1), (2, 1)), (11, 9, 4), ((4, 4), (2, 2))),
    Sample(Window((2, 2), (3, 1)), (14, 8, 4), ((1, 0), (1, 0))),
    # Windows of nothing but padding
    Sample(Window((2, 2)), (2, 3, 3), ((3, 4), (4, 3))),
)
HIDDEN, COLUMNS = 19, 11


class Stages(NamedTuple):
    """What the three do besides their products."""

    first: Epilogue | None
    window: Window
    depthwise: Depthwise
    last: Epilogue


def random(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@dataclass(frozen=True)
class Bottleneck:
    """Images, the weights of all parts, and the guarded result of the kernel for them."""

    level: isa.Isa
    sample: Sample
    stages: Stages
    hidden: int = HIDDEN
    columns: int = COLUMNS
    given: bool = True
    """Whether there are biases and a residual."""

    def images(self, count: int) -> Array:
        *size, channels = self.sample.image
        channels = channels if self.stages.first is not None else self.hidden
        return random(count, *size, channels, seed=0)

    @property
    def taps(self) -> Array:
        return random(self.sample.image[-1], self.hidden, seed=1)

    @property
    def last_taps(self) -> Array:
        return random(self.hidden, self.columns, seed=2)

    @property
    def weight(self) -> Array:
        return random(*self.sample.window.size, self.hidden, seed=3)

    def added(self, count: int) -> dict[str, Array | None]:
        bias, last = random(self.hidden, seed=4), random(self.columns, seed=6)
        residual = random(count, *self.sample.outputs, self.columns, seed=7)
        found = {"bias": bias, "last_bias": last, "residual": residual}
        return {name: a if self.given else None for name, a in found.items()}

    @property
    def weight_bias(self) -> Array | None:
        return random(self.hidden, seed=5) if self.stages.depthwise.bias else None

    def cut(self, parts: int) -> Cut:
        sizes = (*self.sample.image[:2], *self.sample.outputs)
        first = self.stages.first is not None
        return cut_of(self.sample.window, sizes, self.hidden, first=first, parts=parts)

    def expected(self, x: Array) -> Array:
        """The parts one after the other."""
        level, sample, stages = self.level, self.sample, self.stages
        added, plain = self.added(len(x)), Sample(Window((1, 1)), (*sample.image[:2], 1))
        if stages.first is not None:
            first = Convolution(level, plain, x, self.taps[None, None])
            x = first.run(bias=added["bias"], epilogue=stages.first)
        text = text_of(depthwise_kernel, level, sample.window, stages.depthwise)
        middle = replace(sample, image=(*sample.image[:2], self.hidden))
        y = window_kernels.run(text, middle, x, self.weight, self.weight_bias)
        plain = Sample(Window((1, 1)), (*sample.outputs, 1))
        last = Convolution(level, plain, y, self.last_taps[None, None])
        return last.run(bias=added["last_bias"], residual=added["residual"], epilogue=stages.last)

    def _address(self, build: Callable[..., KernelText], *arguments: Any) -> int:
        return compile_ir(*text_of(build, self.level, *arguments)).address

    def run(self, x: Array, cuts: Cut | None = None, ranges: Ranges | None = None) -> Array:
        cuts = cuts or self.cut(1)
        extent = len(x) * cuts.parts
        shape = (len(x), *self.sample.outputs, self.columns)
        size, room_size = int(np.prod(shape)), extent * cuts.workspace_step
        result, room = np.full(size + 64, GUARD), np.full(room_size + 64, np.nan, np.float32)
        room[room_size:] = GUARD
        added = {n: 0 if a is None else guarded(a) for n, a in self.added(len(x)).items()}
        words: dict[str, Any] = {**added, **cuts._asdict(), "x": guarded(x), "workspace": room}
        words["panels"] = packed(self.level, self.taps[None, None])
        words["last_panels"] = packed(self.level, self.last_taps[None, None])
        words["weight"], words["weight_bias"] = guarded(self.weight), 0
        if self.weight_bias is not None:
            words["weight_bias"] = guarded(self.weight_bias)
        words["result"] = result[32:].ctypes.data
        _, words["height"], words["width"], words["channels"] = x.shape
        _, words["out_height"], words["out_width"], words["columns"] = shape
        (words["top"], _), (words["left"], _) = self.sample.padding
        words["hidden"] = self.hidden
        window = self.sample.window
        words["reach"], words["stride"] = reach_of(window), window.strides[0]
        words["first"] = 0
        if self.stages.first is not None:
            words["first"] = self._address(conv_kernel, self.stages.first)
        words["last"] = self._address(conv_kernel, self.stages.last)
        following = window, self.stages.depthwise
        words["depthwise"] = self._address(depthwise_kernel, *following)
        kernel = compile_ir(*text_of(bottleneck_kernel, self.level))
        given = [words[name] for name in BOTTLENECK_ARGUMENTS]
        for part in [(0, extent)] if ranges is None else ranges:
            run(kernel, *given, extent=part)
        assert (result[:32] == GUARD).all(), "written before the result"
        assert (result[32 + size :] == GUARD).all(), "written behind the result"
        assert (room[room_size:] == GUARD).all(), "written behind the room"
        return result[32 : 32 + size].reshape(shape)


def stages(window: Window, first: Epilogue | None = RELU6) -> Stages:
    return Stages(first, window, Depthwise(activation="relu6"), Epilogue())


@pytest.mark.parametrize("first", [RELU6, None], ids=["first", "without"])
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_bits(level: isa.Isa, sample: Sample, first: Epilogue | None) -> None:
    some = Bottleneck(level, sample, stages(sample.window, first))
    x = some.images(2)
    expected = some.expected(x)
    np.testing.assert_array_equal(some.run(x), expected)
    for parts in (3, 100):
        np.testing.assert_array_equal(some.run(x, some.cut(parts)), expected)


@pytest.mark.parametrize("sample", SAMPLES[::2], ids=str)
def test_any_cut(level: isa.Isa, sample: Sample) -> None:
    """Rows at a time, bands and ranges are nobody's business."""
    some = Bottleneck(level, sample, stages(sample.window))
    x, (height, width, _), (rows, columns) = some.images(3), sample.image, sample.outputs
    expected = some.expected(x)
    (size, _), (step, _) = sample.window.size, sample.window.strides
    reach = (size - 1) * sample.window.dilation[0] + 1
    for part, band in {(1, 1), (2, 1), (3, 2), (rows, 1), (rows, 2), (rows, rows)}:
        held = min(height, (band - 1) * step + reach) * width * HIDDEN
        parts = -(-rows // part)
        for lines in {1, band}:
            room = held + lines * columns * HIDDEN
            cuts = Cut(part, parts, band, lines, held, room)
            for ranges in [[(0, 3 * parts)], *cut(3 * parts)]:
                np.testing.assert_array_equal(some.run(x, cuts, ranges), expected)


@pytest.mark.parametrize(
    ("hidden", "columns"), [(1, 1), (8, 16), (16, 8), (33, 5), (70, 48)], ids=str
)
def test_channels(level: isa.Isa, hidden: int, columns: int) -> None:
    sample = SAMPLES[0]
    for given in (True, False):
        plain = Stages(Epilogue(), sample.window, Depthwise(bias=given), RELU6)
        some = Bottleneck(level, sample, plain, hidden, columns, given)
        x = some.images(1)
        np.testing.assert_array_equal(some.run(x), some.expected(x))


def test_infinite_weights(level: isa.Isa) -> None:
    """They meet the zeros of the padding too."""
    some = Bottleneck(level, SAMPLES[0], stages(SAMPLES[0].window, None))
    weight = some.weight
    weight[0, 0, 0] = np.inf
    changed = type("Changed", (Bottleneck,), {"weight": weight})(*vars(some).values())
    x = some.images(1)
    found = changed.run(x)
    assert np.isnan(found).any()
    np.testing.assert_array_equal(found, changed.expected(x))


def test_cuts() -> None:
    window, sizes = Window((3, 3)), (56, 56, 56, 56)
    cuts = cut_of(window, sizes, 144)
    assert cuts.part == 56
    assert 4 * cuts.held <= 2**18
    assert cuts.band > 4, "few rows are moved"
    assert cut_of(window, sizes, 144, parts=4).part == 14
    assert cut_of(window, sizes, 144, first=False).held == 0

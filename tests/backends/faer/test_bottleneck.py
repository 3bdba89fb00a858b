"""Fusion of a depthwise convolution with the 1 × 1 convolutions around it."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer.calls import bottleneck
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor

TOGETHER, DEPTHWISE, DIRECT = (
    f"gpt_rs.faer.{name}.nhwc.f32.v1"
    for name in ("inverted_bottleneck", "depthwise_conv2d", "conv2d")
)
HIDDEN = 24


def parameter(name: str, *shape: int, seed: int) -> Parameter:
    values = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return Parameter(values, name)


MORE, BIAS = parameter("more", 1, 1, 8, HIDDEN, seed=1), parameter("bias", HIDDEN, seed=2)
STORED = parameter("stored", HIDDEN, 8, 1, 1, seed=1)
KERNELS = parameter("kernels", 3, 3, HIDDEN, 1, seed=3)
FEWER, LAST = parameter("fewer", 1, 1, HIDDEN, 8, seed=4), parameter("last", 8, seed=5)
SQUARE = parameter("square", 3, 3, HIDDEN, 8, seed=6)
AROUND: Any = {"padding": ((1, 1), (1, 1))}


def grown(x: Tensor) -> Tensor:
    return ptir.relu6(ptir.conv2d(x, MORE, BIAS))


def spread(x: Tensor, **options: Any) -> Tensor:
    return ptir.relu6(ptir.depthwise_conv2d(x, KERNELS, BIAS, **{**AROUND, **options}))


def whole(x: Tensor) -> Tensor:
    return ptir.conv2d(spread(grown(x)), FEWER, LAST)


def grown_and_read(x: Tensor) -> Any:
    y = grown(x)
    return y, ptir.conv2d(spread(y), FEWER)


def spread_and_read(x: Tensor) -> Any:
    y = spread(grown(x))
    return y, ptir.conv2d(y, FEWER)


class Row(NamedTuple):
    function: Any
    targets: tuple[str, ...] = (TOGETHER,)
    channels: int = 8


ROWS: dict[str, Row] = {
    "all three": Row(whole),
    "and a residual": Row(lambda x: x + whole(x)),
    "and an activation behind it": Row(lambda x: ptir.relu(whole(x) + x)),
    "a stride, and padding on two sides": Row(
        lambda x: ptir.conv2d(
            spread(grown(x), strides=(2, 2), padding=((0, 1), (0, 1))), FEWER, LAST
        )
    ),
    "no bias, no activation": Row(
        lambda x: ptir.conv2d(ptir.depthwise_conv2d(ptir.conv2d(x, MORE), KERNELS), FEWER)
    ),
    "nothing before it": Row(lambda x: ptir.conv2d(spread(x), FEWER, LAST), channels=HIDDEN),
    "taps that are brought into order once, ahead": Row(
        lambda x: ptir.conv2d(spread(ptir.conv2d(x, STORED.permute(2, 3, 1, 0))), FEWER)
    ),
    "two of them": Row(lambda x: whole(whole(x)), (TOGETHER, TOGETHER)),
    "the first one's result is read": Row(grown_and_read, (DIRECT, TOGETHER)),
    "the middle one's result is read": Row(spread_and_read, (DIRECT, DEPTHWISE, DIRECT)),
    "a stride before it": Row(
        lambda x: ptir.conv2d(spread(ptir.conv2d(x, MORE, strides=(1, 2))), FEWER),
        (DIRECT, TOGETHER),
    ),
    "more taps behind it": Row(
        lambda x: ptir.conv2d(spread(grown(x)), SQUARE), (DIRECT, DEPTHWISE, DIRECT)
    ),
    "a residual within": Row(
        lambda x: ptir.conv2d(spread(grown(x) + grown(x * 2.0)), FEWER),
        (DIRECT, DIRECT, TOGETHER),
    ),
}


def images(count: int, channels: int = 8, size: int = 120) -> Any:
    random = np.random.default_rng(count + size)
    return random.standard_normal((count, size, size - 1, channels), np.float32)


def targets(program: Any) -> tuple[str, ...]:
    return tuple(i.attrs["target"] for i in program.body if i.op.name == "custom_call")


def arrays(found: Any) -> list[Any]:
    return [a.numpy() for a in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The meaning, and the bits of the three by themselves."""
    function, wanted, channels = ROWS[name]
    x = images(2, channels)
    jitted = ptir.jit(backend="faer")(function)
    assert targets(jitted.lowered(x)) == wanted, jitted.lowered(x)
    found = arrays(jitted(x))
    for a, b in zip(found, arrays(ptir.jit(backend="reference")(function)(x)), strict=True):
        # Sums of 33 terms at most, of sums
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-4)
    monkeypatch.setattr(bottleneck, "_FEWEST_BYTES", 2**40)
    apart = ptir.jit(backend="faer")(lambda x: function(x))
    assert TOGETHER not in targets(apart.lowered(x))
    for a, b in zip(found, arrays(apart(x)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["and a residual", "a stride, and padding on two sides"])
def test_batches_and_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = ROWS[name].function
    jitted = ptir.jit(backend="faer", dynamic={"x": {0: "N"}})(lambda x: function(x))
    x = images(5)
    monkeypatch.setenv("GPTRS_NUM_THREADS", "1")
    (expected,) = arrays(jitted(x))
    assert TOGETHER in targets(jitted.lowered(x))
    for threads in ("2", "3"):
        monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
        for first, last in ((0, 5), (0, 1), (2, 4), (0, 0)):
            np.testing.assert_array_equal(arrays(jitted(x[first:last]))[0], expected[first:last])


def test_a_residual_of_the_first_is_kept_apart() -> None:
    """It would have to be read for rows that are computed twice."""

    def function(x: Any, y: Any) -> Any:
        return ptir.conv2d(spread(grown(x) + y), FEWER)

    x, y = images(1), images(1, HIDDEN)
    jitted = ptir.jit(backend="faer")(function)
    assert targets(jitted.lowered(x, y)) == (DIRECT, TOGETHER)
    expected = ptir.jit(backend="reference")(function)(x, y)
    np.testing.assert_allclose(jitted(x, y).numpy(), expected.numpy(), rtol=2e-5, atol=2e-4)


def test_what_stays_in_a_cache_is_left() -> None:
    jitted = ptir.jit(backend="faer")(whole)
    assert targets(jitted.lowered(images(1, size=14))) == (DIRECT, DEPTHWISE, DIRECT)


def test_taps_that_come_with_the_call() -> None:
    def function(x: Any, more: Any, fewer: Any) -> Any:
        return ptir.conv2d(spread(ptir.conv2d(x, more)), fewer)

    given = images(2), MORE.numpy(), FEWER.numpy()
    jitted = ptir.jit(backend="faer")(function)
    assert targets(jitted.lowered(*given)) == (TOGETHER,)
    expected = ptir.jit(backend="reference")(function)(*given)
    np.testing.assert_allclose(jitted(*given).numpy(), expected.numpy(), rtol=2e-5, atol=2e-4)


def test_no_outputs() -> None:
    none = parameter("none", 1, 1, HIDDEN, 0, seed=1)
    jitted = ptir.jit(backend="faer")(lambda x: ptir.conv2d(spread(grown(x)), none))
    assert jitted(images(1)).shape == (1, 120, 119, 0)

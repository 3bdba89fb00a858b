"""Matching of the composites of image models: which become custom calls, and their results."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import PtirError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor

RANDOM = np.random.default_rng(0)


def parameter(name: str, *shape: int) -> Parameter:
    return Parameter(RANDOM.standard_normal(shape, np.float32), name)


W, WIDE = parameter("w", 3, 3, 10, 1), parameter("wide", 5, 2, 10, 1)
STORED = parameter("stored", 10, 1, 3, 3)
GROUPED, TWICE = parameter("grouped", 3, 3, 1, 10), parameter("twice", 3, 3, 10, 2)
HALVES, BIAS = parameter("halves", 3, 3, 5, 4), parameter("bias", 10)
PADDED: Any = {"padding": ((1, 1), (1, 1))}
DEPTHWISE, MAX_POOL, AVG_POOL, GLOBAL_POOL = (
    f"gpt_rs.faer.{name}.nhwc.f32.v1"
    for name in ("depthwise_conv2d", "max_pool2d", "avg_pool2d", "global_avg_pool2d")
)


class Row(NamedTuple):
    function: Any
    targets: tuple[str, ...]
    others: int = 0  # instructions besides calls


def separable(x: Tensor) -> Any:
    y = ptir.relu6(ptir.depthwise_conv2d(x, W, BIAS, **PADDED))
    return ptir.global_avg_pool2d(ptir.max_pool2d(y, window=(2, 2)))


def read_twice(x: Tensor) -> Any:
    y = ptir.depthwise_conv2d(x, W)
    return y, ptir.relu(y)


def biased_twice(x: Tensor) -> Any:
    return ptir.depthwise_conv2d(x, W, BIAS) + BIAS


ROWS: dict[str, Row] = {
    "alone": Row(lambda x: ptir.depthwise_conv2d(x, W), (DEPTHWISE,)),
    "padding, strides, dilation": Row(
        lambda x: ptir.depthwise_conv2d(
            x, WIDE, BIAS, strides=(2, 3), dilation=(1, 2), padding=((3, 1), (0, 2))
        ),
        (DEPTHWISE,),
    ),
    "an activation": Row(lambda x: ptir.silu(ptir.depthwise_conv2d(x, W, **PADDED)), (DEPTHWISE,)),
    "a bias that is added, and an activation": Row(
        lambda x: ptir.relu(BIAS + ptir.depthwise_conv2d(x, W)), (DEPTHWISE,)
    ),
    "a second bias": Row(biased_twice, (DEPTHWISE,), 2),
    "a bias of one number": Row(lambda x: ptir.depthwise_conv2d(x, W) + BIAS[:1], (DEPTHWISE,), 2),
    "what comes before an activation is read": Row(read_twice, (DEPTHWISE,), 1),
    "a convolution of as many groups as channels": Row(
        lambda x: ptir.conv2d(x, GROUPED, BIAS, groups=10), (DEPTHWISE,)
    ),
    "a weight that is brought into order once, ahead": Row(
        lambda x: ptir.depthwise_conv2d(x, STORED.permute(2, 3, 0, 1)), (DEPTHWISE,)
    ),
    "some of the images": Row(lambda x: ptir.depthwise_conv2d(x[1:], W), (DEPTHWISE,)),
    "some of the rows": Row(lambda x: ptir.depthwise_conv2d(x[:, 1:], W), (DEPTHWISE,), 1),
    "greatest": Row(lambda x: ptir.max_pool2d(x, window=(2, 2)), (MAX_POOL,)),
    "greatest, padded and dilated": Row(
        lambda x: ptir.max_pool2d(x, window=(3, 2), strides=(2, 1), dilation=(1, 3), **PADDED),
        (MAX_POOL,),
    ),
    "mean": Row(lambda x: ptir.avg_pool2d(x, window=(3, 3), strides=(2, 2), **PADDED), (AVG_POOL,)),
    "mean of what is inside": Row(
        lambda x: ptir.avg_pool2d(x, window=(3, 3), count_include_pad=False, **PADDED), (AVG_POOL,)
    ),
    "mean of images": Row(lambda x: ptir.global_avg_pool2d(x), (GLOBAL_POOL,)),
    "mean of images, all axes kept": Row(
        lambda x: ptir.global_avg_pool2d(x, keepdims=True), (GLOBAL_POOL,)
    ),
    "one after the other": Row(separable, (DEPTHWISE, MAX_POOL, GLOBAL_POOL)),
}


DECLINED: dict[str, Any] = {
    "two kernels a channel": lambda x: ptir.depthwise_conv2d(x, TWICE),
    "two groups": lambda x: ptir.conv2d(x, HALVES, groups=2),
    "narrow": lambda x: ptir.max_pool2d(ptir.cast(x, dtype=ptir.f16), window=(2, 2)),
    "integers": lambda x: ptir.max_pool2d(ptir.cast(x, dtype=ptir.si32), window=(2, 2)),
}


def images(count: int, height: int = 11, width: int = 9) -> Any:
    random = np.random.default_rng(count + height)
    return random.standard_normal((count, height, width, 10), np.float32)


def check(found: Any, expected: Any) -> None:
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for a, b in pairs:
        # Sums of ten terms at most in another order, or with fewer roundings
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-6, atol=4e-6)


@pytest.mark.parametrize("name", ROWS)
def test_program(name: str) -> None:
    function, targets, others = ROWS[name]
    jitted, x = ptir.jit(backend="faer")(function), images(3)
    body = jitted.lowered(x).body
    found = tuple(i.attrs["target"] for i in body if i.op.name == "custom_call")
    check(jitted(x), ptir.jit(backend="reference")(function)(x))
    assert (found, len(body) - len(found)) == (targets, others), jitted.lowered(x)


@pytest.mark.parametrize("name", ROWS)
def test_symbolic_sizes(name: str) -> None:
    """One program for all batches and sizes of images, and each image as if it were alone."""
    function = ROWS[name].function
    dynamic: Any = {"x": {0: "N", 1: "H", 2: "W"}}
    jitted = ptir.jit(backend="faer", dynamic=dynamic)(lambda x: function(x))
    reference = ptir.jit(backend="reference")(function)
    for count, height, width in ((3, 11, 9), (5, 11, 9), (2, 19, 30)):
        x = images(count, height, width)
        check(jitted(x), reference(x))
    if name != "some of the images":
        whole, alone = jitted(x), jitted(x[1:])
        pairs = zip(whole, alone, strict=True) if isinstance(whole, tuple) else [(whole, alone)]
        for a, b in pairs:
            np.testing.assert_array_equal(a.numpy()[1:], b.numpy())


@pytest.mark.parametrize("name", DECLINED)
def test_declined(name: str) -> None:
    function, x = DECLINED[name], images(2)
    jitted = ptir.jit(backend="faer")(function)
    targets = {i.attrs.get("target") for i in jitted.lowered(x).body}
    assert targets.isdisjoint([DEPTHWISE, MAX_POOL])
    check(jitted(x), ptir.jit(backend="reference")(function)(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ptir.depthwise_conv2d(x, W),
        lambda x: ptir.max_pool2d(x, window=(3, 3)),
        lambda x: ptir.avg_pool2d(x, window=(3, 3)),
    ],
)
def test_no_window_fits(function: Any) -> None:
    """Found out when sizes are known: the error is that of the definition."""
    jitted = ptir.jit(backend="faer", dynamic={"x": {1: "H"}})(lambda x: function(x))
    assert jitted(images(1)).shape[1] > 0
    with pytest.raises(PtirError, match="does not fit extent 2"):
        jitted(images(1, 2))


def test_no_images() -> None:
    jitted = ptir.jit(backend="faer")(separable)
    assert jitted(images(0)).shape == (0, 10)

"""Rows of the composites of image models, against torch in NCHW."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.cases.sample import FLOATS, ORDER, Case, Sample, sample
from tests.support.lazy_torch import F, torch

HALVES = ("f32", "f64", "f16", "bf16")


def _padded(x: torch.Tensor, padding: Any, value: float = 0) -> torch.Tensor:
    """x [N, C, H, W] with ((low, high), (low, high)) around H and W."""
    rows, columns = padding
    return F.pad(x, (*columns, *rows), value=value)


def _channels_first(fn: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def call(x: torch.Tensor, *operands: Any, **attrs: Any) -> torch.Tensor:
        return fn(x.permute(0, 3, 1, 2), *operands, **attrs).permute(0, 2, 3, 1)

    return call


@_channels_first
def _conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    strides: Any = (1, 1),
    padding: Any = ((0, 0), (0, 0)),
    dilation: Any = (1, 1),
    groups: int = 1,
) -> torch.Tensor:
    integers = not x.is_floating_point() and not x.is_complex()
    if integers:  # torch convolves floats only; the sums here are exact in f64
        x, weight = x.double(), weight.double()
        bias = None if bias is None else bias.double()
    kernel = weight.permute(3, 2, 0, 1)
    y = F.conv2d(_padded(x, padding), kernel, bias, strides, 0, dilation, groups)
    return y.long() if integers else y


def _depthwise(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, **attrs: Any
) -> torch.Tensor:
    height, width, channels, multiplier = weight.shape
    kernel = weight.reshape(height, width, 1, channels * multiplier)
    return _conv2d(x, kernel, bias, groups=channels, **attrs)


@_channels_first
def _max_pool(
    x: torch.Tensor,
    *,
    window: Any,
    strides: Any = None,
    padding: Any = ((0, 0), (0, 0)),
    dilation: Any = (1, 1),
) -> torch.Tensor:
    return F.max_pool2d(_padded(x, padding, -math.inf), window, strides, 0, dilation)


@_channels_first
def _avg_pool(
    x: torch.Tensor,
    *,
    window: Any,
    strides: Any = None,
    padding: Any = ((0, 0), (0, 0)),
    count_include_pad: bool = True,
) -> torch.Tensor:
    means = F.avg_pool2d(_padded(x, padding), window, strides)
    if count_include_pad:
        return means
    inside = F.avg_pool2d(_padded(torch.ones_like(x), padding), window, strides)
    return means / inside


def _batch_norm(
    x: torch.Tensor, mean: Any, var: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
) -> torch.Tensor:
    first = x.movedim(-1, 1) if x.ndim > 1 else x[None]
    y = F.batch_norm(first, mean, var, weight, bias, eps=eps)
    return y.movedim(1, -1) if x.ndim > 1 else y[0]


def _pools(values: str) -> tuple[Sample, ...]:
    v = values
    return (
        sample(f"T[2,6,7,3] {v}", window=(2, 3)),
        sample(f"T[S,7,5,2] {v}", window=(3, 2), strides=(2, 1)),
        sample(f"T[1,S,S,2] {v}", window=(3, 3), strides=(2, 2), padding=((1, 1), (1, 1))),
        sample(f"T[1,5,6,1] {v}", window=(3, 4), strides=(1, 2), padding=((0, 1), (2, 1))),
        sample(f"T[0,5,5,3] {v}", window=(2, 2)),
        sample(f"T[2,4,4,1] {v}", window=(4, 4)),
    )


_CONVOLUTIONS = (
    sample("T[2,5,7,3]", "T[2,3,3,4]"),
    sample("T[S,6,5,2]", "T[3,2,2,5]", "T[5]", strides=(2, 3)),
    sample("T[1,S,S,3]", "T[3,3,3,2]", strides=(2, 1), padding=((1, 1), (1, 2))),
    sample("T[1,7,8,2]", "T[2,3,2,3]", "T[3]", dilation=(3, 2), padding=((0, 2), (3, 1))),
    sample("T[2,4,5,6]", "T[3,2,2,9]", "T[9]", groups=3, padding=((1, 1), (0, 0))),
    sample("T[S,S,4,4]", "T[1,2,1,4]", groups=4, strides=(2, 1)),
    sample("T[2,3,4,5]", "T[1,1,5,7]", "T[7]"),
    sample("T[2,3,4,5]", "T[3,4,5,1]"),
    sample("T[0,5,5,3]", "T[2,2,3,4]", "T[4]"),
)
_DEPTHWISE = (
    sample("T[2,5,7,3]", "T[2,3,3,1]"),
    sample("T[S,6,5,2]", "T[3,2,2,3]", "T[6]", strides=(2, 3)),
    sample("T[1,S,S,3]", "T[3,3,3,2]", strides=(2, 2), padding=((1, 1), (1, 2))),
    sample("T[1,7,8,1]", "T[2,3,1,2]", dilation=(3, 2), padding=((0, 2), (3, 1))),
    sample("T[0,5,5,3]", "T[2,2,3,1]", "T[3]"),
)

VISION = (
    Case("conv2d", _CONVOLUTIONS, _conv2d, (*FLOATS, "cf32"), 64, magnitude=8, why=ORDER),
    Case("conv2d", _CONVOLUTIONS, _conv2d, ("si32", "si8", "ui8")),
    Case("depthwise_conv2d", _DEPTHWISE, _depthwise, HALVES, 64, magnitude=8, why=ORDER),
    Case("depthwise_conv2d", _DEPTHWISE, _depthwise, ("si32",)),
    Case(
        "batch_norm",
        (
            sample("T[2,S,4,5]", "T[5]", "T[5] positive"),
            sample("T[S,3]", "T[3]", "T[3] positive", "T[3]", "T[3]", eps=1e-3),
            sample("T[3,7]", "T[7]", "T[7] positive", None, "T[7]"),
            sample("T[17]", "T[17]", "T[17] positive", "T[17]"),
            sample("T[0,2,2,3]", "T[3]", "T[3] positive", "T[3]", "T[3]"),
        ),
        _batch_norm,
        HALVES,
        ulps=64,
        magnitude=8,
        why="torch scales by weight / √(var + eps) and adds bias − mean · that",
    ),
    Case(
        "max_pool2d",
        (
            *_pools("any"),
            sample(
                "T[S,9,8,2] any",
                window=(3, 2),
                strides=(2, 1),
                dilation=(2, 3),
                padding=((1, 0), (0, 1)),
            ),
        ),
        _max_pool,
        FLOATS,
    ),
    Case(
        "max_pool2d",
        tuple(s for s in _pools("any") if "padding" not in s.attrs),
        lambda x, **attrs: _max_pool(x.double(), **attrs).long(),
        ("si8", "si32", "ui8", "si4"),
    ),
    Case(
        "avg_pool2d",
        (
            *_pools("special"),
            *(
                sample(*s.operands, **s.attrs, count_include_pad=False)
                for s in _pools("special")
                if "padding" in s.attrs
            ),
        ),
        _avg_pool,
        HALVES,
        ulps=16,
        magnitude=4,
        why=ORDER,
    ),
    Case(
        "global_avg_pool2d",
        (
            sample("T[2,S,5,3]"),
            sample("T[S,4,S,2] special", keepdims=True),
            sample("T[1,1,1,17]"),
            sample("T[0,3,3,2]"),
            sample("T[2,0,3,2]"),
        ),
        lambda x, *, keepdims=False: torch.mean(x, (1, 2), keepdim=keepdims),
        HALVES,
        ulps=16,
        magnitude=1,
        why=ORDER,
    ),
    Case(
        "relu6",
        tuple(sample(f"T[{shape}] any") for shape in ("S,7", "17", "", "0,3")),
        lambda x: F.relu6(x),
        (*FLOATS, "si8", "si64"),
    ),
)

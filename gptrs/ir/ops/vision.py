"""Composite ops of image models over x [N, H, W, C] (channels last): convolutions, norms, pooling.

Narrow floats are computed in f32 and rounded once, at the end.
"""

from __future__ import annotations

from gptrs.errors import ShapeError
from gptrs.ir.checks import one_dtype
from gptrs.ir.composites import composite
from gptrs.ir.dims import DimLike, same, same_shape
from gptrs.ir.kinds import OpKind
from gptrs.ir.operands import tensors_in
from gptrs.ir.ops.composite import mean
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.elementwise import FLOATING, clamp, rsqrt
from gptrs.ir.ops.literal import full
from gptrs.ir.ops.shape import transpose
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.ops.window import extract_patches, reduce_window
from gptrs.ir.row_rules import elementwise_rows
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis, shape_text

__all__ = [
    "avg_pool2d",
    "batch_norm",
    "conv2d",
    "depthwise_conv2d",
    "global_avg_pool2d",
    "max_pool2d",
    "relu6",
]

Pair = tuple[int, int]
Padding2d = tuple[Pair, Pair]


@composite(kind=OpKind.WINDOW)
def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding2d = ((0, 0), (0, 0)),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Tensor:
    """Σ x[n, i·stride + p·dilation − low, ..., c] · weight[p, ..., c, o] + bias[o], [N, H', W', O].

    x [N, H, W, C], weight [KH, KW, C/groups, O], bias [O]; ``padding`` is ((low, high), (low,
    high)) with zeros. Group g maps the g-th part of the channels to the g-th part of the outputs.
    Raises `ShapeError` when these do not fit.
    """
    _check_images(x)
    _check_kernel(x, weight, bias, groups)
    window = (_fixed(weight.shape[0]), _fixed(weight.shape[1]))
    patches = extract_patches(x, window=window, strides=strides, dilation=dilation, padding=padding)
    wide = x.dtype.compute if bias is not None and x.dtype.compute is not x.dtype else None
    *outer, _ = patches.shape
    taps, depth, outputs = window[0] * window[1], weight.shape[2], weight.shape[3]
    if groups == 1:
        matrix = weight.reshape(taps * depth, outputs)
        y = dot_general(patches, matrix, contract_lhs=(-1,), contract_rhs=(0,), out_dtype=wide)
    else:
        y = dot_general(
            patches.reshape(*outer, taps, groups, depth),
            weight.reshape(taps, depth, groups, outputs // groups),
            batch_lhs=(4,),
            batch_rhs=(2,),
            contract_lhs=(3, 5),
            contract_rhs=(0, 1),
            out_dtype=wide,
        )  # [groups, N, H', W', O/groups]
        y = transpose(y, perm=(1, 2, 3, 0, 4)).reshape(*outer, outputs)
    return y if bias is None else narrow(y + widen(bias), x)


@composite(kind=OpKind.WINDOW)
def depthwise_conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding2d = ((0, 0), (0, 0)),
    dilation: Pair = (1, 1),
) -> Tensor:
    """Each channel c of x [N, H, W, C] convolved with its M kernels weight [KH, KW, c, M].

    The result is [N, H', W', C·M], output c·M + m from kernel m of channel c; bias [C·M]. The rest
    is as in `conv2d`, of which this is the case of one group per channel.
    """
    _check_images(x)
    if weight.ndim != 4 or not same(weight.shape[2], x.shape[-1]):
        raise ShapeError(
            f"weight has shape {shape_text(weight.shape)}, expected [KH, KW, {x.shape[-1]}, M] for"
            " the channels of x"
        )
    height, width, channels, multiplier = weight.shape
    return conv2d(
        x,
        weight.reshape(height, width, 1, channels * multiplier),
        bias,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=_fixed(channels),
    )


@composite(kind=OpKind.NORM)
def batch_norm(
    x: Tensor,
    mean: Tensor,
    var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    eps: float = 1e-5,
) -> Tensor:
    """(x − mean) / √(var + eps) · weight + bias per channel, with statistics that are given.

    x [..., C]; mean, var, weight and bias [C]. Source: Ioffe and Szegedy, arXiv:1502.03167, §3.1.
    """
    channels = x.shape[normal_axis(-1, x.ndim)]
    given = {"mean": mean, "var": var, "weight": weight, "bias": bias}
    for name, operand in given.items():
        if operand is not None and not same_shape(operand.shape, (channels,)):
            raise ShapeError(
                f"{name} has shape {shape_text(operand.shape)}, expected"
                f" {shape_text((channels,))}, one per channel"
            )
    one_dtype(*tensors_in((x, *given.values())))
    y = (widen(x) - widen(mean)) * rsqrt(widen(var) + eps)
    if weight is not None:
        y = y * widen(weight)
    if bias is not None:
        y = y + widen(bias)
    return narrow(y, x)


@composite(kind=OpKind.WINDOW)
def max_pool2d(
    x: Tensor,
    *,
    window: Pair,
    strides: Pair | None = None,
    padding: Padding2d = ((0, 0), (0, 0)),
    dilation: Pair = (1, 1),
) -> Tensor:
    """The greatest element of each window of x [N, H, W, C], [N, H', W', C]. NaN wins.

    Strides are those of the window unless given. Padding never wins: it is −∞ (the least integer).
    """
    _check_images(x)
    strides = window if strides is None else strides
    return reduce_window(
        x, reduce="max", window=window, strides=strides, dilation=dilation, padding=padding
    )


@composite(kind=OpKind.WINDOW)
def avg_pool2d(
    x: Tensor,
    *,
    window: Pair,
    strides: Pair | None = None,
    padding: Padding2d = ((0, 0), (0, 0)),
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of x [N, H, W, C], [N, H', W', C].

    Strides are those of the window unless given. Padding counts as zeros, or not at all without
    ``count_include_pad`` (NaN for a window of nothing but padding).
    """
    _check_images(x)
    strides = window if strides is None else strides
    wide = widen(x)
    total = reduce_window(wide, reduce="add", window=window, strides=strides, padding=padding)
    if count_include_pad:
        return narrow(total / (window[0] * window[1]), x)
    ones = full(shape=(1, *x.shape[1:3], 1), value=1, dtype=wide.dtype)
    count = reduce_window(ones, reduce="add", window=window, strides=strides, padding=padding)
    return narrow(total / count, x)


@composite(kind=OpKind.ROWWISE)
def global_avg_pool2d(x: Tensor, *, keepdims: bool = False) -> Tensor:
    """The mean over H and W of x [N, H, W, C]: [N, C], or [N, 1, 1, C] with ``keepdims``."""
    _check_images(x)
    return mean(x, axes=(1, 2), keepdims=keepdims)


@composite(kind=OpKind.ACTIVATION, rows=elementwise_rows)
def relu6(x: Tensor) -> Tensor:
    """min(max(x, 0), 6)."""
    return clamp(x, 0, 6)


def _check_images(x: Tensor) -> None:
    if x.ndim != 4:
        raise ShapeError(
            f"x has rank {x.ndim}, expected 4: [N, H, W, C]",
            fix="x[None] adds the batch axis, x.permute(0, 2, 3, 1) moves channels from NCHW",
        )


def _check_kernel(x: Tensor, weight: Tensor, bias: Tensor | None, groups: int) -> None:
    if weight.ndim != 4:
        raise ShapeError(f"weight has rank {weight.ndim}, expected [KH, KW, C/groups, O]")
    one_dtype(*tensors_in((x, weight, bias)))
    channels, depth, outputs = x.shape[-1], weight.shape[2], weight.shape[3]
    if groups < 1 or not same(depth * groups, channels) or not same(outputs % groups, 0):
        raise ShapeError(
            f"x has {channels} channels and weight takes {depth} and gives {outputs} with groups ="
            f" {groups}, expected groups · {depth} channels and a multiple of groups outputs",
            fix="weight is [KH, KW, C/groups, O], x is [N, H, W, C]",
        )
    if bias is not None and not same_shape(bias.shape, (outputs,)):
        raise ShapeError(
            f"bias has shape {shape_text(bias.shape)}, expected {shape_text((outputs,))}"
        )


def _fixed(extent: DimLike) -> int:
    """The extent of a kernel, which has to be an integer: the amount of code depends on it."""
    if not isinstance(extent, int):
        raise ShapeError(f"the extent {extent} of weight is symbolic, expected a number")
    return extent


for _op in (conv2d, depthwise_conv2d):
    _op.promoting("x", "weight", "bias")
batch_norm.promoting("x", "mean", "var", "weight", "bias", kinds=FLOATING)

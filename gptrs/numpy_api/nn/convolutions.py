"""Convolutions and transposed convolutions of one to three spatial axes, channels second.

An example without a batch axis, [C, spatial...], gives one without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import same
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.promotion import promote
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.nn.operands import as_float, fixed, maybe_float, nn_function, per_axis
from gptrs.numpy_api.nn.spatial import at_rank, channels_last, channels_second

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]

Ints = int | Sequence[int]
Pairs = tuple[tuple[int, int], ...]


def _operands(input: Any, weight: Any, bias: Any, rank: int) -> tuple[Tensor, Tensor, Any, bool]:
    """x with a batch axis, weight and bias in one dtype, and whether there was a batch axis."""
    x, w, b = promote((as_float(input), as_float(weight), maybe_float(bias)))
    if w.ndim != rank + 2:
        raise ShapeError(f"weight has rank {w.ndim}, expected {rank + 2}")
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"input has rank {x.ndim}, expected {rank + 2}, or {rank + 1} of one")
    batched = x.ndim == rank + 2
    return (x if batched else x.unsqueeze(0)), w, b, batched


def _padding(
    padding: Ints | str, kernel: tuple[int, ...], strides: Any, dilation: tuple[int, ...]
) -> Pairs:
    if not isinstance(padding, str):
        return tuple((n, n) for n in per_axis("padding", padding, len(kernel)))
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding != "same":
        raise ArgumentError(f"padding is {padding!r}, expected numbers, 'same' or 'valid'")
    if any(stride != 1 for stride in strides):
        raise ArgumentError("padding='same' needs stride 1", fix="give the padding as numbers")
    around = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return tuple((n // 2, n - n // 2) for n in around)


def _convolved(x: Tensor, w: Tensor, b: Any, padding: Pairs, **attrs: Any) -> Tensor:
    """x [N, spatial..., C] with w [window..., C/groups, O], by `conv2d` where it has the rank."""
    rank = len(padding)
    if rank == 2:
        return OPS["conv2d"](x, w, b, padding=padding, **attrs)
    if rank == 1:
        ones = {"strides": (1, *attrs["strides"]), "dilation": (1, *attrs["dilation"])}
        y: Tensor = OPS["conv2d"](
            x.unsqueeze(1),
            w.unsqueeze(0),
            b,
            padding=((0, 0), *padding),
            groups=attrs["groups"],
            **ones,
        )
        return y.squeeze(1)
    return _by_patches(x, w, b, padding, **attrs)


def _by_patches(x: Tensor, w: Tensor, b: Any, padding: Pairs, groups: int, **attrs: Any) -> Tensor:
    """A convolution of any rank as one matrix product for each group."""
    *window, depth, outputs = w.shape
    if not same(depth * groups, x.shape[-1]) or not same(outputs % groups, 0):
        raise ShapeError(
            f"input has {x.shape[-1]} channels, weight takes {depth} in each of {groups} groups and"
            f" gives {outputs}"
        )
    parts: list[Tensor] = []
    each = outputs // groups
    for group in range(groups):
        channels = x[..., group * depth : (group + 1) * depth]
        patches = OPS["extract_patches"](channels, window=tuple(window), padding=padding, **attrs)
        matrix = w[..., group * each : (group + 1) * each].reshape(-1, each)
        out_dtype = x.dtype.compute if b is not None else None
        parts.append(
            OPS["dot_general"](
                patches, matrix, contract_lhs=(-1,), contract_rhs=(0,), out_dtype=out_dtype
            )
        )
    y = parts[0] if groups == 1 else OPS["concat"](tuple(parts), axis=-1)
    return y if b is None else narrow(y + widen(b), x)


def conv_nd(
    rank: int,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """x [N, C, spatial...] convolved with weight [O, C/groups, kernel...], plus bias [O]:
    [N, O, spatial'...].

    ``padding`` is zeros before and after, "valid" (none) or "same" (as many outputs as inputs).
    """
    x, w, b, batched = _operands(input, weight, bias, rank)
    strides, dilations = (
        per_axis("stride", stride, rank),
        per_axis("dilation", dilation, rank),
    )
    pairs = _padding(padding, fixed(w.shape[2:], "weight"), strides, dilations)
    last = OPS["transpose"](w, perm=(*range(2, rank + 2), 1, 0))  # [window..., C/groups, O]
    y = _convolved(
        channels_last(x), last, b, pairs, strides=strides, dilation=dilations, groups=groups
    )
    return channels_second(y, batched)


def conv_transpose_nd(
    rank: int,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of a convolution as a map of x [N, C, spatial...], with weight
    [C, O/groups, kernel...]: that of x, with stride − 1 zeros between elements, with the reversed
    kernel.

    The extents are (extent − 1)·stride − 2·padding + dilation·(kernel − 1) + output_padding + 1.
    """
    x, w, b, batched = _operands(input, weight, bias, rank)
    inputs, outputs, *kernel = fixed(w.shape, "weight")
    if groups < 1 or inputs % groups:
        raise ShapeError(
            f"weight takes {inputs} channels, expected a multiple of groups = {groups}"
        )
    strides = per_axis("stride", stride, rank)
    dilations = per_axis("dilation", dilation, rank)
    pads = per_axis("padding", padding, rank)
    more = per_axis("output_padding", output_padding, rank)
    if any(n >= max(s, d) for n, s, d in zip(more, strides, dilations, strict=True)):
        raise ArgumentError(
            f"output_padding is {output_padding}, expected less than stride or dilation"
        )
    reversed_ = FUNCTIONS["flip"](w, axis=tuple(range(2, rank + 2)))
    grouped = reversed_.reshape([groups, inputs // groups, outputs, *kernel])
    turned = OPS["transpose"](grouped, perm=(*range(3, rank + 3), 1, 0, 2))
    matrix = turned.reshape([*kernel, inputs // groups, groups * outputs])
    low = [d * (k - 1) - p for d, k, p in zip(dilations, kernel, pads, strict=True)]
    high = [n + extra for n, extra in zip(low, more, strict=True)]
    spread: Tensor = OPS["pad"](
        channels_last(x),
        low=(0, *(max(n, 0) for n in low), 0),
        high=(0, *(max(n, 0) for n in high), 0),
        interior=(0, *(s - 1 for s in strides), 0),
    )
    cut = [slice(max(-a, 0), b if b < 0 else None) for a, b in zip(low, high, strict=True)]
    if any(part != slice(0, None) for part in cut):
        spread = spread[(slice(None), *cut)]
    none = ((0, 0),) * rank
    y = _convolved(spread, matrix, b, none, strides=(1,) * rank, dilation=dilations, groups=groups)
    return channels_second(y, batched)


conv1d, conv2d, conv3d = (at_rank(conv_nd, n) for n in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (
    at_rank(conv_transpose_nd, n) for n in (1, 2, 3)
)


@nn_function
def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Tensor:
    """x [T, N, C] convolved along T with weight [K, C, O], plus bias [O]: [T', N, O]."""
    x, w, b = promote((as_float(input), as_float(weight), as_float(bias)))
    if x.ndim != 3 or w.ndim != 3:
        raise ShapeError(f"input and weight have ranks {x.ndim} and {w.ndim}, expected 3")
    ones = {"strides": (1,), "dilation": (1,), "groups": 1}
    return _convolved(x.transpose(0, 1), w, b, ((pad, pad),), **ones).transpose(0, 1)

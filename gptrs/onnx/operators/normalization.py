"""Batch, instance, layer and local norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.onnx.operators.broadcasting import along
from gptrs.onnx.table import onnx, ptir


@onnx("BatchNormalization")
def batch_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
    is_test: int = 1,
    consumed_inputs: Any = None,
) -> Any:
    """By the statistics that are given, or in training by those of x, which move them."""
    if not training_mode:
        return ptir.nn.batch_norm(x, mean, var, scale, bias, eps=epsilon)
    over = (0, *range(2, x.ndim))
    own_mean = ptir.mean(x, axis=over)
    own_var = ptir.var(x, axis=over)
    made = ptir.nn.batch_norm(x, own_mean, own_var, scale, bias, eps=epsilon)
    moved = [
        old * momentum + new * (1 - momentum) for old, new in ((mean, own_mean), (var, own_var))
    ]
    return made, *moved


@onnx("InstanceNormalization")
def instance_normalization(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float = 1e-5) -> Tensor:
    return ptir.nn.instance_norm(x, None, None, scale, bias, eps=epsilon)


@onnx("LayerNormalization")
def layer_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> Any:
    """Over the axes from ``axis`` on; with the mean and 1 / deviation where they are wanted."""
    axis %= x.ndim
    over = tuple(range(axis, x.ndim))
    if outputs == 1 and scale.shape == x.shape[axis:]:
        return ptir.nn.layer_norm(x, scale.shape, scale, bias, eps=epsilon)
    wide = ptir.astype(x, ptir.f32) if stash_type == 1 and x.dtype.bits < 32 else x
    mean = ptir.mean(wide, axis=over, keepdims=True)
    inverse = ptir.reciprocal(ptir.sqrt(ptir.var(wide, axis=over, keepdims=True) + epsilon))
    made = ptir.astype((wide - mean) * inverse, x.dtype) * scale
    return (made if bias is None else made + bias), mean, inverse


@onnx("RMSNormalization")
def rms_normalization(
    x: Tensor, scale: Tensor, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    axis %= x.ndim
    if scale.shape == x.shape[axis:]:
        return ptir.nn.rms_norm(x, scale.shape, scale, eps=epsilon)
    wide = ptir.astype(x, ptir.f32)
    mean = ptir.mean(wide * wide, axis=tuple(range(axis, x.ndim)), keepdims=True)
    return ptir.astype(wide / ptir.sqrt(mean + epsilon), x.dtype) * scale


@onnx("LpNormalization")
def lp_normalization(x: Tensor, axis: int = -1, p: int = 2) -> Tensor:
    """``x`` over its norm along ``axis``; 0 where that is 0."""
    if p == 1:
        norm = ptir.sum(ptir.abs(x), axis=axis, keepdims=True)
    else:
        norm = ptir.sqrt(ptir.sum(x * x, axis=axis, keepdims=True))
    return ptir.where(ptir.equal(norm, 0), 0, x / norm)


@onnx("LRN")
def local_response_normalization(
    x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    """``x`` over a power of the squares of ``size`` channels around."""
    low = (size - 1) // 2
    widths = [(0, 0), (low, size - 1 - low), *((0, 0),) * (x.ndim - 2)]
    squares = ptir.pad(x * x, tuple(widths))
    count = x.shape[1]
    total = sum(squares[:, i : i + count] for i in range(size))
    return x / (bias + alpha / size * total) ** beta


@onnx("MeanVarianceNormalization")
def mean_variance_normalization(x: Tensor, axes: Sequence[int] = (0, 2, 3)) -> Tensor:
    over = tuple(axes)
    mean = ptir.mean(x, axis=over, keepdims=True)
    return (x - mean) / (ptir.std(x, axis=over, keepdims=True) + 1e-9)


@onnx("GroupNormalization", since=21)
def group_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Tensor:
    return ptir.nn.group_norm(x, num_groups, scale, bias, eps=epsilon)


@onnx("GroupNormalization", until=20)
def group_normalization_of_groups(
    x: Tensor, scale: Tensor, bias: Tensor, num_groups: int, epsilon: float = 1e-5
) -> Tensor:
    """With a scale and a bias for each group."""
    made = ptir.nn.group_norm(x, num_groups, eps=epsilon)
    each = x.shape[1] // num_groups
    wide = [along(ptir.repeat(v, each), x.ndim, 1) for v in (scale, bias)]
    return made * wide[0] + wide[1]

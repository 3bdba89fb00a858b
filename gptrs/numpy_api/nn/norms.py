"""Normalizations of activations: by layer, group, instance, batch and neighbourhood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptrs.errors import ShapeError
from gptrs.ir.dims import DimLike, product, same, same_shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.nn.operands import as_float, maybe_float, nn_function

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]


def p_norm(wide: Tensor, p: float, axes: Any, *, keepdims: bool) -> Tensor:
    """(Σ |x|ᵖ)^(1/p) over ``axes``; the greatest |x| for p = ∞, the number that differ from 0 for
    p = 0."""
    size = OPS["abs"](wide)
    if p == math.inf:
        return OPS["reduce_max"](size, axes=axes, keepdims=keepdims)
    if p == 0:
        present = OPS["cast"](OPS["not_equal"](wide, 0), dtype=wide.dtype)
        return OPS["reduce_sum"](present, axes=axes, keepdims=keepdims)
    if p == 2:
        return OPS["sqrt"](OPS["reduce_sum"](wide * wide, axes=axes, keepdims=keepdims))
    if p == 1:
        return OPS["reduce_sum"](size, axes=axes, keepdims=keepdims)
    return OPS["reduce_sum"](size**p, axes=axes, keepdims=keepdims) ** (1 / p)


@nn_function
def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """x / max(‖x‖ₚ, eps), with the norm along ``dim``."""
    x = as_float(input)
    wide = widen(x)
    return narrow(wide / OPS["maximum"](p_norm(wide, p, dim, keepdims=True), eps), x)


def _rows(x: Tensor, normalized_shape: Sequence[DimLike], *given: Tensor | None) -> list[Any]:
    """``x`` and weights with the last axes, those of ``normalized_shape``, as one."""
    wanted = tuple(normalized_shape)
    rank = len(wanted)
    if not rank or x.ndim < rank or not same_shape(x.shape[x.ndim - rank :], wanted):
        raise ShapeError(
            f"normalized_shape is {shape_text(wanted)}, expected the last axes of"
            f" {shape_text(x.shape)}"
        )
    for weight in given:
        if weight is not None and not same_shape(weight.shape, wanted):
            raise ShapeError(
                f"a weight has shape {shape_text(weight.shape)}, expected {shape_text(wanted)}"
            )
    if rank == 1:
        return [x, *given]
    width: DimLike = 1
    for extent in wanted:
        width = width * extent
    flat = [weight if weight is None else weight.reshape(width) for weight in given]
    return [x.reshape([*x.shape[: x.ndim - rank], width]), *flat]


@nn_function
def layer_norm(
    input: Any,
    normalized_shape: Sequence[DimLike],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x − mean x) / √(var x + eps) · weight + bias over the last axes, those of
    ``normalized_shape``."""
    x = as_float(input)
    rows = _rows(x, normalized_shape, maybe_float(weight), maybe_float(bias))
    return OPS["layer_norm"](*rows, eps=eps).reshape(x.shape)


@nn_function
def rms_norm(
    input: Any, normalized_shape: Sequence[DimLike], weight: Any = None, eps: float | None = None
) -> Tensor:
    """x / √(mean x² + eps) · weight over the last axes; eps is that of the dtype of the arithmetic
    unless given."""
    x = as_float(input)
    rows = _rows(x, normalized_shape, maybe_float(weight))
    if eps is None:
        eps = float(np.finfo(x.dtype.compute.numpy).eps)
    return OPS["rms_norm"](*rows, eps=eps).reshape(x.shape)


def _channels(x: Tensor, given: Any) -> Tensor:
    """One number per channel, in the shape that broadcasts to x [N, C, ...]."""
    return widen(as_float(given)).reshape([1, -1, *(1,) * (x.ndim - 2)])


def _scaled(y: Tensor, x: Tensor, weight: Any, bias: Any) -> Tensor:
    if weight is not None:
        y = y * _channels(x, weight)
    return y if bias is None else y + _channels(x, bias)


def _size(x: Tensor, first: int = 1) -> DimLike:
    """The number of elements of the axes from ``first`` on."""
    return product(x.shape[first:])


def _check_channels(x: Tensor) -> None:
    if x.ndim < 2:
        raise ShapeError(f"x has rank {x.ndim}, expected [N, C, ...]")


@nn_function
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x − mean) / √(var + eps) · weight + bias for each channel of x [N, C, ...].

    Mean and variance are the running ones or, with ``training``, those of ``input``. Tensors are
    immutable: running statistics are not updated, and ``momentum`` has no effect.
    """
    x = as_float(input)
    _check_channels(x)
    if not training:
        if running_mean is None or running_var is None:
            raise ShapeError("without training, running_mean and running_var have to be given")
        order = (0, *range(2, x.ndim), 1)
        last = OPS["transpose"](x, perm=order)
        given = [maybe_float(t) for t in (running_mean, running_var, weight, bias)]
        y: Tensor = OPS["batch_norm"](last, *given, eps=eps)
        return OPS["transpose"](y, perm=(0, x.ndim - 1, *range(1, x.ndim - 1)))
    wide, axes = widen(x), (0, *range(2, x.ndim))
    return narrow(_scaled(_standardized(wide, axes, eps), x, weight, bias), x)


def _standardized(wide: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    centred = wide - OPS["mean"](wide, axes=axes, keepdims=True)
    return centred * OPS["rsqrt"](OPS["mean"](centred * centred, axes=axes, keepdims=True) + eps)


@nn_function
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Each of ``num_groups`` groups of channels of x [N, C, ...] with mean 0 and variance 1, then
    scaled by channel. Source: Wu and He, arXiv:1803.08494."""
    x = as_float(input)
    _check_channels(x)
    if num_groups < 1 or not same(x.shape[1] % num_groups, 0):
        raise ShapeError(f"{x.shape[1]} channels do not make {num_groups} equal groups")
    wide = widen(x)
    rows: Tensor = OPS["layer_norm"](
        wide.reshape([x.shape[0], num_groups, _size(x) // num_groups]), eps=eps
    )
    return narrow(_scaled(rows.reshape(x.shape), x, weight, bias), x)


@nn_function
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each example of x [N, C, ...] with mean 0 and variance 1, then scaled by
    channel; without ``use_input_stats`` by the running statistics, as in `batch_norm`."""
    x = as_float(input)
    _check_channels(x)
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, eps=eps)
    wide = widen(x)
    rows: Tensor = OPS["layer_norm"](wide.reshape([*x.shape[:2], _size(x, 2)]), eps=eps)
    return narrow(_scaled(rows.reshape(x.shape), x, weight, bias), x)


@nn_function
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha · mean of x² over ``size`` channels around)^beta; zeros stand outside."""
    x = as_float(input)
    if x.ndim < 3:
        raise ShapeError(f"x has rank {x.ndim}, expected at least 3: [N, C, ...]")
    wide = widen(x)
    rows = (wide * wide).reshape([*x.shape[:2], _size(x, 2)])
    total: Tensor = OPS["reduce_window"](
        rows, reduce="add", window=(size,), padding=((size // 2, (size - 1) // 2),)
    )
    divisor = (total.reshape(x.shape) * (alpha / size) + k) ** beta
    return narrow(wide / divisor, x)

"""Layer, batch, group and root-mean-square norms, with the statistics that torch keeps."""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.ir.dims import DimLike, product
from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import aten, ptir

Maybe = Tensor | None


@aten("native_layer_norm")
def layer_norm(
    x: Tensor, normalized_shape: Sequence[DimLike], weight: Maybe, bias: Maybe, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The normalised array, the mean, and 1 over the standard deviation."""
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    made = ptir.nn.layer_norm(x, tuple(normalized_shape), weight, bias, eps)
    wide = ptir.cast(x, dtype=x.dtype.compute)
    mean = ptir.mean(wide, axis=axes, keepdims=True)
    return made, mean, _inverse_deviation(wide, axes, eps)


def _inverse_deviation(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    return ptir.rsqrt(ptir.var(x, axis=axes, keepdims=True) + eps)


@aten("layer_norm")
def layer_norm_alone(
    x: Tensor,
    normalized_shape: Sequence[DimLike],
    weight: Maybe = None,
    bias: Maybe = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    return ptir.nn.layer_norm(x, tuple(normalized_shape), weight, bias, eps)


@aten("rms_norm", "_fused_rms_norm")
def rms_norm(
    x: Tensor,
    normalized_shape: Sequence[DimLike],
    weight: Maybe = None,
    eps: float | None = None,
) -> Tensor:
    return ptir.nn.rms_norm(x, tuple(normalized_shape), weight, eps)


@aten("native_group_norm")
def group_norm(
    x: Tensor,
    weight: Maybe,
    bias: Maybe,
    n: DimLike,
    channels: DimLike,
    space: DimLike,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    made = ptir.nn.group_norm(x, group, weight, bias, eps)
    wide = ptir.cast(x, dtype=x.dtype.compute)
    rows = ptir.reshape(wide, shape=(n, group, channels // group * space))
    deviation = _inverse_deviation(rows, (2,), eps)
    return made, ptir.mean(rows, axis=2), ptir.squeeze(deviation, 2)


@aten("_native_batch_norm_legit_no_training")
def batch_norm(
    x: Tensor,
    weight: Maybe,
    bias: Maybe,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    made = ptir.nn.batch_norm(x, running_mean, running_var, weight, bias, eps=eps)
    empty = ptir.zeros((0,), dtype=x.dtype.compute)
    return made, empty, empty


@aten("_native_batch_norm_legit_functional")
def batch_norm_training(
    x: Tensor,
    weight: Maybe,
    bias: Maybe,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """With the statistics of the batch, the running ones moved towards them."""
    if not training:
        made = ptir.nn.batch_norm(x, running_mean, running_var, weight, bias, eps=eps)
        empty = ptir.zeros((0,), dtype=x.dtype.compute)
        return made, empty, empty, running_mean, running_var
    made, mean, deviation, variance = _batch_statistics(x, weight, bias, eps)
    count = product(x.shape) // x.shape[1]
    unbiased = variance * (count / (count - 1)) if isinstance(count, int) else variance
    return (
        made,
        mean,
        deviation,
        running_mean * (1 - momentum) + mean * momentum,
        running_var * (1 - momentum) + unbiased * momentum,
    )


@aten("_batch_norm_with_update_functional")
def batch_norm_updated(
    x: Tensor,
    weight: Maybe,
    bias: Maybe,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    made, mean, deviation, *running = batch_norm_training(
        x, weight, bias, running_mean, running_var, True, momentum, eps
    )
    return made, mean, deviation, ptir.zeros((0,), dtype=ptir.ui8), *running


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_of_batch(
    x: Tensor, weight: Maybe, bias: Maybe, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return _batch_statistics(x, weight, bias, eps)[:3]


def _batch_statistics(
    x: Tensor, weight: Maybe, bias: Maybe, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The normalised batch, the means and inverse deviations of its channels, their variances."""
    wide = ptir.cast(x, dtype=x.dtype.compute)
    axes = (0, *range(2, x.ndim))
    mean, variance = ptir.mean(wide, axis=axes), ptir.var(wide, axis=axes)
    made = ptir.nn.batch_norm(x, mean, variance, weight, bias, eps=eps)
    return made, mean, ptir.rsqrt(variance + eps), variance

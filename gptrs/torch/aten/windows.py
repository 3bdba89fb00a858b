"""Convolution, pooling and resampling, in torch's layouts (N, C, ...)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import UnsupportedError, aten, enter_all, ptir

Ints = Sequence[int]
_CONVOLUTIONS = {1: ptir.nn.conv1d, 2: ptir.nn.conv2d, 3: ptir.nn.conv3d}
_TRANSPOSED = {
    1: ptir.nn.conv_transpose1d,
    2: ptir.nn.conv_transpose2d,
    3: ptir.nn.conv_transpose3d,
}


@aten("convolution", "_convolution")
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    *_flags: bool,
) -> Tensor:
    """The convolution of any rank, forwards or transposed."""
    rank = weight.ndim - 2
    wide = [_each(v, rank) for v in (stride, padding, dilation, output_padding)]
    is_single = x.ndim == rank + 1
    x = ptir.unsqueeze(x, 0) if is_single else x
    if transposed:
        run = _TRANSPOSED[rank]
        made = run(x, weight, bias, wide[0], wide[1], wide[3], groups, wide[2])
    else:
        made = _CONVOLUTIONS[rank](x, weight, bias, *wide[:3], groups)
    return ptir.squeeze(made, 0) if is_single else made


def _each(value: Ints, rank: int) -> tuple[int, ...]:
    return tuple(value) * rank if len(value) == 1 else tuple(value)


@aten("convolution_backward")
def convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Ints | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of the operand, of the weight and of the bias."""
    rank = weight.ndim - 2
    if transposed or x.ndim != rank + 2:
        raise UnsupportedError("the gradient of a transposed convolution")
    stride, padding, dilation = (_each(v, rank) for v in (stride, padding, dilation))
    of_x = of_weight = of_bias = None
    space = range(2, 2 + rank)
    if output_mask[0]:
        reached = [
            (grad.shape[i + 2] - 1) * stride[i]
            - 2 * padding[i]
            + dilation[i] * (weight.shape[i + 2] - 1)
            + 1
            for i in range(rank)
        ]
        missing = tuple(n - m for n, m in zip(x.shape[2:], reached, strict=True))
        run = _TRANSPOSED[rank]
        of_x = run(grad, weight, None, stride, padding, missing, groups, dilation)
    if output_mask[1]:
        of_weight = _weight_gradient(grad, x, weight, stride, padding, dilation, groups)
    if output_mask[2]:
        of_bias = ptir.sum(grad, axis=(0, *space))
    return of_x, of_weight, of_bias


def _weight_gradient(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    """The correlation of ``x`` and ``grad``: a convolution that sums over the batch, in which
    strides and dilations change places."""
    rank = weight.ndim - 2
    batch, channels = x.shape[:2]
    outputs = grad.shape[1]
    inner = channels // groups
    space = tuple(x.shape[2:])
    # [inner, groups · batch, ...] by [outputs, batch, ...], each group by its own.
    x = ptir.reshape(x, shape=(batch, groups, inner, *space))
    x = ptir.transpose(x, perm=(2, 1, 0, *range(3, 3 + rank)))
    x = ptir.reshape(x, shape=(inner, groups * batch, *space))
    grad = ptir.swapaxes(grad, 0, 1)
    made = _CONVOLUTIONS[rank](x, grad, None, dilation, padding, stride, groups)
    made = made[(slice(None), slice(None), *(slice(0, n) for n in weight.shape[2:]))]
    made = ptir.swapaxes(made, 0, 1)
    return ptir.reshape(made, shape=(outputs, inner, *weight.shape[2:]))


def _to_size(function: Callable[..., Any]) -> Callable[..., Any]:
    """A pooling to a size."""

    def call(x: Tensor, output_size: Ints) -> Any:
        return function(x, tuple(output_size))

    return call


def _pool(function: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """A pooling of torch's arguments; a stride of nothing is that of the window."""

    def call(x: Tensor, kernel_size: Ints, stride: Ints = (), *rest: Any) -> Any:
        wide: list[Any] = [v if isinstance(v, bool | int | None) else _each(v, rank) for v in rest]
        steps = _each(stride, rank) if len(stride) else None
        return function(x, _each(kernel_size, rank), steps, *wide)

    return call


enter_all(
    {
        "max_pool2d_with_indices": _pool(ptir.nn.max_pool2d_with_indices, 2),
        "max_pool3d_with_indices": _pool(ptir.nn.max_pool3d_with_indices, 3),
        "avg_pool1d": _pool(ptir.nn.avg_pool1d, 1),
        "avg_pool2d": _pool(ptir.nn.avg_pool2d, 2),
        "avg_pool3d": _pool(ptir.nn.avg_pool3d, 3),
        "adaptive_avg_pool1d": _to_size(ptir.nn.adaptive_avg_pool1d),
        "_adaptive_avg_pool2d": _to_size(ptir.nn.adaptive_avg_pool2d),
        "_adaptive_avg_pool3d": _to_size(ptir.nn.adaptive_avg_pool3d),
        "adaptive_max_pool2d": _to_size(ptir.nn.adaptive_max_pool2d_with_indices),
        "adaptive_max_pool3d": _to_size(ptir.nn.adaptive_max_pool3d_with_indices),
    }
)


@aten("max_pool2d_with_indices_backward")
def max_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """Each gradient goes to the element that was the greatest of its window."""
    space = x.shape[-2] * x.shape[-1]
    outer = x.shape[:-2]
    zeros = ptir.zeros((*outer, space), dtype=grad.dtype)
    windows = grad.shape[-2] * grad.shape[-1]
    at = ptir.reshape(indices, shape=(*outer, windows))
    made = ptir.scatter_add(zeros, -1, at, ptir.reshape(grad, shape=(*outer, windows)))
    return ptir.reshape(made, shape=x.shape)


@aten("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(
    x: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    padding = ("zeros", "border", "reflection")[padding_mode]
    return ptir.nn.grid_sample(x, grid, mode, padding, align_corners)


def _upsample(mode: str) -> Callable[..., Tensor]:
    """Resampling to a size, or by factors."""

    def call(x: Tensor, output_size: Ints | None, *rest: Any) -> Tensor:
        *aligned, factors = rest
        corners = aligned[0] if aligned else None
        if output_size is not None:
            return ptir.nn.interpolate(x, tuple(output_size), mode=mode, align_corners=corners)
        return ptir.nn.interpolate(x, None, tuple(factors), mode=mode, align_corners=corners)

    return call


def _upsample_to(mode: str, *, aligns: bool) -> Callable[..., Tensor]:
    """Resampling to a size; the factors follow from it unless others are given."""

    def call(x: Tensor, output_size: Ints, *rest: Any) -> Tensor:
        corners, factors = (rest[0], rest[1:]) if aligns else (None, rest)
        if any(factor is not None for factor in factors):
            raise UnsupportedError("a size and factors together")
        return ptir.nn.interpolate(x, tuple(output_size), mode=mode, align_corners=corners)

    return call


enter_all(
    {
        "upsample_nearest1d upsample_nearest2d upsample_nearest3d": _upsample_to(
            "nearest", aligns=False
        ),
        "_upsample_nearest_exact1d _upsample_nearest_exact2d"
        " _upsample_nearest_exact3d": _upsample_to("nearest-exact", aligns=False),
        "upsample_linear1d": _upsample_to("linear", aligns=True),
        "upsample_bilinear2d": _upsample_to("bilinear", aligns=True),
        "upsample_trilinear3d": _upsample_to("trilinear", aligns=True),
        "upsample_bicubic2d": _upsample_to("bicubic", aligns=True),
        "upsample_nearest1d.vec upsample_nearest2d.vec upsample_nearest3d.vec": _upsample(
            "nearest"
        ),
        "_upsample_nearest_exact1d.vec _upsample_nearest_exact2d.vec"
        " _upsample_nearest_exact3d.vec": _upsample("nearest-exact"),
        "upsample_linear1d.vec": _upsample("linear"),
        "upsample_bilinear2d.vec": _upsample("bilinear"),
        "upsample_trilinear3d.vec": _upsample("trilinear"),
        "upsample_bicubic2d.vec": _upsample("bicubic"),
    }
)


@aten("im2col")
def im2col(x: Tensor, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
    given = (tuple(v) for v in (kernel_size, dilation, padding, stride))
    return ptir.nn.unfold(x, *given)


@aten("col2im")
def col2im(
    x: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Tensor:
    given = (tuple(v) for v in (output_size, kernel_size, dilation, padding, stride))
    return ptir.nn.fold(x, *given)

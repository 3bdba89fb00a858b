"""Convolution, pooling and resampling, in torch's layouts (N, C, ...)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import UnsupportedError, aten, enter_all, ptir

Ints = Sequence[int]
CONVOLUTIONS = {1: ptir.nn.conv1d, 2: ptir.nn.conv2d, 3: ptir.nn.conv3d}
TRANSPOSED = {
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
    wide = [each_axis(v, rank) for v in (stride, padding, dilation, output_padding)]
    is_single = x.ndim == rank + 1
    x = ptir.unsqueeze(x, 0) if is_single else x
    if transposed:
        run = TRANSPOSED[rank]
        made = run(x, weight, bias, wide[0], wide[1], wide[3], groups, wide[2])
    else:
        made = CONVOLUTIONS[rank](x, weight, bias, *wide[:3], groups)
    return ptir.squeeze(made, 0) if is_single else made


def each_axis(value: Ints, rank: int) -> tuple[int, ...]:
    """``value`` for each of the axes; one number is for all."""
    return tuple(value) * rank if len(value) == 1 else tuple(value)


def _to_size(function: Callable[..., Any]) -> Callable[..., Any]:
    """A pooling to a size."""

    def call(x: Tensor, output_size: Ints) -> Any:
        return function(x, tuple(output_size))

    return call


def _pool(function: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """A pooling of torch's arguments; a stride of nothing is that of the window."""

    def call(x: Tensor, kernel_size: Ints, stride: Ints = (), *rest: Any) -> Any:
        wide: list[Any] = [
            v if isinstance(v, bool | int | None) else each_axis(v, rank) for v in rest
        ]
        steps = each_axis(stride, rank) if len(stride) else None
        return function(x, each_axis(kernel_size, rank), steps, *wide)

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

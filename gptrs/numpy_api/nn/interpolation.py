"""interpolate: images resampled to other extents, one spatial axis after the other.

Each element of the result is a weighted sum of a few elements of its axis, whose positions and
weights are known while tracing (`gptrs.numpy_api.nn.resampling`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.ops.widening import narrow, widen
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)
from gptrs.numpy_api.nn.operands import as_float, fixed, nn_function
from gptrs.numpy_api.nn.resampling import Axis, Taps, at_positions, cubic, linear, nearest, smoothed

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

_RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_MODES = ("nearest", "nearest-exact", "area", *_RANKS)
Numbers = float | Sequence[float] | None


@nn_function
def interpolate(
    input: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: Numbers = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """x [N, C, spatial...] with one to three spatial axes of the extents ``size``, or ⌊extent ·
    scale_factor⌋.

    ``mode`` is "nearest" (the position rounded down), "nearest-exact", "area" (means), "linear",
    "bilinear", "bicubic" or "trilinear", by the number of spatial axes. With ``align_corners`` the
    centres of the first and of the last elements keep their place, else the outer edges. With
    ``recompute_scale_factor`` positions come from the extents and not from ``scale_factor``.
    ``antialias`` widens the filters of "bilinear" and "bicubic" where the image becomes smaller.
    Integers stay integers with "nearest" and "nearest-exact". Source of the cubic filter: Keys,
    "Cubic Convolution Interpolation" (1981), a = −3/4, with antialias −1/2.
    """
    x = as_tensor(input) if mode.startswith("nearest") else as_float(input)
    if x.ndim not in (3, 4, 5):
        raise ShapeError(f"input has shape {shape_text(x.shape)}, expected [N, C, spatial...]")
    _check_mode(x.ndim - 2, mode, align_corners, antialias)
    extents = fixed(x.shape[2:], "input")
    sizes, scales = _sizes(extents, size, scale_factor)
    if recompute_scale_factor:
        if scale_factor is None:
            raise ArgumentError("recompute_scale_factor is for a scale_factor, which is not given")
        scales = None
    if min((*sizes, *extents)) < 1:
        raise ShapeError(f"extents {list(extents)} become {sizes}, expected at least 1")
    if mode == "area":
        pool = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[x.ndim - 3]
        return pool(x, sizes)
    y = x if mode.startswith("nearest") else widen(x)
    number = (x.dtype if x.dtype.is_float else DEFAULT_FLOAT).compute.numpy.type
    for i in reversed(range(len(sizes))):
        factor = scales[i] if scales else None
        axis = Axis(extents[i], sizes[i], factor, bool(align_corners), number)
        y = _resampled(y, i + 2, axis, mode, antialias)
    return narrow(y, x)


def _check_mode(rank: int, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in _MODES:
        raise ArgumentError(f"mode is {mode!r}, expected one of {', '.join(_MODES)}")
    if _RANKS.get(mode, rank) != rank:
        raise ShapeError(f"mode {mode!r} is for {_RANKS[mode]} spatial axes, found {rank}")
    if mode not in _RANKS and align_corners is not None:
        raise ArgumentError(f"align_corners is for {', '.join(_RANKS)}, not for {mode!r}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(f"antialias is for 'bilinear' and 'bicubic', not for {mode!r}")


def _sizes(
    extents: tuple[int, ...], size: Any, scale_factor: Any
) -> tuple[list[int], Sequence[float] | None]:
    """The extents of the result, and the scales if they are given."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError("expected one of size and scale_factor")
    given = scale_factor if size is None else size
    each: list[Any] = [given] * len(extents) if isinstance(given, int | float) else list(given)
    if len(each) != len(extents):
        raise ShapeError(f"expected one number or {len(extents)}, found {given}")
    if size is not None:
        return [int(n) for n in each], None
    return [int(n * scale) for n, scale in zip(extents, each, strict=True)], each


def _resampled(x: Tensor, axis: int, how: Axis, mode: str, antialias: bool) -> Tensor:
    if mode.startswith("nearest"):
        return at_positions(x, nearest(how, exact=mode == "nearest-exact"), axis)
    is_cubic = mode == "bicubic"
    if antialias:
        return _weighted(x, axis, smoothed(how, is_cubic=is_cubic))
    return _weighted(x, axis, cubic(how) if is_cubic else linear(how))


def _weighted(x: Tensor, axis: int, taps: Taps) -> Tensor:
    """Σ weight · element over the taps of each element of the result."""
    shape = [1] * x.ndim
    shape[axis] = -1
    total: Tensor | None = None
    for positions, weights in taps:
        scale = Tensor(weights.astype(x.dtype.numpy).reshape(shape))
        part = at_positions(x, positions, axis) * scale
        total = part if total is None else total + part
    assert total is not None
    return total


@nn_function
def upsample(
    input: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: Numbers = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate`, under its earlier name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@nn_function
def upsample_nearest(
    input: Any, size: int | Sequence[int] | None = None, scale_factor: Numbers = None
) -> Tensor:
    """`interpolate` by the nearest element."""
    return interpolate(input, size, scale_factor, "nearest")


@nn_function
def upsample_bilinear(
    input: Any, size: int | Sequence[int] | None = None, scale_factor: Numbers = None
) -> Tensor:
    """`interpolate` of two axes, bilinear with aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)

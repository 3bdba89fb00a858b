"""Sliding windows over the spatial axes of x [N, spatial..., C]: reduce_window, extract_patches.

``window``, ``strides`` and ``dilation`` have one entry per spatial axis (strides and dilation are 1
unless given), ``padding`` one pair (low, high), 0 unless given. With reach = dilation·(window − 1)
+ 1 the result has ⌊(extent + low + high − reach) / stride⌋ + 1 windows along an axis, and element p
of window o stands at o·stride + p·dilation − low.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce as fold
from typing import Any, Literal

import numpy as np

from gptrs.errors import ArgumentError, ElementError, PtirError, ShapeError
from gptrs.ir.checks import one_dtype, require, sum_dtype
from gptrs.ir.dims import DimLike, Shape, surely_greater
from gptrs.ir.extremes import MAXIMUM, MINIMUM
from gptrs.ir.kinds import OpKind
from gptrs.ir.operands import widened
from gptrs.ir.primitives import primitive
from gptrs.ir.program import Attrs, Fails
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, Type, as_dtype, dim_text

__all__ = ["extract_patches", "reduce_window"]

Counts = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]
Combine = Literal["add", "max", "min", "mul"]


# A primitive that widens by itself: the neutral element is that of the dtype before widening.
@primitive(kind=OpKind.WINDOW)
def reduce_window(
    x: Tensor,
    *,
    reduce: Combine,
    window: Counts,
    strides: Counts | None = None,
    dilation: Counts | None = None,
    padding: Padding | None = None,
    accum_dtype: DType | None = None,
    out_dtype: DType | None = None,
) -> Type:
    """The sum, product, greatest or least element of each window of x [N, spatial..., C].

    Padding is the neutral element: 0, 1, −∞ or +∞ (the least or greatest integer). NaN wins. Narrow
    floats are accumulated in f32; the result has the dtype of ``x`` unless told otherwise. Raises
    `ShapeError` for a window that does not fit.
    """
    if reduce not in _COMBINE:
        raise ArgumentError(f"reduce is {reduce!r}, expected one of {', '.join(_COMBINE)}")
    dtype = sum_dtype(x, accum_dtype, out_dtype)
    if reduce in ("max", "min"):
        require(x, "int", "uint", "float")
        if accum_dtype is not None or out_dtype is not None:
            raise ArgumentError(
                f"accum_dtype and out_dtype are for add and mul, not for {reduce}",
                fix="cast the result",
            )
    return Type(_result_shape(x, window, strides, dilation, padding), dtype)


@reduce_window.numpy
def _(
    x: Array,
    *,
    reduce: Combine,
    window: Counts,
    strides: Counts,
    dilation: Counts,
    padding: Padding,
    accum_dtype: DType | None,
    out_dtype: DType | None,
) -> Array:
    neutral = neutral_of(reduce, as_dtype(x.dtype))
    x = widened(x)
    if accum_dtype is not None:
        x = x.astype(accum_dtype.compute.numpy, copy=False)
    return fold(_COMBINE[reduce], _positions(x, neutral, window, strides, dilation, padding))


_COMBINE: dict[str, Any] = {
    "add": np.add,
    "max": MAXIMUM,
    "min": MINIMUM,
    "mul": np.multiply,
}


def neutral_of(reduce: Combine, dtype: DType) -> float:
    """The neutral element of a reduction."""
    match reduce:
        case "add":
            return 0
        case "mul":
            return 1
        case "max":
            return dtype.limits[0] if dtype.is_integer else -np.inf
        case "min":
            return dtype.limits[1] if dtype.is_integer else np.inf


@primitive(kind=OpKind.WINDOW)
def extract_patches(
    x: Tensor,
    *,
    window: Counts,
    strides: Counts | None = None,
    dilation: Counts | None = None,
    padding: Padding | None = None,
    value: float = 0,
) -> Type:
    """The elements of each window of x [N, spatial..., C] as a row [N, out..., prod(window)·C].

    A row has the positions of the window in row-major order and the channel fastest, so that a
    kernel [window..., C, O] is the matrix [prod(window)·C, O]. Padding is ``value``. Raises
    `ShapeError` for a window that does not fit.
    """
    one_dtype(x, value)
    *outer, channels = _result_shape(x, window, strides, dilation, padding)
    return x.type.with_shape((*outer, channels * math.prod(window)))


@extract_patches.numpy
def _(
    x: Array,
    *,
    window: Counts,
    strides: Counts,
    dilation: Counts,
    padding: Padding,
    value: float,
) -> Array:
    patches = np.stack([*_positions(x, value, window, strides, dilation, padding)], axis=-2)
    *outer, positions, channels = patches.shape
    return patches.reshape(*outer, positions * channels)


@reduce_window.canonical
def _canonical(
    x: Tensor,
    *,
    window: Counts,
    strides: Counts | None,
    dilation: Counts | None,
    padding: Padding | None,
    **_: object,
) -> Attrs:
    ones = (1,) * len(window)
    return {
        "strides": ones if strides is None else strides,
        "dilation": ones if dilation is None else dilation,
        "padding": ((0, 0),) * len(window) if padding is None else padding,
    }


@extract_patches.canonical
def _(x: Tensor, *, value: float, **attrs: Any) -> Attrs:
    return {**_canonical(x, **attrs), "value": bool(value) if x.dtype.is_bool else value}


def _result_shape(
    x: Tensor,
    window: Counts,
    strides: Counts | None,
    dilation: Counts | None,
    padding: Padding | None,
) -> Shape:
    """The shape of x [N, spatial..., C] with the number of windows for each spatial extent."""
    assert strides is not None
    assert dilation is not None
    assert padding is not None
    spatial = x.ndim - 2
    if spatial < 0:
        raise ShapeError(f"x has rank {x.ndim}, expected [N, spatial..., C]")
    for name, counts in (("window", window), ("strides", strides), ("dilation", dilation)):
        _check_entries(name, counts, spatial)
        if not all(_is_whole(n, 1) for n in counts):
            raise ShapeError(f"{name} is {counts}, expected integers of at least 1")
    _check_entries("padding", padding, spatial)
    if not all(_is_pair(pair) for pair in padding):
        raise ShapeError(
            f"padding is {padding}, expected a pair (low, high) of at least 0 per axis"
        )
    outer = _outer(x.shape[1:-1], window, strides, dilation, padding, ShapeError)
    return (x.shape[0], *outer, x.shape[-1])


@reduce_window.failing
@extract_patches.failing
def _(x: Tensor, *, window: Counts, dilation: Counts, padding: Padding, **_: object) -> Fails:
    fits = all(
        surely_greater(extent + low + high + 1, d * (size - 1) + 1)
        for extent, size, d, (low, high) in zip(
            x.shape[1:-1], window, dilation, padding, strict=True
        )
    )
    return Fails.NEVER if fits else Fails.AT_SIZES


def _check_entries(name: str, entries: tuple[object, ...], spatial: int) -> None:
    if len(entries) != spatial:
        raise ShapeError(
            f"{name} has {len(entries)} entries, expected {spatial}: one per spatial axis of x"
            " [N, spatial..., C]"
        )


def _is_whole(n: object, least: int) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n >= least


def _is_pair(pair: object) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and all(_is_whole(n, 0) for n in pair)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _outer(
    extents: Shape,
    window: Counts,
    strides: Counts,
    dilation: Counts,
    padding: Padding,
    error: type[PtirError],
) -> list[DimLike]:
    """The number of windows along each spatial axis; ``error`` where not even one fits."""
    counts: list[DimLike] = []
    for i, (extent, (low, high)) in enumerate(zip(extents, padding, strict=True)):
        reach = dilation[i] * (window[i] - 1) + 1
        padded = extent + low + high
        if surely_greater(reach, padded):
            raise error(
                f"axis {i + 1}: a window that reaches over {reach} elements does not fit extent"
                f" {dim_text(extent)} with padding ({low}, {high})",
                fix="pad more, or use a smaller window",
            )
        counts.append((padded - reach) // strides[i] + 1)
    return counts


def _positions(
    x: Array,
    fill: float,
    window: Counts,
    strides: Counts,
    dilation: Counts,
    padding: Padding,
) -> Iterator[Array]:
    """For each position in a window, in row-major order, its elements [N, out..., C]."""
    # Run-time check, for symbolic extents: whether a window fits.
    outer = _outer(x.shape[1:-1], window, strides, dilation, padding, ElementError)
    low = [0, *(before for before, _ in padding), 0]
    around = [0, *(before + after for before, after in padding), 0]
    padded = np.full([n + extra for n, extra in zip(x.shape, around, strict=True)], fill, x.dtype)
    padded[tuple(slice(b, b + n) for b, n in zip(low, x.shape, strict=True))] = x
    for position in np.ndindex(*window):
        spans = [
            slice(p * d, p * d + (int(n) - 1) * s + 1, s)
            for p, d, n, s in zip(position, dilation, outer, strides, strict=True)
        ]
        yield padded[(slice(None), *spans)]

"""Rows of the ops over sliding windows."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.types import DTYPES
from tests.cases.sample import COMPLEX, FLOATS, INTEGERS, ORDER, REAL, Case, Sample, sample
from tests.support.lazy_torch import torch

ANY = (*REAL, *COMPLEX)


def _windows(
    x: torch.Tensor,
    fill: float,
    window: Any,
    strides: Any = None,
    dilation: Any = None,
    padding: Any = None,
) -> torch.Tensor:
    """The windows of x [N, spatial..., C], [N, out..., C, window...], by torch's `unfold`."""
    axes = range(1, x.ndim - 1)
    for axis, (low, high) in zip(axes, padding or [(0, 0)] * len(axes), strict=True):
        ends = [[*x.shape[:axis], n, *x.shape[axis + 1 :]] for n in (low, high)]
        before, after = (torch.full(shape, fill, dtype=x.dtype) for shape in ends)
        x = torch.cat((before, x, after), axis)
    for axis, size, step, apart in zip(
        axes, window, strides or (1,) * len(axes), dilation or (1,) * len(axes), strict=True
    ):
        x = x.unfold(axis, (size - 1) * apart + 1, step)[..., ::apart]
    return x


def _extract_patches(x: torch.Tensor, *, value: float = 0, **attrs: Any) -> torch.Tensor:
    windows = _windows(x, value, **attrs)
    spatial = x.ndim - 2
    last = windows.movedim(spatial + 1, -1)  # channels after the window
    return last.reshape(*last.shape[: spatial + 1], math.prod(last.shape[spatial + 1 :]))


def _neutral(reduce: str, dtype: str) -> float:
    least, most = DTYPES[dtype].limits if dtype else (-math.inf, math.inf)
    return {"add": 0, "mul": 1, "max": least, "min": most}[reduce]


def _reduce_window(dtype: str = "") -> Any:
    """``dtype``: the integer dtype of the row, whose limits are the padding of max and min."""

    def call(
        x: torch.Tensor,
        *,
        reduce: str,
        accum_dtype: Any = None,
        out_dtype: Any = None,
        **attrs: Any,
    ) -> torch.Tensor:
        windows = _windows(x, _neutral(reduce, dtype), **attrs)
        windows = windows.reshape(*windows.shape[: x.ndim], math.prod(windows.shape[x.ndim :]))
        match reduce:
            case "add":
                return windows.sum(-1)
            case "mul":
                return windows.prod(-1)
            case "max":
                return windows.amax(-1)
            case _:
                return windows.amin(-1)

    return call


def _geometries(values: str, **attrs: Any) -> tuple[Sample, ...]:
    v = values
    return (
        sample(f"T[2,5,7,3] {v}", window=(2, 3), **attrs),
        sample(f"T[S,6,5,2] {v}", window=(3, 2), strides=(2, 3), **attrs),
        sample(f"T[1,S,S,2] {v}", window=(3, 2), padding=((1, 1), (0, 1)), strides=(2, 1), **attrs),
        sample(
            f"T[1,7,8,1] {v}", window=(2, 3), dilation=(3, 2), padding=((0, 2), (3, 1)), **attrs
        ),
        sample(f"T[2,9,S] {v}", window=(4,), strides=(3,), dilation=(2,), **attrs),
        sample(f"T[S,S,3] {v}", window=(2,), strides=(4,), padding=((2, 0),), **attrs),
        sample(f"T[1,3,4,3,2] {v}", window=(2, 1, 3), padding=((1, 0), (0, 0), (2, 2)), **attrs),
        sample(f"T[3,2] {v}", window=(), **attrs),
        # One window over everything, windows of one element, and windows in the padding alone.
        sample(f"T[2,3,4,1] {v}", window=(3, 4), **attrs),
        sample(f"T[2,3,4,1] {v}", window=(1, 1), strides=(2, 2), **attrs),
        sample(f"T[1,2,2] {v}", window=(2,), strides=(2,), padding=((4, 5),), **attrs),
        sample(f"T[0,5,5,3] {v}", window=(2, 2), **attrs),
        sample(f"T[2,4,4,0] {v}", window=(2, 2), **attrs),
        sample(f"T[2,0,3] {v}", window=(2,), padding=((1, 2),), **attrs),
    )


_SUMS = (
    *_geometries("special", reduce="add"),
    *_geometries("special", reduce="mul"),
)
_EXTREMES = tuple(s for reduce in ("max", "min") for s in _geometries("any", reduce=reduce))
_EXACT = tuple(s for reduce in ("add", "mul") for s in _geometries("any", reduce=reduce))

WINDOWS = (
    Case(
        "reduce_window",
        _SUMS,
        _reduce_window(),
        (*FLOATS, *COMPLEX),
        ulps=16,
        magnitude=8,
        why=ORDER,
    ),
    Case("reduce_window", _EXACT, _reduce_window(), INTEGERS),
    Case("reduce_window", _EXTREMES, _reduce_window(), FLOATS),
    *(Case("reduce_window", _EXTREMES, _reduce_window(dtype), (dtype,)) for dtype in INTEGERS),
    Case(
        "reduce_window",
        (
            sample("T[S,9,2] any", reduce="add", window=(5,), accum_dtype="si64"),
            sample("T[S,9,2] any", reduce="mul", window=(2,), accum_dtype="si32", out_dtype="T"),
        ),
        _reduce_window(),
        ("si8", "ui4"),
    ),
    Case(
        "reduce_window",
        (
            sample("T[S,9,2]", reduce="add", window=(5,), out_dtype="f32"),
            sample("T[S,9,2]", reduce="add", window=(5,), accum_dtype="f64", out_dtype="T"),
        ),
        _reduce_window(),
        ("bf16", "f16"),
        ulps=16,
        magnitude=8,
        why=ORDER,
    ),
    Case("extract_patches", _geometries("any"), _extract_patches, ANY),
    Case("extract_patches", _geometries("any", value=3), _extract_patches, ("f32", "si8", "si4")),
    Case("extract_patches", _geometries("", value=-math.inf), _extract_patches, ("f32", "bf16")),
    Case("extract_patches", _geometries("", value=True), _extract_patches, ("i1",)),
)

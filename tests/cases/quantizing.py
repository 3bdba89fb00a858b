"""Rows of quantize, dequantize and requantize."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from gptrs.ir.types import DTYPES
from tests.cases.sample import FLOATS, Case, Sample, sample
from tests.support.lazy_torch import torch

_FP8 = {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2"}


def _spread(entries: Any, x: torch.Tensor, axis: int | None, group_size: int | None) -> Any:
    """Scales or zero points in the shape of x."""
    if entries is None or axis is None:
        return entries
    if group_size is not None:
        return entries.repeat_interleave(group_size, dim=axis)
    return entries.reshape([-1] + [1] * (x.ndim - 1 - axis % x.ndim)).expand(x.shape)


def _store(steps: torch.Tensor, zero_point: Any, dtype: str) -> torch.Tensor:
    if dtype in _FP8:
        narrow = getattr(torch, _FP8[dtype])
        most = torch.finfo(narrow).max
        return steps.clamp(-most, most).to(narrow).to(torch.float32)
    whole = torch.round(steps).double() + (0 if zero_point is None else zero_point)
    return whole.nan_to_num(0.0, torch.inf, -torch.inf).clamp(*DTYPES[dtype].limits).long()


def _quantize(
    x: torch.Tensor,
    scale: torch.Tensor,
    zero_point: Any = None,
    *,
    dtype: str,
    axis: int | None = None,
    group_size: int | None = None,
) -> torch.Tensor:
    scale, zero_point = (_spread(e, x, axis, group_size) for e in (scale, zero_point))
    wide = x.double() if DTYPES[dtype].bits == 32 else x
    return _store(wide / scale, zero_point, dtype)


def _real(q: torch.Tensor, scale: torch.Tensor, zero_point: Any) -> torch.Tensor:
    return (q if zero_point is None else q - zero_point).double() * scale.double()


def _dequantize(
    q: torch.Tensor,
    scale: torch.Tensor,
    zero_point: Any = None,
    *,
    dtype: str = "f32",
    axis: int | None = None,
    group_size: int | None = None,
) -> torch.Tensor:
    scale, zero_point = (_spread(e, q, axis, group_size) for e in (scale, zero_point))
    real = _real(q, scale, zero_point)
    return real if dtype == "f64" else real.float()


def _requantize(
    q: torch.Tensor,
    scale: torch.Tensor,
    new_scale: torch.Tensor,
    zero_point: Any = None,
    new_zero_point: Any = None,
    *,
    dtype: str,
    axis: int | None = None,
    group_size: int | None = None,
) -> torch.Tensor:
    operands = (scale, new_scale, zero_point, new_zero_point)
    scale, new_scale, zero_point, new_zero_point = (
        _spread(e, q, axis, group_size) for e in operands
    )
    return _store(_real(q, scale, zero_point) / new_scale.double(), new_zero_point, dtype)


def _quantized(dtype: str, point: str, scale: str = "T") -> tuple[Sample, ...]:
    """Samples with a zero point, and without where ``point`` is empty."""

    def zero_point(shape: str) -> str | None:
        return f"{dtype}[{shape}] {point}" if point else None

    s = f"{scale}[%s] positive"
    return (
        sample("T[S,7] any", s % "", zero_point(""), dtype=dtype),
        sample("T[S,7]", s % "", dtype=dtype),
        sample("T[S,7] any", s % "S", zero_point("S"), dtype=dtype, axis=0),
        sample("T[2,3,5]", s % "3", zero_point("3"), dtype=dtype, axis=-2),
        sample("T[S,8]", s % "S,2", zero_point("S,2"), dtype=dtype, axis=-1, group_size=4),
        sample("T[4*S,2]", s % "S,2", zero_point("S,2"), dtype=dtype, axis=0, group_size=4),
        sample("T[] any", s % "", zero_point(""), dtype=dtype),
        sample("T[0,3]", s % "0", zero_point("0"), dtype=dtype, axis=0),
        sample("T[3,0]", s % "3,0", zero_point("3,0"), dtype=dtype, axis=1, group_size=2),
    )


def _dequantized(point: str, dtype: str, scale: str = "f32") -> tuple[Sample, ...]:
    def zero_point(shape: str) -> str | None:
        return f"T[{shape}] {point}" if point else None

    s = f"{scale}[%s] positive"
    return (
        sample("T[S,7] any", s % "", zero_point(""), dtype=dtype),
        sample("T[S,7] any", s % "7", zero_point("7"), dtype=dtype, axis=1),
        sample("T[S,8] any", s % "S,4", zero_point("S,4"), dtype=dtype, axis=1, group_size=2),
        sample("T[2*S,3] any", s % "S,3", zero_point("S,3"), dtype=dtype, axis=0, group_size=2),
        sample("T[] any", s % "", zero_point(""), dtype=dtype),
        sample("T[3,0] any", s % "0", zero_point("0"), dtype=dtype, axis=-1),
    )


def _requantized(dtype: str, point: str) -> tuple[Sample, ...]:
    def entries(shape: str) -> tuple[str | None, ...]:
        scales = (f"f32[{shape}] positive", f"f32[{shape}] positive")
        points = (f"T[{shape}] 0..5", f"{dtype}[{shape}] {point}") if point else (None, None)
        return (*scales, *points)

    return (
        sample("T[S,7] any", *entries(""), dtype=dtype),
        sample("T[S,7] any", *entries("S"), dtype=dtype, axis=0),
        sample("T[S,8] any", *entries("S,2"), dtype=dtype, axis=1, group_size=4),
        sample("T[0,3]", *entries("3"), dtype=dtype, axis=1),
    )


_STORED = ("si4", "ui4", "si8", "ui8", "si16", "ui16", "si32", "ui32")

QUANTIZING = (
    *(
        Case("quantize", _quantized(dtype, "0..5"), _quantize, FLOATS)
        for dtype in ("si8", "ui8", "si4")
    ),
    *(
        Case("quantize", _quantized(dtype, "0..5"), _quantize, ("f32", "f64", "bf16"))
        for dtype in ("ui4", "si16", "ui16", "si32", "ui32")
    ),
    *(
        Case("quantize", _quantized(dtype, ""), _quantize, ("f32", "f16", "bf16"))
        for dtype in ("fp8_e4m3", "fp8_e5m2")
    ),
    Case("quantize", _quantized("si8", "-8..8", "f32"), _quantize, ("f16", "f64", "f32")),
    *(
        Case("dequantize", _dequantized("0..5", dtype), _dequantize, _STORED)
        for dtype in ("f32", "f64", "bf16")
    ),
    Case("dequantize", _dequantized("", "f16", "f16"), _dequantize, ("si4", "ui8", "si16", *_FP8)),
    Case("dequantize", _dequantized("", "f32", "f64"), _dequantize, ("si8", "fp8_e4m3")),
    *(
        Case("requantize", _requantized(dtype, "0..5"), _requantize, _STORED)
        for dtype in ("si8", "ui4", "si32")
    ),
    Case("requantize", _requantized("fp8_e4m3", ""), _requantize, (*_FP8, "si8")),
)

"""Conversions between dtypes on a device, and the arithmetic of those that a wider one carries."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import torch
from torch import Tensor

from gptrs.backends.torch.carriers import CARRIERS, FP8, is_wider
from gptrs.ir.types import DTYPES, DType, bf16, f16, ui64

_SIGNED = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}


def carrier(dtype: DType) -> torch.dtype:
    """The torch dtype that carries ``dtype``."""
    return getattr(torch, CARRIERS[dtype])


def widen(x: Tensor, dtype: str) -> Tensor:
    """Narrow floats in f32. fp8 comes as bits."""
    fp8 = FP8.get(DTYPES[dtype])
    return (x if fp8 is None else x.view(getattr(torch, fp8))).float()


def narrow(x: Tensor, dtype: str) -> Tensor:
    """f32 (or f64) rounded once to a narrow float."""
    to = DTYPES[dtype]
    if x.dtype is torch.float64:
        x = _to_odd(x)
    fp8 = FP8.get(to)
    if fp8 is None:
        return x.to(carrier(to))
    bits = x.to(getattr(torch, fp8)).view(torch.uint8)
    if to.name != "fp8_e4m3":
        return bits
    return torch.where(x.abs() <= _MOST_E4M3, bits, 0x7F)  # torch saturates


_MOST_E4M3 = 464.0
"""What rounds to 448, the greatest number of fp8_e4m3, which has no infinities: more is NaN."""


def _to_odd(x: Tensor) -> Tensor:
    """f64 as f32, inexact values to the neighbour with an odd last bit: rounding that once more
    gives the bits of rounding ``x`` once. Source: Boldo and Melquiond, "When double rounding is
    odd"."""
    near = x.float()
    zero = torch.zeros((), dtype=torch.float32, device=x.device)
    toward_zero = torch.where(near.double().abs() > x.abs(), torch.nextafter(near, zero), near)
    inexact = (toward_zero.double() != x) & ~x.isnan()
    return (toward_zero.view(torch.int32) | inexact.int()).view(torch.float32)


def wrap(x: Tensor, dtype: str) -> Tensor:
    """Integers modulo 2ᵇ, in the range of a dtype of b bits that a wider one carries."""
    to = DTYPES[dtype]
    low = x & (2**to.bits - 1)
    return (low if to.kind == "uint" else (low ^ 8) - 8).to(carrier(to))


def cast(x: Tensor, source: str, target: str) -> Tensor:
    """The elements in another dtype, as `ptir.cast` converts them."""
    of, to = DTYPES[source], DTYPES[target]
    if of is to:
        return x
    if of in FP8:
        x, of = widen(x, source), DTYPES["f32"]
    if to.is_bool:
        return x != 0
    if to.is_integer and of.is_float:
        return _truncated(x, to)
    if is_wider(to):
        return wrap(x.long(), target)
    if of is ui64 and not to.is_integer:
        return _from_ui64(x, to)
    if to in FP8 or (of.name == "f64" and to in (bf16, f16)):
        return narrow(x if x.is_floating_point() else _as_float(x), target)
    return x.to(carrier(to))


def _as_float(x: Tensor) -> Tensor:
    """Integers and truth values as floats that are rounded once more."""
    return (
        x.float() if x.dtype in (torch.bool, torch.int8, torch.uint8, torch.int16) else x.double()
    )


def _from_ui64(x: Tensor, to: DType) -> Tensor:
    """64 bits without a sign as a float, rounded once: the lowest bit is kept in the half."""
    half = ((x >> 1) & (2**63 - 1)) | (x & 1)
    big = half.double() * 2
    wide = torch.where(x < 0, big, x.double())
    return narrow(wide, to.name) if to.is_float and to.bits <= 16 else wide.to(carrier(to))


def _truncated(x: Tensor, to: DType) -> Tensor:
    """Floats toward zero, saturated; NaN is 0."""
    low, high = to.limits
    wide = x.double() if x.device.type != "mps" else x.float()
    whole = torch.nan_to_num(wide.trunc(), nan=0.0, posinf=float("inf"), neginf=-float("inf"))
    above, below = whole >= float(high), whole <= float(low)
    inside = torch.where(above | below, 0.0, whole)
    if to is ui64:
        upper = inside >= 2.0**63
        bits = torch.where(upper, inside - 2.0**63, inside).long()
        made = torch.where(upper, bits ^ -(2**63), bits)
        return torch.where(above, -1, torch.where(below, 0, made))
    return torch.where(above, high, torch.where(below, low, inside.long())).to(carrier(to))


def bitcast(x: Tensor, source: str, target: str) -> Tensor:
    """The same bits as elements of a dtype of the same width."""
    of, to = DTYPES[source], DTYPES[target]
    if of is to or of.is_complex:
        return x
    if of.bits == 4:
        return wrap(x.to(torch.int8), target)
    bits = 8 if of.is_bool else of.bits
    whole = x.view(_SIGNED[bits]) if of.is_float else x.to(_SIGNED[bits])
    if to.is_bool:
        return whole != 0
    if to.is_float:
        return whole.view(carrier(to))
    return wrap(whole.long(), target) if is_wider(to) else whole.to(carrier(to))

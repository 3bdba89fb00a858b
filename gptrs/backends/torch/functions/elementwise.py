"""Elementwise ops that are not one function of torch: signed zeros, NaN, divisions by zero."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gptrs.backends.torch.run import Run

Number: TypeAlias = bool | int | float | complex
Operand: TypeAlias = Tensor | Number


def pair(x: Operand, y: Operand) -> tuple[Tensor, Tensor]:
    """Both as tensors: a number in the dtype of the other."""
    if not isinstance(x, Tensor):
        assert isinstance(y, Tensor)
        return y.new_full((), x).expand(y.shape), y
    return x, y if isinstance(y, Tensor) else x.new_full((), y).expand(x.shape)


def maximum(x: Operand, y: Operand) -> Tensor:
    """The greater; NaN wins, and +0 over −0."""
    if isinstance(x, Tensor) and isinstance(y, int | float) and y == 0 and x.is_floating_point():
        return relu(x)
    x, y = pair(x, y)
    greater = torch.maximum(x, y)
    return torch.where((x == 0) & (y == 0), x + y, greater) if x.is_floating_point() else greater


def minimum(x: Operand, y: Operand) -> Tensor:
    """The lesser; NaN wins, and −0 over +0."""
    x, y = pair(x, y)
    lesser = torch.minimum(x, y)
    if not x.is_floating_point():
        return lesser
    return torch.where((x == 0) & (y == 0), -(-x + -y), lesser)


def clamp(x: Tensor, lo: Operand, hi: Operand) -> Tensor:
    """min(max(x, lo), hi)."""
    return minimum(maximum(x, lo), hi)


def relu(x: Tensor) -> Tensor:
    """max(x, 0), +0 for −0; NaN stays."""
    if x.is_floating_point():
        return functional.threshold(x, 0.0, 0.0)
    return x.clamp_min(0)


def relu6(x: Tensor) -> Tensor:
    """min(max(x, 0), 6)."""
    return relu(x).clamp_max(6)


def gelu(x: Tensor) -> Tensor:
    """x·Φ(x); torch's vectors of CPUs give NaN at ∞."""
    return torch.where(x.isposinf(), x, functional.gelu(x))


def sign(x: Tensor) -> Tensor:
    """−1, 0 or 1; NaN stays."""
    return torch.where(x.isnan(), x, x.sign()) if x.is_floating_point() else x.sign()


def cbrt(x: Tensor) -> Tensor:
    """∛x by a power and a step of Newton's method, in f64 where the device has it."""
    wide = x if x.device.type == "mps" else x.double()
    root = torch.copysign(wide.abs() ** (1 / 3), wide)
    better = root - (root - wide / (root * root)) / 3
    return torch.where(better.isfinite() & (wide != 0), better, root).to(x.dtype)


def pow_(run: Run, x: Operand, y: Operand) -> Tensor:
    """x to the power y; an integer to a negative one is an error."""
    x, y = pair(x, y)
    if x.is_floating_point() or x.is_complex():
        return torch.pow(x, y)
    run.check(y < 0)
    return torch.pow(x, y.clamp_min(0))


def div(run: Run, x: Operand, y: Operand) -> Tensor:
    """⌊x / y⌋ of integers; by zero is an error."""
    x, y = pair(x, y)
    return torch.div(x, _divisor(run, x, y), rounding_mode="floor")


def remainder(run: Run, x: Operand, y: Operand) -> Tensor:
    """x − y·⌊x/y⌋; by integer zero is an error."""
    x, y = pair(x, y)
    if x.is_floating_point():
        rest = torch.remainder(x, y)
        return torch.where(rest == 0, torch.copysign(rest, y), rest)
    safe = _divisor(run, x, y)
    return torch.remainder(x, torch.where(safe == -1, 1, safe) if x.is_signed() else safe)


def _divisor(run: Run, x: Tensor, y: Tensor) -> Tensor:
    """``y`` with 1 where it is 0, which is an error."""
    run.check(y == 0)
    return torch.where(y == 0, 1, y)


def gcd(x: Operand, y: Operand) -> Tensor:
    """The greatest common divisor."""
    return torch.gcd(*pair(x, y)).abs()


def sqrt(x: Tensor) -> Tensor:
    """√x, rounded once: the vector library of torch on the CPU is off by a unit here and there."""
    if x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64):
        with np.errstate(invalid="ignore"):
            return torch.from_numpy(np.asarray(np.sqrt(x.numpy())))
    return torch.sqrt(x)


def log1p(x: Tensor) -> Tensor:
    """log (1 + x); a denormal number stays, where a library takes it for 0."""
    return torch.where(x.abs() < torch.finfo(x.dtype).tiny, x, torch.log1p(x))


def atan2(y: Operand, x: Operand) -> Tensor:
    """The angle of the point (x, y)."""
    return torch.atan2(*pair(y, x))


def hypot(x: Operand, y: Operand) -> Tensor:
    """√(x² + y²); ∞ where either is infinite."""
    x, y = pair(x, y)
    found = torch.hypot(x, y)
    return torch.where(x.isinf() | y.isinf(), float("inf"), found)


def copysign(x: Operand, y: Operand) -> Tensor:
    """|x| with the sign of y."""
    return torch.copysign(*pair(x, y))


def nextafter(x: Operand, y: Operand) -> Tensor:
    """The number next to x in the direction of y."""
    return torch.nextafter(*pair(x, y))


def floor_divide(x: Operand, y: Operand) -> Tensor:
    """⌊x / y⌋ of floats."""
    return torch.div(*pair(x, y), rounding_mode="floor")


def select(pred: Tensor, a: Operand, b: Operand, dtype: torch.dtype) -> Tensor:
    """``a`` where ``pred`` holds, else ``b``."""
    return torch.where(pred, a, b).to(dtype)


def complex_(real: Operand, imag: Operand) -> Tensor:
    """real + i·imag."""
    real, imag = pair(real, imag)
    return torch.complex(real.contiguous(), imag.contiguous())


def shift_left(run: Run, x: Operand, y: Operand, bits: int) -> Tensor:
    """x · 2ʸ; 0 where y ≥ the number of bits, and y < 0 is an error."""
    x, y = pair(x, y)
    run.check(y < 0)
    return torch.where(y >= bits, 0, x << y.clamp(0, bits - 1))


def shift_right(run: Run, x: Operand, y: Operand, bits: int) -> Tensor:
    """⌊x / 2ʸ⌋; y < 0 is an error."""
    x, y = pair(x, y)
    run.check(y < 0)
    moved = x >> y.clamp(0, bits - 1)
    return torch.where((y >= bits) & (x >= 0), 0, moved)

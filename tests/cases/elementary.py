"""Rows of the elementary functions and of the parts of complex numbers."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import numpy as np

from tests.cases.elementwise import REALS, binary, row, tensors, unary
from tests.cases.sample import COMPLEX, FLOATS, Case, Sample, sample
from tests.support.lazy_torch import torch, torch_op

_NUMBERS = (*FLOATS, *COMPLEX)


def _close(op: str, *, complex_ulps: int = 16) -> tuple[Case, ...]:
    """A function of floats, and of complex numbers a few units around 0."""
    function = torch_op(op)
    return (
        row(op, function, unary("any"), FLOATS, 6),
        row(op, function, unary(""), COMPLEX, complex_ulps),
    )


def _log1p(x: torch.Tensor) -> torch.Tensor:
    """torch has 0 for subnormal numbers, and loses digits of complex ones."""
    if x.is_complex():
        return torch.log(1 + x.to(torch.complex128)).to(x.dtype)
    return torch.where(x.abs() < torch.finfo(x.dtype).tiny, x, torch.log1p(x))


def _cbrt(x: torch.Tensor) -> torch.Tensor:
    """torch has no cbrt: that of NumPy in a wider float."""
    wide = np.asarray(np.cbrt(x.numpy().astype(np.longdouble)))
    return torch.from_numpy(wide.astype(x.numpy().dtype))


def _expm1(x: torch.Tensor) -> torch.Tensor:
    return (torch.exp(x.to(torch.complex128)) - 1).to(x.dtype)


ROUNDED: tuple[Case, ...] = (
    row("log1p", _log1p, unary("any"), FLOATS, 6),
    row("log1p", _log1p, unary(""), COMPLEX, 16),
    row("expm1", torch_op("expm1"), unary("any"), FLOATS, 6),
    row("expm1", _expm1, unary(""), COMPLEX, 32),
    *(case for op in ("log2", "log10", "exp2", "tan", "sinh", "cosh") for case in _close(op)),
    *(case for op in ("asin", "acos", "atan", "asinh", "acosh", "atanh") for case in _close(op)),
    row("atan2", torch_op("atan2"), binary("any", "any"), FLOATS, 6),
    row("cbrt", _cbrt, unary("any"), FLOATS, 4),
    row("hypot", torch_op("hypot"), binary("any", "any"), FLOATS, 4),
)

_PAIRS: tuple[Sample, ...] = (*binary("any", "any"), *(sample(*pair) for pair in REALS))
EXACT: tuple[Case, ...] = (
    row("trunc", torch_op("trunc"), unary("any"), FLOATS),
    row("signbit", torch_op("signbit"), unary("any"), FLOATS),
    row("is_nan", torch_op("isnan"), unary("any"), _NUMBERS),
    row("is_inf", torch_op("isinf"), unary("any"), _NUMBERS),
    row("copysign", tensors(torch_op("copysign")), _PAIRS, FLOATS),
    row("nextafter", tensors(torch_op("nextafter")), _PAIRS, ("f32", "f64")),
)

PARTS: tuple[Case, ...] = (
    row("real", torch_op("real"), unary(""), COMPLEX),
    row("imag", torch_op("imag"), unary(""), COMPLEX),
    row("conj", torch_op("conj"), unary(""), COMPLEX),
    row("complex", tensors(torch_op("complex")), _PAIRS, ("f32", "f64")),
)

ELEMENTARY = (*ROUNDED, *EXACT, *PARTS)

"""Elementary functions beside those of `gptrs.ir.ops.elementwise`: logarithms, exponentials,
trigonometric and hyperbolic functions and their inverses, questions about floats, common divisors.

Their meanings are NumPy's functions, which follow C99 (annexes F and G) for signed zeros,
infinities and NaN.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from gptrs.ir.ops.complex_numbers import dtype_of, of_parts
from gptrs.ir.ops.elementwise import BITS, FLOATING, binary, unary
from gptrs.ir.types import Array

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "copysign",
    "cosh",
    "exp2",
    "expm1",
    "gcd",
    "hypot",
    "is_inf",
    "is_nan",
    "log1p",
    "log2",
    "log10",
    "nextafter",
    "signbit",
    "sinh",
    "tan",
    "trunc",
]


def _log1p(x: Any) -> Any:
    """Of complex numbers, log |1 + x|² / 2 by log1p near 0, where NumPy's own loses all digits."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    real, imag = x.real, x.imag
    near = np.log1p(real * (real + 2) + imag * imag) / 2
    size = cast("Array", np.where(np.abs(x) < 0.5, near, np.log(np.hypot(real + 1, imag))))
    return of_parts(size, np.arctan2(imag, real + 1))


def _expm1(x: Any) -> Any:
    """Of complex numbers with the special cases of the array API standard, where NumPy has NaN."""
    result: Array = np.expm1(x)
    if x.dtype.kind != "c":
        return result
    real, imag = np.asarray(np.expm1(x.real) + 0), x.imag
    is_real = imag == 0
    at_end = np.isinf(x.real) & ~np.isfinite(imag)
    beside = np.where(is_real, imag, np.where(x.real > 0, np.nan, 0))
    return np.where(is_real | at_end, of_parts(real, beside), result)


def _nextafter(x: Any, y: Any) -> Any:
    """In the dtype of the operands: a number beside an array has that of the array."""
    dtype = dtype_of(x, y)
    return np.nextafter(np.asarray(x, dtype), np.asarray(y, dtype))


log1p = unary("log1p", "log (1 + x); −∞ at −1 and NaN below.", _log1p, FLOATING, cost=12)
log2 = unary(
    "log2", "The logarithm to the base 2; exact for its powers.", np.log2, FLOATING, cost=10
)
log10 = unary("log10", "The logarithm to the base 10.", np.log10, FLOATING, cost=10)
expm1 = unary("expm1", "eˣ − 1, also near 0.", _expm1, FLOATING, cost=10)
exp2 = unary("exp2", "2ˣ.", np.exp2, FLOATING, cost=10)
tan = unary("tan", "The tangent of x radians.", np.tan, FLOATING, cost=12)
asin = unary("asin", "The angle in [−π/2, π/2] whose sine is x.", np.arcsin, FLOATING, cost=12)
acos = unary("acos", "The angle in [0, π] whose cosine is x.", np.arccos, FLOATING, cost=12)
atan = unary("atan", "The angle in [−π/2, π/2] whose tangent is x.", np.arctan, FLOATING, cost=12)
sinh = unary("sinh", "(eˣ − e⁻ˣ) / 2.", np.sinh, FLOATING, cost=12)
cosh = unary("cosh", "(eˣ + e⁻ˣ) / 2.", np.cosh, FLOATING, cost=12)
asinh = unary("asinh", "The number whose sinh is x.", np.arcsinh, FLOATING, cost=16)
acosh = unary(
    "acosh", "The number ≥ 0 whose cosh is x; NaN below 1.", np.arccosh, FLOATING, cost=16
)
atanh = unary("atanh", "The number whose tanh is x; NaN beyond 1.", np.arctanh, FLOATING, cost=16)
cbrt = unary("cbrt", "∛x, of negative numbers too.", np.cbrt, ("float",), cost=12)
trunc = unary("trunc", "The nearest integer toward 0.", np.trunc, ("float",))
signbit = unary(
    "signbit", "Whether the sign is −, of −0 and NaN too.", np.signbit, ("float",), "i1"
)
is_nan = unary("is_nan", "Whether x is NaN, or a part of it.", np.isnan, FLOATING, "i1")
is_inf = unary("is_inf", "Whether x is infinite, or a part of it.", np.isinf, FLOATING, "i1")

atan2 = binary(
    "atan2",
    "The angle in [−π, π] of the point (y, x): that of x / y where y > 0.",
    np.arctan2,
    ("float",),
    cost=14,
)
hypot = binary(
    "hypot",
    "√(x² + y²), without a square beyond the range; ∞ where either is infinite.",
    np.hypot,
    ("float",),
    commutative=True,
    cost=8,
)
copysign = binary("copysign", "|x| with the sign of y.", np.copysign, ("float",))
gcd = binary(
    "gcd",
    "The greatest integer that divides both, ≥ 0; 0 where both are 0.",
    np.gcd,
    BITS,
    commutative=True,
    cost=60,
)
nextafter = binary(
    "nextafter", "The number of the dtype next to x in the direction of y.", _nextafter, ("float",)
)
nextafter.arithmetic = False  # narrow floats have neighbours of their own

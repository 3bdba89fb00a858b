"""Remainders and floored quotients of floats, on vectors and on scalars, with the bits of NumPy.

    q = trunc(x / y)
    m = x − q·y                           # fused: exact, as |m| < |y|
    if m is on the other side of 0 than x:
        m += ±y                           # exact: x / y was rounded up to a whole number
    remainder = m, or m + y where the signs of m and y differ
    quotient = ⌊(x − m) / y⌉, or one less there

m is fmod(x, y), by one division where |x / y| leaves room for the whole number in the fraction and
y is finite; for others callers take the C library's.
"""

from __future__ import annotations

import math
from typing import Any

from gptrs.kernels.compiler.ir_builder import F32, Builder, like


def modulus(f: Builder, x: Any, y: Any) -> tuple[Any, Any]:
    """fmod(x, y) but for the sign of a zero, and where that is right."""
    ratio = f.fdiv(x, y)
    m = f.fused(f.fneg(f.truncated(ratio)), y, x)
    zero = like(x, 0.0)
    beyond = f.fcmp_ordered("<", f.fmul(f.copy_sign(like(x, 1.0), x), m), zero)
    m = f.select(beyond, f.fadd(m, f.copy_sign(y, x)), m)
    small = f.fcmp_ordered("<", f.magnitude(ratio), like(x, _largest_ratio(x)))
    return m, f.and_(small, f.fcmp_ordered("<", f.magnitude(y), like(x, math.inf)))


def _largest_ratio(x: Any) -> float:
    return 2.0**22 if getattr(x.type, "element", x.type) == F32 else 2.0**51


def remainder(f: Builder, x: Any, y: Any, m: Any) -> Any:
    """x − y·⌊x / y⌋, of m = fmod(x, y)."""
    nonzero, differs = _signs(f, y, m)
    result = f.select(differs, f.fadd(m, y), m)
    return f.select(nonzero, result, f.copy_sign(like(y, 0.0), y))


def quotient(f: Builder, x: Any, y: Any, m: Any) -> Any:
    """⌊x / y⌋, of m = fmod(x, y); x / y where y = 0."""
    one, zero = like(x, 1.0), like(x, 0.0)
    ratio, (nonzero, differs) = f.fdiv(x, y), _signs(f, y, m)
    near = f.fdiv(f.fsub(x, m), y)  # a whole number but for rounding
    near = f.select(f.and_(nonzero, differs), f.fsub(near, one), near)
    whole = f.floored(near)
    above = f.fcmp_ordered(">", f.fsub(near, whole), like(x, 0.5))
    whole = f.select(above, f.fadd(whole, one), whole)
    is_zero = f.fcmp_ordered("==", near, zero)
    result = f.select(is_zero, f.copy_sign(zero, ratio), whole)
    return f.select(f.fcmp_ordered("==", y, zero), ratio, result)


def _signs(f: Builder, y: Any, m: Any) -> tuple[Any, Any]:
    """Whether m is not zero, and whether its sign differs from that of y."""
    zero = like(m, 0.0)
    below = f.fcmp_ordered("<", m, zero)
    differs = f.xor(f.fcmp_ordered("<", y, zero), below)
    return f.fcmp_unordered("!=", m, zero), differs

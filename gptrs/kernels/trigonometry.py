"""sin, cos and tan on vectors of f32 or f64 and on scalars: Cody and Waite's range reduction.

    n = ⌊|x| · 2/π⌉
    r = |x| − n·π/2            # π/2 in parts of 33 bits, whose products with n are exact
    sin x = ± sin r or ± cos r, by n mod 4 and the sign of x
    tan x = sin r / cos r or − cos r / sin r

`moderate` says for which x this holds: up to 2¹⁷ (f32) and 2²⁰ (f64). For the others callers take
the C library's function, which reduces with as many bits of π as it takes (Payne and Hanek):
`gptrs.kernels.scalar_functions`.

Bounds, checked by tests: f32 1.5 ulp, f64 1 ulp; tan 3.2 and 2.5 ulp. For f32, r is computed in
f64. For f64 it is the sum of two numbers, as x near a multiple of π/2 cancels up to 60 bits.

Polynomials and their coefficients: as in `gptrs.kernels.vector_math64`.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, F64, Builder, like
from gptrs.kernels.vector_math import ROUNDER as ROUNDER_32
from gptrs.kernels.vector_math import bits as bits_32
from gptrs.kernels.vector_math import polynomial
from gptrs.kernels.vector_math64 import ROUNDER as ROUNDER_64
from gptrs.kernels.vector_math64 import bits as bits_64

LIMITS = {"float": 2.0**17, "double": 2.0**20}
"""By type: the greatest |x| for which the functions here hold."""

# (sin r − r) / r³ in r² for |r| ≤ 1.02·π/4, error of sin 4.6e-9
_SIN_32 = (-0.16666653752326965, 0.008332093246281147, -0.00019505145610310137)
# (cos r − 1 + r²/2) / r⁴ in r², error of cos 1.6e-10
_COS_32 = (0.04166664183139801, -0.0013887130189687014, 2.4412085622316226e-05)
# The same for |r| ≤ π/4 in f64, errors 2⁻⁵⁷·⁹ and 2⁻⁶⁴
_SIN_64 = (
    *(-0.1666666666666663, 0.00833333333332184, -0.00019841269829358528),
    *(2.755731353851472e-06, -2.5050734389469784e-08, 1.5895433312026743e-10),
)
_COS_64 = (
    *(0.0416666666666666, -0.0013888888888874474, 2.4801587289671533e-05),
    *(-2.75573144010283e-07, 2.0875729280732193e-09, -1.1359934208044578e-11),
)

# π/2 in parts of 33 bits, and the rest.
_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
_HALF_PI_REST = 6.077100506506192e-11  # after the first part


def sin(f: Builder, x: Any) -> Any:
    """sin x for |x| up to the limit, and NaN."""
    return _of_quadrant(f, x, 0)


def cos(f: Builder, x: Any) -> Any:
    """cos x for |x| up to the limit, and NaN."""
    return _of_quadrant(f, x, 1)


def tan(f: Builder, x: Any) -> Any:
    """tan x for |x| up to the limit, and NaN."""
    evaluate, bits = (_near_32, bits_32) if _element(x) == F32 else (_near_64, bits_64)
    quadrant, sine, cosine = evaluate(f, f.magnitude(x))
    odd = f.icmp_signed("!=", f.and_(quadrant, like(quadrant, 1)), like(quadrant, 0))
    result = f.fdiv(f.select(odd, f.fneg(cosine), sine), f.select(odd, sine, cosine))
    # Its sign is that of x where it is positive, else the other.
    negative = f.and_(bits(f, x), like(quadrant, -(1 << (_element(quadrant).width - 1))))
    return f.bitcast(f.xor(bits(f, result), negative), x.type)


def moderate(f: Builder, x: Any) -> Any:
    """Whether |x| is within the limit, or x is NaN."""
    limit = like(x, LIMITS[str(_element(x))])
    return f.fcmp_unordered("<=", f.magnitude(x), limit)


def _of_quadrant(f: Builder, x: Any, ahead: int) -> Any:
    """The sine of x + ``ahead``·π/2."""
    evaluate, bits = (_near_32, bits_32) if _element(x) == F32 else (_near_64, bits_64)
    quadrant, sine, cosine = evaluate(f, f.magnitude(x))
    quadrant = f.add(quadrant, like(quadrant, ahead)) if ahead else quadrant
    one, two = like(quadrant, 1), like(quadrant, 2)
    odd = f.icmp_signed("!=", f.and_(quadrant, one), like(quadrant, 0))
    top = _element(quadrant).width - 1
    flips = f.shl(f.and_(quadrant, two), like(quadrant, top - 1))
    if not ahead:  # the sine is odd
        flips = f.xor(flips, f.and_(bits(f, x), like(quadrant, -(1 << top))))
    return f.bitcast(f.xor(bits(f, f.select(odd, cosine, sine)), flips), x.type)


def _near_32(f: Builder, size: Any) -> tuple[Any, Any, Any]:
    """For f32: n in the low bits of an integer, sin r and cos r."""
    shifted = f.multiply_add(size, like(size, 2 / math.pi), like(size, ROUNDER_32))
    wide = _like_kind(size, F64)
    whole = f.fpext(f.fsub(shifted, like(size, ROUNDER_32)), wide)
    r = f.multiply_add(whole, like(whole, -_HALF_PI[0]), f.fpext(size, wide))
    r = f.fptrunc(f.multiply_add(whole, like(whole, -_HALF_PI_REST), r), size.type)
    square = f.fmul(r, r)
    sine = f.multiply_add(f.fmul(r, square), polynomial(f, square, _SIN_32), r)
    below = f.fmul(square, like(r, -0.5))
    below = f.multiply_add(f.fmul(square, square), polynomial(f, square, _COS_32), below)
    return bits_32(f, shifted), sine, f.fadd(like(r, 1.0), below)


def _near_64(f: Builder, size: Any) -> tuple[Any, Any, Any]:
    """For f64: n in the low bits of an integer, sin r and cos r."""
    shifted = f.multiply_add(size, like(size, 2 / math.pi), like(size, ROUNDER_64))
    n = f.fsub(shifted, like(size, ROUNDER_64))
    first, second, third, rest = (like(size, part) for part in _HALF_PI)
    high = f.multiply_add(n, f.fneg(first), size)  # exact
    high, error = _difference(f, high, f.fmul(n, second))
    high, more = _difference(f, high, f.fmul(n, third))
    low = f.multiply_add(n, f.fneg(rest), f.fadd(error, more))
    r = f.fadd(high, low)
    low = f.fadd(f.fsub(high, r), low)
    square, one = f.fmul(r, r), like(r, 1.0)
    half = f.fmul(square, like(r, 0.5))
    above = f.fsub(one, half)
    sine = f.fmul(low, above)
    sine = f.multiply_add(f.fmul(r, square), polynomial(f, square, _SIN_64), sine)
    cosine = f.multiply_add(f.fneg(r), low, f.fsub(f.fsub(one, above), half))
    cosine = f.multiply_add(f.fmul(square, square), polynomial(f, square, _COS_64), cosine)
    return bits_64(f, shifted), f.fadd(r, sine), f.fadd(above, cosine)


def _difference(f: Builder, x: Any, y: Any) -> tuple[Any, Any]:
    """x − y rounded, and the error (Knuth's TwoSum)."""
    result = f.fsub(x, y)
    part = f.fsub(result, x)
    return result, f.fsub(f.fsub(x, f.fsub(result, part)), f.fadd(y, part))


def _element(x: Any) -> Any:
    return x.type.element if isinstance(x.type, ir.VectorType) else x.type


def _like_kind(x: Any, element: Any) -> Any:
    """The type of ``x`` with other elements."""
    return ir.VectorType(element, x.type.count) if isinstance(x.type, ir.VectorType) else element

"""pow on vectors and on scalars: exp(y · log |x|), and the sign of x for odd y.

As in `gptrs.kernels.vector_math`, free of branches and of tables. Of f32, logarithm, product and
exponential are f64: the result is rounded once but for very few operands. Of f64, the logarithm
and the product are sums of two numbers, exact to some 2⁻⁶⁴ of their size (Dekker 1971). They use a
fused multiply-add, a function of the C library on levels without one. Bounds, checked by tests:
0.51 and 1.5 ulp.

`usual_power_of_floats` and `usual_power_of_doubles` take a third and two thirds of the time of the
others, and say where they hold: for x that are positive, finite and not subnormal, and powers that
are far from the limits of f64. `power_of_floats` and `power_of_doubles` hold for any numbers
(`gptrs.kernels.scalar_functions` chooses). Ends are those of IEEE 754: 1 for y = 0 and for x = 1
whatever the other is, NaN for x < 0 and y that is no integer.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F64, Builder, like
from gptrs.kernels.vector_math import bits as bits_32
from gptrs.kernels.vector_math import polynomial
from gptrs.kernels.vector_math import split as split_32
from gptrs.kernels.vector_math64 import LN2_HIGH, LN2_LOW, ROUNDER, bits, exp, log, reduced, split

_WHOLE = 2.0**52
"""From here on f64 has no fractions."""
_TWO_THIRDS, _THIRD = 2 / 3, 3.700743415417188e-17
"""2/3 rounded to f64, and what that leaves."""
# ((2 atanh(s) / s − 2) / s² − 2/3) / s² in s² for |s| ≤ 3 − 2√2, error of log 2⁻⁶⁶
_ATANH = (
    *(0.40000000000002256, 0.28571428570100116, 0.22222222519816645, 0.18181784377192656),
    *(0.15386756835896448, 0.13256829934294587, 0.13196210131104497),
)
_LARGE = 750.0
"""exp of more is infinite or 0."""
_INSIDE = 700.0
"""exp of less is a normal number of f64; so is 2 to that power."""
# log₂((1 + s) / (1 − s)) / s in s² for |s| ≤ 3 − 2√2, error 2⁻⁴⁵
_LOG2 = (
    *(2.88539008177785, 0.9617966941133066, 0.5770779423768015, 0.4122092510534761),
    *(0.31990575510624353, 0.282899281459652),
)
# (2ʳ − 1) / r for |r| ≤ ½, error of 2ʳ 2⁻³⁴
_EXP2 = (
    *(0.6931471807045294, 0.24022651066559253, 0.05550410366001406, 0.009618038132306056),
    *(0.0013333935047106663, 0.00015466756251326735, 1.5196158527772698e-05),
)


def usual_power_of_floats(f: Builder, x: Any, y: Any) -> tuple[Any, Any]:
    """x to the power y, of f32, and where that is right."""
    narrow = x.type
    wide = ir.VectorType(F64, narrow.count) if isinstance(narrow, ir.VectorType) else F64
    e, r = (f.fpext(part, wide) for part in split_32(f, x, subnormal=False))
    s = f.fdiv(r, f.fadd(r, like(r, 2.0)))
    logarithm = f.multiply_add(s, polynomial(f, f.fmul(s, s), _LOG2), e)
    product = f.fmul(f.fpext(y, wide), logarithm)
    rounder = like(product, ROUNDER)
    shifted = f.fadd(product, rounder)
    rest = f.fsub(product, f.fsub(shifted, rounder))
    power = f.multiply_add(rest, polynomial(f, rest, _EXP2), like(rest, 1.0))
    result = f.fptrunc(_scaled(f, power, f.sub(bits(f, shifted), bits(f, rounder))), narrow)
    return result, f.and_(_usual(f, bits_32(f, x), 1 << 23, 0xFF << 23), _inside(f, product))


def usual_power_of_doubles(f: Builder, x: Any, y: Any) -> tuple[Any, Any]:
    """x to the power y, of f64, and where that is right."""
    high, low = _log_of_parts(f, *split(f, x, subnormal=False))
    product = f.fmul(y, high)
    rest = f.multiply_add(y, low, f.fused(y, high, f.fneg(product)))
    n, tail = reduced(f, product, rest)
    result = _scaled(f, f.fadd(tail, like(x, 1.0)), n)
    return result, f.and_(_usual(f, bits(f, x), 1 << 52, 0x7FF << 52), _inside(f, product))


def _scaled(f: Builder, x: Any, n: Any) -> Any:
    """x·2ⁿ, all three of them normal numbers of f64."""
    return f.bitcast(f.add(bits(f, x), f.shl(n, like(n, 52))), x.type)


def _usual(f: Builder, pattern: Any, least: int, infinite: int) -> Any:
    """Whether the bits are those of a positive number that is finite and not subnormal."""
    above = f.sub(pattern, like(pattern, least))
    return f.icmp_unsigned("<", above, like(pattern, infinite - least))


def _inside(f: Builder, product: Any) -> Any:
    return f.fcmp_ordered("<", f.magnitude(product), like(product, _INSIDE))


def power_of_floats(f: Builder, x: Any, y: Any) -> Any:
    """x to the power y, of f32."""
    narrow = x.type
    wide = ir.VectorType(F64, narrow.count) if isinstance(narrow, ir.VectorType) else F64
    x, y = f.fpext(x, wide), f.fpext(y, wide)
    result = exp(f, f.fmul(y, log(f, f.magnitude(x))))
    return f.fptrunc(_with_ends(f, x, y, result), narrow)


def power_of_doubles(f: Builder, x: Any, y: Any) -> Any:
    """x to the power y, of f64."""
    high, low = _log(f, f.magnitude(x))
    product = f.fmul(y, high)
    rest = f.fused(y, high, f.fneg(product))
    rest = f.multiply_add(y, low, rest)
    near = f.fcmp_ordered("<", f.magnitude(product), like(x, _LARGE))
    rest = f.select(near, rest, like(x, 0.0))
    return _with_ends(f, x, y, exp(f, product, rest))


def _log(f: Builder, x: Any) -> tuple[Any, Any]:
    """log x as the sum of two numbers, for x ≥ 0 and NaN."""
    total, low = _log_of_parts(f, *split(f, x))
    # 0, infinity and NaN
    total = f.select(f.fcmp_unordered(">=", x, like(x, math.inf)), x, total)
    total = f.select(f.fcmp_ordered("==", x, like(x, 0.0)), like(x, -math.inf), total)
    return total, low


def _log_of_parts(f: Builder, e: Any, r: Any) -> tuple[Any, Any]:
    """log(2ᵉ·(1 + r)) as the sum of two numbers."""
    # s = r / (2 + r) in two parts
    one, two = like(r, 1.0), like(r, 2.0)
    d = f.fadd(r, two)
    d_low = f.fsub(r, f.fsub(d, two))
    over = f.fdiv(one, d)
    s = f.fmul(r, over)
    s_low = f.fused(f.fneg(s), d, r)
    s_low = f.fmul(f.multiply_add(f.fneg(s), d_low, s_low), over)
    # s² and s³ in two parts, and of 2 atanh s the terms 2s and (2/3)·s³
    square, square_low = _product(f, s, s)
    square_low = f.multiply_add(f.fadd(s, s), s_low, square_low)
    cube, cube_low = _product(f, square, s)
    cube_low = f.fadd(cube_low, f.multiply_add(square, s_low, f.fmul(square_low, s)))
    third, third_low = _product(f, cube, like(r, _TWO_THIRDS))
    third_low = f.multiply_add(cube_low, like(r, _TWO_THIRDS), third_low)
    third_low = f.multiply_add(cube, like(r, _THIRD), third_low)
    rest = f.fmul(f.fmul(square, cube), polynomial(f, square, _ATANH))
    # e·ln 2 + 2s + third: the first product is exact
    high, error = _sum(f, f.fmul(e, like(r, LN2_HIGH)), f.fadd(s, s))
    high, more = _sum(f, high, third)
    low = f.fadd(f.fadd(error, more), f.fadd(f.fadd(s_low, s_low), third_low))
    low = f.fadd(f.multiply_add(e, like(r, LN2_LOW), rest), low)
    total = f.fadd(high, low)
    low = f.fadd(f.fsub(high, total), low)
    return total, low


def _product(f: Builder, x: Any, y: Any) -> tuple[Any, Any]:
    """x · y rounded, and the error."""
    result = f.fmul(x, y)
    return result, f.fused(x, y, f.fneg(result))


def _sum(f: Builder, x: Any, y: Any) -> tuple[Any, Any]:
    """x + y rounded, and the error (Knuth's TwoSum)."""
    result = f.fadd(x, y)
    part = f.fsub(result, x)
    return result, f.fadd(f.fsub(x, f.fsub(result, part)), f.fsub(y, part))


def _with_ends(f: Builder, x: Any, y: Any, result: Any) -> Any:
    """x to the power y, from ``result``, that of |x|."""
    one, zero = like(x, 1.0), like(x, 0.0)
    result = f.select(f.fcmp_ordered("==", f.magnitude(x), one), one, result)
    whole, odd = _integer(f, y)
    negative = f.icmp_signed("<", bits(f, x), like(bits(f, x), 0))
    result = f.select(f.and_(negative, odd), f.fneg(result), result)
    finite = f.fcmp_ordered(">", x, like(x, -math.inf))
    below = f.and_(f.fcmp_ordered("<", x, zero), finite)
    result = f.select(f.and_(below, f.not_(whole)), like(x, math.nan), result)
    always = f.or_(f.fcmp_ordered("==", x, one), f.fcmp_ordered("==", y, zero))
    return f.select(always, one, result)


def _integer(f: Builder, y: Any) -> tuple[Any, Any]:
    """Whether y is an integer, and whether an odd one."""
    size, offset = f.magnitude(y), like(y, _WHOLE)
    large = f.fcmp_ordered(">=", size, offset)
    # The sum is an integer, whose lowest bit is the last one; so is a number up to twice as large.
    shifted = f.fadd(size, offset)
    whole = f.or_(large, f.fcmp_ordered("==", f.fsub(shifted, offset), size))
    pattern = bits(f, f.select(large, size, shifted))
    last = f.icmp_signed("!=", f.and_(pattern, like(pattern, 1)), like(pattern, 0))
    counted = f.fcmp_ordered("<", size, like(y, 2 * _WHOLE))
    return whole, f.and_(f.and_(last, whole), counted)

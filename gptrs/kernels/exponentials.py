"""expm1, exp2, sinh and cosh on vectors of f32 or f64 and on scalars.

As in `gptrs.kernels.vector_math`: free of branches and of tables, NaN passes. All are made of
n = ⌊x / ln 2⌉ and t = exp(x − n·ln 2) − 1:

    exp x − 1 = 2ⁿ·t + (2ⁿ − 1)
    sinh x    = (h + h / (exp x)) / 2      with h = exp x − 1, for x ≥ 0
    cosh x    = (exp x + 1 / exp x) / 2

Powers of two are 2ⁿ⁻² where the result may be half of a number beyond the range. Bounds, checked by
tests, in units in the last place of f32 and f64: expm1 1.7, exp2 1.2, sinh 2.5, cosh 1.8.
"""

from __future__ import annotations

import math
from typing import Any

from gptrs.kernels import vector_math, vector_math64
from gptrs.kernels.compiler.ir_builder import like
from gptrs.kernels.compiler.numbers import Number, formula

_LN2 = math.log(2.0)


def _of_type(x: Number) -> Any:
    """The module with the parts of exp for the type of ``x``."""
    return vector_math if x.is_f32 else vector_math64


def _reduced(x: Number) -> tuple[Any, Number]:
    """n, an integer, and t."""
    n, tail = _of_type(x).reduced(x.f, x.value)
    return n, Number(x.f, tail)


def _power(x: Number, n: Any, less: int = 0) -> Number:
    """2ⁿ⁻ˡᵉˢˢ, a normal number."""
    n = x.f.sub(n, like(n, less)) if less else n
    return Number(x.f, _of_type(x).power_of_two(x.f, n, x.value.type))


def _or_itself(x: Number, result: Number) -> Number:
    """``result``, or x where both are the same: half of a number there may have no bit left."""
    return (abs(x) < 2.0**-60).where(x, result).with_sign_of(x)


@formula
def expm1(x: Number) -> Number:
    """eˣ − 1."""
    most, least = (89.0, -18.0) if x.is_f32 else (710.0, -38.0)  # −1 from some 17, 37 down
    n, tail = _reduced(x.at_most(most).at_least(least))
    power = _power(x, n, 1)
    half = power.multiply_add(tail, power - 0.5)
    return _or_itself(x, half + half)


@formula
def exp2(x: Number) -> Number:
    """2ˣ; exact for whole numbers."""
    most, least = (129.0, -151.0) if x.is_f32 else (1025.0, -1076.0)
    inside = x.at_most(most).at_least(least)
    rounder = _of_type(x).ROUNDER
    shifted = inside + rounder
    rest = (inside - (shifted - rounder)) * _LN2
    n = x.f.sub(shifted.bits, x.constant(rounder).bits)
    tail = Number(x.f, _of_type(x).exp_tail(x.f, rest.value))
    # In two factors, so that neither leaves the range of exponents; only the last product rounds.
    up, down = (2.0**24, 2.0**-24) if x.is_f32 else (2.0**64, 2.0**-64)
    apart = round(math.log2(up))
    outer = inside > 0.0
    shift = x.f.select(outer.value, like(n, apart), like(n, -apart))
    result = (tail + 1.0) * _power(x, x.f.sub(n, shift))
    return result * outer.where(x.constant(up), down)


def _size(x: Number) -> Number:
    """|x|, less where sinh and cosh are infinite in any case."""
    return abs(x).at_most(89.6 if x.is_f32 else 710.7)


@formula
def sinh(x: Number) -> Number:
    """(eˣ − e⁻ˣ) / 2."""
    n, tail = _reduced(_size(x))
    power = _power(x, n, 2)
    quarter = power.multiply_add(tail, power - 0.25)
    result = quarter + quarter / (quarter * 4.0 + 1.0)
    return _or_itself(x, result + result)


@formula
def cosh(x: Number) -> Number:
    """(eˣ + e⁻ˣ) / 2."""
    n, tail = _reduced(_size(x))
    power = _power(x, n, 2)
    quarter = power.multiply_add(tail, power)
    result = quarter + 0.0625 / quarter
    return result + result

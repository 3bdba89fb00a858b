"""Exact arithmetic identities: neg, abs, add, sub, mul, div and rounding ops. No bit changes."""

from __future__ import annotations

from typing import Any

from gptrs.ir.ops.elementwise import (
    abs_,
    add,
    bit_not,
    cast,
    ceil,
    div,
    exp,
    floor,
    is_finite,
    mul,
    neg,
    remainder,
    round_,
    sign,
    sub,
)
from gptrs.ir.rewrite import rewrite, rewrite_each
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType
from gptrs.passes.rules.shapes import filled


def _real(x: Tensor) -> Tensor | None:
    """``x`` unless it is complex: a complex product mixes the parts, and infinities with them."""
    return None if x.dtype.is_complex else x


@rewrite(lambda x: mul(x, 1), samples=[{"x": "T[*]"}])
def multiply_by_one(x: Tensor) -> Tensor | None:
    """x · 1 = x."""
    return _real(x)


@rewrite(lambda x: div(x, 1), samples=[{"x": "T[*]"}])
def divide_by_one(x: Tensor) -> Tensor | None:
    """x / 1 = x."""
    return _real(x)


@rewrite(lambda x: sub(x, 0), samples=[{"x": "T[*]"}])
def subtract_zero(x: Tensor) -> Tensor | None:
    """x − 0 = x, for −0 too."""
    return _real(x)


@rewrite(lambda x: add(x, 0), samples=[{"x": "I[*]"}])
def add_integer_zero(x: Tensor) -> Tensor | None:
    """x + 0 = x for integers; for floats −0 + 0 is +0, which is another bit."""
    return x if x.dtype.is_integer else None


@rewrite(lambda x: add(x, -0.0), samples=[{"x": "F[*]"}])
def add_negative_zero(x: Tensor) -> Tensor | None:
    """x + −0 = x, for +0 too."""
    return _real(x)


@rewrite(lambda x: mul(x, 0), samples=[{"x": "I[*]"}])
def multiply_integer_by_zero(x: Tensor) -> Tensor | None:
    """x · 0 = 0 for integers; for floats x may be NaN, infinite or negative."""
    return filled(x, 0) if x.dtype.is_integer else None


@rewrite(lambda x: mul(x, -1), samples=[{"x": "S[*]"}])
def negate_for_product(x: Tensor) -> Tensor | None:
    """x · −1 = −x."""
    return None if x.dtype.is_complex else neg(x)


@rewrite(lambda x: div(x, -1), samples=[{"x": "S[*]"}])
def negate_for_quotient(x: Tensor) -> Tensor | None:
    """x / −1 = −x; the least integer stays as it is."""
    return None if x.dtype.is_complex else neg(x)


@rewrite(lambda x: sub(0, x), samples=[{"x": "I[*]"}])
def negate_integer_for_difference(x: Tensor) -> Tensor | None:
    """0 − x = −x for integers; for floats 0 − 0 is +0."""
    return neg(x) if x.dtype.is_integer else None


@rewrite(lambda x: sub(-0.0, x), samples=[{"x": "F[*]"}])
def negate_for_difference(x: Tensor) -> Tensor | None:
    """−0 − x = −x."""
    return neg(x) if x.dtype.is_float else None


@rewrite(lambda x: remainder(x, 1), samples=[{"x": "I[*]"}])
def integer_remainder_of_one(x: Tensor) -> Tensor | None:
    """x mod 1 = 0 for integers."""
    return filled(x, 0) if x.dtype.is_integer else None


@rewrite(lambda x: sub(x, x), samples=[{"x": "I[*]"}])
def subtract_integer_from_itself(x: Tensor) -> Tensor | None:
    """x − x = 0 for integers; for floats ∞ − ∞ is NaN."""
    return filled(x, 0) if x.dtype.is_integer else None


@rewrite(lambda x: neg(neg(x)), samples=[{"x": "T[*]"}])
def cancel_negations(x: Tensor) -> Tensor:
    """−(−x) = x, for the least integer too."""
    return x


@rewrite(lambda x: bit_not(bit_not(x)), samples=[{"x": "I[*]"}])
def cancel_bit_nots(x: Tensor) -> Tensor:
    """not not x = x, bitwise."""
    return x


@rewrite(
    lambda x, y: add(x, neg(y)),
    samples=[{"x": "T[*]", "y": "T[*]"}, {"x": 3, "y": "T[m]"}],
)
def subtract_for_negated(x: Any, y: Tensor) -> Tensor:
    """x + (−y) = x − y."""
    return sub(x, y)


@rewrite(
    lambda x, y: sub(x, neg(y)),
    samples=[{"x": "T[*]", "y": "T[*]"}, {"x": 3, "y": "T[m]"}],
)
def add_for_negated(x: Any, y: Tensor) -> Tensor:
    """x − (−y) = x + y."""
    return add(x, y)


@rewrite(lambda x, y: neg(sub(x, y)), samples=[{"x": "I[*]", "y": "I[*]"}])
def swap_negated_difference(x: Any, y: Any) -> Tensor | None:
    """−(x − y) = y − x for integers; for floats x − x is +0 both ways."""
    known = x if isinstance(x, Tensor) else y
    return sub(y, x) if known.dtype.is_integer else None


@rewrite(lambda x, y: mul(neg(x), neg(y)), samples=[{"x": "T[*]", "y": "T[*]"}])
def multiply_negated(x: Tensor, y: Tensor) -> Tensor:
    """−x · −y = x · y."""
    return mul(x, y)


@rewrite(lambda x, y: div(neg(x), neg(y)), samples=[{"x": "F[*]", "y": "F[*]"}])
def divide_negated(x: Tensor, y: Tensor) -> Tensor | None:
    """−x / −y = x / y for floats; the least integer has no negative."""
    return div(x, y) if x.dtype.is_float else None


@rewrite(lambda x, c: mul(neg(x), c), samples=[{"x": "F[*]", "c": 2.5}])
def negate_factor(x: Tensor, c: float) -> Tensor | None:
    """−x · c = x · −c for floats."""
    return mul(x, -c) if x.dtype.is_float else None


@rewrite(lambda x, c: neg(mul(x, c)), samples=[{"x": "F[*]", "c": 2.5}], alone=True)
def negate_factor_before(x: Tensor, c: float) -> Tensor | None:
    """−(x · c) = x · −c for floats."""
    return mul(x, -c) if x.dtype.is_float else None


@rewrite(lambda x, c: div(neg(x), c), samples=[{"x": "F[*]", "c": 3.0}])
def negate_divisor(x: Tensor, c: float) -> Tensor | None:
    """−x / c = x / −c for floats."""
    return div(x, -c) if x.dtype.is_float else None


@rewrite(lambda x, y: sub(add(x, y), y), samples=[{"x": "I[*]", "y": "I[*]"}])
def cancel_added_integer(x: Tensor) -> Tensor | None:
    """x + y − y = x for integers, wrapped or not."""
    return x if x.dtype.is_integer else None


@rewrite(lambda x, y: add(sub(x, y), y), samples=[{"x": "I[*]", "y": "I[*]"}])
def cancel_subtracted_integer(x: Tensor) -> Tensor | None:
    """x − y + y = x for integers, wrapped or not."""
    return x if x.dtype.is_integer else None


@rewrite(
    lambda x, y, z: add(mul(x, y), mul(x, z)),
    samples=[{"x": "I[*]", "y": "I[*]", "z": "I[*]"}],
    alone=True,
)
def factor_integer_sum(x: Tensor, y: Tensor, z: Tensor) -> Tensor | None:
    """x · y + x · z = x · (y + z) for integers, wrapped or not."""
    return mul(x, add(y, z)) if x.dtype.is_integer else None


@rewrite(lambda x: abs_(abs_(x)), samples=[{"x": "T[*]"}])
def drop_second_abs(x: Tensor) -> Tensor:
    """||x|| = |x|."""
    return abs_(x)


@rewrite(lambda x: abs_(neg(x)), samples=[{"x": "S[*]"}])
def abs_of_negated(x: Tensor) -> Tensor | None:
    """|−x| = |x|, but for unsigned integers, where −x wraps."""
    return None if x.dtype.kind == "uint" else abs_(x)


@rewrite(lambda x: abs_(x), samples=[{"x": "ui8[*]"}, {"x": "ui4[*]"}])
def drop_unsigned_abs(x: Tensor) -> Tensor | None:
    """|x| = x for unsigned integers."""
    return x if x.dtype.kind == "uint" else None


@rewrite(lambda x: abs_(mul(x, x)), samples=[{"x": "F[*]"}])
def drop_abs_of_square(x: Tensor) -> Tensor | None:
    """|x²| = x² for floats; integers wrap."""
    return mul(x, x) if x.dtype.is_float else None


@rewrite(lambda x: abs_(exp(x)), samples=[{"x": "F[*]"}])
def drop_abs_of_exp(x: Tensor) -> Tensor:
    """|eˣ| = eˣ."""
    return exp(x)


@rewrite(lambda x: mul(abs_(x), abs_(x)), samples=[{"x": "T[*]"}])
def square_without_abs(x: Tensor) -> Tensor:
    """|x| · |x| = x · x."""
    return mul(x, x)


@rewrite_each((floor, ceil, round_, sign), lambda op: lambda x: op(op(x)), samples=[{"x": "F[*]"}])
def drop_second(op: Any, x: Tensor) -> Tensor:
    """floor, ceil, round and sign are idempotent."""
    return op(x)


@rewrite_each(
    (floor, ceil, round_),
    lambda op: lambda x, t: op(cast(x, dtype=t)),
    samples=[{"x": "I[*]", "t": "f32"}, {"x": "si32[*]", "t": "f16"}],
)
def drop_rounding(op: Any, x: Tensor, t: DType) -> Tensor | None:
    """Rounding of a cast integer: integers are whole, also as floats."""
    return cast(x, dtype=t) if x.dtype.is_integer else None


@rewrite_each(
    (neg, abs_),
    lambda op: lambda x: is_finite(op(x)),
    samples=[{"x": "F[*]"}],
)
def is_finite_without_sign(op: Any, x: Tensor) -> Tensor:
    """is_finite(−x) = is_finite(|x|) = is_finite(x)."""
    return is_finite(x)

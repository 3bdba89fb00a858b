"""Strength reduction: combined constants, division by a constant, shifts."""

from __future__ import annotations

from typing import Any

from gptrs.ir.ops.elementwise import (
    add,
    bit_and,
    div,
    mul,
    remainder,
    shift_left,
    shift_right,
    sub,
)
from gptrs.ir.rewrite import rewrite, rewrite_each
from gptrs.ir.tensor import Tensor
from gptrs.passes.rules.numbers import (
    computed,
    exponent_of,
    is_ordinary,
    is_power_of_two,
    wrapped,
)


@rewrite(lambda x, c, d: add(add(x, c), d), samples=[{"x": "I[*]", "c": 5, "d": 7}], alone=True)
def merge_added_integers(x: Tensor, c: int, d: int) -> Tensor | None:
    """(x + c) + d = x + (c + d) for integers, wrapped or not."""
    return add(x, wrapped(c + d, x.dtype)) if x.dtype.is_integer else None


@rewrite(lambda x, c, d: sub(sub(x, c), d), samples=[{"x": "I[*]", "c": 5, "d": 7}], alone=True)
def merge_subtracted_integers(x: Tensor, c: int, d: int) -> Tensor | None:
    """(x − c) − d = x − (c + d) for integers, wrapped or not."""
    return sub(x, wrapped(c + d, x.dtype)) if x.dtype.is_integer else None


@rewrite(
    lambda x, c, d: sub(add(x, c), d),
    samples=[{"x": "I[*]", "c": 5, "d": 7}, {"x": "I[*]", "c": 7, "d": 5}],
    alone=True,
)
def merge_added_and_subtracted_integers(x: Tensor, c: int, d: int) -> Tensor | None:
    """(x + c) − d = x + (c − d) for integers, wrapped or not."""
    return add(x, wrapped(c - d, x.dtype)) if x.dtype.is_integer else None


@rewrite(
    lambda x, c, d: add(sub(x, c), d),
    samples=[{"x": "I[*]", "c": 5, "d": 7}, {"x": "I[*]", "c": 7, "d": 5}],
    alone=True,
)
def merge_subtracted_and_added_integers(x: Tensor, c: int, d: int) -> Tensor | None:
    """(x − c) + d = x + (d − c) for integers, wrapped or not."""
    return add(x, wrapped(d - c, x.dtype)) if x.dtype.is_integer else None


@rewrite(
    lambda x, c, d: mul(mul(x, c), d),
    samples=[{"x": "I[*]", "c": 5, "d": 7}],
    alone=True,
)
def merge_integer_factors(x: Tensor, c: int, d: int) -> Tensor | None:
    """(x · c) · d = x · (c · d) for integers, wrapped or not."""
    return mul(x, wrapped(c * d, x.dtype)) if x.dtype.is_integer else None


@rewrite(
    lambda x, c, d: add(add(x, c), d),
    samples=[{"x": "F[*]", "c": 0.75, "d": 1.3}],
    alone=True,
    rounds=True,
    ulps=2,
    magnitude=8,
    finite=True,
)
def merge_added_numbers(x: Tensor, c: float, d: float) -> Tensor | None:
    """(x + c) + d = x + (c + d): rounded once instead of twice. A sum may overflow at c only or at
    d only, so it may be infinite one way and not the other."""
    total = _ordinary(x, c, d, computed(c, x.dtype) + computed(d, x.dtype))
    return None if total is None else add(x, total)


@rewrite(
    lambda x, c, d: mul(mul(x, c), d),
    samples=[{"x": "F[*]", "c": 0.75, "d": 1.3}],
    alone=True,
    rounds=True,
    ulps=2,
    finite=True,
)
def merge_factors(x: Tensor, c: float, d: float) -> Tensor | None:
    """(x · c) · d = x · (c · d): rounded once instead of twice. Where x · c is infinite or
    subnormal, d does not restore it, so results may differ there."""
    product = _ordinary(x, c, d, computed(c, x.dtype) * computed(d, x.dtype))
    return None if product is None else mul(x, product)


def _ordinary(x: Tensor, c: float, d: float, result: float) -> float | None:
    """The number that replaces ``c`` and ``d``, if all three are ordinary (`is_ordinary`)."""
    fine = x.dtype.is_float and all(is_ordinary(n, x.dtype) for n in (c, d, result))
    return computed(result, x.dtype) if fine else None


@rewrite(
    lambda x, c: div(x, c),
    samples=[{"x": "F[*]", "c": 4.0}, {"x": "F[*]", "c": -0.5}, {"x": "F[*]", "c": 8}],
)
def multiply_by_exact_reciprocal(x: Tensor, c: float) -> Tensor | None:
    """x / c = x · (1/c) for floats where c is a power of two."""
    inverse = _inverse(x, c)
    return mul(x, inverse) if inverse is not None and is_power_of_two(c) else None


@rewrite(
    lambda x, c: div(x, c),
    samples=[{"x": "F[*]", "c": 3.0}, {"x": "F[*]", "c": -0.3}, {"x": "F[*]", "c": 768}],
    rounds=True,
    ulps=2,
    finite=True,
)
def multiply_by_reciprocal(x: Tensor, c: float) -> Tensor | None:
    """x / c = x · (1/c) for floats: 1/c is rounded, then the product. At the limits of the dtype
    one of them may be infinite, or lose its last bits, before the other."""
    inverse = _inverse(x, c)
    return None if inverse is None or is_power_of_two(c) else mul(x, inverse)


def _inverse(x: Tensor, c: float) -> float | None:
    if not x.dtype.is_float or not is_ordinary(c, x.dtype):
        return None
    inverse = 1 / computed(c, x.dtype)
    return computed(inverse, x.dtype) if is_ordinary(inverse, x.dtype) else None


@rewrite(lambda x, c: div(x, c), samples=[{"x": "I[*]", "c": 4}])
def shift_for_quotient(x: Tensor, c: int) -> Tensor | None:
    """⌊x / 2ᵏ⌋ = x >> k."""
    bits = exponent_of(c) if x.dtype.is_integer else None
    return None if bits is None or not bits else shift_right(x, bits)


@rewrite(lambda x, c: remainder(x, c), samples=[{"x": "I[*]", "c": 4}])
def mask_for_remainder(x: Tensor, c: int) -> Tensor | None:
    """x mod 2ᵏ = x & (2ᵏ − 1)."""
    bits = exponent_of(c) if x.dtype.is_integer else None
    return None if bits is None or not bits else bit_and(x, c - 1)


@rewrite_each(
    (shift_left, shift_right),
    lambda op: lambda x, c, d: op(op(x, c), d),
    samples=[{"x": "I[*]", "c": 1, "d": 2}, {"x": "I[*]", "c": 5, "d": 6}],
    alone=True,
)
def merge_shifts(op: Any, x: Tensor, c: int, d: int) -> Tensor | None:
    """A shift by c bits, then by d bits, is a shift by c + d bits."""
    fits = min(c, d) >= 0 and c + d <= x.dtype.limits[1]
    return op(x, c + d) if fits else None


@rewrite_each((shift_left, shift_right), lambda op: lambda x: op(x, 0), samples=[{"x": "I[*]"}])
def drop_empty(op: Any, x: Tensor) -> Tensor:
    """A shift by 0 bits."""
    return x

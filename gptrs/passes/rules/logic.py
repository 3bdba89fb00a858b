"""Comparisons, logical ops and bitwise ops."""

from __future__ import annotations

from typing import Any

from gptrs.ir.ops.elementwise import (
    bit_and,
    bit_or,
    bit_xor,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    neg,
    not_equal,
)
from gptrs.ir.ops.literal import full
from gptrs.ir.rewrite import rewrite, rewrite_each
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import i1
from gptrs.passes.rules.shapes import filled

_OPPOSITE = {
    less: greater_equal,
    less_equal: greater,
    greater: less_equal,
    greater_equal: less,
    equal: not_equal,
    not_equal: equal,
}
_MIRRORED = {
    less: greater,
    less_equal: greater_equal,
    greater: less,
    greater_equal: less_equal,
    equal: equal,
    not_equal: not_equal,
}
_ORDERS = (less, less_equal, greater, greater_equal)


def _everywhere(x: Tensor, value: bool) -> Tensor:
    return full(shape=x.shape, value=value, dtype=i1)


@rewrite(lambda x: logical_not(logical_not(x)), samples=[{"x": "i1[*]"}])
def cancel_logical_nots(x: Tensor) -> Tensor:
    """Not not x is x."""
    return x


@rewrite(
    lambda x, y: logical_and(logical_not(x), logical_not(y)),
    samples=[{"x": "i1[*]", "y": "i1[*]"}],
    alone=True,
)
def not_either(x: Tensor, y: Tensor) -> Tensor:
    """Not x and not y: not either. De Morgan."""
    return logical_not(logical_or(x, y))


@rewrite(
    lambda x, y: logical_or(logical_not(x), logical_not(y)),
    samples=[{"x": "i1[*]", "y": "i1[*]"}],
    alone=True,
)
def not_both(x: Tensor, y: Tensor) -> Tensor:
    """Not x or not y: not both. De Morgan."""
    return logical_not(logical_and(x, y))


@rewrite_each(
    (logical_and, logical_or, bit_and, bit_or),
    lambda op: lambda x: op(x, x),
    samples=[{"x": "B[*]"}],
)
def drop_itself(op: Any, x: Tensor) -> Tensor:
    """x and x = x, x or x = x."""
    return x


@rewrite_each(
    ((logical_and, logical_or), (logical_or, logical_and)),
    lambda ops: lambda x, y: ops[0](x, ops[1](x, y)),
    samples=[{"x": "i1[*]", "y": "i1[*]"}],
)
def absorb(ops: Any, x: Tensor) -> Tensor:
    """x and (x or y) = x, x or (x and y) = x."""
    return x


@rewrite(lambda x: logical_and(x, True), samples=[{"x": "i1[*]"}])
def and_true(x: Tensor) -> Tensor:
    """x and true: x."""
    return x


@rewrite(lambda x: logical_or(x, False), samples=[{"x": "i1[*]"}])
def or_false(x: Tensor) -> Tensor:
    """x or false: x."""
    return x


@rewrite(lambda x: logical_and(x, False), samples=[{"x": "i1[*]"}])
def and_false(x: Tensor) -> Tensor:
    """x and false: false."""
    return _everywhere(x, False)


@rewrite(lambda x: logical_or(x, True), samples=[{"x": "i1[*]"}])
def or_true(x: Tensor) -> Tensor:
    """x or true: true."""
    return _everywhere(x, True)


@rewrite_each(
    (equal, not_equal),
    lambda op: lambda x, c: op(x, c),
    samples=[{"x": "i1[*]", "c": True}, {"x": "i1[*]", "c": False}],
)
def compare_with_truth(op: Any, x: Tensor, c: bool) -> Tensor:
    """x = true is x, x = false is not x; ≠ the other way round."""
    return x if c is (op is equal) else logical_not(x)


@rewrite_each(
    (bit_or, bit_xor),
    lambda op: lambda x: op(x, 0),
    samples=[{"x": "I[*]"}],
)
def drop_no_bits(op: Any, x: Tensor) -> Tensor:
    """x | 0 = x, x ^ 0 = x."""
    return x


@rewrite(lambda x: bit_and(x, 0), samples=[{"x": "I[*]"}])
def mask_nothing(x: Tensor) -> Tensor:
    """x & 0 = 0."""
    return filled(x, 0)


@rewrite(
    lambda x, c: bit_and(x, c),
    samples=[{"x": "si8[*]", "c": -1}, {"x": "ui16[*]", "c": 65535}, {"x": "ui4[*]", "c": 15}],
)
def drop_full_mask(x: Tensor, c: int) -> Tensor | None:
    """x & ~0 = x."""
    return x if c == (-1 if x.dtype.kind == "int" else x.dtype.limits[1]) else None


@rewrite(lambda x: bit_xor(x, x), samples=[{"x": "I[*]"}])
def clear_bits(x: Tensor) -> Tensor:
    """x ^ x = 0."""
    return filled(x, 0)


@rewrite_each(
    (equal, not_equal),
    lambda op: lambda x, y: logical_not(op(x, y)),
    samples=[{"x": "T[*]", "y": "T[*]"}, {"x": "i1[*]", "y": "i1[*]"}],
    alone=True,
)
def opposite_of(op: Any, x: Any, y: Any) -> Tensor:
    """not (x = y) is x ≠ y, and the other way round; for NaN too, which equals nothing."""
    return _OPPOSITE[op](x, y)


@rewrite_each(
    _ORDERS,
    lambda op: lambda x, y: logical_not(op(x, y)),
    samples=[{"x": "I[*]", "y": "I[*]"}, {"x": 3, "y": "I[*]"}],
    alone=True,
)
def opposite_order_of(op: Any, x: Any, y: Any) -> Tensor | None:
    """not (x < y) is x ≥ y and the like; not for floats, which may be NaN."""
    known = x if isinstance(x, Tensor) else y
    return None if known.dtype.is_float else _OPPOSITE[op](x, y)


@rewrite_each(
    _ORDERS,
    lambda op: lambda c, x: op(c, x),
    samples=[{"c": 3, "x": "T[*]"}],
)
def number_last_in(op: Any, c: float, x: Tensor) -> Tensor:
    """c < x is x > c: a number comes last."""
    return _MIRRORED[op](x, c)


@rewrite_each(
    (*_ORDERS, equal, not_equal),
    lambda op: lambda x, y: op(neg(x), neg(y)),
    samples=[{"x": "F[*]", "y": "F[*]"}],
)
def mirror(op: Any, x: Tensor, y: Tensor) -> Tensor | None:
    """−x < −y is x > y for floats; the least integer has no negative."""
    return _MIRRORED[op](x, y) if x.dtype.is_float else None


@rewrite_each(
    (less, greater),
    lambda op: lambda x: op(x, x),
    samples=[{"x": "T[*]"}],
)
def never(op: Any, x: Tensor) -> Tensor:
    """x < x and x > x are false, for NaN too."""
    return _everywhere(x, False)


@rewrite_each(
    (less_equal, greater_equal, equal, not_equal),
    lambda op: lambda x: op(x, x),
    samples=[{"x": "I[*]"}, {"x": "i1[*]"}],
)
def always(op: Any, x: Tensor) -> Tensor | None:
    """x = x, x ≤ x, x ≥ x are true, x ≠ x is false; not for floats, which may be NaN."""
    known = x.dtype.is_integer or x.dtype.is_bool
    return _everywhere(x, op is not not_equal) if known else None


@rewrite_each(
    (less, greater_equal),
    lambda op: lambda x: op(x, 0),
    samples=[{"x": "ui8[*]"}, {"x": "ui32[*]"}],
)
def unsigned_with_zero(op: Any, x: Tensor) -> Tensor | None:
    """x < 0 is false and x ≥ 0 is true for unsigned integers."""
    return _everywhere(x, op is greater_equal) if x.dtype.kind == "uint" else None

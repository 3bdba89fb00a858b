"""Rules on select, clamp, maximum and minimum."""

from __future__ import annotations

import math
from typing import Any

from gptrs.ir.ops.elementwise import (
    cast,
    clamp,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    select,
)
from gptrs.ir.ops.literal import full
from gptrs.ir.rewrite import rewrite, rewrite_each
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, i1
from gptrs.passes.rules.numbers import in_dtype
from gptrs.passes.rules.shapes import filled


@rewrite(lambda m, x: select(m, x, x), samples=[{"m": "i1[*]", "x": "T[*]"}])
def select_same(x: Tensor) -> Tensor:
    """select(m, x, x) = x."""
    return x


@rewrite(
    lambda m, a, b: select(logical_not(m), a, b),
    samples=[{"m": "i1[*]", "a": "T[*]", "b": "T[*]"}, {"m": "i1[*]", "a": 1, "b": "T[*]"}],
)
def swap_negated_select(m: Tensor, a: Any, b: Any) -> Tensor:
    """select(not m, a, b) = select(m, b, a)."""
    return select(m, b, a)


@rewrite(
    lambda m, a, b: select(m, a, b),
    samples=[
        {"m": lambda a: full(shape=a.shape, value=True, dtype=i1), "a": "T[*]", "b": "T[*]"},
        {"m": lambda a: full(shape=a.shape, value=False, dtype=i1), "a": "T[*]", "b": 1},
    ],
)
def select_known(m: bool, a: Any, b: Any) -> Tensor | None:
    """select with a constant predicate."""
    chosen, other = (a, b) if m else (b, a)
    if isinstance(chosen, Tensor):
        return chosen
    if not isinstance(chosen, int | float) or not isinstance(other, Tensor):
        return None
    return filled(other, in_dtype(chosen, other.dtype))


@rewrite(
    lambda m, a, b, c: select(m, select(m, a, b), c),
    samples=[{"m": "i1[*]", "a": "T[*]", "b": "T[*]", "c": "T[*]"}],
)
def select_chosen_again(m: Tensor, a: Any, c: Any) -> Tensor | None:
    """select(m, select(m, a, b), c) = select(m, a, c)."""
    return _chosen(m, a, c)


@rewrite(
    lambda m, a, b, c: select(m, a, select(m, b, c)),
    samples=[{"m": "i1[*]", "a": "T[*]", "b": "T[*]", "c": "T[*]"}],
)
def select_refused_again(m: Tensor, a: Any, c: Any) -> Tensor | None:
    """select(m, a, select(m, b, c)) = select(m, a, c)."""
    return _chosen(m, a, c)


def _chosen(m: Tensor, a: Any, b: Any) -> Tensor | None:
    """select; None between two numbers, which have no dtype."""
    return select(m, a, b) if isinstance(a, Tensor) or isinstance(b, Tensor) else None


@rewrite(lambda m, a: select(m, a, False), samples=[{"m": "i1[*]", "a": "i1[*]"}])
def and_for_select(m: Tensor, a: Tensor) -> Tensor:
    """select(m, a, false) = m and a."""
    return logical_and(m, a)


@rewrite(lambda m, b: select(m, True, b), samples=[{"m": "i1[*]", "b": "i1[*]"}])
def or_for_select(m: Tensor, b: Tensor) -> Tensor:
    """select(m, true, b) = m or b."""
    return logical_or(m, b)


@rewrite_each(
    (less, less_equal),
    lambda op: lambda x, y: select(op(x, y), x, y),
    samples=[{"x": "I[*]", "y": "I[*]"}, {"x": "I[*]", "y": 3}],
)
def minimum_for_select(op: Any, x: Tensor, y: Any) -> Tensor | None:
    """select(x < y, x, y) = min(x, y) for integers; floats may be NaN or zeros of two signs."""
    return minimum(x, y) if x.dtype.is_integer else None


@rewrite_each(
    (greater, greater_equal),
    lambda op: lambda x, y: select(op(x, y), x, y),
    samples=[{"x": "I[*]", "y": "I[*]"}, {"x": "I[*]", "y": 3}],
)
def maximum_for_select(op: Any, x: Tensor, y: Any) -> Tensor | None:
    """select(x > y, x, y) = max(x, y) for integers; floats may be NaN or zeros of two signs."""
    return maximum(x, y) if x.dtype.is_integer else None


@rewrite(
    lambda m, a, b, t: select(m, cast(a, dtype=t), cast(b, dtype=t)),
    samples=[
        {"m": "i1[*]", "a": "T[*]", "b": "T[*]", "t": "f32"},
        {"m": "i1[m,n]", "a": "f32[n]", "b": "f32[m,1]", "t": "bf16"},
    ],
    alone=True,
)
def cast_after_select(m: Tensor, a: Tensor, b: Tensor, t: DType) -> Tensor | None:
    """select of two casts is one cast of the select."""
    return cast(select(m, a, b), dtype=t) if a.dtype is b.dtype else None


@rewrite_each((maximum, minimum), lambda op: lambda x: op(x, x), samples=[{"x": "T[*]"}])
def drop_same(op: Any, x: Tensor) -> Tensor:
    """max(x, x) = min(x, x) = x."""
    return x


@rewrite(lambda x: maximum(x, -math.inf), samples=[{"x": "F[*]"}])
def drop_least(x: Tensor) -> Tensor:
    """max(x, −∞) = x, for NaN too."""
    return x


@rewrite(lambda x: minimum(x, math.inf), samples=[{"x": "F[*]"}])
def drop_greatest(x: Tensor) -> Tensor:
    """min(x, +∞) = x, for NaN too."""
    return x


@rewrite(
    lambda x, c: maximum(x, c),
    samples=[{"x": "ui8[*]", "c": 0}, {"x": "si8[*]", "c": -128}, {"x": "si4[*]", "c": -8}],
)
def drop_least_integer(x: Tensor, c: int) -> Tensor | None:
    """max(x, c) = x where c is the least integer of the dtype."""
    return x if x.dtype.is_integer and c == x.dtype.limits[0] else None


@rewrite(
    lambda x, c: minimum(x, c), samples=[{"x": "ui8[*]", "c": 255}, {"x": "si16[*]", "c": 32767}]
)
def drop_greatest_integer(x: Tensor, c: int) -> Tensor | None:
    """min(x, c) = x where c is the greatest integer of the dtype."""
    return x if x.dtype.is_integer and c == x.dtype.limits[1] else None


@rewrite_each(
    (maximum, minimum),
    lambda op: lambda x, y: op(x, op(x, y)),
    samples=[{"x": "T[*]", "y": "T[*]"}],
)
def drop_repeated(op: Any, x: Tensor, y: Any) -> Tensor:
    """max(x, max(x, y)) = max(x, y), and the same for min."""
    return op(x, y)


@rewrite_each(
    (maximum, minimum),
    lambda op: lambda x, c, d: op(op(x, c), d),
    samples=[{"x": "T[*]", "c": 1, "d": 3}, {"x": "F[*]", "c": 0.0, "d": -1.5}],
    alone=True,
)
def merge_bounds(op: Any, x: Tensor, c: float, d: float) -> Tensor | None:
    """max(max(x, c), d) = max(x, max(c, d)), and the same for min; not for zeros of two signs and
    NaN."""
    if c != c or d != d or c == d == 0:
        return None
    return op(x, max(c, d) if op is maximum else min(c, d))


@rewrite(
    lambda x, lo, hi: minimum(maximum(x, lo), hi),
    samples=[
        {"x": "T[*]", "lo": 1, "hi": 3},
        {"x": "F[*]", "lo": -0.3, "hi": 0.1},
        {"x": "F[*]", "lo": 0.0, "hi": 6.1},
    ],
    alone=True,
)
def clamp_for_bounds(x: Tensor, lo: float, hi: float) -> Tensor:
    """min(max(x, lo), hi) = clamp(x, lo, hi)."""
    return clamp(x, lo, hi)


@rewrite(
    lambda x, lo, hi: maximum(minimum(x, hi), lo),
    samples=[
        {"x": "T[*]", "lo": 1, "hi": 3},
        {"x": "F[*]", "lo": -0.3, "hi": 0.1},
        {"x": "F[*]", "lo": 0.0, "hi": 6.1},
    ],
    alone=True,
)
def clamp_for_swapped_bounds(x: Tensor, lo: float, hi: float) -> Tensor | None:
    """max(min(x, hi), lo) = clamp(x, lo, hi), if lo < hi."""
    return clamp(x, lo, hi) if lo < hi else None


@rewrite(
    lambda x, lo, hi: clamp(clamp(x, lo, hi), lo, hi),
    samples=[{"x": "T[*]", "lo": 1, "hi": 3}, {"x": "F[*]", "lo": -0.3, "hi": 0.1}],
)
def drop_second_clamp(x: Tensor, lo: Any, hi: Any) -> Tensor:
    """clamp of a clamp with the same bounds."""
    return clamp(x, lo, hi)


@rewrite(
    lambda x, hi: clamp(x, -math.inf, hi),
    samples=[{"x": "F[*]", "hi": "F[*]"}, {"x": "F[*]", "hi": 0.1}],
)
def minimum_for_clamp(x: Tensor, hi: Any) -> Tensor:
    """clamp(x, −∞, hi) = min(x, hi)."""
    return minimum(x, hi)


@rewrite(
    lambda x, lo: clamp(x, lo, math.inf),
    samples=[{"x": "F[*]", "lo": "F[*]"}, {"x": "F[*]", "lo": 0.1}],
)
def maximum_for_clamp(x: Tensor, lo: Any) -> Tensor:
    """clamp(x, lo, +∞) = max(x, lo)."""
    return maximum(x, lo)

"""Casts and bitcasts: redundant ones removed, casts moved to where fewer elements are converted."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.ir.dims import Shape, dim
from gptrs.ir.ops.bitcast import bitcast
from gptrs.ir.ops.elementwise import (
    cast,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_not,
    not_equal,
)
from gptrs.ir.ops.literal import full, iota
from gptrs.ir.rewrite import rewrite, rewrite_each
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, Type

M, N = dim("m"), dim("n")


@rewrite(
    lambda x, t: cast(x, dtype=t), samples=[{"x": "T[*]", "t": "T"}, {"x": "i1[*]", "t": "i1"}]
)
def drop_identity_cast(x: Tensor, t: DType) -> Tensor | None:
    """A cast to the operand's own dtype."""
    return x if x.dtype is t else None


@rewrite(
    lambda x, a, b: cast(cast(x, dtype=a), dtype=b),
    samples=[
        {"x": "bf16[*]", "a": "f32", "b": "bf16"},
        {"x": "f16[*]", "a": "f64", "b": "si8"},
        {"x": "si8[*]", "a": "si32", "b": "f32"},
        {"x": "ui8[*]", "a": "f32", "b": "si16"},
        {"x": "i1[*]", "a": "si8", "b": "f32"},
        {"x": "i1[*]", "a": "f16", "b": "i1"},
    ],
)
def skip_widening_cast(x: Tensor, a: DType, b: DType) -> Tensor | None:
    """cast(cast(x)) = cast(x) where the inner cast is lossless."""
    # An integer that does not fit wraps, where a float saturates.
    same_overflow = not (x.dtype.is_integer and a.is_float and b.is_integer) or holds(b, x.dtype)
    return cast(x, dtype=b) if holds(a, x.dtype) and same_overflow else None


@rewrite(
    lambda x, t: bitcast(x, dtype=t),
    samples=[{"x": "T[*]", "t": "T"}, {"x": "i1[*]", "t": "i1"}],
)
def drop_identity_bitcast(x: Tensor, t: DType) -> Tensor | None:
    """A bitcast to the operand's own dtype."""
    return x if x.dtype is t else None


@rewrite(
    lambda x, a, b: bitcast(bitcast(x, dtype=a), dtype=b),
    samples=[
        {"x": "f32[*]", "a": "si32", "b": "ui32"},
        {"x": "si16[*]", "a": "ui16", "b": "si16"},
        {"x": "i1[*]", "a": "ui8", "b": "si8"},
    ],
)
def merge_bitcasts(x: Tensor, b: DType) -> Tensor:
    """bitcast(bitcast(x)) = bitcast(x)."""
    return bitcast(x, dtype=b)


_FRACTION = {"fp8_e4m3": 3, "fp8_e5m2": 2, "bf16": 7, "f16": 10, "f32": 23, "f64": 52}
_EXPONENT = {"fp8_e4m3": 4, "fp8_e5m2": 5, "bf16": 8, "f16": 5, "f32": 8, "f64": 11}


def holds(wide: DType, narrow: DType) -> bool:
    """Whether ``wide`` represents every value of ``narrow`` exactly."""
    if narrow.is_bool:
        return True  # 0 and 1
    if wide.is_integer and narrow.is_integer:
        low, high = narrow.limits
        return wide.limits[0] <= low and high <= wide.limits[1]
    if wide.is_float and narrow.is_integer:
        return narrow.bits <= _FRACTION[wide.name] and _EXPONENT[wide.name] >= 8
    if wide.is_float and narrow.is_float:
        return (
            _FRACTION[wide.name] >= _FRACTION[narrow.name]
            and _EXPONENT[wide.name] >= _EXPONENT[narrow.name]
            and wide.name != "fp8_e4m3"  # it has no infinity
        )
    return False


@rewrite(
    lambda a, v, t, u: cast(full(shape=a, value=v, dtype=t), dtype=u),
    samples=[
        {"a": (M, N), "v": 3, "t": "T", "u": "f32"},
        {"a": (M,), "v": 1.7, "t": "f32", "u": "bf16"},
        {"a": (M,), "v": -1e9, "t": "f32", "u": "ui8"},
        {"a": (M,), "v": True, "t": "i1", "u": "f16"},
        {"a": (M,), "v": 300, "t": "si32", "u": "si8"},
    ],
)
def cast_full(a: Shape, v: Any, t: DType, u: DType) -> Tensor | None:
    """full is made in the target dtype."""
    if t.is_complex or u.is_complex:
        return None
    with np.errstate(all="ignore"):
        before = np.asarray(v).astype(t.numpy)
    (after,) = cast.evaluate((before,), {"dtype": u}, (Type((), u),))
    return full(shape=a, value=after.item(), dtype=u)


@rewrite(
    lambda s, t, a, u: cast(iota(shape=s, dtype=t, axis=a), dtype=u),
    samples=[
        {"s": (3, N), "t": "si32", "a": 0, "u": "T"},
        {"s": (M, 5), "t": "f32", "a": 1, "u": "si64"},
        {"s": (M, N), "t": "si64", "a": 1, "u": "f32"},
    ],
)
def cast_iota(s: Shape, t: DType, a: int, u: DType) -> Tensor | None:
    """iota is made in the target dtype, if the first dtype represents all its positions."""
    if u.is_bool or u.is_complex:
        return None
    extent = s[a]
    if t.name != "si64" and (not isinstance(extent, int) or extent > _countable(t)):
        return None
    return iota(shape=s, dtype=u, axis=a)


def _countable(dtype: DType) -> int:
    """The number of positions from 0 that a dtype represents exactly."""
    return dtype.limits[1] + 1 if dtype.is_integer else 1 << _FRACTION[dtype.name]


@rewrite_each(
    (less, less_equal, greater, greater_equal, equal, not_equal),
    lambda op: lambda x, y, t: op(cast(x, dtype=t), cast(y, dtype=t)),
    samples=[
        {"x": "bf16[*]", "y": "bf16[*]", "t": "f32"},
        {"x": "si8[*]", "y": "si8[*]", "t": "si64"},
        {"x": "i1[*]", "y": "i1[*]", "t": "f32"},
    ],
)
def compare_before_cast(op: Any, x: Tensor, y: Tensor, t: DType) -> Tensor | None:
    """Comparison of casts = comparison of the operands, where the cast is lossless."""
    return op(x, y) if x.dtype is y.dtype and holds(t, x.dtype) else None


@rewrite_each(
    (equal, not_equal),
    lambda op: lambda x, t: op(cast(x, dtype=t), 0),
    samples=[{"x": "i1[*]", "t": "T"}],
)
def decide_before_cast(op: Any, x: Tensor, t: DType) -> Tensor | None:
    """cast(x) ≠ 0 is x and cast(x) = 0 is not x, for a bool x."""
    if not x.dtype.is_bool:
        return None
    return x if op is not_equal else logical_not(x)

"""Rules that make a program smaller without changing a bit of its results."""

# The holes of a pattern have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import same_shape
from gptrs.ir.ops.elementwise import (
    add,
    bit_not,
    cast,
    div,
    logical_not,
    mul,
    neg,
    select,
    stop_gradient,
    sub,
)
from gptrs.ir.ops.shape import broadcast_to, concat, pad, reshape, slice_, tile, transpose
from gptrs.ir.program import Program
from gptrs.ir.rewrite import Rule, apply_rules, rewrite
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, as_dtype
from gptrs.passes.base import Context

Perm = tuple[int, ...]
Dims = tuple[int, ...]


@rewrite(
    lambda x, p, q: transpose(transpose(x, perm=p), perm=q),
    samples=[{"x": "f32[2,3,4]", "p": (1, 2, 0), "q": (0, 2, 1)}],
)
def merge_transposes(x: Tensor, p: Perm, q: Perm) -> Tensor:
    """Two permutations are one."""
    return transpose(x, perm=tuple(p[i] for i in q))


@rewrite(lambda x, p: transpose(x, perm=p), samples=[{"x": "f32[2,3]", "p": (0, 1)}])
def drop_identity_transpose(x: Tensor, p: Perm) -> Tensor | None:
    """A permutation that leaves every axis in place."""
    return x if p == tuple(range(len(p))) else None


@rewrite(
    lambda x, a, b: reshape(reshape(x, shape=a), shape=b),
    samples=[{"x": "f32[2,6]", "a": (3, 4), "b": (12,)}],
)
def merge_reshapes(x: Tensor, a: Any, b: Any) -> Tensor:
    """Only the last shape counts."""
    return reshape(x, shape=b)


@rewrite(lambda x, s: reshape(x, shape=s), samples=[{"x": "f32[2,3]", "s": (2, 3)}])
def drop_identity_reshape(x: Tensor, s: Any) -> Tensor | None:
    """A reshape to the shape that is already there."""
    return x if same_shape(x.shape, s) else None


@rewrite(
    lambda x, a, b: broadcast_to(broadcast_to(x, shape=a), shape=b),
    samples=[{"x": "f32[3,1]", "a": (3, 4), "b": (2, 3, 4)}],
)
def merge_broadcasts(x: Tensor, a: Any, b: Any) -> Tensor:
    """Only the last shape counts."""
    return broadcast_to(x, shape=b)


@rewrite(lambda x, s: broadcast_to(x, shape=s), samples=[{"x": "f32[2,3]", "s": (2, 3)}])
def drop_identity_broadcast(x: Tensor, s: Any) -> Tensor | None:
    """A broadcast to the shape that is already there."""
    return x if same_shape(x.shape, s) else None


@rewrite(lambda x, t: cast(x, dtype=t), samples=[{"x": "si32[4]", "t": as_dtype("si32")}])
def drop_identity_cast(x: Tensor, t: DType) -> Tensor | None:
    """A cast to the dtype that is already there."""
    return x if x.dtype is t else None


@rewrite(
    lambda x, a, b: cast(cast(x, dtype=a), dtype=b),
    samples=[
        {"x": "bf16[5]", "a": as_dtype("f32"), "b": as_dtype("bf16")},
        {"x": "si8[5]", "a": as_dtype("si32"), "b": as_dtype("f32")},
        {"x": "ui8[5]", "a": as_dtype("f32"), "b": as_dtype("si16")},
    ],
)
def skip_widening_cast(x: Tensor, a: DType, b: DType) -> Tensor | None:
    """A first cast that loses nothing need not happen."""
    # An integer that does not fit wraps, where a float saturates.
    same_overflow = not (x.dtype.is_integer and a.is_float and b.is_integer) or _holds(b, x.dtype)
    return cast(x, dtype=b) if _holds(a, x.dtype) and same_overflow else None


_FRACTION = {"fp8_e4m3": 3, "fp8_e5m2": 2, "bf16": 7, "f16": 10, "f32": 23, "f64": 52}
_EXPONENT = {"fp8_e4m3": 4, "fp8_e5m2": 5, "bf16": 8, "f16": 5, "f32": 8, "f64": 11}


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether ``wide`` has every value of ``narrow``, so that a detour through it changes none."""
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


@rewrite(lambda x: mul(x, 1), samples=[{"x": "f32[3]"}, {"x": "si32[3]"}])
def multiply_by_one(x: Tensor) -> Tensor:
    """x · 1 = x."""
    return x


@rewrite(lambda x: div(x, 1), samples=[{"x": "f32[3]"}, {"x": "si32[3]"}])
def divide_by_one(x: Tensor) -> Tensor:
    """x / 1 = x."""
    return x


@rewrite(lambda x: sub(x, 0), samples=[{"x": "f32[3]"}, {"x": "si32[3]"}])
def subtract_zero(x: Tensor) -> Tensor:
    """x − 0 = x, for −0 too."""
    return x


@rewrite(lambda x: add(x, 0), samples=[{"x": "si32[3]"}])
def add_integer_zero(x: Any) -> Tensor | None:
    """x + 0 = x for integers; for floats −0 + 0 is +0, which is another bit."""
    return x if isinstance(x, Tensor) and x.dtype.is_integer else None


@rewrite(lambda x: neg(neg(x)), samples=[{"x": "f32[3]"}, {"x": "si8[3]"}])
def cancel_negations(x: Tensor) -> Tensor:
    """−(−x) = x, for the least integer too."""
    return x


@rewrite(lambda x: logical_not(logical_not(x)), samples=[{"x": "i1[3]"}])
def cancel_logical_nots(x: Tensor) -> Tensor:
    """Not not x is x."""
    return x


@rewrite(lambda x: bit_not(bit_not(x)), samples=[{"x": "ui8[3]"}])
def cancel_bit_nots(x: Tensor) -> Tensor:
    """Bits inverted twice."""
    return x


@rewrite(lambda m, x: select(m, x, x), samples=[{"m": "i1[3]", "x": "f32[3]"}])
def select_same(m: Tensor, x: Tensor) -> Tensor | None:
    """A choice between a value and itself."""
    return x if isinstance(x, Tensor) else None


@rewrite(
    lambda m, a, b: select(logical_not(m), a, b),
    samples=[{"m": "i1[3]", "a": "f32[3]", "b": "f32[3]"}],
)
def swap_negated_select(m: Tensor, a: Any, b: Any) -> Tensor:
    """Choosing by not m is choosing the other way round."""
    return select(m, b, a)


@rewrite(
    lambda x, b, n, s: slice_(x, starts=b, sizes=n, strides=s),
    samples=[{"x": "f32[3,4]", "b": (0, 0), "n": (3, 4), "s": (1, 1)}],
)
def drop_full_slice(x: Tensor, b: Dims, n: Any, s: Dims) -> Tensor | None:
    """A slice that takes everything."""
    return x if same_shape(x.shape, n) and all(step == 1 for step in s) else None


@rewrite(
    lambda x, b, n, s, c, m, t: slice_(
        slice_(x, starts=b, sizes=n, strides=s), starts=c, sizes=m, strides=t
    ),
    samples=[
        {
            "x": "f32[9,9]",
            "b": (1, 0),
            "n": (4, 9),
            "s": (2, 1),
            "c": (1, 2),
            "m": (2, 3),
            "t": (1, 3),
        }
    ],
)
def merge_slices(x: Tensor, b: Dims, s: Dims, c: Dims, m: Any, t: Dims) -> Tensor:
    """A slice of a slice."""
    return slice_(
        x,
        starts=tuple(i + j * k for i, j, k in zip(b, c, s, strict=True)),
        sizes=m,
        strides=tuple(i * j for i, j in zip(s, t, strict=True)),
    )


@rewrite(
    lambda x, lo, hi, gap, v: pad(x, low=lo, high=hi, interior=gap, value=v),
    samples=[{"x": "f32[2,3]", "lo": (0, 0), "hi": (0, 0), "gap": (0, 0), "v": 0.0}],
)
def drop_empty_pad(x: Tensor, lo: Dims, hi: Dims, gap: Dims) -> Tensor | None:
    """Padding by nothing."""
    return None if any((*lo, *hi, *gap)) else x


@rewrite(lambda x, a: concat((x,), axis=a), samples=[{"x": "f32[2,3]", "a": 1}])
def drop_single_concat(x: Tensor) -> Tensor:
    """One operand is the result."""
    return x


@rewrite(lambda x, r: tile(x, reps=r), samples=[{"x": "f32[2,3]", "r": (1, 1)}])
def drop_single_tile(x: Tensor, r: Dims) -> Tensor | None:
    """Every axis repeated once."""
    return x if all(count == 1 for count in r) else None


@rewrite(lambda x: stop_gradient(x), samples=[{"x": "f32[3]"}])
def drop_stop_gradient(x: Tensor) -> Tensor:
    """Without gradients there is nothing to stop."""
    return x


RULES: tuple[Rule, ...] = tuple(value for value in globals().values() if isinstance(value, Rule))


def simplify(program: Program, context: Context) -> Program:
    """Apply `RULES` until none matches."""
    return apply_rules(program, RULES, context.fuel)

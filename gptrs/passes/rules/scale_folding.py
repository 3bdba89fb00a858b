"""Folding of scales and biases around matrix products."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import dim, same_shape
from gptrs.ir.ops.elementwise import add, mul
from gptrs.ir.ops.shape import broadcast_to
from gptrs.ir.rewrite import rewrite
from gptrs.ir.tensor import Tensor
from gptrs.ir.use_def import UseDef
from gptrs.passes.rules.dot_pattern import PLAIN, dot
from gptrs.passes.rules.numbers import computed, is_ordinary

M, N = dim("m"), dim("n")

_SCALED = {
    "x": "F[m,k]",
    "y": "F[k,n]",
    "c": 0.3,
    "d": 1.7,
    **PLAIN,
    "left": (1,),
    "right": (0,),
}


@rewrite(
    lambda x, c, y, d, batch, other, left, right, wide, out: mul(
        dot(mul(x, c), y, batch, other, left, right, wide, out), d
    ),
    samples=[_SCALED],
    alone=True,
    rounds=True,
    ulps=8,
    magnitude=8,
    finite=True,
)
def scale_left_once(
    x: Tensor,
    c: float,
    y: Tensor,
    d: float,
    batch: Any,
    other: Any,
    left: Any,
    right: Any,
    wide: Any,
    out: Any,
) -> Tensor | None:
    """(x · c) @ y · d = x @ y · (c · d): rounded less often. A product may be infinite before or
    after it is scaled."""
    scale = _scale(x, c, d)
    return None if scale is None else mul(dot(x, y, batch, other, left, right, wide, out), scale)


@rewrite(
    lambda x, y, c, d, batch, other, left, right, wide, out: mul(
        dot(x, mul(y, c), batch, other, left, right, wide, out), d
    ),
    samples=[_SCALED],
    alone=True,
    rounds=True,
    ulps=8,
    magnitude=8,
    finite=True,
)
def scale_right_once(
    x: Tensor,
    y: Tensor,
    c: float,
    d: float,
    batch: Any,
    other: Any,
    left: Any,
    right: Any,
    wide: Any,
    out: Any,
) -> Tensor | None:
    """x @ (y · c) · d = x @ y · (c · d): rounded less often. A product may be infinite before or
    after it is scaled."""
    scale = _scale(x, c, d)
    return None if scale is None else mul(dot(x, y, batch, other, left, right, wide, out), scale)


@rewrite(
    lambda x, c, y, d, batch, other, left, right, wide, out: dot(
        mul(x, c), mul(y, d), batch, other, left, right, wide, out
    ),
    samples=[_SCALED],
    alone=True,
    rounds=True,
    ulps=8,
    magnitude=8,
    finite=True,
)
def scale_both_once(
    x: Tensor,
    c: float,
    y: Tensor,
    d: float,
    batch: Any,
    other: Any,
    left: Any,
    right: Any,
    wide: Any,
    out: Any,
) -> Tensor | None:
    """(x · c) @ (y · d) = x @ y · (c · d): rounded less often. A product may be infinite before or
    after it is scaled."""
    scale = _scale(x, c, d)
    return None if scale is None else mul(dot(x, y, batch, other, left, right, wide, out), scale)


def _scale(x: Tensor, c: float, d: float) -> float | None:
    """The product of two scales of floats, if both scales and the product are ordinary numbers."""
    if not x.dtype.is_float:
        return None
    scale = computed(c, x.dtype) * computed(d, x.dtype)
    ordinary = all(is_ordinary(number, x.dtype) for number in (c, d, scale))
    return computed(scale, x.dtype) if ordinary else None


@rewrite(
    lambda x, y, c, batch, other, left, right, wide, out: dot(
        x, mul(y, c), batch, other, left, right, wide, out
    ),
    samples=[
        {
            "x": "F[m,k]",
            "y": "F[k,n] parameter",
            "c": 0.3,
            **PLAIN,
            "left": (1,),
            "right": (0,),
        }
    ],
    alone=True,
    rounds=True,
    ulps=8,
    magnitude=8,
    finite=True,
)
def scale_after_weights(
    x: Tensor,
    y: Tensor,
    c: float,
    batch: Any,
    other: Any,
    left: Any,
    right: Any,
    wide: Any,
    out: Any,
    facts: UseDef,
) -> Tensor | None:
    """x @ (weight · c) = x @ weight · c, rounded elsewhere: weights stay as they are stored. A
    product may be infinite before or after it is scaled."""
    if not x.dtype.is_float or not facts.is_stable(y) or facts.is_stable(x):
        return None
    return mul(dot(x, y, batch, other, left, right, wide, out), c)


@rewrite(
    lambda x, b, s, c, t: add(add(x, broadcast_to(b, shape=s)), broadcast_to(c, shape=t)),
    samples=[
        {
            "x": "F[m,n]",
            "b": "F[n] parameter",
            "s": (M, N),
            "c": "F[n] parameter",
            "t": (M, N),
        }
    ],
    alone=True,
    rounds=True,
    ulps=2,
    magnitude=8,
    finite=True,
)
def add_biases_once(x: Tensor, b: Tensor, c: Tensor, facts: UseDef) -> Tensor | None:
    """(x + b) + c = x + (b + c), rounded elsewhere, for biases that are parameters or constants. A
    sum may be infinite before or after the second one."""
    if not facts.is_stable(b, c) or facts.is_stable(x) or not same_shape(b.shape, c.shape):
        return None
    return add(x, add(b, c)) if x.dtype.is_float else None

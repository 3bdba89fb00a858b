"""Reductions of broadcast, scaled or negated operands: the factor moves after the reduction."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import DimLike, Shape, dim, product, surely_greater
from gptrs.ir.ops.elementwise import logical_not, mul, neg, sub
from gptrs.ir.ops.literal import full
from gptrs.ir.ops.reduce import (
    argmax,
    argmin,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_sum,
)
from gptrs.ir.ops.shape import broadcast_to
from gptrs.ir.rewrite import rewrite, rewrite_each
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import si64
from gptrs.passes.rules.numbers import wrapped
from gptrs.passes.rules.shapes import in_shape, is_one, reduced_shape, repeated

Axes = tuple[int, ...]
M, N = dim("m"), dim("n")

_REPEATED = [
    {"x": "R[m,1]", "s": (M, 3), "a": (1,), "k": False},
    {"x": "R[n]", "s": (2, 3, N), "a": (0, 1), "k": True},
]


@rewrite_each(
    (reduce_any, reduce_all, reduce_max, reduce_min),
    lambda op: lambda x, s, a, k: op(broadcast_to(x, shape=s), axes=a, keepdims=k),
    samples=_REPEATED,
    alone=True,
)
def unrepeated(op: Any, x: Tensor, s: Shape, a: Axes, k: bool) -> Tensor | None:
    """max, min, any, all over broadcast axes: repeated elements do not count."""
    return None if _repeats(x, s, a) is None else _left(x, s, a, k)


@rewrite(
    lambda x, s, a, k: reduce_sum(broadcast_to(x, shape=s), axes=a, keepdims=k),
    samples=[{**sample, "x": str(sample["x"]).replace("R", "I")} for sample in _REPEATED],
    alone=True,
)
def multiply_for_integer_sum(x: Tensor, s: Shape, a: Axes, k: bool) -> Tensor | None:
    """A sum of n equal integers is n times one, wrapped or not."""
    count = _repeats(x, s, a)
    if not x.dtype.is_integer or not isinstance(count, int):
        return None
    return _left(mul(x, wrapped(count, x.dtype)), s, a, k)


@rewrite(
    lambda x, s, a, k: reduce_sum(broadcast_to(x, shape=s), axes=a, keepdims=k),
    samples=[{**sample, "x": str(sample["x"]).replace("R", "F")} for sample in _REPEATED],
    alone=True,
    rounds=True,
    ulps=4,
)
def multiply_for_sum(x: Tensor, s: Shape, a: Axes, k: bool) -> Tensor | None:
    """A sum of n equal floats is n times one, rounded once."""
    count = _repeats(x, s, a)
    if not x.dtype.is_float or count is None:
        return None
    return _left(mul(x, count), s, a, k)


def _repeats(x: Tensor, shape: Shape, axes: Axes) -> DimLike | None:
    """The number of repetitions over the axes (at least 1), if they are broadcast and nothing
    else."""
    missing = len(shape) - x.ndim
    if not all(axis < missing or is_one(x.shape[axis - missing]) for axis in axes):
        return None
    count = product(tuple(shape[axis] for axis in axes))
    return count if surely_greater(count, 0) else None


def _left(x: Tensor, shape: Shape, axes: Axes, keepdims: bool) -> Tensor:
    """``x`` in the broadcast shape without the reduced axes."""
    missing = len(shape) - x.ndim
    own = reduced_shape(x.shape, [axis - missing for axis in axes], keepdims)
    return repeated(in_shape(x, own), reduced_shape(shape, axes, keepdims))


@rewrite(
    lambda x, a, k: reduce_sum(neg(x), axes=a, keepdims=k),
    samples=[{"x": "I[m,n]", "a": (1,), "k": True}],
    alone=True,
)
def negate_integer_sum(x: Tensor, a: Axes, k: bool) -> Tensor | None:
    """Σ −x = −Σ x for integers: fewer elements are negated."""
    return neg(reduce_sum(x, axes=a, keepdims=k)) if x.dtype.is_integer else None


@rewrite(
    lambda x, a, k: reduce_sum(neg(x), axes=a, keepdims=k),
    samples=[{"x": "F[m,n]", "a": (1,), "k": True}],
    alone=True,
)
def negate_sum(x: Tensor, a: Axes, k: bool) -> Tensor | None:
    """Σ −x = 0 − Σ x for floats: a sum is never −0."""
    return sub(0.0, reduce_sum(x, axes=a, keepdims=k)) if x.dtype.is_float else None


@rewrite(
    lambda x, c, a, k: reduce_sum(mul(x, c), axes=a, keepdims=k),
    samples=[{"x": "I[m,n]", "c": 3, "a": (0,), "k": False}],
    alone=True,
)
def scale_integer_sum(x: Tensor, c: int, a: Axes, k: bool) -> Tensor | None:
    """Σ c·x = c · Σ x for integers, wrapped or not."""
    return mul(reduce_sum(x, axes=a, keepdims=k), c) if x.dtype.is_integer else None


@rewrite(
    lambda x, c, a, k: reduce_sum(mul(x, c), axes=a, keepdims=k),
    samples=[{"x": "F[m,n]", "c": 0.3, "a": (0,), "k": False}],
    alone=True,
    rounds=True,
    ulps=8,
    magnitude=8,
    finite=True,
)
def scale_sum(x: Tensor, c: float, a: Axes, k: bool) -> Tensor | None:
    """Σ c·x = c · Σ x for floats: rounded once instead of at every element. The sum may be infinite
    before or after it is scaled."""
    return mul(reduce_sum(x, axes=a, keepdims=k), c) if x.dtype.is_float else None


@rewrite_each(
    ((reduce_any, reduce_all), (reduce_all, reduce_any)),
    lambda ops: lambda x, a, k: logical_not(ops[0](logical_not(x), axes=a, keepdims=k)),
    samples=[{"x": "i1[m,n]", "a": (1,), "k": False}],
    alone=True,
)
def de_morgan(ops: Any, x: Tensor, a: Axes, k: bool) -> Tensor:
    """all(not x) = not any(x), any(not x) = not all(x). De Morgan."""
    return ops[1](x, axes=a, keepdims=k)


@rewrite_each(
    (argmax, argmin),
    lambda op: lambda x, a, k: op(x, axis=a, keepdims=k),
    samples=[{"x": "T[m,1]", "a": 1, "k": False}, {"x": "T[1]", "a": 0, "k": True}],
)
def only_place(op: Any, x: Tensor, a: int, k: bool) -> Tensor | None:
    """argmax and argmin along an axis of extent 1 are 0."""
    if not is_one(x.shape[a]):
        return None
    return full(shape=reduced_shape(x.shape, (a,), k), value=0, dtype=si64)

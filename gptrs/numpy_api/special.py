"""Functions that the ops express: angles in degrees, extremes without NaN, closeness."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gptrs.errors import ShapeError
from gptrs.ir.dims import same_shape
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import NUMBERS, promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, broadcast_shapes
from gptrs.numpy_api.function import as_tensor, public

__all__ = [
    "allclose",
    "array_equal",
    "array_equiv",
    "deg2rad",
    "divmod",
    "entr",
    "fmax",
    "fmin",
    "frac",
    "heaviside",
    "isclose",
    "lerp",
    "logit",
    "nan_to_num",
    "rad2deg",
    "rel_entr",
    "sinc",
    "xlog1py",
    "xlogy",
]

Operand = Any
"""A Tensor, an array or a Python number."""


def _floats(*operands: Operand) -> tuple[Any, ...]:
    """The operands in one dtype, a floating one: integers become f32."""
    given = [x if isinstance(x, NUMBERS) else as_tensor(x) for x in operands]
    if not any(isinstance(x, Tensor) for x in given):
        given[0] = as_tensor(given[0])
    return promote(tuple(given), ("float",))


def _shared(*operands: Operand) -> tuple[Any, ...]:
    """The operands as tensors in the dtype that they share."""
    return promote(tuple(map(as_tensor, operands)))


@public(op="mul")
def deg2rad(x: Operand) -> Tensor:
    """x · π / 180: degrees in radians."""
    return OPS["mul"](*_floats(x), math.pi / 180)


@public(op="mul")
def rad2deg(x: Operand) -> Tensor:
    """x · 180 / π: radians in degrees."""
    return OPS["mul"](*_floats(x), 180 / math.pi)


@public(op="sub")
def frac(x: Operand) -> Tensor:
    """x − trunc x: what is after the point, with the sign of x."""
    (x,) = _floats(x)
    return OPS["sub"](x, OPS["trunc"](x))


@public(op="select")
def heaviside(x: Operand, values: Operand) -> Tensor:
    """0 for x < 0, 1 for x > 0, ``values`` at 0; NaN stays."""
    x, values = _floats(x, values)
    x = as_tensor(x)
    step = OPS["cast"](OPS["greater"](x, 0.0), dtype=x.dtype)
    step = OPS["select"](OPS["is_nan"](x), x, step)
    return OPS["select"](OPS["equal"](x, 0.0), values, step)


@public(op="div")
def sinc(x: Operand) -> Tensor:
    """sin πx / (πx), and 1 at 0."""
    (x,) = _floats(x)
    given = as_tensor(x)
    # A rounded angle is wrong by up to its spacing, which at large x is a good part of a period.
    x = OPS["cast"](given, dtype=given.dtype.compute)
    angle = OPS["mul"](x, math.pi)
    angle = OPS["select"](OPS["equal"](x, 0.0), 1.0, angle)
    made = OPS["select"](OPS["equal"](x, 0.0), 1.0, OPS["div"](OPS["sin"](angle), angle))
    return OPS["cast"](made, dtype=given.dtype)


@public(op="mul")
def xlogy(x: Operand, y: Operand) -> Tensor:
    """x · log y, and 0 where x is 0 and y is no NaN."""
    x, y = map(as_tensor, _floats(x, y))
    nothing = OPS["logical_and"](OPS["equal"](x, 0.0), OPS["logical_not"](OPS["is_nan"](y)))
    return OPS["select"](nothing, 0.0, OPS["mul"](x, OPS["log"](y)))


@public(op="mul")
def xlog1py(x: Operand, y: Operand) -> Tensor:
    """x · log (1 + y), and 0 where x is 0 and y is no NaN."""
    x, y = map(as_tensor, _floats(x, y))
    nothing = OPS["logical_and"](OPS["equal"](x, 0.0), OPS["logical_not"](OPS["is_nan"](y)))
    return OPS["select"](nothing, 0.0, OPS["mul"](x, OPS["log1p"](y)))


@public(op="mul")
def entr(x: Operand) -> Tensor:
    """−x · log x, the entropy: 0 at 0 and −∞ below."""
    (x,) = _floats(x)
    x = as_tensor(x)
    return OPS["select"](OPS["less"](x, 0.0), -math.inf, OPS["neg"](xlogy(x, x)))


@public(op="mul")
def rel_entr(x: Operand, y: Operand) -> Tensor:
    """x · log (x / y), the terms of a relative entropy: 0 where x is 0 and y ≥ 0, and ∞ where one
    is negative or y alone is 0."""
    x, y = map(as_tensor, _floats(x, y))
    positive = OPS["logical_and"](OPS["greater"](x, 0.0), OPS["greater"](y, 0.0))
    found = OPS["mul"](x, OPS["log"](OPS["div"](x, y)))
    none = OPS["logical_and"](OPS["equal"](x, 0.0), OPS["greater_equal"](y, 0.0))
    found = OPS["select"](
        positive, found, OPS["select"](none, FUNCTIONS["zeros_like"](found), math.inf)
    )
    wrong = OPS["logical_or"](OPS["is_nan"](x), OPS["is_nan"](y))
    return OPS["select"](wrong, math.nan, found)


@public(op="mul")
def lerp(x: Operand, y: Operand, weight: Operand) -> Tensor:
    """x + weight · (y − x)."""
    x, y, weight = _floats(x, y, weight)
    return OPS["add"](x, OPS["mul"](weight, OPS["sub"](y, x)))


@public(op="log")
def logit(x: Operand, eps: float | None = None) -> Tensor:
    """log (x / (1 − x)), the inverse of the sigmoid; NaN outside of [0, 1]. With ``eps`` of x moved
    into [eps, 1 − eps]."""
    (x,) = _floats(x)
    x = x if eps is None else OPS["clamp"](x, eps, 1 - eps)
    return OPS["log"](OPS["div"](x, OPS["sub"](1.0, x)))


@public(op="div")
def divmod(x: Operand, y: Operand) -> tuple[Tensor, Tensor]:
    """⌊x / y⌋ and x − y·⌊x / y⌋; integers by zero are an error."""
    return FUNCTIONS["floor_divide"](x, y), OPS["remainder"](x, y)


def _without_nan(name: str, x: Operand, y: Operand) -> Tensor:
    x, y = _shared(x, y)
    extreme = FUNCTIONS[name](x, y)
    if not x.dtype.is_float:
        return extreme
    extreme = OPS["select"](OPS["is_nan"](y), x, extreme)
    return OPS["select"](OPS["is_nan"](x), y, extreme)


@public(op="maximum")
def fmax(x: Operand, y: Operand) -> Tensor:
    """The greater; NaN only where both are NaN."""
    return _without_nan("maximum", x, y)


@public(op="minimum")
def fmin(x: Operand, y: Operand) -> Tensor:
    """The lesser; NaN only where both are NaN."""
    return _without_nan("minimum", x, y)


@public(op="select")
def nan_to_num(
    x: Operand,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    copy: bool = True,
) -> Tensor:
    """``x``, in a new Tensor whatever ``copy`` says, with numbers for NaN and infinities; without
    ``posinf`` and ``neginf`` for these the greatest and the least of the dtype. Of complex numbers
    each part."""
    x = as_tensor(x)
    if x.dtype.is_complex:
        parts = (nan_to_num(OPS[part](x), nan, posinf, neginf) for part in ("real", "imag"))
        return OPS["complex"](*parts)
    if not x.dtype.is_float:
        return x
    most = _greatest(x.dtype)
    x = OPS["select"](OPS["is_nan"](x), nan, x)
    x = OPS["select"](OPS["equal"](x, math.inf), most if posinf is None else posinf, x)
    return OPS["select"](OPS["equal"](x, -math.inf), -most if neginf is None else neginf, x)


def _greatest(dtype: DType) -> float:
    return float(FUNCTIONS["finfo"](dtype).max)


@public(op="less_equal")
def isclose(
    x: Operand, y: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """|x − y| ≤ atol + rtol·|y|, and equal infinities; NaN equals NaN with ``equal_nan``."""
    x, y = map(as_tensor, _floats(x, y))
    size = FUNCTIONS["abs"](y)
    bound = OPS["add"](OPS["mul"](size, rtol), atol)
    near = OPS["less_equal"](FUNCTIONS["abs"](OPS["sub"](x, y)), bound)
    near = OPS["logical_and"](near, OPS["is_finite"](y))  # nothing else is near an infinity
    near = OPS["logical_or"](near, OPS["equal"](x, y))
    if equal_nan:
        both = OPS["logical_and"](OPS["is_nan"](x), OPS["is_nan"](y))
        near = OPS["logical_or"](near, both)
    return near


@public(op="reduce_all")
def allclose(
    x: Operand, y: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether all elements are close: see ``isclose``."""
    return OPS["reduce_all"](isclose(x, y, rtol, atol, equal_nan))


@public(op="reduce_all")
def array_equal(x: Operand, y: Operand, equal_nan: bool = False) -> Tensor:
    """Whether shapes and all elements are equal; NaN equals NaN with ``equal_nan``."""
    x, y = _shared(x, y)
    if not same_shape(x.shape, y.shape):
        return Tensor.of_array(np.asarray(False))
    same = OPS["equal"](x, y)
    if equal_nan and (x.dtype.is_float or x.dtype.is_complex):
        both = OPS["logical_and"](OPS["is_nan"](x), OPS["is_nan"](y))
        same = OPS["logical_or"](same, both)
    return OPS["reduce_all"](same)


@public
def array_equiv(x: Operand, y: Operand) -> Tensor:
    """Whether shapes broadcast to one of them and all elements are equal then."""
    x, y = _shared(x, y)
    try:
        shape = broadcast_shapes(x.shape, y.shape)
    except ShapeError:
        return Tensor.of_array(np.asarray(False))
    return OPS["reduce_all"](OPS["broadcast_to"](OPS["equal"](x, y), shape=shape))

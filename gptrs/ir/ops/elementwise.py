"""Elementwise ops: unary, binary, comparison, select, clamp, cast.

Operands are broadcast to one shape. Most ops are declared by one line of a table: name, docstring,
NumPy meaning, kinds of dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from typing import cast as typed

import numpy as np

from gptrs.errors import DTypeError, ElementError
from gptrs.ir.checks import one_dtype, one_shape, require
from gptrs.ir.dims import Dim, surely_greater
from gptrs.ir.extremes import MAXIMUM, MINIMUM
from gptrs.ir.primitives import Elementwise, elementwise
from gptrs.ir.program import Fails, Scalar
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, Kind, Type, as_dtype

__all__ = [
    "add",
    "bit_and",
    "bit_not",
    "bit_or",
    "bit_xor",
    "cast",
    "ceil",
    "clamp",
    "cos",
    "div",
    "equal",
    "erf",
    "exp",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "is_finite",
    "less",
    "less_equal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "mul",
    "neg",
    "not_equal",
    "reciprocal",
    "remainder",
    "rsqrt",
    "select",
    "shift_left",
    "shift_right",
    "sign",
    "sin",
    "sqrt",
    "stop_gradient",
    "sub",
    "tanh",
]

Number = Tensor | Scalar

REAL: tuple[Kind, ...] = ("int", "uint", "float")
NUMERIC: tuple[Kind, ...] = (*REAL, "complex")
FLOATING: tuple[Kind, ...] = ("float", "complex")
BITS: tuple[Kind, ...] = ("int", "uint")


def unary(
    name: str,
    doc: str,
    meaning: Callable[..., Any],
    kinds: tuple[Kind, ...],
    result: str = "",
    *,
    cost: int = 1,
) -> Elementwise[[Tensor], Tensor]:
    """An op of one operand, of a dtype of ``kinds``; ``result`` is the dtype of the result, that of
    the operand without it."""

    def rule(x: Tensor) -> Type:
        require(x, *kinds)
        return x.type.with_dtype(as_dtype(result)) if result else x.type

    rule.__name__, rule.__doc__, rule.__module__ = name, doc, __name__
    op: Elementwise[[Tensor], Tensor] = Elementwise(rule, cost=cost, kinds=kinds)
    op.numpy(meaning)
    return op


def binary(
    name: str,
    doc: str,
    meaning: Callable[..., Any],
    kinds: tuple[Kind, ...],
    *,
    commutative: bool = False,
    result: str = "",
    cost: int = 1,
) -> Elementwise[[Number, Number], Tensor]:
    """An op of two operands of one dtype, of ``kinds``."""

    def rule(x: Number, y: Number) -> Type:
        dtype = one_dtype(x, y)
        for operand in (x, y):
            if isinstance(operand, Tensor):
                require(operand, *kinds)
        return Type(one_shape(x, y), as_dtype(result) if result else dtype)

    rule.__name__, rule.__doc__, rule.__module__ = name, doc, __name__
    op: Elementwise[[Number, Number], Tensor] = Elementwise(
        rule, commutative=commutative, cost=cost, kinds=kinds
    )
    op.numpy(meaning)
    return op


def _erf(x: Array) -> Array:
    return np.array([math.erf(e) for e in x.ravel().tolist()], x.dtype).reshape(x.shape)


def _reciprocal(x: Array) -> Array:
    return np.ones((), x.dtype) / x


def _rsqrt(x: Array) -> Array:
    return _reciprocal(np.sqrt(x))


def _check_divisor(divisor: Any) -> None:
    """Integer division by zero has no result (float division is IEEE)."""
    array = np.asarray(divisor)
    if array.dtype.kind in "iu" and not array.all():
        raise ElementError(
            "integer division by zero", fix="select a divisor that is not zero where it matters"
        )


def _div(x: Any, y: Any) -> Any:
    if _is_integer(x, y):
        _check_divisor(y)
        return np.floor_divide(x, y)
    return np.true_divide(x, y)


def _remainder(x: Any, y: Any) -> Any:
    if _is_integer(x, y):
        _check_divisor(y)
    return np.remainder(x, y)


def _pow(x: Any, y: Any) -> Any:
    if _is_integer(x, y) and np.any(np.asarray(y) < 0):
        raise ElementError("an integer to a negative integer power is no integer")
    if _is_integer(x, y):
        return np.power(x, y)
    # For one power of many elements NumPy takes √x in place of x⁰·⁵, which differs at −∞ and −0.
    shape = np.broadcast_shapes(np.shape(x), np.shape(y))
    powers = np.array(np.broadcast_to(np.asarray(y, np.result_type(x, y)), shape or (1,)))
    return np.power(x, powers).reshape(shape)


def _check_shift(amount: Any) -> None:
    if np.any(np.asarray(amount) < 0):
        raise ElementError("a shift by a negative number of bits")


def _shift_left(x: Any, y: Any) -> Any:
    _check_shift(y)
    return np.left_shift(x, y)


def _shift_right(x: Any, y: Any) -> Any:
    _check_shift(y)
    return np.right_shift(x, y)


def _is_integer(*operands: Any) -> bool:
    arrays: list[Array] = [o for o in operands if isinstance(o, np.ndarray)]
    return all(array.dtype.kind in "iu" for array in arrays)


neg = unary("neg", "−x; integers wrap.", np.negative, NUMERIC)
abs_ = unary("abs", "|x|; the least integer stays as it is.", np.abs, REAL)
exp = unary("exp", "eˣ.", np.exp, FLOATING, cost=10)
log = unary("log", "The natural logarithm; −∞ at 0 and NaN below.", np.log, FLOATING, cost=10)
tanh = unary("tanh", "The hyperbolic tangent.", np.tanh, FLOATING, cost=10)
erf = unary("erf", "2/√π ∫₀ˣ exp(−t²) dt.", _erf, ("float",), cost=10)
sqrt = unary("sqrt", "√x; NaN below 0.", np.sqrt, FLOATING, cost=4)
rsqrt = unary("rsqrt", "1/√x.", _rsqrt, FLOATING, cost=4)
reciprocal = unary("reciprocal", "1/x.", _reciprocal, FLOATING, cost=4)
sin = unary("sin", "The sine of x radians.", np.sin, FLOATING, cost=10)
cos = unary("cos", "The cosine of x radians.", np.cos, FLOATING, cost=10)
floor = unary("floor", "The greatest integer ≤ x.", np.floor, ("float",))
ceil = unary("ceil", "The least integer ≥ x.", np.ceil, ("float",))
round_ = unary("round", "The nearest integer, halves to the even one.", np.rint, ("float",))
sign = unary("sign", "−1, 0 or 1; NaN stays NaN.", np.sign, REAL)
is_finite = unary("is_finite", "Neither infinite nor NaN.", np.isfinite, FLOATING, "i1")
logical_not = unary("logical_not", "Not x.", np.logical_not, ("bool",), cost=0)
bit_not = unary("bit_not", "All bits inverted.", np.invert, BITS)

add = binary("add", "x + y; integers wrap.", np.add, NUMERIC, commutative=True)
sub = binary("sub", "x − y; integers wrap.", np.subtract, NUMERIC)
mul = binary("mul", "x · y; integers wrap.", np.multiply, NUMERIC, commutative=True)
floor_divide = binary(
    "floor_divide",
    "⌊x / y⌋ of floats, also where x / y is rounded up to an integer; NaN where x is infinite and"
    " y is not 0. `div` floors integers.",
    np.floor_divide,
    ("float",),
)
div = binary("div", "x / y; integers floor, and by zero is an error.", _div, NUMERIC, cost=4)
maximum = binary(
    "maximum", "The greater; NaN wins, and +0 over −0.", MAXIMUM, REAL, commutative=True
)
minimum = binary(
    "minimum", "The lesser; NaN wins, and −0 over +0.", MINIMUM, REAL, commutative=True
)
pow_ = binary("pow", "x to the power y.", _pow, NUMERIC, cost=10)
remainder = binary(
    "remainder",
    "x − y·⌊x/y⌋: it has the sign of y; by integer zero is an error.",
    _remainder,
    REAL,
    cost=4,
)
logical_and = binary("logical_and", "Both.", np.logical_and, ("bool",), commutative=True, cost=0)
logical_or = binary("logical_or", "Either.", np.logical_or, ("bool",), commutative=True, cost=0)
bit_and = binary("bit_and", "Bits set in both.", np.bitwise_and, BITS, commutative=True)
bit_or = binary("bit_or", "Bits set in either.", np.bitwise_or, BITS, commutative=True)
bit_xor = binary("bit_xor", "Bits set in one.", np.bitwise_xor, BITS, commutative=True)
shift_left = binary(
    "shift_left",
    "x · 2ʸ, wrapped; 0 when y ≥ the number of bits; y < 0 is an error.",
    _shift_left,
    BITS,
)
shift_right = binary(
    "shift_right",
    "⌊x / 2ʸ⌋: the sign is kept; y < 0 is an error.",
    _shift_right,
    BITS,
)


def _unless(accepts: Callable[[int | Dim], bool]) -> Callable[..., Fails]:
    """The failure rule of integers: at elements, unless the second operand is a number that
    ``accepts`` holds for."""

    def fails(x: Number, y: Number) -> Fails:
        if not any(isinstance(o, Tensor) and o.dtype.is_integer for o in (x, y)):
            return Fails.NEVER
        return Fails.NEVER if isinstance(y, int | Dim) and accepts(y) else Fails.AT_ELEMENTS

    return fails


for _op in (div, remainder):
    _op.failing(_unless(lambda y: surely_greater(y, 0) or surely_greater(0, y)))
    _op.harmless = {"y": 1}
for _op in (pow_, shift_left, shift_right):
    _op.failing(_unless(lambda y: surely_greater(y, -1)))
    _op.harmless = {"y": 0}

ORDERED: tuple[Kind, ...] = (*REAL, "bool")
ANY: tuple[Kind, ...] = (*NUMERIC, "bool")
less = binary("less", "x < y; NaN is less than nothing.", np.less, ORDERED, result="i1", cost=0)
less_equal = binary("less_equal", "x ≤ y.", np.less_equal, ORDERED, result="i1", cost=0)
greater = binary("greater", "x > y.", np.greater, ORDERED, result="i1", cost=0)
greater_equal = binary("greater_equal", "x ≥ y.", np.greater_equal, ORDERED, result="i1", cost=0)
equal = binary("equal", "x = y.", np.equal, ANY, commutative=True, result="i1", cost=0)
not_equal = binary("not_equal", "x ≠ y.", np.not_equal, ANY, commutative=True, result="i1", cost=0)


@elementwise(predicate=True)
def select(pred: Tensor, a: Number, b: Number) -> Type:
    """``a`` where ``pred`` holds, else ``b``."""
    require(pred, "bool")
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        raise DTypeError(
            f"the numbers {a} and {b} have no dtype",
            fix="make one of them a Tensor: ptir.full(shape=pred.shape, value=..., dtype='f32')",
        )
    return Type(one_shape(pred, a, b), one_dtype(a, b))


@select.numpy
def _(pred: Array, a: Any, b: Any) -> Any:
    return typed("Array", np.where(pred, a, b))


@elementwise
def clamp(x: Tensor, lo: Number, hi: Number) -> Type:
    """min(max(x, lo), hi); NaN in any of them wins, and −0 is less than +0."""
    require(x, *REAL)
    return Type(one_shape(x, lo, hi), one_dtype(x, lo, hi))


@clamp.numpy
def _(x: Array, lo: Any, hi: Any) -> Any:
    return MINIMUM(MAXIMUM(x, lo), hi)


@elementwise(cost=0)
def cast(x: Tensor, *, dtype: DType) -> Type:
    """The elements in another dtype.

    Float to float rounds to nearest even; float to integer truncates and saturates, NaN becomes 0;
    integer to integer wraps; anything to i1 asks whether it is not 0.
    """
    if x.dtype.is_complex and not (dtype.is_complex or dtype.is_bool):
        raise DTypeError(f"{x.dtype} does not convert to {dtype}: the imaginary part would be lost")
    return x.type.with_dtype(dtype)


@cast.numpy
def _(x: Array, *, dtype: DType) -> Array:
    if dtype.is_bool:
        return x != 0
    if dtype.is_integer and as_dtype(x.dtype).is_float:
        return _truncate(x, dtype)
    if dtype.bits == 4:
        return x.astype(np.int64)  # wrapped to 4 bits where results are rounded
    if x.dtype == np.float64 and dtype.is_float and dtype.bits <= 16 and dtype.name != "f16":
        x = _to_odd(x)
    return x.astype(dtype.numpy)


def _to_odd(x: Array) -> Array:
    """f64 as f32, rounded to odd: inexact values to the neighbour with an odd last bit.

    Rounding that once more gives the bits of rounding ``x`` once. Source: Boldo and Melquiond,
    "When double rounding is odd".
    """
    near = x.astype(np.float32)
    toward_zero = np.where(np.abs(near) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    return (toward_zero.view(np.int32) | (toward_zero != x)).view(np.float32)


def _truncate(x: Array, dtype: DType) -> Array:
    low, high = dtype.limits
    whole = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = (whole > float(low)) & (whole < float(high))
    wide = np.uint64 if dtype.kind == "uint" else np.int64
    result = np.where(inside, whole, 0.0).astype(wide)
    result[whole >= float(high)] = high
    result[whole <= float(low)] = low
    return result if dtype.bits == 4 else result.astype(dtype.numpy)


@elementwise
def stop_gradient(x: Tensor) -> Type:
    """``x``; gradients do not pass."""
    return x.type


@stop_gradient.numpy
def _(x: Array) -> Array:
    return x

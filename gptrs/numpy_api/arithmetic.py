"""Element-wise functions whose op depends on the dtype: bools add by "or", integers divide as f32.

The operators of tensors call these. Functions that are one op for every dtype are that op itself
(``ptir.exp``), or an alias of it (``ptir.subtract``, `gptrs.numpy_api.ALIASES`).
"""

from __future__ import annotations

from typing import Any, Literal

from gptrs.errors import ArgumentError, DTypeError
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import DEFAULT_FLOAT, NUMBERS, is_strict, result_dtype
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import cast_text, code_of
from gptrs.ir.types import DType
from gptrs.numpy_api.function import as_tensor, public

__all__ = [
    "add",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_or",
    "bitwise_xor",
    "clip",
    "divide",
    "floor_divide",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "positive",
    "where",
]

Operand = Any
"""A Tensor, an array or a Python number."""


def _dtype(*operands: Operand) -> DType | None:
    return result_dtype([x if isinstance(x, NUMBERS) else as_tensor(x) for x in operands])


def _all_bool(*operands: Operand) -> bool:
    dtype = _dtype(*operands)
    return dtype is not None and dtype.is_bool


@public
def add(x: Operand, y: Operand) -> Tensor:
    """x + y; of bools whether either holds, as in NumPy."""
    return OPS["logical_or" if _all_bool(x, y) else "add"](x, y)


@public(op="mul")
def multiply(x: Operand, y: Operand) -> Tensor:
    """x · y; of bools whether both hold."""
    return OPS["logical_and" if _all_bool(x, y) else "mul"](x, y)


@public
def maximum(x: Operand, y: Operand) -> Tensor:
    """The greater; NaN wins, and +0 over −0. Of bools whether either holds."""
    return OPS["logical_or" if _all_bool(x, y) else "maximum"](x, y)


@public
def minimum(x: Operand, y: Operand) -> Tensor:
    """The lesser; NaN wins, and −0 over +0. Of bools whether both hold."""
    return OPS["logical_and" if _all_bool(x, y) else "minimum"](x, y)


@public(op="div")
def divide(
    x: Operand, y: Operand, *, rounding_mode: Literal["floor", "trunc"] | None = None
) -> Tensor:
    """x / y; integers and bools divide as f32. ``rounding_mode`` rounds the quotient down or
    toward 0, and keeps integers, as in torch."""
    if rounding_mode is not None:
        return _whole_quotient(x, y, rounding_mode)
    if is_strict():
        _refuse_integers(x, y)
    dtype = _dtype(x, y)
    if dtype is None or dtype.is_float or dtype.is_complex:
        return OPS["div"](x, y)
    return OPS["div"](_as_float(x), _as_float(y))


def _whole_quotient(x: Operand, y: Operand, mode: str) -> Tensor:
    if mode == "floor":
        return floor_divide(x, y)
    if mode != "trunc":
        raise ArgumentError(f"rounding_mode is {mode!r}, expected 'floor', 'trunc' or None")
    dtype = _dtype(x, y)
    if dtype is not None and dtype.is_integer:
        return OPS["div"](OPS["sub"](x, FUNCTIONS["fmod"](x, y)), y)
    return FUNCTIONS["trunc"](divide(x, y))


def _refuse_integers(x: Operand, y: Operand) -> None:
    """Raise the error of strict programs where an operand is an integer tensor, with both
    divisions in the user's names."""
    sides = [side if isinstance(side, NUMBERS) else as_tensor(side) for side in (x, y)]
    integers = [side.dtype for side in sides if isinstance(side, Tensor) and side.dtype.is_integer]
    if not integers:
        return
    second = "y" if isinstance(sides[0], Tensor) else "x"
    names = [code_of(sides[0], "x"), code_of(sides[1], second)]
    floats = [s.dtype for s in sides if isinstance(s, Tensor) and s.dtype.is_float]
    wanted = floats[0] if floats else DEFAULT_FLOAT
    casts = [
        cast_text(name, wanted) if isinstance(side, Tensor) and side.dtype.is_integer else name
        for side, name in zip(sides, names, strict=True)
    ]
    raise DTypeError(
        f"/ needs floating operands, found {integers[0]}",
        fix=f"{' // '.join(names)} divides integers; {' / '.join(casts)} divides as floats",
    )


def _as_float(x: Operand) -> Any:
    return x if isinstance(x, NUMBERS) else OPS["cast"](x, dtype=DEFAULT_FLOAT)


@public
def floor_divide(x: Operand, y: Operand) -> Tensor:
    """⌊x / y⌋; integers by zero are an error."""
    dtype = _dtype(x, y)
    return OPS["floor_divide" if dtype is not None and dtype.is_float else "div"](x, y)


@public
def positive(x: Operand) -> Tensor:
    """x itself."""
    return as_tensor(x)


def _bits_or_logical(name: str, x: Operand, y: Operand) -> Tensor:
    return OPS[f"{'logical' if _all_bool(x, y) else 'bit'}_{name}"](x, y)


@public(op="bit_and")
def bitwise_and(x: Operand, y: Operand) -> Tensor:
    """Bits set in both; of bools whether both hold."""
    return _bits_or_logical("and", x, y)


@public(op="bit_or")
def bitwise_or(x: Operand, y: Operand) -> Tensor:
    """Bits set in either; of bools whether either holds."""
    return _bits_or_logical("or", x, y)


@public(op="bit_xor")
def bitwise_xor(x: Operand, y: Operand) -> Tensor:
    """Bits set in one of them; of bools whether one alone holds."""
    return OPS["not_equal" if _all_bool(x, y) else "bit_xor"](x, y)


@public(op="bit_not")
def bitwise_invert(x: Operand) -> Tensor:
    """All bits inverted; of bools the negation."""
    x = as_tensor(x)
    return OPS["logical_not" if x.dtype.is_bool else "bit_not"](x)


def _truth(x: Operand) -> Any:
    """Whether each element differs from 0."""
    if isinstance(x, NUMBERS):
        return bool(x)
    return truth(x)


def truth(x: Operand) -> Tensor:
    """``x`` as bools: whether each element differs from 0."""
    x = as_tensor(x)
    return x if x.dtype.is_bool or is_strict() else OPS["cast"](x, dtype="i1")


@public
def logical_and(x: Operand, y: Operand) -> Tensor:
    """Whether both differ from 0."""
    return OPS["logical_and"](_truth(x), _truth(y))


@public
def logical_or(x: Operand, y: Operand) -> Tensor:
    """Whether either differs from 0."""
    return OPS["logical_or"](_truth(x), _truth(y))


@public(op="not_equal")
def logical_xor(x: Operand, y: Operand) -> Tensor:
    """Whether one of them alone differs from 0."""
    return OPS["not_equal"](_truth(x), _truth(y))


@public
def logical_not(x: Operand) -> Tensor:
    """Whether x is 0."""
    return OPS["logical_not"](truth(x))


@public(op="clamp", other_names={"a_min": "min", "a_max": "max"})
def clip(x: Operand, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """min(max(x, min), max), in the dtype of ``x``; None leaves a bound out. NaN wins."""
    x = as_tensor(x)
    low, high = (_bound(x, bound) for bound in (min, max))
    if low is not None and high is not None:
        return OPS["clamp"](x, low, high)
    if low is not None:
        return OPS["maximum"](x, low)
    return x if high is None else OPS["minimum"](x, high)


def _bound(x: Tensor, bound: Operand | None) -> Any:
    """A bound in the dtype of ``x`` where both are of one kind, so that the result has it."""
    if bound is None or isinstance(bound, NUMBERS):
        return bound
    bound = as_tensor(bound)
    if x.dtype.kind == bound.dtype.kind and not is_strict():
        return bound.astype(x.dtype)
    return bound


@public(op="select")
def where(
    condition: Operand,
    x: Operand = None,
    y: Operand = None,
    *,
    size: Any = None,
    fill_value: int = 0,
) -> Any:
    """x where ``condition`` differs from 0, else y. Shapes broadcast. Of a condition alone the
    positions where it holds: `nonzero`, with its ``size`` and ``fill_value``."""
    if x is None and y is None:
        return FUNCTIONS["nonzero"](condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ArgumentError("where: x or y is missing", fix="where(condition, x, y)")
    if isinstance(x, NUMBERS) and isinstance(y, NUMBERS):
        x = as_tensor(x)
    return OPS["select"](truth(condition), x, y)

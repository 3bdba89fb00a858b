"""Arithmetic, comparisons, logic, bits and casts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType
from gptrs.onnx.table import enter_all, onnx, ptir
from gptrs.onnx.tensors import dtype_of

_UNARY = {
    "Abs": ptir.abs,
    "Acos": ptir.acos,
    "Acosh": ptir.acosh,
    "Asin": ptir.asin,
    "Asinh": ptir.asinh,
    "Atan": ptir.atan,
    "Atanh": ptir.atanh,
    "BitwiseNot": ptir.bitwise_not,
    "Ceil": ptir.ceil,
    "Cos": ptir.cos,
    "Cosh": ptir.cosh,
    "Erf": ptir.erf,
    "Exp": ptir.exp,
    "Floor": ptir.floor,
    "Identity": ptir.asarray,
    "IsNaN": ptir.isnan,
    "Log": ptir.log,
    "Neg": ptir.negative,
    "Not": ptir.logical_not,
    "Reciprocal": ptir.reciprocal,
    "Round": ptir.round,
    "Sign": ptir.sign,
    "Sin": ptir.sin,
    "Sinh": ptir.sinh,
    "Sqrt": ptir.sqrt,
    "Tan": ptir.tan,
    "Tanh": ptir.tanh,
}
enter_all(_UNARY)
_BINARY = {
    "Add": ptir.add,
    "And": ptir.logical_and,
    "BitwiseAnd": ptir.bitwise_and,
    "BitwiseOr": ptir.bitwise_or,
    "BitwiseXor": ptir.bitwise_xor,
    "Equal": ptir.equal,
    "Greater": ptir.greater,
    "GreaterOrEqual": ptir.greater_equal,
    "Less": ptir.less,
    "LessOrEqual": ptir.less_equal,
    "Mul": ptir.multiply,
    "Or": ptir.logical_or,
    "Sub": ptir.subtract,
    "Xor": ptir.logical_xor,
}


def _binary(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``function`` with the broadcasting of opsets before 7, where it is asked for."""

    def call(x: Tensor, y: Tensor, axis: int | None = None, broadcast: int = 0) -> Tensor:
        if axis is not None and axis + y.ndim != x.ndim:
            axis %= x.ndim
            y = ptir.reshape(y, (*y.shape, *(1,) * (x.ndim - axis - y.ndim)))
        return function(x, y)

    return call


enter_all({name: _binary(function) for name, function in _BINARY.items()})


@onnx("Div")
def div(x: Tensor, y: Tensor, axis: int | None = None, broadcast: int = 0) -> Tensor:
    """The quotient; of integers cut off towards zero."""
    if not x.dtype.is_integer:
        return _binary(ptir.divide)(x, y, axis, broadcast)
    return _binary(partial(ptir.divide, rounding_mode="trunc"))(x, y, axis, broadcast)


@onnx("Mod")
def mod(x: Tensor, y: Tensor, fmod: int = 0) -> Tensor:
    """The remainder, with the sign of y, or as in C with that of x."""
    return ptir.fmod(x, y) if fmod else ptir.remainder(x, y)


@onnx("Pow")
def power(x: Tensor, y: Tensor, axis: int | None = None, broadcast: int = 0) -> Tensor:
    """The power in the dtype of x."""
    made = _binary(ptir.power)(x, _as_wide(y, x.dtype), axis, broadcast)
    return ptir.astype(made, x.dtype)


def _as_wide(y: Tensor, dtype: DType) -> Tensor:
    """An integer exponent as it is; others in the dtype of the base where that is a float."""
    return y if y.dtype.is_integer or dtype.is_integer else ptir.astype(y, dtype)


@onnx("BitShift")
def bit_shift(x: Tensor, y: Tensor, direction: str) -> Tensor:
    """``x`` shifted by ``y`` bits; to the right the sign stays."""
    return (ptir.left_shift if direction == "LEFT" else ptir.right_shift)(x, y)


def _of_several(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``function`` of two, of any number of operands."""

    def call(*operands: Tensor) -> Tensor:
        return reduce(function, operands)

    return call


enter_all(
    {
        "Max": _of_several(ptir.maximum),
        "Min": _of_several(ptir.minimum),
        "Sum": _of_several(ptir.add),
    }
)


@onnx("Mean")
def mean(*operands: Tensor) -> Tensor:
    """The mean of the operands, element by element."""
    return ptir.divide(reduce(ptir.add, operands), len(operands))


@onnx("Where")
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ptir.where(condition, x, y)


@onnx("IsInf")
def is_inf(x: Tensor, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    """Where x is infinite, with the signs that are asked for."""
    if not detect_negative:
        return ptir.isposinf(x) if detect_positive else ptir.zeros_like(x, dtype=bool)
    return ptir.isinf(x) if detect_positive else ptir.isneginf(x)


@onnx("Clip")
def clip(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """``x`` between two bounds; the upper one wins."""
    if min is not None:
        x = ptir.maximum(x, ptir.asarray(min, dtype=x.dtype))
    return x if max is None else ptir.minimum(x, ptir.asarray(max, dtype=x.dtype))


@onnx("Cast")
def cast(x: Tensor, to: int, saturate: int = 1, round_mode: str = "up") -> Tensor:
    """``x`` in the dtype whose number in TensorProto is ``to``."""
    return _cast(x, dtype_of(to), saturate)


@onnx("CastLike")
def cast_like(x: Tensor, like: Tensor, saturate: int = 1, round_mode: str = "up") -> Tensor:
    return _cast(x, like.dtype, saturate)


def _cast(x: Tensor, dtype: DType, saturate: int) -> Tensor:
    """Floats that are too large for 8 bits become the largest one."""
    if dtype.is_bool:
        return ptir.not_equal(x, 0)
    if dtype.bits == 8 and dtype.is_float and x.dtype is not dtype:
        if not saturate:
            return ptir.astype(x, dtype)
        most = float(ptir.finfo(dtype).max)
        wide = ptir.astype(x, ptir.f32)
        kept = ptir.where(ptir.isnan(wide), wide, ptir.clip(wide, -most, most))
        return ptir.astype(kept, dtype)
    return ptir.astype(x, dtype)


@onnx("BitCast")
def bit_cast(x: Tensor, to: int) -> Tensor:
    """The bits of ``x`` read as another dtype."""
    return ptir.bitcast(x, dtype_of(to))

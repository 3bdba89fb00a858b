"""Checks that type rules share."""

from __future__ import annotations

from typing import Any

from gptrs.errors import DTypeError, ShapeError
from gptrs.ir.dims import Dim, Shape, same_shape
from gptrs.ir.operands import tensors_in
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, Kind, shape_text


def require(x: Tensor, *kinds: Kind) -> None:
    """Raise `DTypeError` unless the dtype of ``x`` is of one of ``kinds``."""
    if x.dtype.kind not in kinds:
        expected = " or ".join(kinds)
        fix = "ptir.cast(x, dtype='f32')" if "float" in kinds else f"cast to a {kinds[0]} dtype"
        raise DTypeError(f"found dtype {x.dtype}, expected a {expected} dtype", fix=fix)


def one_dtype(*operands: Any) -> DType:
    """The dtype that all tensors among ``operands`` share, with literals that it can hold.

    Raises `DTypeError` when they differ: nothing is promoted silently.
    """
    tensors = tensors_in(operands)
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        if tensor.dtype is not dtype:
            raise DTypeError(
                f"operands have dtypes {dtype} and {tensor.dtype}, expected one",
                fix=f"ptir.cast(x, dtype='{dtype}')",
            )
    for operand in operands:
        if not isinstance(operand, Tensor):
            _check_literal(operand, dtype)
    return dtype


def one_shape(*operands: Any) -> Shape:
    """The shape that all tensors among ``operands`` share."""
    tensors = tensors_in(operands)
    for tensor in tensors[1:]:
        if not same_shape(tensor.shape, tensors[0].shape):
            shapes = " and ".join(shape_text(t.shape) for t in (tensors[0], tensor))
            raise ShapeError(f"an elementwise instruction has operands of shapes {shapes}")
    return tensors[0].shape


def _check_literal(value: object, dtype: DType) -> None:
    """A scalar must be exact in kind: 2 fits f32, 2.5 does not fit si32, 300 does not fit ui8."""
    if isinstance(value, bool):
        fits = dtype.is_bool
    elif isinstance(value, Dim):
        fits = dtype.is_integer or dtype.is_float
    elif isinstance(value, int):
        fits = not dtype.is_bool
        low, high = dtype.limits if dtype.is_integer else (-(2**1023), 2**1023)
        if not low <= value <= high:
            shown = str(value) if value.bit_length() <= 64 else f"of {value.bit_length()} bits"
            raise DTypeError(f"the number {shown} does not fit {dtype}")
    elif isinstance(value, float):
        fits = dtype.is_float or dtype.is_complex
    else:
        fits = isinstance(value, complex) and dtype.is_complex
    if not fits:
        target = "cf32" if isinstance(value, complex) else "f32"
        raise DTypeError(
            f"the {type(value).__name__} {value} does not fit a tensor of dtype {dtype}",
            fix=f"ptir.cast(x, dtype='{target}')",
        )


def sum_dtype(x: Tensor, accum_dtype: DType | None, out_dtype: DType | None) -> DType:
    """The dtype of a sum over ``x``: its own unless told otherwise, and of the same kind."""
    require(x, "int", "uint", "float", "complex")
    for name, dtype in (("accum_dtype", accum_dtype), ("out_dtype", out_dtype)):
        if dtype is not None and (dtype.is_integer, dtype.kind in ("float", "complex")) != (
            x.dtype.is_integer,
            x.dtype.kind in ("float", "complex"),
        ):
            raise DTypeError(
                f"{name} is {dtype} and the operand {x.dtype}: expected the same kind",
                fix=f"ptir.cast(x, dtype='{dtype}')",
            )
    return out_dtype or accum_dtype or x.dtype

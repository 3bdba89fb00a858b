"""Checks of operands shared by the type rules of ops: kind, common dtype, common shape.

Called by the modules of `gptrs.ir.ops`. Nothing is promoted silently: operands of different dtypes
are a `DTypeError` with the cast that the user may write (`gptrs.ir.hints`).
"""

from __future__ import annotations

from typing import Any

from gptrs.errors import DTypeError, ShapeError
from gptrs.ir.dims import Dim, Shape, same_shape
from gptrs.ir.hints import wrong_dtype
from gptrs.ir.operands import tensors_in
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, Kind, common_dtype, shape_text, si32, si64, ui64

_OF_KIND = {"float": "f32", "int": "si32", "uint": "ui8", "bool": "i1", "complex": "cf32"}


def require(x: Tensor, *kinds: Kind) -> None:
    """Raise `DTypeError` unless the dtype of ``x`` is of one of ``kinds``."""
    if x.dtype.kind not in kinds:
        expected = " or ".join(kinds)
        wanted = _OF_KIND["float" if "float" in kinds else kinds[0]]
        raise wrong_dtype(f"found dtype {x.dtype}, expected a {expected} dtype", x, wanted)


def one_dtype(*operands: Any) -> DType:
    """The dtype that all tensors among ``operands`` share, with literals that it can hold.

    Raises `DTypeError` when they differ: nothing is promoted silently.
    """
    tensors = tensors_in(operands)
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        if tensor.dtype is not dtype:
            wanted = common_dtype([t.dtype for t in tensors])
            culprit = next(t for t in tensors if t.dtype is not wanted)
            problem = f"operands have dtypes {dtype} and {tensor.dtype}, expected one"
            raise wrong_dtype(problem, culprit, wanted)
    for operand in operands:
        if not isinstance(operand, Tensor):
            _check_literal(operand, tensors[0])
    return dtype


def one_shape(*operands: Any) -> Shape:
    """The shape that all tensors among ``operands`` share."""
    tensors = tensors_in(operands)
    for tensor in tensors[1:]:
        if not same_shape(tensor.shape, tensors[0].shape):
            shapes = " and ".join(shape_text(t.shape) for t in (tensors[0], tensor))
            raise ShapeError(f"an elementwise instruction has operands of shapes {shapes}")
    return tensors[0].shape


def _check_literal(value: object, x: Tensor) -> None:
    """Raise unless a scalar beside ``x`` fits its dtype: 2 fits f32, 2.5 does not fit si32, 300
    does not fit ui8."""
    dtype = x.dtype
    if isinstance(value, bool):
        if not dtype.is_bool:
            raise DTypeError(
                f"the bool {value} does not fit a tensor of dtype {dtype}",
                fix=f"write {int(value)}",
            )
        return
    if isinstance(value, Dim):
        fits, wanted = dtype.is_integer or dtype.is_float, "si32"
    elif isinstance(value, int):
        fits, wanted = not dtype.is_bool, "si32"
        low, high = dtype.limits if dtype.is_integer else (-(2**1023), 2**1023)
        if not low <= value <= high:
            shown = str(value) if value.bit_length() <= 64 else f"of {value.bit_length()} bits"
            problem = f"the number {shown} does not fit {dtype}"
            if (holding := _holding(value)) is None:
                raise DTypeError(problem, fix="give a number of at most 64 bits")
            raise wrong_dtype(problem, x, holding)
    elif isinstance(value, float):
        fits, wanted = dtype.is_float or dtype.is_complex, "f32"
    else:
        fits, wanted = isinstance(value, complex) and dtype.is_complex, "cf32"
    if not fits:
        problem = f"the {type(value).__name__} {value} does not fit a tensor of dtype {dtype}"
        raise wrong_dtype(problem, x, wanted)


def _holding(value: int) -> DType | None:
    """The first of the usual integers that holds ``value``."""
    for dtype in (si32, si64, ui64):
        low, high = dtype.limits
        if low <= value <= high:
            return dtype
    return None


def sum_dtype(x: Tensor, accum_dtype: DType | None, out_dtype: DType | None) -> DType:
    """The dtype of a sum over ``x``: ``out_dtype``, ``accum_dtype`` or its own, all of the same
    kind."""
    require(x, "int", "uint", "float", "complex")
    for name, dtype in (("accum_dtype", accum_dtype), ("out_dtype", out_dtype)):
        if dtype is not None and (dtype.is_integer, dtype.kind in ("float", "complex")) != (
            x.dtype.is_integer,
            x.dtype.kind in ("float", "complex"),
        ):
            problem = f"{name} is {dtype} and the operand {x.dtype}: expected the same kind"
            raise wrong_dtype(problem, x, dtype)
    return out_dtype or accum_dtype or x.dtype

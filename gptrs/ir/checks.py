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
        if dtype.is_integer and not dtype.limits[0] <= value <= dtype.limits[1]:
            raise DTypeError(f"the number {value} does not fit {dtype}")
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

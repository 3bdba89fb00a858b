"""Complex numbers and their parts. Real operands are those of `gptrs.numpy_api.complex_numbers`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.errors import DTypeError
from gptrs.ir.checks import one_dtype, one_shape, require
from gptrs.ir.ops.elementwise import Number, unary
from gptrs.ir.primitives import Elementwise, elementwise
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, cf32, cf64, f32, f64

__all__ = ["conj", "imag", "real"]


def _part(name: str, doc: str, meaning: Any) -> Elementwise[[Tensor], Tensor]:
    def rule(x: Tensor) -> Type:
        require(x, "complex")
        return x.type.with_dtype(f64 if x.dtype is cf64 else f32)

    rule.__name__, rule.__doc__, rule.__module__ = name, doc, __name__
    op: Elementwise[[Tensor], Tensor] = Elementwise(rule, cost=0, kinds=("complex",))
    op.numpy(meaning)
    return op


real = _part("real", "The real part of a complex number, a float.", np.real)
imag = _part("imag", "The imaginary part of a complex number, a float.", np.imag)
conj = unary("conj", "The complex conjugate.", np.conjugate, ("complex",))


@elementwise
def complex_(real: Number, imag: Number) -> Type:
    """real + i·imag: two f32 make cf32, two f64 cf64."""
    dtype = one_dtype(real, imag)
    if dtype not in (f32, f64):
        raise DTypeError(f"complex takes f32 or f64, found {dtype}", fix="cast the parts first")
    return Type(one_shape(real, imag), cf64 if dtype is f64 else cf32)


@complex_.numpy
def of_parts(real: Any, imag: Any) -> Array:
    """Complex numbers of their parts, arrays or numbers beside them."""
    shape = np.broadcast_shapes(np.shape(real), np.shape(imag))
    made: Any = np.empty(shape, np.result_type(dtype_of(real, imag), 1j))
    made.real, made.imag = real, imag
    return made


def dtype_of(*operands: Any) -> Any:
    """The dtype of the arrays among ``operands``."""
    return next(o.dtype for o in operands if isinstance(o, np.ndarray))  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]

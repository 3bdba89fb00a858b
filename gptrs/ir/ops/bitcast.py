"""bitcast: the bits of elements as those of another dtype of the same width.

Truth values are bytes 0 and 1. Other widths, which change the shape, are those of
`gptrs.numpy_api.element_views`.
"""

from __future__ import annotations

import numpy as np

from gptrs.errors import DTypeError
from gptrs.ir.primitives import elementwise
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, Array, DType, Type, as_dtype

__all__ = ["bitcast"]


def width(dtype: DType) -> int:
    """The bits of an element, which a `bitcast` keeps."""
    return 8 if dtype.is_bool else dtype.bits


def bits_dtype(dtype: DType) -> DType:
    """The unsigned integers of the width of ``dtype``."""
    return DTYPES[f"ui{width(dtype)}"]


@elementwise(cost=0)
def bitcast(x: Tensor, *, dtype: DType) -> Type:
    """The same bits as elements of another dtype of the same width."""
    source = x.dtype
    if source.is_complex is not dtype.is_complex:
        raise DTypeError(
            f"{source} are two floats, {dtype} is one",
            fix="ptir.view_as_real(x) gives the parts, ptir.bitcast changes the last axis",
        )
    if width(source) != width(dtype):
        raise DTypeError(
            f"{source} has {width(source)} bits, {dtype} has {width(dtype)}",
            fix="ptir.bitcast changes the last axis",
        )
    if dtype.is_bool and not source.is_bool:
        raise DTypeError(f"not all bits of {source} are truth values", fix="x != 0")
    return x.type.with_dtype(dtype)


@bitcast.numpy
def _(x: Array, *, dtype: DType) -> Array:
    if dtype.bits == 4:
        return x if as_dtype(x.dtype) is dtype else x.astype(np.int8)  # wrapped afterwards
    return x.view(dtype.numpy)


bitcast.arithmetic = False  # narrow floats have bits of their own

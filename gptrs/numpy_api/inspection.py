"""Questions about arrays that Python values answer: ndim, shape, size, isscalar, iscomplexobj;
about dtypes: issubdtype, common_type, min_scalar_type."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from gptrs.errors import ArgumentError, DTypeError
from gptrs.ir.dims import DimLike, Shape, product
from gptrs.ir.promotion import DEFAULT_FLOAT, NUMBERS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, DType, as_dtype
from gptrs.numpy_api.data_types import result_type
from gptrs.numpy_api.function import as_tensor, public

__all__ = [
    "common_type",
    "iscomplexobj",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "min_scalar_type",
    "ndim",
    "shape",
    "size",
]


@public(other_names={"a": "x"})
def ndim(x: Any) -> int:
    """The number of axes."""
    return as_tensor(x).ndim


@public(other_names={"a": "x"})
def shape(x: Any) -> Shape:
    """The extent of each axis."""
    return as_tensor(x).shape


@public(other_names={"a": "x"})
def size(x: Any, axis: int | tuple[int, ...] | None = None) -> DimLike:
    """The number of elements, or the extent of ``axis``, or the product of those of several."""
    extents = as_tensor(x).shape
    if axis is None:
        return product(extents)
    axes = (axis,) if isinstance(axis, int) else axis
    if any(not -len(extents) <= i < len(extents) for i in axes):
        raise ArgumentError(f"size: axis {axis} is out of range for rank {len(extents)}")
    return product(tuple(extents[i] for i in axes))


@public(other_names={"element": "x"})
def isscalar(x: Any) -> bool:
    """Whether ``x`` is a Python or NumPy number, or an array of rank 0 (as in JAX)."""
    return isinstance(x, (*NUMBERS, np.generic)) or getattr(x, "ndim", None) == 0


@public
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex, whatever the values."""
    return as_tensor(x).dtype.is_complex


@public
def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex, whatever the values."""
    return not iscomplexobj(x)


_CLASSES: dict[type, tuple[str, ...]] = {
    np.generic: ("bool", "int", "uint", "float", "complex"),
    np.number: ("int", "uint", "float", "complex"),
    np.integer: ("int", "uint"),
    np.signedinteger: ("int",),
    np.unsignedinteger: ("uint",),
    np.inexact: ("float", "complex"),
    np.floating: ("float",),
    np.complexfloating: ("complex",),
}


@public
def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether the dtype ``arg1`` is of NumPy's class ``arg2`` (``np.floating``, ...), or is the
    dtype ``arg2``. Classes are of their own class and of those above."""
    if isinstance(arg2, type) and arg2 in _CLASSES:
        if isinstance(arg1, type) and arg1 in _CLASSES:
            return issubclass(arg1, arg2)
        return as_dtype(arg1).kind in _CLASSES[arg2]
    if isinstance(arg1, type) and arg1 in _CLASSES:
        return False
    return as_dtype(arg1) is as_dtype(arg2)


@public
def common_type(*arrays: Any) -> DType:
    """The float or complex dtype that arrays are promoted to; f32 for integers."""
    found = result_type(*(as_tensor(x).dtype for x in arrays), DEFAULT_FLOAT)
    if any(as_tensor(x).dtype.is_bool for x in arrays):
        raise DTypeError("common_type: there is no common type of bools and numbers")
    floats = [as_tensor(x).dtype for x in arrays if not as_tensor(x).dtype.is_integer]
    return result_type(*floats) if len(floats) == len(arrays) else found


@public(other_names={"a": "x"})
def min_scalar_type(x: Any) -> DType:
    """The smallest dtype that holds a number; of an array, and of a traced value, its dtype."""
    if isinstance(x, Tensor) and (x.ndim or x.is_traced):
        return x.dtype
    value = np.asarray(x.numpy() if isinstance(x, Tensor) else x)
    if value.ndim:
        return as_tensor(x).dtype
    found = np.min_scalar_type(cast("Any", value[()]))
    return DTYPES["cf32"] if found == np.complex64 else as_dtype(found)

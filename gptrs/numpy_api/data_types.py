"""Questions about dtypes: astype, can_cast, finfo, iinfo, isdtype, promote_types, result_type."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import ml_dtypes
import numpy as np

from gptrs.errors import ArgumentError, DTypeError
from gptrs.ir.promotion import NUMBERS, result_dtype
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, DType, as_dtype
from gptrs.numpy_api.creation import check_device
from gptrs.numpy_api.function import public, tensor_of

__all__ = [
    "astype",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "promote_types",
    "result_type",
]


class FloatInfo(NamedTuple):
    """The limits of a float dtype, or of the parts of a complex one; Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @property
    def tiny(self) -> float:
        """NumPy's and torch's name of `smallest_normal`."""
        return self.smallest_normal


class IntegerInfo(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(x: Any) -> DType:
    return as_dtype(x if isinstance(x, type) else getattr(x, "dtype", x))


@public
def astype(x: Any, dtype: object, /, *, copy: bool = True, device: object = None) -> Tensor:
    """The elements of ``x`` in another dtype, as `cast` converts them."""
    check_device(device)
    return tensor_of(x, dtype)


@public
def can_cast(from_: Any, to: Any) -> bool:
    """Whether promotion takes the dtype ``from_`` (or that of an array) to ``to``."""
    target = as_dtype(to)
    return result_dtype((_dtype_of(from_), target)) is target


@public
def finfo(type: Any, /) -> FloatInfo:
    """The limits of a float or complex dtype, or of an array's."""
    dtype = _dtype_of(type)
    if not dtype.is_float and not dtype.is_complex:
        raise DTypeError(f"finfo: {dtype} is no float", fix="iinfo is for integers")
    part = {"cf32": DTYPES["f32"], "cf64": DTYPES["f64"]}.get(dtype.name, dtype)
    info = cast("Any", ml_dtypes.finfo(part.numpy))
    numbers = (float(n) for n in (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(part.bits, *numbers, dtype=part)


@public
def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, or of an array's."""
    dtype = _dtype_of(type)
    if not dtype.is_integer:
        raise DTypeError(f"iinfo: {dtype} is no integer", fix="finfo is for floats")
    low, high = dtype.limits
    return IntegerInfo(dtype.bits, high, low, dtype)


_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int",),
    "unsigned integer": ("uint",),
    "integral": ("int", "uint"),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "numeric": ("int", "uint", "float", "complex"),
}


@public
def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether ``dtype`` is of a kind ("integral", "real floating", ...), is another dtype, or any
    of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(kind, str) and kind in _KINDS:
        return as_dtype(dtype).kind in _KINDS[kind]
    try:
        return as_dtype(dtype) is as_dtype(kind)
    except DTypeError:
        raise ArgumentError(
            f"isdtype: there is no kind {kind!r}", fix=f"use a dtype or one of {', '.join(_KINDS)}"
        ) from None


@public
def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that arrays, dtypes and Python numbers are promoted to."""
    if not arrays_and_dtypes:
        raise ArgumentError("result_type: there is nothing to promote")
    given = [
        x if isinstance(x, (*NUMBERS, Tensor)) and not isinstance(x, np.generic) else _dtype_of(x)
        for x in arrays_and_dtypes
    ]
    found = result_dtype(given)
    if found is None:
        raise DTypeError(f"there is no dtype that {', '.join(map(str, given))} are promoted to")
    return found


@public
def promote_types(type1: Any, type2: Any) -> DType:
    """The dtype that two dtypes are promoted to."""
    return result_type(as_dtype(type1), as_dtype(type2))

"""Tensors and dtypes of ONNX as those of NumPy and PTIR."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from gptrs.errors import DTypeError
from gptrs.ir.dims import Dim
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, as_dtype
from gptrs.onnx.table import UnsupportedOperatorError, ptir

_helper: Any = helper


def dtype_of(number: int) -> DType:
    """The dtype that has this number in TensorProto. Raises `UnsupportedOperatorError`."""
    name = TensorProto.DataType.Name(number)
    try:
        return as_dtype(_helper.tensor_dtype_to_np_dtype(number))
    except (DTypeError, KeyError):
        raise UnsupportedOperatorError(f"the dtype {name} has no counterpart") from None


def array_of(tensor: TensorProto) -> Array:
    """The elements of a tensor of a file."""
    dtype_of(tensor.data_type)
    return numpy_helper.to_array(tensor)


def has_symbols(value: Array) -> bool:
    """Whether there are symbolic dimensions among the elements."""
    return value.dtype == object


def of_sizes(sizes: Any) -> Array:
    """Sizes as ONNX has them, 64-bit integers; with symbols among them, an array of objects."""
    listed = list(sizes)
    symbolic = any(isinstance(n, Dim) for n in listed)
    return np.array(listed, dtype=object if symbolic else np.int64)


def tensor_of_sizes(value: Array) -> Tensor:
    """An array with symbols as a Tensor that is computed from the sizes of a call."""
    parts = [ptir.full((), 0, dtype=ptir.si64) + n for n in value.reshape(-1).tolist()]
    return ptir.reshape(ptir.stack(parts), value.shape)


def several(made: Any) -> tuple[Any, ...]:
    """The results of a function that returns one or several."""
    return tuple(made) if isinstance(made, tuple | list) else (made,)  # pyright: ignore


def sizes_in(value: Array) -> list[Any]:
    """The elements of a known operand, as Python numbers and symbolic dimensions."""
    return np.asarray(value).reshape(-1).tolist()

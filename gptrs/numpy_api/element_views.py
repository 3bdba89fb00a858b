"""Questions about tensors, and other views of their elements, in torch's words."""

from __future__ import annotations

from typing import Any

from gptrs.errors import DTypeError, ShapeError
from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.joining import stack

__all__ = [
    "is_complex",
    "is_floating_point",
    "is_signed",
    "is_tensor",
    "numel",
    "view_as_complex",
    "view_as_real",
]


@public
def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a Tensor."""
    return isinstance(x, Tensor)


@public
def is_complex(x: Any) -> bool:
    """Whether the dtype of ``x`` is complex."""
    return as_tensor(x).dtype.is_complex


@public
def is_floating_point(x: Any) -> bool:
    """Whether the dtype of ``x`` is a real float."""
    return as_tensor(x).dtype.is_float


@public
def is_signed(x: Any) -> bool:
    """Whether the dtype of ``x`` has negative numbers."""
    dtype = as_tensor(x).dtype
    return dtype.kind != "uint" and not dtype.is_bool


@public
def numel(x: Any) -> DimLike:
    """The number of elements."""
    return as_tensor(x).size


@public
def view_as_real(x: Any) -> Tensor:
    """The real and the imaginary parts of complex numbers along a new last axis [..., 2]."""
    x = as_tensor(x)
    if not x.dtype.is_complex:
        raise DTypeError(f"view_as_real takes complex numbers, found {x.dtype}")
    return stack([OPS["real"](x), OPS["imag"](x)], -1)


@public
def view_as_complex(x: Any) -> Tensor:
    """The complex numbers whose parts lie along the last axis of x [..., 2]."""
    x = as_tensor(x)
    if not x.ndim or x.shape[-1] != 2:
        raise ShapeError(f"view_as_complex takes parts [..., 2], found {shape_text(x.shape)}")
    return OPS["complex"](x[..., 0], x[..., 1])

"""Questions about tensors, and other views of their elements: as real numbers, as bits.

Bits of another width are shifts: an element of 32 bits is four of 8, the lowest first, as in the
memory of a little-endian machine. Loops fuse them.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from gptrs.errors import DTypeError, ShapeError
from gptrs.ir.dims import DimLike, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.ops.bitcast import bits_dtype, width
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, as_dtype, f32, f64, shape_text
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.joining import stack

__all__ = [
    "bitcast",
    "is_complex",
    "is_floating_point",
    "is_signed",
    "is_tensor",
    "numel",
    "view",
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


@public(other_names={"operand": "x", "new_dtype": "dtype"})
def bitcast(x: Any, dtype: object) -> Tensor:
    """The bits of ``x`` as elements of ``dtype``, as `jax.lax.bitcast_convert_type` has them.

    A narrower dtype adds a last axis, of the parts of each element, the lowest bits first; a wider
    one joins the elements along the last axis, which must be the parts of one. Raises `ShapeError`
    where they are more or less, `DTypeError` for bits that are no truth values.
    """
    x, target = as_tensor(x), as_dtype(dtype)
    if x.dtype.is_complex is target.is_complex and width(x.dtype) == width(target):
        return OPS["bitcast"](x, dtype=target)
    if width(target) > width(x.dtype):
        _check_parts(x, width(target) // width(x.dtype), target)
    if target.is_complex and width(x.dtype) > width(target):
        return bitcast(view_as_real(x), target)
    if target.is_complex:
        return view_as_complex(_as_floats(x, f64 if target.bits == 128 else f32))
    if not x.dtype.is_complex:
        return _split(x, target) if width(target) < width(x.dtype) else _joined(x, target)
    x = view_as_real(x)
    if width(target) >= width(x.dtype):
        return bitcast(x, target)
    parts = bitcast(x, target)
    return parts.reshape(*x.shape[:-1], parts.shape[-2] * parts.shape[-1])


@public
def view(x: Any, dtype: object) -> Tensor:
    """The bits of ``x`` as elements of ``dtype``, as the views of NumPy and torch: the last axis
    grows or shrinks with the width.

    Raises `ShapeError` where the last axis is no multiple of the elements that make one.
    """
    x, target = as_tensor(x), as_dtype(dtype)
    narrow, wide = sorted((width(x.dtype), width(target)))
    if narrow == wide:
        return bitcast(x, target)
    if not x.ndim:
        raise ShapeError(f"a number of {x.dtype} is no view of {target}", fix="x.reshape(1)")
    if width(target) == narrow:
        parts = bitcast(x, target)
        return parts.reshape(*x.shape[:-1], x.shape[-1] * (wide // narrow))
    count = wide // narrow
    if not same(x.shape[-1] // count * count, x.shape[-1]):
        raise ShapeError(
            f"the last axis of {shape_text(x.shape)} is no multiple of {count}: as many {x.dtype}"
            f" make one {target}"
        )
    return bitcast(x.reshape(*x.shape[:-1], x.shape[-1] // count, count), target)


def _check_parts(x: Tensor, count: int, target: DType) -> None:
    if not x.ndim or not same(x.shape[-1], count):
        raise ShapeError(
            f"{count} elements of {x.dtype} make one of {target}, found {shape_text(x.shape)}",
            fix=f"x.view('{target}') joins them along the last axis",
        )


def _as_floats(x: Tensor, part: DType) -> Tensor:
    """The bits of complex numbers to be, as their parts [..., 2]."""
    if width(x.dtype) < part.bits:
        return bitcast(x.reshape(*x.shape[:-1], 2, x.shape[-1] // 2), part)
    return bitcast(x, part)


def _split(x: Tensor, target: DType) -> Tensor:
    """The parts of each element along a new last axis."""
    word, part = bits_dtype(x.dtype), bits_dtype(target)
    shifts = np.arange(0, word.bits, part.bits, dtype=word.numpy)
    parts = OPS["shift_right"](bitcast(x, word)[..., None], Tensor.of_array(shifts))
    return bitcast(OPS["cast"](parts, dtype=part), target)


def _joined(x: Tensor, target: DType) -> Tensor:
    """The elements along the last axis as one."""
    part, word = bits_dtype(x.dtype), bits_dtype(target)
    words = OPS["cast"](bitcast(x, part), dtype=word)
    shifted = (
        OPS["shift_left"](words[..., place], place * part.bits)
        for place in range(word.bits // part.bits)
    )
    return bitcast(reduce(OPS["bit_or"], shifted), target)

"""Slices and updates along one axis, by JAX's names: slice_in_dim, dynamic_slice_in_dim, ...

The dynamic ones take a start that is known at run time, which is moved so that the part lies in the
array; a negative one counts from the end.
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.manipulation import expand_dims, squeeze

__all__ = [
    "dynamic_index_in_dim",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice_in_dim",
    "index_in_dim",
    "slice_in_dim",
]


def _start(x: Tensor, start: Any, axis: int) -> tuple[Any, ...]:
    """The start of a box: ``start`` along ``axis``, 0 along the others."""
    extent = x.shape[axis]
    if isinstance(start, int | Dim):
        first: Any = start + extent if isinstance(start, int) and start < 0 else start
    else:
        at = as_tensor(start)
        first = at if at.dtype.kind == "uint" else OPS["select"](at < 0, at + extent, at)
    return tuple(first if i == axis else 0 for i in range(x.ndim))


@public(other_names={"operand": "x"})
def slice_in_dim(
    x: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Tensor:
    """``x[start_index:limit_index:stride]`` along ``axis``."""
    x = as_tensor(x)
    keys = (slice(None),) * normal_axis(axis, x.ndim)
    return x[(*keys, slice(start_index, limit_index, stride))]


@public(other_names={"operand": "x"})
def index_in_dim(x: Any, index: int, axis: int = 0, keepdims: bool = True) -> Tensor:
    """``x[index]`` along ``axis``, which stays with extent 1 if ``keepdims``."""
    x = as_tensor(x)
    keys = (slice(None),) * normal_axis(axis, x.ndim)
    part = x[(*keys, index)]
    return expand_dims(part, axis) if keepdims else part


@public(other_names={"operand": "x"})
def dynamic_slice_in_dim(x: Any, start_index: Any, slice_size: DimLike, axis: int = 0) -> Tensor:
    """``slice_size`` elements of ``x`` along ``axis`` from a start known at run time."""
    x = as_tensor(x)
    axis = normal_axis(axis, x.ndim)
    sizes = tuple(slice_size if i == axis else n for i, n in enumerate(x.shape))
    return OPS["dynamic_slice"](x, _start(x, start_index, axis), sizes=sizes)


@public(other_names={"operand": "x"})
def dynamic_index_in_dim(x: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Tensor:
    """The part of ``x`` at an index along ``axis`` that is known at run time."""
    part = dynamic_slice_in_dim(x, index, 1, axis)
    return part if keepdims else squeeze(part, axis)


@public(other_names={"operand": "x"})
def dynamic_update_slice_in_dim(x: Any, update: Any, start_index: Any, axis: int) -> Tensor:
    """``x`` with ``update`` in place along ``axis``, from a start known at run time."""
    x = as_tensor(x)
    start = _start(x, start_index, normal_axis(axis, x.ndim))
    return OPS["dynamic_update_slice"](x, tensor_of(update, x.dtype), start)


@public(other_names={"operand": "x"})
def dynamic_update_index_in_dim(x: Any, update: Any, index: Any, axis: int) -> Tensor:
    """``x`` with ``update``, of extent 1 along ``axis`` or without it, at an index known at run
    time."""
    x, update = as_tensor(x), as_tensor(update)
    if update.ndim == x.ndim - 1:
        update = expand_dims(update, axis)
    return dynamic_update_slice_in_dim(x, update, index, axis)

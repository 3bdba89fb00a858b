"""Arrays of one value, ranges, identities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType
from gptrs.torch.aten.table import aten, ptir

Shape = Sequence[DimLike]


@aten("full")
def full(size: Shape, fill_value: Any, dtype: DType | None = None) -> Tensor:
    """An array of one value, in the dtype of the value without another."""
    return ptir.broadcast_to(_scalar(fill_value, dtype), shape=tuple(size))


@aten("full_like", "new_full")
def full_like(x: Tensor, *given: Any, dtype: DType | None = None) -> Tensor:
    *size, value = given
    shape = tuple(size[0]) if size else x.shape
    return ptir.broadcast_to(_scalar(value, dtype or x.dtype), shape=shape)


@aten("scalar_tensor")
def scalar_tensor(s: Any, dtype: DType | None = None) -> Tensor:
    return _scalar(s, dtype)


def _scalar(value: Any, dtype: DType | None) -> Tensor:
    if isinstance(value, Tensor):
        return value if dtype is None else ptir.cast(value, dtype=dtype)
    if isinstance(value, Dim):
        return ptir.full((), 0, dtype=ptir.si64) + value
    if dtype is None:
        kinds = {bool: ptir.i1, int: ptir.si64, float: ptir.f32, complex: ptir.cf32}
        dtype = kinds[type(value)]
    return ptir.full((), value, dtype=dtype)


@aten(
    "zeros",
    "empty.memory_format",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_zeros",
    "new_empty_strided",
)
def zeros(*given: Any, dtype: DType | None = None) -> Tensor:
    """Zeros, which an empty tensor may be, too."""
    like = given[0] if isinstance(given[0], Tensor) else None
    size = given[1] if like is not None else given[0]
    return ptir.zeros(tuple(size), dtype=dtype or (like.dtype if like is not None else ptir.f32))


@aten("zeros_like", "empty_like")
def zeros_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    return ptir.zeros(x.shape, dtype=dtype or x.dtype)


@aten("ones")
def ones(size: Shape, dtype: DType | None = None) -> Tensor:
    return full(size, 1, dtype or ptir.f32)


@aten("ones_like")
def ones_like(x: Tensor, dtype: DType | None = None) -> Tensor:
    return full(x.shape, 1, dtype or x.dtype)


@aten("new_ones")
def new_ones(x: Tensor, size: Shape, dtype: DType | None = None) -> Tensor:
    return full(size, 1, dtype or x.dtype)


@aten("arange.start_step", "arange.start", "arange")
def arange(*given: Any, dtype: DType | None = None) -> Tensor:
    """From ``start`` to before ``end``; computed in f64 unless all is integer. Integers of a dtype
    come from a start and a step without fractions, 64-bit ones from such an end, too."""
    start, end, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
    if dtype is ptir.si64:
        start, end, step = (int(n) if isinstance(n, float) else n for n in (start, end, step))
    if any(isinstance(n, float) for n in (start, end, step)):
        count = math.ceil((end - start) / step)
        if dtype is None or not dtype.is_integer:
            made = ptir.arange(count, dtype=ptir.f64) * step + start
            return ptir.cast(made, dtype=dtype or ptir.f32)
        start, step = int(start), int(step)
    else:
        count = -((start - end) // step)
    made = ptir.ops.iota(shape=(count,), dtype=ptir.si64) * step + start
    return made if dtype is None else ptir.cast(made, dtype=dtype)


@aten("prims.iota")
def iota(length: DimLike, *, start: DimLike, step: DimLike, dtype: DType) -> Tensor:
    made = ptir.ops.iota(shape=(length,), dtype=ptir.si64) * step + start
    return ptir.cast(made, dtype=dtype)


@aten("linspace")
def linspace(start: float, end: float, steps: int, dtype: DType | None = None) -> Tensor:
    """Integers lie between integers, and lose their fractions; each half counts from its end."""
    if dtype is None or not dtype.is_integer:
        return ptir.linspace(start, end, steps, dtype=dtype or ptir.f32)
    start, end = int(start), int(end)
    if steps < 2:
        return full((steps,), start, dtype)
    step = (end - start) / (steps - 1)
    at = ptir.arange(steps, dtype=ptir.f64)
    made = ptir.where(at < steps // 2, start + at * step, end - (steps - 1 - at) * step)
    return ptir.cast(made, dtype=dtype)


@aten("eye", "eye.m")
def eye(n: int, m: int | None = None, dtype: DType | None = None) -> Tensor:
    return ptir.eye(n, m, dtype=dtype or ptir.f32)


@aten("tril_indices")
def tril_indices(row: int, col: int, offset: int = 0, dtype: DType | None = None) -> Tensor:
    return _places(ptir.tril_indices(row, offset, col), dtype)


@aten("triu_indices")
def triu_indices(row: int, col: int, offset: int = 0, dtype: DType | None = None) -> Tensor:
    return _places(ptir.triu_indices(row, offset, col), dtype)


def _places(found: tuple[Tensor, Tensor], dtype: DType | None) -> Tensor:
    """Rows and columns as two rows."""
    return ptir.cast(ptir.stack(found), dtype=dtype or ptir.si64)

"""Gathers and scatters: index, embedding, gather, scatter, index_put, and their like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.ir.dims import DimLike
from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import UnsupportedError, aten, ptir

Indices = Sequence[Tensor | None]


def _keys(indices: Indices) -> tuple[Any, ...]:
    """The keys of an index expression. A mask selects a number of elements that is not known."""
    if any(i is not None and i.dtype.is_bool for i in indices):
        raise UnsupportedError("a mask as an index has a result of unknown shape")
    return tuple(slice(None) if i is None else i for i in indices)


@aten("index.Tensor", "_unsafe_index.Tensor")
def index(x: Tensor, indices: Indices) -> Tensor:
    return x[_keys(indices)]


@aten("index_put", "_unsafe_index_put")
def index_put(x: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    masks = [i for i in indices if i is not None and i.dtype.is_bool]
    if len(masks) == len(indices) == 1 and values.ndim == 0 and not accumulate:
        mask = masks[0]
        wide = ptir.reshape(mask, shape=(*mask.shape, *(1,) * (x.ndim - mask.ndim)))
        return ptir.where(wide, ptir.cast(values, dtype=x.dtype), x)
    return ptir.index_put(x, _keys(indices), values, accumulate)


@aten("embedding")
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    return ptir.embedding(weight, indices)


@aten("gather")
def gather(x: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Tensor:
    if x.ndim == 0 or index.ndim == 0:
        raise UnsupportedError("gather of scalars")
    return ptir.gather(x, dim, index)


@aten("index_select")
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    if x.ndim == 0:
        return x
    at = ptir.reshape(index, shape=(1,)) if index.ndim == 0 else index
    return ptir.index_select(x, dim, at)


@aten("scatter.src")
def scatter(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return ptir.scatter(
        *_with_axes(x, dim, index), src if x.ndim else ptir.reshape(src, shape=(1,))
    )


def _with_axes(x: Tensor, dim: int, index: Tensor) -> tuple[Tensor, int, Tensor]:
    if x.ndim == 0 or index.ndim == 0:
        raise UnsupportedError("scatter into scalars")
    return x, dim, index


@aten("scatter.value")
def scatter_value(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    return ptir.scatter(*_with_axes(x, dim, index), value=value)


@aten("scatter.reduce")
def scatter_with(x: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: Any) -> Tensor:
    return ptir.scatter(*_with_axes(x, dim, index), src, reduce=reduce)


@aten("scatter.value_reduce")
def scatter_value_with(x: Tensor, dim: int, index: Tensor, value: Any, *, reduce: Any) -> Tensor:
    return ptir.scatter(*_with_axes(x, dim, index), value=value, reduce=reduce)


@aten("scatter_add")
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return ptir.scatter_add(*_with_axes(x, dim, index), src)


@aten("scatter_reduce.two")
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: Any, *, include_self: bool = True
) -> Tensor:
    target = _with_axes(x, dim, index)
    return ptir.scatter_reduce(*target, src, reduce, include_self=include_self)


@aten("index_add")
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    if x.ndim == 0:
        raise UnsupportedError("index_add of scalars")
    return ptir.index_add(x, dim, index, source, alpha=alpha)


@aten("index_copy")
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    if x.ndim == 0 or index.ndim == 0:
        raise UnsupportedError("index_copy of scalars")
    return ptir.index_copy(x, dim, index, source)


@aten("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    if x.ndim == 0 or index.ndim == 0:
        raise UnsupportedError("index_fill of scalars")
    return ptir.index_fill(x, dim, index, value)


@aten("select_scatter")
def select_scatter(x: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    return ptir.select_scatter(x, src, dim, index)


@aten("slice_scatter")
def slice_scatter(
    x: Tensor,
    src: Tensor,
    dim: int = 0,
    start: DimLike | None = None,
    end: DimLike | None = None,
    step: int = 1,
) -> Tensor:
    last = None if isinstance(end, int) and end >= 2**62 else end
    return ptir.slice_scatter(x, src, dim, start, last, step)


@aten("diagonal_scatter")
def diagonal_scatter(
    x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    return ptir.diagonal_scatter(x, src, offset, dim1, dim2)


@aten("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    fill = ptir.cast(value, dtype=x.dtype) if isinstance(value, Tensor) else value
    return ptir.where(mask, fill, x)


@aten("masked_scatter")
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    return ptir.masked_scatter(x, mask, source)


@aten("embedding_dense_backward")
def embedding_dense_backward(
    grad: Tensor,
    indices: Tensor,
    num_weights: DimLike,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Tensor:
    """The gradient of an embedding: that of each row is the sum over where it was read."""
    if scale_grad_by_freq:
        raise UnsupportedError("gradients scaled by frequency")
    width = grad.shape[-1]
    rows = ptir.reshape(grad, shape=(indices.size, width))
    at = ptir.reshape(indices, shape=(indices.size,))
    if padding_idx >= 0:
        rows = ptir.where(ptir.unsqueeze(at == padding_idx, 1), 0.0, rows)
    return ptir.index_add(ptir.zeros((num_weights, width), dtype=grad.dtype), 0, at, rows)

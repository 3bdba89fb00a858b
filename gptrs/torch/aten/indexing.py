"""Gathers and scatters: index, embedding, gather, scatter, index_put, and their like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from gptrs.ir.dims import DimLike
from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import UnsupportedError, aten, ptir

F = TypeVar("F", bound=Callable[..., Tensor])
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
    shape = index.shape
    if not all(isinstance(n, int) for n in shape) or 0 not in shape:
        x, index = (ptir.reshape(y, shape=y.shape or (1,)) for y in (x, index))
        return ptir.reshape(ptir.gather(x, dim, index), shape=shape)
    return ptir.zeros(shape, dtype=x.dtype)  # no positions, which may have any rank


@aten("index_select")
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    if x.ndim == 0:
        return x
    at = ptir.reshape(index, shape=(1,)) if index.ndim == 0 else index
    return ptir.index_select(x, dim, at)


def _as_vectors(function: F) -> F:
    """``function(x, dim, index, ...)`` with scalars as vectors of one element."""

    def call(x: Tensor, dim: int, index: Tensor, *rest: Any, **options: Any) -> Tensor:
        def wide(y: Any) -> Any:
            return ptir.reshape(y, shape=(1,)) if isinstance(y, Tensor) and y.ndim == 0 else y

        if x.ndim == 0:
            rest = tuple(map(wide, rest))
        made = function(wide(x), dim, wide(index), *rest, **options)
        return ptir.reshape(made, shape=x.shape) if x.ndim == 0 else made

    return cast("F", call)


@aten("scatter.src")
@_as_vectors
def scatter(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return ptir.scatter(x, dim, index, src)


@aten("scatter.value")
@_as_vectors
def scatter_value(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    return ptir.scatter(x, dim, index, value=value)


@aten("scatter.reduce")
@_as_vectors
def scatter_with(x: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: Any) -> Tensor:
    return ptir.scatter(x, dim, index, src, reduce=reduce)


@aten("scatter.value_reduce")
@_as_vectors
def scatter_value_with(x: Tensor, dim: int, index: Tensor, value: Any, *, reduce: Any) -> Tensor:
    return ptir.scatter(x, dim, index, value=value, reduce=reduce)


@aten("scatter_add")
@_as_vectors
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return ptir.scatter_add(x, dim, index, src)


@aten("scatter_reduce.two")
@_as_vectors
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: Any, *, include_self: bool = True
) -> Tensor:
    return ptir.scatter_reduce(x, dim, index, src, reduce, include_self=include_self)


@aten("index_add")
@_as_vectors
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    return ptir.index_add(x, dim, index, source, alpha=alpha)


@aten("index_copy")
@_as_vectors
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return ptir.index_copy(x, dim, index, source)


@aten("nonzero_static")
def nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    return ptir.argwhere(x, size=size, fill_value=fill_value)


@aten("put")
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """With the elements at places in ``x``, one row after the other."""
    flat, at, given = (ptir.ravel(y) for y in (x, index, source))
    at = ptir.where(at < 0, at + flat.shape[0], at)
    write = ptir.index_add if accumulate else ptir.index_copy
    return ptir.reshape(write(flat, 0, at, given), shape=x.shape)


@aten("index_reduce")
@_as_vectors
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: Any, *, include_self: bool = True
) -> Tensor:
    return ptir.index_reduce(x, dim, index, source, reduce, include_self=include_self)


@aten("index_fill.int_Scalar", "index_fill.int_Tensor")
@_as_vectors
def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    at = value if not isinstance(value, Tensor) else ptir.reshape(value, shape=())
    return ptir.index_fill(x, dim, index, at)


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

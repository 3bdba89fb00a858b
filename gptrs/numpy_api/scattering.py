"""Elements at positions along one axis, read, replaced and combined, in torch's words.

``dim`` comes before the positions: index_select(x, dim, index); `gather`, `scatter_add` and
`scatter_reduce` also take the order of the ops of their name. Sources take the dtype of ``x``, and
an index out of range is an `ElementError`.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, normal_axis, shape_text, si64
from gptrs.numpy_api.arithmetic import truth
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.indexing import Elements
from gptrs.numpy_api.manipulation import moveaxis
from gptrs.numpy_api.matrices import diagonal, placed_on_diagonal
from gptrs.numpy_api.searching import first_true, size_of_result
from gptrs.numpy_api.taking import take, take_along_axis

__all__ = [
    "diagonal_scatter",
    "gather",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_reduce",
    "index_select",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "select_scatter",
    "slice_scatter",
    "take_along_dim",
]


def _along(x: Tensor, dim: int, part: Any) -> Elements:
    """x.at[:, ..., part] with ``part`` at axis ``dim``."""
    return FUNCTIONS["at"](x)[(slice(None),) * normal_axis(dim, x.ndim) + (part,)]


def _dim_first(name: str, axis: int | None, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The axis, and what is beside it, in torch's order or in that of the ops, the axis last."""
    places = [i for i, each in enumerate(given) if isinstance(each, int)]
    if (axis is None) != (len(places) == 1):
        raise ArgumentError(f"{name}: expected one axis", fix=f"{name}(x, dim, index, ...)")
    if axis is not None:
        return axis, *given
    return given[places[0]], *given[: places[0]], *given[places[0] + 1 :]


def _present(*given: Any) -> tuple[Any, ...]:
    return tuple(each for each in given if each is not None)


@public(op="gather")
def gather(x: Any, *given: Any, index: Any = None, axis: int | None = None) -> Tensor:
    """x with the position along ``axis`` replaced by index[i, j, ...], of whose shape the result
    is: gather(x, dim, index) as in torch, gather(x, index, axis=dim) as the op."""
    given = (*given, *_present(index))
    dim, *rest = _dim_first("gather", axis, given)
    if len(rest) != 1:
        raise ArgumentError(f"gather takes one index, found {len(rest)}")
    return OPS["gather"](as_tensor(x), as_tensor(rest[0]), axis=dim)


@public(op="scatter_add", other_names={"src": "source"})
def scatter_add(
    x: Any, *given: Any, index: Any = None, source: Any = None, axis: int | None = None
) -> Tensor:
    """``x`` with source[i, j, ...] added where index[i, j, ...] points along ``axis``:
    scatter_add(x, dim, index, src) as in torch, scatter_add(x, index, src, axis=dim) as the op."""
    given = (*given, *_present(index, source))
    dim, *rest = _dim_first("scatter_add", axis, given)
    if len(rest) != 2:
        raise ArgumentError(f"scatter_add takes index and src, found {len(rest)} of them")
    x = as_tensor(x)
    return OPS["scatter_add"](x, as_tensor(rest[0]), as_tensor(rest[1]).astype(x.dtype), axis=dim)


_Reduction = Literal["sum", "prod", "mean", "amax", "amin", "add", "max", "min", "replace"]
_OF_OP = {"sum": "add", "amax": "max", "amin": "min"}


@public(op="scatter_reduce", other_names={"src": "source"})
def scatter_reduce(
    x: Any,
    *given: Any,
    index: Any = None,
    source: Any = None,
    axis: int | None = None,
    reduce: _Reduction | None = None,
    include_self: bool = True,
) -> Tensor:
    """``x`` combined with source[i, j, ...] where index[i, j, ...] points along ``axis``:
    scatter_reduce(x, dim, index, src, reduce) as in torch, the axis by keyword as the op.

    ``reduce`` is sum, prod, mean, amax or amin, or one of the op's add, max, min and replace.
    Without ``include_self`` an element that is pointed at is left out itself.
    """
    words = [each for each in given if isinstance(each, str)]
    given = (*(each for each in given if not isinstance(each, str)), *_present(index, source))
    dim, *rest = _dim_first("scatter_reduce", axis, given)
    kind = reduce or (words[0] if words else "")
    if len(rest) != 2:
        raise ArgumentError(f"scatter_reduce takes index and src, found {len(rest)} of them")
    if kind not in _Reduction.__args__:
        known = ", ".join(_Reduction.__args__)
        raise ArgumentError(f"reduce is {kind!r}, expected one of {known}")
    x, index, source = as_tensor(x), as_tensor(rest[0]), as_tensor(rest[1])
    return _reduced(x, normal_axis(dim, x.ndim), index, source.astype(x.dtype), kind, include_self)


def _reduced(
    x: Tensor, axis: int, index: Tensor, source: Tensor, kind: str, include_self: bool
) -> Tensor:
    """`scatter_reduce` of checked arguments."""
    if kind == "mean":
        return _mean(x, axis, index, source, include_self)
    if not include_self and kind != "replace":
        x = OPS["select"](_hit(x, axis, index, source), _neutral(kind, x), x)
    if kind == "prod":
        return _multiplied(x, axis, index, source)
    return OPS["scatter_reduce"](x, index, source, axis=axis, reduce=_OF_OP.get(kind, kind))


def _mean(x: Tensor, axis: int, index: Tensor, source: Tensor, include_self: bool) -> Tensor:
    total = _reduced(x, axis, index, source, "sum", include_self)
    one = OPS["full"](shape=(), value=1, dtype=si64)
    counts = OPS["broadcast_to"](one, shape=x.shape)
    counts = _reduced(
        counts, axis, index, OPS["broadcast_to"](one, shape=source.shape), "sum", include_self
    )
    divide = FUNCTIONS["divide" if total.dtype.is_float else "floor_divide"]
    return divide(total, OPS["maximum"](counts, 1).astype(total.dtype))


def _hit(x: Tensor, axis: int, index: Tensor, source: Tensor) -> Tensor:
    """Where ``index`` points."""
    nowhere = OPS["full"](shape=x.shape, value=0, dtype=si64)
    ones = OPS["full"](shape=source.shape, value=1, dtype=si64)
    return OPS["scatter_reduce"](nowhere, index, ones, axis=axis, reduce="replace") > 0


def _neutral(kind: str, x: Tensor) -> Tensor:
    """What changes nothing in a reduction."""
    if kind in ("sum", "add", "prod"):
        value: float = int(kind == "prod")
    elif x.dtype.is_float:
        value = -math.inf if kind in ("amax", "max") else math.inf
    else:
        value = x.dtype.limits[0 if kind in ("amax", "max") else 1]
    return OPS["full"](shape=(), value=value, dtype=x.dtype)


@public
def index_reduce(
    x: Any,
    dim: int,
    index: Any,
    source: Any,
    reduce: Literal["prod", "mean", "amax", "amin"],
    *,
    include_self: bool = True,
) -> Tensor:
    """``x`` combined with the parts of ``source`` at ``index`` [K] along ``dim``, where ``source``
    has extent K."""
    x, source = as_tensor(x), as_tensor(source)
    axis = normal_axis(dim, x.ndim)
    row = as_tensor(index).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    places = OPS["broadcast_to"](row, shape=source.shape)
    return _reduced(x, axis, places, source.astype(x.dtype), reduce, include_self)


@public
def index_put(x: Any, indices: tuple[Any, ...], values: Any, accumulate: bool = False) -> Tensor:
    """``x`` with ``values`` at x[indices], or added there with ``accumulate``."""
    places = FUNCTIONS["at"](as_tensor(x))[tuple(indices)]
    return places.add(values) if accumulate else places.set(values)


@public
def index_select(x: Any, dim: int, index: Any) -> Tensor:
    """The parts of ``x`` at the positions ``index`` [K] along ``dim``."""
    return take(x, index, axis=dim)


@public
def index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """``x`` with the parts of ``alpha`` · ``source`` added at ``index`` [K] along ``dim``, where
    ``source`` has extent K; positions may repeat."""
    source = as_tensor(source)
    return _along(as_tensor(x), dim, as_tensor(index)).add(source if alpha == 1 else source * alpha)


@public
def index_copy(x: Any, dim: int, index: Any, source: Any) -> Tensor:
    """``x`` with the parts of ``source`` in the place of those at ``index`` [K] along ``dim``."""
    return _along(as_tensor(x), dim, as_tensor(index)).set(source)


@public
def index_fill(x: Any, dim: int, index: Any, value: Any) -> Tensor:
    """``x`` with ``value`` in all elements of the parts at ``index`` [K] along ``dim``."""
    return _along(as_tensor(x), dim, as_tensor(index)).set(value)


@public(other_names={"indices": "index"})
def take_along_dim(x: Any, index: Any, dim: int | None = None) -> Tensor:
    """`take_along_axis`; without ``dim`` from all elements in one row, as torch does."""
    if dim is None:
        return take_along_axis(x, as_tensor(index).reshape(-1), None)
    return take_along_axis(x, index, dim)


@public(other_names={"source": "src"})
def scatter(
    x: Any,
    dim: int,
    index: Any,
    src: Any = None,
    reduce: Literal["add", "multiply"] | None = None,
    *,
    value: Any = None,
) -> Tensor:
    """``x`` with src[i, j, ...], or one ``value``, where index[i, j, ...] points along ``dim``.

    ``reduce`` adds it to what is there, or multiplies; without it the last source in row-major
    order stays where positions repeat.
    """
    x, index = as_tensor(x), as_tensor(index)
    if (src is None) == (value is None):
        raise ArgumentError("scatter takes one of src and value")
    source = as_tensor(value if src is None else src).astype(x.dtype)
    if not source.ndim:
        source = OPS["broadcast_to"](source, shape=index.shape)
    axis = normal_axis(dim, x.ndim)
    if reduce == "multiply":
        return _multiplied(x, axis, index, source)
    if reduce not in (None, "add"):
        raise ArgumentError(f"reduce is {reduce!r}, expected 'add', 'multiply' or None")
    return OPS["scatter_reduce"](x, index, source, axis=axis, reduce=reduce or "replace")


def _multiplied(x: Tensor, axis: int, index: Tensor, source: Tensor) -> Tensor:
    if x.ndim != index.ndim or index.ndim != source.ndim:
        raise ShapeError(
            f"scatter: ranks {x.ndim}, {index.ndim} and {source.ndim} of x, index and src differ"
        )
    keys = tuple(
        index if i == axis else OPS["iota"](shape=index.shape, axis=i, dtype="si64")
        for i in range(index.ndim)
    )
    used = source[tuple(slice(n) for n in index.shape)]
    return FUNCTIONS["at"](x)[keys].multiply(used)


@public
def masked_fill(x: Any, mask: Any, value: Any) -> Tensor:
    """``value`` where ``mask`` holds, else the element, in the dtype of ``x``; shapes broadcast."""
    x = as_tensor(x)
    return FUNCTIONS["where"](mask, value, x).astype(x.dtype)


@public
def masked_select(x: Any, mask: Any, *, size: DimLike | None = None, fill_value: Any = 0) -> Tensor:
    """The elements where ``mask`` holds, in row-major order, in one row; shapes broadcast.

    In a traced function ``size`` says how many: further ones are cut, missing ones are
    ``fill_value``.
    """
    x, mask = as_tensor(x), truth(mask)
    size_of_result("masked_select", mask if mask.is_traced else x, size)
    shape = broadcast_shapes(x.shape, mask.shape)
    row, kept = (OPS["broadcast_to"](each, shape=shape).reshape(-1) for each in (x, mask))
    if size is None:
        return Tensor.of_array(row.numpy()[kept.numpy()])
    places = first_true(kept, size)
    found = OPS["take"](row, OPS["minimum"](places, row.shape[0] - 1))
    return OPS["select"](places < row.shape[0], found, tensor_of(fill_value, x.dtype))


@public
def masked_scatter(x: Any, mask: Any, source: Any) -> Tensor:
    """``x`` with the elements of ``source``, one after the other in row-major order, where ``mask``
    holds; shapes broadcast. Raises `ElementError` where ``source`` has fewer."""
    x, mask, row = as_tensor(x), truth(mask), as_tensor(source).reshape(-1)
    shape = broadcast_shapes(x.shape, mask.shape)
    x, mask = (OPS["broadcast_to"](each, shape=shape) for each in (x, mask))
    rank: Tensor = OPS["cumsum"](OPS["cast"](mask.reshape(-1), dtype="si64"), axis=0) - 1
    chosen = OPS["take"](row.astype(x.dtype), OPS["maximum"](rank, 0))
    return OPS["select"](mask, chosen.reshape(x.shape), x)


@public(other_names={"axis1": "dim1", "axis2": "dim2"})
def diagonal_scatter(x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """``x`` with ``src`` in the place of its `diagonal`, of whose shape it is."""
    x, src = as_tensor(x), as_tensor(src)
    old = diagonal(x, offset, dim1, dim2)
    if src.shape != old.shape:
        raise ShapeError(
            f"diagonal_scatter: src has shape {shape_text(src.shape)}, the diagonal"
            f" {shape_text(old.shape)}"
        )
    turned = moveaxis(x, (dim1, dim2), (-2, -1))
    put = placed_on_diagonal(src.astype(x.dtype), turned, offset)
    return moveaxis(put, (-2, -1), (dim1, dim2))


@public
def select_scatter(x: Any, src: Any, dim: int, index: int) -> Tensor:
    """``x`` with ``src`` in the place of its part at ``index`` along ``dim``."""
    return _along(as_tensor(x), dim, index).set(src)


@public
def slice_scatter(
    x: Any,
    src: Any,
    dim: int = 0,
    start: DimLike | None = None,
    end: DimLike | None = None,
    step: int = 1,
) -> Tensor:
    """``x`` with ``src`` in the place of x[start:end:step] along ``dim``."""
    return _along(as_tensor(x), dim, slice(start, end, step)).set(src)

"""Gather, scatter, movement of data, matrix products."""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs import ptir
from tests.support.op_info.row import SUMMED, R, Row, plain, unless


def _scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    unless(not (x.ndim and index.ndim and source.ndim), "an axis of a scalar")
    return ptir.scatter_add(x, dim, index, source)


def _index_select(x: Any, dim: int, index: Any) -> Any:
    unless(dim != 0 or not x.ndim, "another axis, or a scalar")
    return ptir.take(x, index, axis=0)


def _scatter(reduce: str) -> Callable[..., Any]:
    def call(x: Any, dim: int, index: Any, source: Any, mode: str = "", **kwargs: Any) -> Any:
        unless(kwargs.get("reduce") is not None, "a reduction of its own")
        unless(not kwargs.get("include_self", True), "without what was there")
        unless(not isinstance(source, ptir.Tensor), "a number")
        unless(not (x.ndim and index.ndim and source.ndim), "an axis of a scalar")
        return ptir.scatter_reduce(x, index, source, axis=dim, reduce=reduce)  # pyright: ignore[reportArgumentType]

    return call


def _with_axes(name: str) -> Callable[..., Any]:
    """The function of torch's name and arguments, for all but scalars."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        unless(
            any(isinstance(t, ptir.Tensor) and not t.ndim for t in (x, *args)),
            "an axis of a scalar",
        )
        found = getattr(ptir, name)(x, *args, **kwargs)
        return found[0] if isinstance(found, tuple) else found

    return call


def _gather(x: Any, dim: int, index: Any) -> Any:
    unless(not x.ndim or x.ndim != index.ndim, "scalars, or an empty index of another rank")
    return ptir.gather(x, dim, index)


def _cat(xs: Any, dim: int = 0) -> Any:
    unless(any(x.ndim != xs[0].ndim or (not x.size and x.ndim == 1) for x in xs), "an empty vector")
    return ptir.concat(tuple(xs), axis=dim)


def _tile(x: Any, dims: Any) -> Any:
    rank = max(x.ndim, len(dims))
    spread = x.reshape((*[1] * (rank - x.ndim), *x.shape))
    return ptir.tile(spread, reps=(*[1] * (rank - len(dims)), *dims))


def _transpose(x: Any, a: int, b: int) -> Any:
    unless(not x.ndim, "an axis of a scalar")
    return x.transpose(a, b)


def _squeeze(x: Any, *dim: int) -> Any:
    unless(dim, "an axis that may be longer than 1")
    return x.squeeze()


ROWS: tuple[Row, ...] = (
    Row("gather", _gather, R),
    Row("index_add", _with_axes("index_add"), R, **SUMMED),
    Row("index_copy", _with_axes("index_copy"), R),
    Row("masked_scatter", _with_axes("masked_scatter"), R),
    Row("diag_embed", _with_axes("diag_embed"), R),
    Row("diagonal_scatter", _with_axes("diagonal_scatter"), R),
    Row("slice_scatter", _with_axes("slice_scatter"), R),
    Row("select_scatter", _with_axes("select_scatter"), R),
    Row("kthvalue", _with_axes("kthvalue")),
    Row("index_select", _index_select, R),
    Row("scatter", _scatter("replace"), R),
    Row("scatter_add", _scatter_add, R, **SUMMED),
    Row("scatter_reduce.amax", _scatter("max"), R),
    Row("scatter_reduce.amin", _scatter("min"), R),
    Row("scatter_reduce.sum", _scatter("add"), R, **SUMMED),
    Row("reshape", lambda x, shape: x.reshape(tuple(shape))),
    Row("permute", lambda x, dims: x.permute(tuple(dims))),
    Row("transpose", _transpose),
    Row("broadcast_to", lambda x, shape: ptir.broadcast_to(x, shape=tuple(shape))),
    Row("unsqueeze", lambda x, dim: x.unsqueeze(dim)),
    Row("squeeze", _squeeze),
    Row("cat", _cat, R),
    Row("stack", lambda xs, dim=0: ptir.stack(xs, dim), R),
    Row("tile", _tile),
    *plain({"matmul": "matmul", "mm": "matmul", "bmm": "matmul", "dot": "matmul"}, **SUMMED),
    *plain({"mv": "matmul"}, **SUMMED),
)

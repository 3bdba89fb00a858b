"""Reductions, and scans along an axis."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.onnx.table import onnx, ptir
from gptrs.onnx.tensors import sizes_in


def _reduction(name: str, function: Callable[..., Tensor]) -> None:
    """Enter ``function(x, axis, keepdims)`` under ``name``."""

    @onnx(name, known=("axes",))
    def reduce(
        x: Tensor, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Tensor:
        given = () if axes is None else tuple(sizes_in(axes))
        if not given and noop_with_empty_axes:
            over: tuple[int, ...] = ()
        else:
            over = tuple(a % x.ndim for a in given) or tuple(range(x.ndim))
        return ptir.astype(function(x, over, bool(keepdims)), x.dtype)


_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "ReduceSum": lambda x, axis, keep: ptir.sum(x, axis=axis, keepdims=keep),
    "ReduceMean": lambda x, axis, keep: ptir.mean(x, axis=axis, keepdims=keep),
    "ReduceProd": lambda x, axis, keep: ptir.prod(x, axis=axis, keepdims=keep),
    "ReduceMax": lambda x, axis, keep: _extreme(ptir.amax, x, axis, keep),
    "ReduceMin": lambda x, axis, keep: _extreme(ptir.amin, x, axis, keep),
    "ReduceL1": lambda x, axis, keep: ptir.sum(ptir.abs(x), axis=axis, keepdims=keep),
    "ReduceL2": lambda x, axis, keep: ptir.sqrt(ptir.sum(x * x, axis=axis, keepdims=keep)),
    "ReduceSumSquare": lambda x, axis, keep: ptir.sum(x * x, axis=axis, keepdims=keep),
    "ReduceLogSum": lambda x, axis, keep: ptir.log(ptir.sum(x, axis=axis, keepdims=keep)),
    "ReduceLogSumExp": lambda x, axis, keep: ptir.logsumexp(x, axis=axis, keepdims=keep),
}


def _extreme(
    function: Callable[..., Tensor], x: Tensor, axis: tuple[int, ...], keep: bool
) -> Tensor:
    """The greatest or least element; of nothing the least or greatest there is."""
    if 0 in [x.shape[a] for a in axis]:
        start = ptir.full((1,) * x.ndim, _start(x, is_most=function is ptir.amax), dtype=x.dtype)
        shape = [1 if i in axis else n for i, n in enumerate(x.shape)]
        made = ptir.broadcast_to(start, shape)
        return made if keep else ptir.squeeze(made, axis)
    return function(x, axis=axis, keepdims=keep)


def _start(x: Tensor, *, is_most: bool) -> Any:
    if x.dtype.is_float:
        return float("-inf") if is_most else float("inf")
    if x.dtype.is_bool:
        return not is_most
    return x.dtype.limits[0 if is_most else 1]


for _name, _function in _FUNCTIONS.items():
    _reduction(_name, _function)


def _position(name: str, function: Callable[..., Tensor]) -> None:
    """Enter ``function``, the place of an extreme, under ``name``."""

    @onnx(name)
    def position(x: Tensor, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
        if select_last_index:
            found = x.shape[axis] - 1 - function(ptir.flip(x, axis), axis=axis, keepdims=True)
            made = found if keepdims else ptir.squeeze(found, axis)
        else:
            made = function(x, axis=axis, keepdims=bool(keepdims))
        return ptir.astype(made, ptir.si64)


_position("ArgMax", ptir.argmax)
_position("ArgMin", ptir.argmin)


def _running(name: str, function: Callable[..., Tensor], start: int) -> None:
    """Enter ``function``, a scan along an axis from ``start``, under ``name``."""

    @onnx(name, known=("axis",))
    def running(x: Tensor, axis: Any, exclusive: int = 0, reverse: int = 0) -> Tensor:
        (along,) = (int(n) % x.ndim for n in sizes_in(axis))
        rows = ptir.flip(x, along) if reverse else x
        if exclusive:
            widths = [(int(i == along), 0) for i in range(x.ndim)]
            rows = ptir.pad(rows, tuple(widths), "constant", start)
            rows = rows[(*(slice(None),) * along, slice(0, x.shape[along]))]
        made = ptir.astype(function(rows, axis=along), x.dtype)
        return ptir.flip(made, along) if reverse else made


_running("CumSum", ptir.cumsum, 0)
_running("CumProd", ptir.cumprod, 1)

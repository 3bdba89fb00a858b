"""NumPy's ufuncs on tensors: ``np.exp(x)``, ``np.add.reduce(x)``, ``np.add.at(x, i, v)``.

A call is that of the function of ``ptir`` by the ufunc's name. A method of a ufunc is a reduction,
a cumulative function or an update, by the tables; `gptrs.numpy_api.numpy_functions` says what
happens where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.errors import ArgumentError
from gptrs.ir.dispatch import FUNCTIONS
from gptrs.ir.promotion import NUMBERS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import as_dtype
from gptrs.numpy_api.function import as_tensor, tensor_of
from gptrs.numpy_api.numpy_functions import Call, lacking, named, no_array, run

_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "fmax": "nanmax",
    "fmin": "nanmin",
    "logical_and": "all",
    "logical_or": "any",
    "logaddexp": "logsumexp",
}
_ACCUMULATIONS = {
    "add": "cumsum",
    "multiply": "cumprod",
    "maximum": "cummax",
    "minimum": "cummin",
}
_FOLDED = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor"})
"""Associative functions without a reduction of their own."""
_UPDATES = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "divide",
    "power": "power",
    "maximum": "max",
    "minimum": "min",
}


def call_ufunc(ufunc: Any, method: str, args: Any, kwargs: Any) -> Any:
    """What a ufunc, or a method of it, gives for tensors (``__array_ufunc__``)."""
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    found = _ufunc_call(ufunc, method, args, dict(kwargs))
    return run(found, getattr(ufunc, method), name, args, kwargs)


def _ufunc_call(ufunc: Any, method: str, args: Any, kwargs: dict[str, Any]) -> Call | str:
    name = ufunc.__name__
    ours = named(name)
    if ours is None:
        return lacking(name)
    outs: tuple[Any, ...] = kwargs.pop("out", None) or (None,)
    out: Any = outs[0] if len(outs) == 1 else outs
    if out is not None and not isinstance(out, Tensor):
        if out is args[0] and method == "__call__" and not kwargs and _is_traced(args[-1]):
            return Call(_assigned, (ours, *args), {})
        return no_array(name if method == "__call__" else f"{name}.{method}")
    if method == "__call__":
        return _element_by_element(name, ours, args, kwargs, out)
    if method == "outer":
        first, second = (as_tensor(arg) for arg in args)
        first = first.reshape([*first.shape, *(1,) * second.ndim])
        return Call(ours, (first, second), kwargs, out)
    if method == "at":
        return _updating(name, ours, args)
    if method == "reduceat":
        return "ptir.segment_reduce(x, segments, ...) reduces segments"
    reduces = method == "reduce"
    table = _REDUCTIONS if reduces else _ACCUMULATIONS
    kwargs = {key: value for key, value in kwargs.items() if value is not None or key == "axis"}
    if kwargs.get("where") is True:
        del kwargs["where"]
    if len(args) == 1:
        kwargs = {"axis": 0, **kwargs}
    if name in table:
        return Call(FUNCTIONS[table[name]], args, kwargs, out)
    if name in _FOLDED:
        return Call(_reduce if reduces else _accumulate, (ours, *args), kwargs, out)
    return f"ptir.associative_scan(ptir.{name}, x) where it is associative, else ptir.scan"


def _element_by_element(
    name: str, ours: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any
) -> Call | str:
    where = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    if where is not True and out is None:
        return f"ptir.where(mask, ptir.{name}(...), other)"
    if kwargs:
        return f"ptir.{name} has no {', '.join(kwargs)}="
    if dtype is not None:
        args = [arg if isinstance(arg, NUMBERS) else tensor_of(arg, dtype) for arg in args]
    return Call(ours, args, {}, out, where)


def _is_traced(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_traced


def _assigned(function: Any, array: Any, value: Tensor) -> Tensor:
    """``array += value`` of a traced value: the array is not written; the name that Python assigns
    the result to refers to a Tensor from then on, of the array's dtype if that is of its kind."""
    result = function(array, value)
    dtype = as_dtype(array.dtype)
    return result.astype(dtype) if result.dtype.kind == dtype.kind else result


def _updating(name: str, ours: Any, args: Sequence[Any]) -> Call | str:
    x, key, *values = args
    if not isinstance(x, Tensor):
        return f"write into a Tensor: ptir.array(x).at[key].{_UPDATES.get(name, 'apply')}(...)"
    if values and name not in _UPDATES:
        return f"x[key] = ptir.{name}(x[key], values) where key has no element twice"

    def update() -> None:
        elements = x.at[key]
        x[...] = getattr(elements, _UPDATES[name])(*values) if values else elements.apply(ours)

    return Call(update, (), {})


def _reduce(function: Any, x: Any, axis: int | None = 0, keepdims: bool = False) -> Tensor:
    """The elements along ``axis`` (all with None) combined by an associative ``function``."""
    x = as_tensor(x)
    rank = x.ndim
    if axis is None:
        x = x.reshape(-1)
    x = FUNCTIONS["moveaxis"](x, axis or 0, 0)
    if not x.shape[0]:
        raise ArgumentError("there is no element along the axis")
    while (count := int(x.shape[0])) > 1:
        half = count // 2
        pairs = function(x[:half], x[half : 2 * half])
        x = FUNCTIONS["concat"]([pairs, x[2 * half :]]) if count % 2 else pairs
    if axis is None:
        return x.reshape([1] * rank if keepdims else [])
    return FUNCTIONS["moveaxis"](x, 0, axis) if keepdims else x[0]


def _accumulate(function: Any, x: Any, axis: int = 0) -> Tensor:
    return FUNCTIONS["associative_scan"](function, as_tensor(x), axis=axis)

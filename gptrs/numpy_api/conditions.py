"""Elements by conditions and by numbers: select, piecewise, choose, compress, extract, place, put.

NumPy's functions that write into an array return the new array here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import DimLike
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.promotion import NUMBERS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import broadcast_shapes, normal_axis, shape_text
from gptrs.numpy_api.arithmetic import truth
from gptrs.numpy_api.data_types import result_type
from gptrs.numpy_api.function import as_tensor, public, tensor_of
from gptrs.numpy_api.joining import stack
from gptrs.numpy_api.manipulation import broadcast_to
from gptrs.numpy_api.searching import flatnonzero, size_of_result
from gptrs.numpy_api.taking import from_front, take

__all__ = ["choose", "compress", "extract", "piecewise", "place", "put", "select"]


def refuse_inplace(name: str, inplace: bool) -> None:
    """Raise `ArgumentError` where a function is asked to write into its operand."""
    if inplace:
        raise ArgumentError(
            f"{name}: inplace is True, but elements are immutable",
            fix=f"x = {name}(x, ...): the result is the new array",
        )


@public(other_names={"m": "condlist", "a": "choicelist", "b": "default"})
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """Where several conditions may hold, the choice of the first that does, else ``default``: of
    two lists of one length. ``select(m, a, b)`` of arrays is the op: ``a`` where ``m``, else ``b``.
    """
    if not isinstance(condlist, list | tuple) or not isinstance(choicelist, list | tuple):
        return OPS["select"](condlist, choicelist, default)
    conditions, choices = cast("Sequence[Any]", condlist), cast("Sequence[Any]", choicelist)
    if not conditions or len(conditions) != len(choices):
        raise ArgumentError(
            f"select: {len(conditions)} conditions for {len(choices)} choices, expected one for"
            " each, and at least one"
        )
    *parts, result = _promoted([*choices, default])
    masks = [truth(condition) for condition in conditions]
    shape = broadcast_shapes(*(x.shape for x in (*masks, *parts, result)))
    result = broadcast_to(result, shape)
    for mask, part in zip(reversed(masks), reversed(parts), strict=True):
        result = OPS["select"](mask, part, result)
    return result


def _promoted(values: Sequence[Any]) -> list[Tensor]:
    """Values as tensors of the dtype that they share."""
    dtype = result_type(*(x if isinstance(x, NUMBERS) else as_tensor(x) for x in values))
    return [tensor_of(x, dtype) for x in values]


@public
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """``funclist[i](x)`` where ``condlist[i]`` holds, the last one where several do, in the dtype
    of ``x``; numbers stand for constants.

    One function more than conditions is for where none holds, else that is 0. Functions see all of
    ``x``, with ``args`` and ``kw``.
    """
    x = as_tensor(x)
    if not isinstance(condlist, list | tuple):
        conditions = list(as_tensor(condlist)) if as_tensor(condlist).ndim > x.ndim else [condlist]
    else:
        given = cast("Sequence[Any]", condlist)
        conditions = [given] if given and isinstance(given[0], bool) and x.ndim else [*given]
    masks = [truth(condition) for condition in conditions]
    if len(funclist) not in (len(masks), len(masks) + 1):
        raise ArgumentError(
            f"piecewise: {len(funclist)} functions for {len(masks)} conditions, expected"
            f" {len(masks)} or {len(masks) + 1}"
        )

    def values(function: Any) -> Tensor:
        if callable(function):
            function = cast("Callable[..., Any]", function)(x, *args, **kw)
        return tensor_of(function, x.dtype)

    rest = values(funclist[-1] if len(funclist) > len(masks) else 0)
    result = broadcast_to(rest, x.shape)
    for mask, function in zip(masks, funclist, strict=False):
        result = OPS["select"](mask, values(function), result)
    return result


@public(other_names={"a": "x"})
def choose(x: Any, choices: Any, mode: Literal["raise", "clip", "wrap"] = "raise") -> Tensor:
    """Each element from the one of ``choices`` that the integers ``x`` number; all of them
    broadcast. ``mode`` says what happens to numbers out of range, as in `take`, but negative ones
    do not count from the end."""
    places = as_tensor(x)
    parts = _promoted([*choices])
    if not parts:
        raise ArgumentError("choose: there are no choices")
    shape = broadcast_shapes(places.shape, *(part.shape for part in parts))
    if mode != "raise":
        places = from_front(places, len(parts), mode)
    table = stack([broadcast_to(part, shape) for part in parts])
    return OPS["gather"](table, broadcast_to(places, shape)[None], axis=0)[0]


@public(other_names={"a": "x"})
def compress(
    condition: Any,
    x: Any,
    axis: int | None = None,
    *,
    size: DimLike | None = None,
    fill_value: Any = 0,
) -> Tensor:
    """The parts of ``x`` along ``axis`` (of all elements in a row without one) where the row
    ``condition`` holds. In a traced function ``size`` says how many; missing ones are
    ``fill_value``."""
    mask, x = truth(condition), as_tensor(x)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    if mask.ndim != 1:
        raise ShapeError(f"compress: condition has shape {shape_text(mask.shape)}, expected a row")
    size_of_result("compress", mask, size)
    if size is None:
        return take(x, flatnonzero(mask), axis)
    places = flatnonzero(mask, size=size, fill_value=-1)
    found = take(x, OPS["maximum"](places, 0), axis)
    is_there = (places >= 0).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return OPS["select"](is_there, found, tensor_of(fill_value, x.dtype))


@public(other_names={"arr": "x"})
def extract(condition: Any, x: Any, *, size: DimLike | None = None, fill_value: Any = 0) -> Tensor:
    """The elements of ``x`` where ``condition`` holds, in a row; ``size`` as in `compress`."""
    return compress(as_tensor(condition).reshape(-1), x, size=size, fill_value=fill_value)


@public(other_names={"arr": "x", "a": "x"})
def place(x: Any, mask: Any, vals: Any, *, inplace: bool = False) -> Tensor:
    """``x`` with the elements of ``vals``, over and over, where ``mask`` holds, as a new array."""
    refuse_inplace("place", inplace)
    x, where = as_tensor(x), truth(mask).reshape(-1)
    values = as_tensor(vals).reshape(-1).astype(x.dtype)
    number = OPS["cumsum"](where.astype("si64"), axis=0) - 1
    chosen = OPS["take"](values, OPS["remainder"](number, values.shape[0]))
    return OPS["select"](where, chosen, x.reshape(-1)).reshape(x.shape)


@public(other_names={"a": "x", "arr": "x", "indices": "ind", "values": "v"})
def put(
    x: Any,
    ind: Any,
    v: Any,
    mode: Literal["raise", "clip", "wrap"] = "raise",
    *,
    inplace: bool = False,
) -> Tensor:
    """``x`` with the elements of ``v``, over and over, at the places ``ind`` in row-major order, as
    a new array; ``mode`` as in `take`."""
    refuse_inplace("put", inplace)
    x = as_tensor(x)
    row = x.reshape(-1)
    places = from_front(as_tensor(ind).reshape(-1), row.shape[0], mode)
    values = FUNCTIONS["resize"](tensor_of(v, x.dtype), places.shape)
    return OPS["scatter_reduce"](row, places, values, axis=0, reduce="replace").reshape(x.shape)

"""``x[key]``, ``x[key] = v`` and ``x.at[key]``: elements read and replaced by NumPy's keys.

Updates give a new tensor; ``x[key] = v`` then makes it the meaning of ``x``
(`gptrs.ir.tensor.Tensor.__setitem__`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from gptrs import settings
from gptrs.errors import ArgumentError, PtirError, user_location, user_traceback
from gptrs.ir.dims import Dim, Shape, same, same_shape
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.operands import describe
from gptrs.ir.promotion import NUMBERS, is_strict
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.creation import full
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.index_keys import Mask, Part, Places, Span, as_row, parts_of, without_masks
from gptrs.numpy_api.selection import Combine, Selection

__all__ = ["at", "getitem"]

_SCATTERS: dict[str, Combine] = {"set": "replace", "add": "add", "max": "max", "min": "min"}
_COMBINATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "set": lambda old, new: new,
    "add": lambda old, new: FUNCTIONS["add"](old, new),
    "multiply": lambda old, new: FUNCTIONS["multiply"](old, new),
    "divide": lambda old, new: FUNCTIONS["divide"](old, new),
    "power": lambda old, new: FUNCTIONS["power"](old, new),
    "max": lambda old, new: OPS["maximum"](old, new),
    "min": lambda old, new: OPS["minimum"](old, new),
}


def getitem(x: Any, key: Any) -> Tensor:
    """``x[key]`` by NumPy's rules: integers, slices, ``None``, ``...``, index arrays, masks.

    Index arrays broadcast together; their axes stand in the place of the arrays, or first where a
    slice or ``None`` is between them. Negative places count from the end. A known place out of
    range is a `ShapeError` or an `ElementError` at once, a traced one when the program runs. A mask
    must be known (`TraceError`): the size of the result depends on its values.
    """
    return Elements(as_tensor(x), key).get()


def at(x: Any) -> At:
    """``at(x)[key].set(v)``: ``x`` with other elements at ``key``, as ``x.at[key].set(v)``."""
    return At(as_tensor(x))


class At:
    """``x.at``: ``x.at[key]`` are the elements to read or to replace."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Elements:
        return Elements(self._x, key)


class Elements:
    """``x.at[key]``: each method returns ``x`` with these elements replaced; ``x`` stays.

    Values broadcast to the shape of ``x[key]`` and are converted to the dtype of ``x``. Where an
    index array has an element twice, `set` leaves one of its values (the last), `apply` applies
    once, and the other methods combine all of them.
    """

    __slots__ = ("_is_row", "_key", "_x")

    def __init__(self, x: Tensor, key: Any) -> None:
        row = as_row(x, key)
        self._x, self._key = row or (x, key)
        self._is_row = row is not None

    def get(self) -> Tensor:
        """x[key]."""
        return self._told(lambda x, parts: Selection(x, without_masks(parts)).read(x))

    def set(self, values: Any) -> Tensor:
        """``x`` with ``values`` at key."""
        return self._updated("set", values)

    def add(self, values: Any) -> Tensor:
        """``x`` with ``values`` added at key."""
        return self._updated("add", values)

    def subtract(self, values: Any) -> Tensor:
        """``x`` with ``values`` subtracted at key."""
        return self._updated("add", -as_tensor(values))

    def multiply(self, values: Any) -> Tensor:
        """``x`` multiplied by ``values`` at key."""
        return self._updated("multiply", values)

    mul = multiply

    def divide(self, values: Any) -> Tensor:
        """``x`` divided by ``values`` at key."""
        return self._updated("divide", values)

    def power(self, values: Any) -> Tensor:
        """``x`` to the power of ``values`` at key."""
        return self._updated("power", values)

    def min(self, values: Any) -> Tensor:
        """``x`` with the lesser of itself and ``values`` at key."""
        return self._updated("min", values)

    def max(self, values: Any) -> Tensor:
        """``x`` with the greater of itself and ``values`` at key."""
        return self._updated("max", values)

    def apply(self, function: Callable[[Tensor], Any]) -> Tensor:
        """``x`` with ``function`` of x[key] at key."""

        def combine(old: Tensor, _: Tensor) -> Tensor:
            return as_tensor(function(old))

        def applied(x: Tensor, parts: list[Part]) -> Tensor:
            if _is_masked(parts):
                return _where_masked(x, parts, combine, 0)
            selection = Selection(x, without_masks(parts))
            new = _in_shape(x, function(selection.read(x)), selection.shape)
            return selection.write(x, new)

        return self._whole(applied)

    def _updated(self, name: str, values: Any) -> Tensor:
        return self._whole(lambda x, parts: _update(x, parts, name, values))

    def _whole(self, call: Callable[[Tensor, list[Part]], Tensor]) -> Tensor:
        """What `_told` gives, in the shape of ``x``."""
        new = self._told(call)
        return new.reshape(new.shape[1:]) if self._is_row else new

    def _told(self, call: Callable[[Tensor, list[Part]], Tensor]) -> Tensor:
        """``call`` of ``x`` and the parts of the key, which it adds to errors, and the user's
        line."""
        try:
            return call(self._x, parts_of(self._x, self._key))
        except PtirError as error:
            context = f"x[{_text(self._key)}] of x: {describe(self._x)}"
            if context not in error.context:
                error.context.append(context)
            error.where = error.where or user_location()
            raise user_traceback(error, full=settings.full_traceback()) from None


def _is_masked(parts: list[Part]) -> bool:
    """Whether a mask is traced."""
    return any(isinstance(part, Mask) and part.mask.is_traced for part in parts)


def _update(x: Tensor, parts: list[Part], name: str, values: Any) -> Tensor:
    combine = _COMBINATIONS[name]
    if _is_masked(parts):
        return _where_masked(x, parts, combine, values)
    selection = Selection(x, without_masks(parts))
    source = _in_shape(x, values, selection.shape)
    if not selection.has_arrays:
        if name != "set":
            source = combine(selection.read(x), source).astype(x.dtype)
        return selection.write(x, source)
    if name in _SCATTERS:
        return selection.write(x, source, _SCATTERS[name])
    return combine(x, selection.products(x, source)).astype(x.dtype)


def _in_shape(x: Tensor, values: Any, shape: Shape) -> Tensor:
    """``values`` in the dtype of ``x``, broadcast to ``shape``; leading axes of 1 may go."""
    if isinstance(values, NUMBERS) and not isinstance(values, complex | Dim):
        return full(shape, values, dtype=x.dtype)
    source = _of_dtype(x, values)
    while source.ndim > len(shape) and same(source.shape[0], 1):
        source = source.reshape(source.shape[1:])
    if same_shape(source.shape, shape):
        return source
    return OPS["broadcast_to"](source, shape=shape)


def _of_dtype(x: Tensor, values: Any) -> Tensor:
    source = as_tensor(values)
    if source.dtype is x.dtype or (is_strict() and not source.weak):
        return source
    return source.astype(x.dtype)


def _where_masked(
    x: Tensor, parts: list[Part], combine: Callable[[Tensor, Tensor], Tensor], values: Any
) -> Tensor:
    """``x`` with ``combine(old, values)`` where a traced mask holds: a select, as the number of
    these elements is not known."""
    masks = [at for at, part in enumerate(parts) if isinstance(part, Mask)]
    if len(masks) > 1 or any(isinstance(part, Places) for part in parts):
        raise ArgumentError(
            "a traced mask stands beside index arrays: expected integers and slices",
            fix="x.at[i].set(ptir.where(mask, v, x[i]))",
        )
    (place,) = masks
    mask = cast("Mask", parts[place]).mask
    whole = [Span(0, extent) for extent in mask.shape]
    selection = Selection(x, [*parts[:place], *whole, *parts[place + 1 :]])
    old = selection.read(x)
    before = sum(part is None or isinstance(part, Span) for part in parts[:place])
    behind = old.ndim - before - mask.ndim
    new = combine(old, _beside_mask(x, values, mask.ndim, behind)).astype(x.dtype)
    mask = mask.reshape((*mask.shape, *(1,) * behind))
    return selection.write(x, OPS["select"](mask, new, old))


def _beside_mask(x: Tensor, values: Any, rank: int, behind: int) -> Tensor:
    """``values`` for the places of a mask of ``rank`` axes: the same at all of them."""
    if isinstance(values, NUMBERS) and not isinstance(values, complex | Dim):
        return full((), values, dtype=x.dtype)
    source = _of_dtype(x, values)
    if source.ndim > behind and same(source.shape[-1 - behind], 1):
        ones = (1,) * rank
        shape = source.shape
        at = source.ndim - 1 - behind
        return source.reshape((*shape[:at], *ones, *shape[at + 1 :]))
    if source.ndim > behind:
        raise ArgumentError(
            f"the number of elements of x[mask] is not known while tracing: values of shape"
            f" {shape_text(source.shape)} do not fit",
            fix="ptir.where(mask, v, x), with a value for each element of x",
        )
    return source


def _text(key: Any) -> str:
    """A key as it is written."""
    if isinstance(key, tuple):
        return ", ".join(map(_text, cast("tuple[Any, ...]", key)))
    if isinstance(key, slice):
        ends = cast("tuple[Any, ...]", (key.start, key.stop, key.step))
        shown = ["" if end is None else _text(end) for end in ends]
        return ":".join(shown if shown[2] else shown[:2])
    return "..." if key is Ellipsis else describe(key)


for _function in (getitem, at):
    FUNCTIONS[_function.__name__] = _function

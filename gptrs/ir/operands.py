"""Conversions of operands: tensors, scalars, absent operands, and tuples of these.

Between a call and its instruction an operand has several forms: the user's object, a `Tensor`
(`as_operand`), an abstract tensor for the type rule (`as_rule_operand`), a NumPy array for the
meaning (`elements`, `widened`, `rounded`), and the text in messages (`describe`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from gptrs import tree
from gptrs.errors import ArgumentError, shown
from gptrs.ir.dims import Dim
from gptrs.ir.program import Scalar, Value, key_of
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import Array, Type, as_dtype

_LEVELS = 6  # of operands in operands that messages show


def as_operand(value: object, level: int = 1) -> Tensor | Scalar | tuple[Any, ...] | None:
    """``value`` as an op takes it: a Tensor for any array, scalars and None unchanged."""
    if value is None or isinstance(value, Tensor | Dim):
        return value
    plain = cast("object", value.item()) if isinstance(value, np.generic) else value
    if isinstance(plain, bool | int | float | complex):
        return plain
    if isinstance(plain, tuple | list):
        if level > tree.MOST_LEVELS:
            raise tree.too_deep(plain)  # pyright: ignore[reportUnknownArgumentType]
        return tuple(as_operand(v, level + 1) for v in cast("Sequence[object]", plain))
    array = as_array(plain)
    if array is None:
        raise ArgumentError(
            f"{shown(plain)} ({type(plain).__name__}) is no operand: expected a Tensor, an array"
            " or a number"
        )
    return Tensor.of_array(array)


def map_operand(change: Callable[[Any], Any], operand: Any) -> Any:
    """``change`` of an operand, or of each part of a tuple."""
    if isinstance(operand, tuple):
        parts = cast("tuple[Any, ...]", operand)
        return tuple([map_operand(change, part) for part in parts])
    return change(operand)


def tensors_in(operands: Sequence[Any]) -> list[Tensor]:
    """The tensors among operands, tuples opened."""
    found: list[Tensor] = []
    for operand in operands:
        if isinstance(operand, Tensor):
            found.append(operand)
        elif isinstance(operand, tuple):
            found.extend(tensors_in(cast("tuple[Any, ...]", operand)))
    return found


def type_of(operand: Tensor | Value | Type) -> Type:
    """The type of a typed operand."""
    return operand if isinstance(operand, Type) else operand.type


def types_key(operand: Any) -> object:
    """A hashable key of all that a type rule depends on: types and literals."""
    if isinstance(operand, Tensor | Value | Type):
        return type_of(operand)
    if isinstance(operand, tuple):
        return tuple(map(types_key, cast("tuple[Any, ...]", operand)))
    return key_of(operand)


def as_rule_operand(operand: Any) -> Any:
    """The operand of a type rule: a Tensor with a type and no elements."""
    if isinstance(operand, Tensor | Value | Type):
        return Tensor.of_value(Value(type_of(operand)))
    return operand


def as_eager(operand: Any) -> Any:
    """An array as a Tensor."""
    return Tensor.of_array(cast("Array", operand)) if isinstance(operand, np.ndarray) else operand


def elements(operand: Any) -> Any:
    """A Tensor's array."""
    return operand.numpy() if isinstance(operand, Tensor) else operand


def widened(operand: Any) -> Any:
    """Narrow floats as f32, 4-bit integers as 8-bit ones; everything else unchanged."""
    if not isinstance(operand, np.ndarray):
        return operand
    array = cast("Array", operand)
    dtype = as_dtype(array.dtype)
    if dtype.compute is not dtype:
        return array.astype(dtype.compute.numpy)
    if dtype.bits == 4:
        return array.astype(np.int8 if dtype.kind == "int" else np.uint8)
    return array


def rounded(result: Any, type: Type) -> Array:
    """A result in the dtype of ``type``: floats rounded once, 4-bit integers wrapped."""
    array: Array = np.asarray(result)
    if array.dtype == type.dtype.numpy:
        return array
    if type.dtype.bits == 4:
        low = np.asarray(array.astype(np.int8) & 15)  # of rank 0 it would be a number
        array = np.where(low > 7, low - 16, low) if type.dtype.kind == "int" else low
    with np.errstate(all="ignore"):
        return array.astype(type.dtype.numpy)


def several(results: Any) -> tuple[Any, ...]:
    """One result or several, always as a tuple."""
    return cast("tuple[Any, ...]", results if isinstance(results, tuple) else (results,))


def describe(value: object, level: int = 1) -> str:
    """An operand or attribute as messages print it: its type, and where it comes from."""
    if isinstance(value, Tensor):
        origin = value.value.origin if value.value is not None else getattr(value, "name", "")
        return f"{value.type}{f' ({origin})' if origin else ''}"
    if isinstance(value, np.ndarray):
        return str(Type.of(cast("Array", value)))
    if isinstance(value, tuple | list):
        if level > _LEVELS:
            return "(...)"
        parts = (describe(part, level + 1) for part in cast("Sequence[object]", value))
        return f"({', '.join(parts)})"
    text = shown(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

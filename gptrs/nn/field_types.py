"""Type checks of module fields: whether a value is of the type that a field declares.

`gptrs.nn.module` calls this for the arguments of every generated ``__init__``. Undecidable types
pass: type variables, protocols, names imported for type checkers alone.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from gptrs.ir.dims import Dim
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import described
from gptrs.ir.types import Array, shape_text

_SHOWN = 60  # letters of a value, in errors
_ACCEPTED: dict[object, tuple[type, ...]] = {
    int: (int, np.integer, Dim),
    float: (int, float, np.integer, np.floating),
    list: (list, tuple),
    tuple: (list, tuple),
    Parameter: (Tensor,),  # also one that is traced
}
"""Declared types → accepted types, where these differ."""


def declared_types(kind: type) -> dict[str, Any]:
    """The types that a class declares, by the names of its attributes."""
    try:
        return get_type_hints(kind)
    except Exception:  # evaluating an annotation may raise anything
        return {}


def is_of(value: Any, declared: Any) -> bool:
    """Whether a field declared as ``declared`` accepts ``value``."""
    origin, arguments = get_origin(declared), get_args(declared)
    if origin in (Union, types.UnionType):
        return any(is_of(value, part) for part in arguments)
    if origin is Literal:
        return any(type(value) is type(known) and value == known for known in arguments)
    if origin is Callable:
        return callable(value)
    kind = origin or declared
    if kind is None or not isinstance(kind, type):
        return kind is not None or value is None
    try:
        if not isinstance(value, _ACCEPTED.get(kind, kind)):
            return False
    except TypeError:  # a protocol that knows its methods at run time only
        return True
    if origin in (list, tuple):
        return _are_of(cast("list[object]", value), arguments)
    if origin is dict:
        return all(is_of(each, arguments[1]) for each in value.values())
    return True


def _are_of(values: list[object], declared: tuple[Any, ...]) -> bool:
    """Whether the elements of a list or a tuple match ``[X]``, ``[X, ...]`` or one type each."""
    if len(declared) == 1 or declared[1:] == (...,):
        return all(is_of(value, declared[0]) for value in values)
    return len(values) == len(declared) and all(map(is_of, values, declared))


def type_text(declared: Any) -> str:
    """A declared type as source text: ``tuple[int, int]``."""
    if get_origin(declared) in (Union, types.UnionType):
        return " | ".join(map(type_text, get_args(declared)))
    if isinstance(declared, type) and not get_args(declared):
        return "None" if declared is type(None) else declared.__name__
    return re.sub(r"\b([a-z]\w*\.)+", "", str(declared))


def value_text(value: object) -> str:
    """A short description of a value, for errors."""
    if isinstance(value, Tensor):
        return f"a Tensor ({described(value)})"
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return f"an array of {array.dtype} {shape_text(array.shape)}"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"a {type(value).__name__}"

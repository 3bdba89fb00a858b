"""Readers for the parts of an object, by its kind: arrays, wrappers, containers, attributes.

Used by the traversal of `gptrs.jit.captures`, which follows these edges from the function and its
arguments, and through the read log by guards, which repeat the reads. Captured arrays get a token
(type and elements), compared by `is_array`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set
from functools import cached_property, partial
from types import MethodType, SimpleNamespace
from typing import Any, TypeAlias, cast
from zlib import crc32

import numpy as np

from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import Array, Type
from gptrs.jit.code import is_library
from gptrs.jit.fast_path.read_log import Read, items

# Captured arrays up to this size are compared in full, others by identity and checksum.
_COMPARED_BYTES = 1 << 16
ArrayToken: TypeAlias = tuple[str, Type, bytes | tuple[int, int]]


def array_token(value: Any) -> ArrayToken:
    """The token of an array of any library: type and elements (or id and checksum)."""
    array = cast("Array", as_array(value))
    return "array", Type.of(array), _elements(array, value)


def is_array(value: Any, token: ArrayToken) -> bool:
    """Whether ``value``, an array of the same class, still has this token."""
    if type(value) is not np.ndarray:  # pyright: ignore[reportUnknownArgumentType]
        return array_token(value) == token
    _, kind, elements = token
    return (
        value.shape == kind.shape
        and value.dtype == kind.dtype.numpy
        and _elements(value, value) == elements
    )


def _elements(array: Array, value: object) -> bytes | tuple[int, int]:
    if array.nbytes <= _COMPARED_BYTES:
        return array.tobytes()
    return id(value), crc32(np.ascontiguousarray(array).data)


def state_of(tensor: Tensor) -> Sequence[object]:
    """The mutable state of a Tensor: whether it was donated, and the array that it has now."""
    return tensor.donated, tensor._array  # pyright: ignore[reportPrivateUsage]


def method_parts(method: MethodType) -> Sequence[object]:
    """The function of a bound method, and what it is bound to."""
    return method.__func__, method.__self__


def set_elements(elements: Set[object]) -> Sequence[object]:
    """The elements of a set, in an order that does not depend on when each was added."""
    return tuple(sorted(elements, key=hash))


# Wrappers of the standard library, and readers of the parts that they wrap.
_PARTS: tuple[tuple[Any, Read], ...] = (
    (MethodType, method_parts),
    (partial, lambda made: (made.func, made.args, made.keywords)),
    (property, lambda made: (made.fget,)),
    (cached_property, lambda made: (made.func,)),
    (range, lambda made: (made.start, made.stop, made.step)),
    (slice, lambda made: (made.start, made.stop, made.step)),
    (SimpleNamespace, lambda made: (made.__dict__,)),
)
# Subclasses of the built-in containers.
_CONTENTS: tuple[tuple[Any, Read], ...] = (
    (dict, items),
    ((set, frozenset), set_elements),
    ((list, tuple, deque), tuple),
)


def reader_of_parts(value: object) -> Read:
    """The reader of the parts that ``value`` wraps; it returns none for other objects."""
    return next((read for kind, read in _PARTS if isinstance(value, kind)), wrapped_function)


def reader_of_contents(value: object) -> Read | None:
    """The reader of the elements of ``value``; None when it is no container."""
    return next((read for kind, read in _CONTENTS if isinstance(value, kind)), None)


def wrapped_function(value: object) -> Sequence[object]:
    """The function below a `functools.wraps` wrapper, such as a jitted function."""
    wrapped: object = getattr(value, "__wrapped__", None)
    return (wrapped,) if callable(wrapped) else ()


_OPEN_MODULES = ("argparse", "collections")  # standard library, but objects with user values


def fields_of(value: object) -> Mapping[str, object] | None:
    """The attributes of an object; None for objects of libraries, which are not read."""
    kind = type(value)
    if is_library(kind.__module__, ours=True) and kind.__module__ not in _OPEN_MODULES:
        return None
    fields: dict[str, object] | None = getattr(value, "__dict__", None)
    slots = [
        n for base in kind.__mro__ for n in _slots(base) if hasattr(value, n) and n[:2] != "__"
    ]
    if not slots:
        return fields
    return {**(fields or {}), **{name: getattr(value, name) for name in slots}}


def all_fields(value: object) -> Mapping[str, object]:
    """The attributes of an object that has slots."""
    return fields_of(value) or {}


def _slots(kind: type) -> tuple[str, ...]:
    names: Any = vars(kind).get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)

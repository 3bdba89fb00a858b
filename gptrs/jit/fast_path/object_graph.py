"""What objects are made of, by their kind: arrays, wrappers, containers, attributes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
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
    """The type and the elements of an array of any library."""
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


def is_donated(tensor: Tensor) -> Sequence[object]:
    """All of a tensor that may change."""
    return (tensor.donated,)


# What the wrappers of the standard library are made of.
_PARTS: tuple[tuple[Any, Read], ...] = (
    (MethodType, lambda made: (made.__func__, made.__self__)),
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
    ((set, frozenset), lambda made: tuple(sorted(made, key=hash))),
    ((list, tuple, deque), tuple),
)


def reader_of_parts(value: object) -> Read:
    """ReadLog what ``value`` wraps, if anything."""
    return next((read for kind, read in _PARTS if isinstance(value, kind)), _wrapped)


def reader_of_contents(value: object) -> Read | None:
    """ReadLog the elements of ``value``, or None when it is no container."""
    return next((read for kind, read in _CONTENTS if isinstance(value, kind)), None)


def _wrapped(value: object) -> Sequence[object]:
    """The function that ``value`` was made of by `functools.wraps`, as jitted ones are."""
    wrapped: object = getattr(value, "__wrapped__", None)
    return (wrapped,) if callable(wrapped) else ()


_OPEN_MODULES = ("argparse", "collections")  # their objects are there to hold values


def fields_of(value: object) -> Mapping[str, object] | None:
    """The attributes of an object; None where they are none of our business."""
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

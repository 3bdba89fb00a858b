"""Fast key of a call: tokens that identify the program for its arguments, in one pass over them.

Called by `CallCache.find` for every call. Equal tokens guarantee the same program as long as the
guard of the cached call holds; the full key of `gptrs.jit.arguments` is built on misses only. The
pass also collects the arrays that the plan takes and the objects that the guard reads from.
"""

# Properties would take a third of the time, and so would casts.
# pyright: reportPrivateUsage=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import enum
import inspect
from collections.abc import Hashable, Iterable, Mapping, Set
from types import NoneType
from typing import Any

import numpy as np
from numpy import ndarray

from gptrs import tree
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import key_of
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, Array
from gptrs.lazy_dataclass import dataclass

_NUMBERS: dict[type, Any] = {int: np.int64, float: np.float64, complex: np.complex128}
_SCALARS = frozenset(dtype.numpy.type for dtype in DTYPES.values())
_VALUES = frozenset((bool, str, bytes, NoneType))


class UnsupportedArgument(Exception):  # noqa: N818 - no error: the slow path takes the call
    """An argument has no fast key."""


@dataclass(frozen=True)
class ArgumentBinding:
    """How the arguments of a call map to parameters, for one positional count and set of
    keywords."""

    order: list[int] | None  # a permutation of values and ``defaults``; None: the identity
    defaults: tuple[object, ...]
    static: list[bool] | None  # for each value, in that order; None: no argument is static

    def arrange(self, args: Iterable[object], kwargs: Mapping[str, object]) -> list[object]:
        """The values in the order of the parameters."""
        values = *args, *kwargs.values(), *self.defaults
        return [values[place] for place in self.order or ()]


def binding_of(
    signature: inspect.Signature, count: int, names: Iterable[str], static: Set[str]
) -> ArgumentBinding:
    """The binding of calls with ``count`` positional arguments and the keywords ``names``."""
    names = tuple(names)
    marks = range(count + len(names))  # each stands for the value at its index
    bound = signature.bind(*marks[:count], **dict(zip(names, marks[count:], strict=True)))
    given = set(bound.arguments)
    bound.apply_defaults()
    order: list[int] = []
    is_static: list[bool] = []
    defaults: list[object] = []
    for name, mark in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            places = mark
        elif kind is inspect.Parameter.VAR_KEYWORD:
            places = mark.values()
        elif name in given:
            places = (mark,)
        else:
            places = (len(marks) + len(defaults),)
            defaults.append(mark)
        order += places
        is_static += [name in static] * len(places)
    in_order = order == list(range(count))
    return ArgumentBinding(
        None if in_order else order, tuple(defaults), is_static if any(is_static) else None
    )


def add_traced(
    values: Iterable[Any],
    tokens: list[Hashable],
    arrays: list[Array | DeviceArray],
    tensors: list[Tensor],
    roots: list[object],
) -> None:
    """Add traced arguments. Raises `UnsupportedArgument`, and the errors of the call itself.

    Arguments with equal tokens differ only in the elements of ``arrays`` and in the contents of
    the ``roots``: nothing else selects another program. The tokens of a value begin with its type,
    which determines their number. ``tensors`` are the Tensors that own some of the arrays.
    """
    for value in values:
        kind = type(value)
        if kind is Tensor:
            array, found = value._array, value._type
            if array is None:
                raise UnsupportedArgument  # donated or leaked
            tokens += kind, found.shape, found.dtype, value.weak
            if isinstance(array, DeviceArray):
                tokens.append(array.device)
            arrays.append(array)
            tensors.append(value)
        elif kind is ndarray:
            tokens += kind, value.dtype, value.shape
            arrays.append(value)
        elif kind in _VALUES:
            tokens += kind, value
        elif kind in _NUMBERS:
            tokens.append(kind)
            arrays.append(np.asarray(value, _NUMBERS[kind]))
        elif kind is tuple or kind is list:
            tokens += kind, len(value)
            add_traced(value, tokens, arrays, tensors, roots)
        elif kind in _SCALARS:
            tokens.append(kind)
            arrays.append(np.asarray(value))
        elif kind is not Parameter and isinstance(value, Tensor):
            raise UnsupportedArgument
        elif not getattr(kind, "is_module", False) and (container := tree.container_of(kind)):
            add_traced(_split(container, kind, value, tokens), tokens, arrays, tensors, roots)
        else:
            tokens += kind, id(value)
            roots.append(value)


def add_static(value: Any, tokens: list[Hashable], roots: list[object]) -> None:
    """Add a static argument: its value is part of the key."""
    kind = type(value)
    if kind in (float, complex):
        tokens.append(key_of(value))  # 0.0 differs from -0.0, NaN equals itself
    elif kind is int or kind in _VALUES:
        tokens += kind, value
    elif container := tree.container_of(kind):
        for child in _split(container, kind, value, tokens):
            add_static(child, tokens, roots)
    elif isinstance(value, enum.Enum):
        tokens += kind, id(value)  # lives as long as its class
    elif kind.__hash__ is object.__hash__ and not isinstance(value, Tensor):
        tokens += kind, id(value)
        roots.append(value)
    else:
        raise UnsupportedArgument


def _split(
    container: tree.Container, kind: type, value: Any, tokens: list[Hashable]
) -> Iterable[object]:
    labels, children = container.split(value)
    if not all(type(label) in (str, int) for label in labels):
        raise UnsupportedArgument  # 1 and True are one label to a dict
    tokens += kind, labels
    return children

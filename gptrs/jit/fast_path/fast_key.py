"""A quick look at the arguments of a call: enough to find what an equal call did."""

# Properties would take a third of the time, and so would casts.
# pyright: reportPrivateUsage=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import enum
import inspect
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np
from numpy import ndarray

from gptrs import tree
from gptrs.ir.tensor import Parameter, Tensor
from gptrs.ir.types import DTYPES, Array

_NUMBERS: dict[type, Any] = {int: np.int64, float: np.float64, complex: np.complex128}
_SCALARS = frozenset(dtype.numpy.type for dtype in DTYPES.values())
_VALUES = frozenset((bool, str, bytes, NoneType))


class Unusual(Exception):  # noqa: N818 - no error: the slow path knows what to do
    """An argument of a kind that sketches do not know."""


@dataclass(frozen=True)
class Form:
    """Which parameters a call fills, given how many arguments and which names it has."""

    order: list[int] | None  # of its values and ``defaults``; None where nothing is to be done
    defaults: tuple[object, ...]
    static: list[bool] | None  # for each, in that order; None where none is

    def arrange(self, args: Iterable[object], kwargs: Mapping[str, object]) -> list[object]:
        """The values in the order of the parameters."""
        values = *args, *kwargs.values(), *self.defaults
        return [values[place] for place in self.order or ()]


def form_of(
    signature: inspect.Signature, count: int, names: Iterable[str], static: Set[str]
) -> Form:
    """The form of calls with ``count`` positional arguments and others called ``names``."""
    names = tuple(names)
    marks = range(count + len(names))  # each stands for the value in its place
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
    return Form(None if in_order else order, tuple(defaults), is_static if any(is_static) else None)


def add(
    values: Iterable[Any],
    tokens: list[Hashable],
    arrays: list[Array],
    tensors: list[Tensor],
    roots: list[object],
) -> None:
    """Take in arguments that are traced. Raises `Unusual`, and errors as the call would.

    Equal tokens mean arguments that differ in the elements of ``arrays``, in what the ``roots``
    hold, and in nothing else that makes another program. The tokens of one value begin with its
    type, which says how many there are. ``tensors`` are those that hold some of the arrays.
    """
    for value in values:
        kind = type(value)
        if kind is Tensor:
            array, found = value._array, value._type
            if array is None:
                raise Unusual  # donated or leaked
            tokens += kind, found.shape, found.dtype, value.weak
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
            add(value, tokens, arrays, tensors, roots)
        elif kind in _SCALARS:
            tokens.append(kind)
            arrays.append(np.asarray(value))
        elif kind is not Parameter and isinstance(value, Tensor):
            raise Unusual
        elif not getattr(kind, "is_module", False) and (container := tree.container_of(kind)):
            add(_split(container, kind, value, tokens), tokens, arrays, tensors, roots)
        else:
            tokens += kind, id(value)
            roots.append(value)


def add_static(value: Any, tokens: list[Hashable], roots: list[object]) -> None:
    """Take in an argument whose value is part of the program's key."""
    kind = type(value)
    if kind in (float, complex):
        tokens += kind, repr(value)  # tells 0.0 from -0.0, and NaN is one
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
        raise Unusual


def _split(
    container: tree.Container, kind: type, value: Any, tokens: list[Hashable]
) -> Iterable[object]:
    labels, children = container.split(value)
    if not all(type(label) in (str, int) for label in labels):
        raise Unusual  # 1 and True are one label to a dict
    tokens += kind, labels
    return children

"""Format strings whose values are known at run time: the texts of `ptir.print` and `ptir.check`.

`template` runs while tracing. What it knows by then (numbers, strings, shapes) it writes into the
text, and containers as their parts, so that a field is left for each tensor: ``"x = {0:.3f}"``.
`fill` runs with the program, and writes elements there.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from gptrs import tree
from gptrs.errors import ArgumentError
from gptrs.ir.dims import Dim
from gptrs.ir.tensor import Tensor, as_array

_FORMATTER = string.Formatter()


def template(
    text: str, args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[str, tuple[Tensor | Dim, ...]]:
    """``text`` with a field for each tensor among its values, and these tensors.

    Raises `ArgumentError` where ``text.format(*args, **named)`` could not be written.
    """
    values: list[Tensor | Dim] = []
    parts: list[str] = []
    used: set[object] = set()
    automatic = 0
    try:
        for literal, field, spec, conversion in _FORMATTER.parse(text):
            parts.append(_literal(literal))
            if field is None:
                continue
            if not field or field[0] in ".[":
                field = f"{automatic}{field}"
                automatic += 1
            value, first = _FORMATTER.get_field(field, args, named)
            used.add(first)
            parts.append(_written(value, spec or "", conversion, values))
    except (ValueError, LookupError, AttributeError) as error:
        raise ArgumentError(
            f"the text {text!r} does not fit its values: {error}",
            fix="write {} for each value, and {{ for a brace",
        ) from None
    if left := [n for n in range(len(args)) if n not in used] + [n for n in named if n not in used]:
        raise ArgumentError(
            f"the text {text!r} has no field for value {left[0]}", fix="write {} for each value"
        )
    return "".join(parts), tuple(values)


def fill(text: str, values: Sequence[Any]) -> str:
    """``text`` with the elements of ``values``, which are arrays, in its fields."""
    return _FORMATTER.vformat(text, [_Shown(np.asarray(value)) for value in values], {})


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _written(value: Any, spec: str, conversion: str | None, values: list[Tensor | Dim]) -> str:
    """A field for a tensor; other values as text, the parts of containers one by one."""
    if "{" in spec:
        raise ValueError("a format in a format")
    kind: type = cast("Any", type)(value)
    container = tree.container_of(kind)
    if container is not None and not isinstance(value, Tensor):
        labels, children = container.split(value)
        inner = [_written(child, spec, conversion, values) for child in children]
        return _container(kind, labels, inner)
    tensor = value if isinstance(value, Tensor | Dim) else _tensor(value)
    if tensor is not None:
        values.append(tensor)
        ending = f"!{conversion}" if conversion else ""
        return f"{{{len(values) - 1}{ending}{':' if spec else ''}{spec}}}"
    return _literal(format(_FORMATTER.convert_field(value, cast("Any", conversion)), spec))


def _tensor(value: object) -> Tensor | None:
    if isinstance(value, bool | int | float | complex):
        return None
    array = as_array(value)
    return None if array is None else Tensor.of_array(array)


def _container(kind: type, labels: Sequence[object], parts: Sequence[str]) -> str:
    if kind is dict:
        named = (f"{_literal(repr(n))}: {p}" for n, p in zip(labels, parts, strict=True))
        return f"{{{{{', '.join(named)}}}}}"
    if kind is list:
        return f"[{', '.join(parts)}]"
    if kind is tuple:
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    named = (f"{n}={p}" for n, p in zip(labels, parts, strict=True))
    return f"{kind.__name__}({', '.join(named)})"


class _Shown:
    """The elements of an array as text, each by the format of the field."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __str__(self) -> str:
        return str(self._array[()])

    def __repr__(self) -> str:
        return repr(self._array[()])

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if not self._array.ndim:
            return format(self._array.item(), spec)

        def text(element: Any) -> str:
            return format(element.item(), spec)

        return np.array2string(self._array, formatter={"all": text})

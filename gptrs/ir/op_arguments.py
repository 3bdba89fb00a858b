"""Arguments of op calls: the classes that a schema's annotations allow, attributes in normal form.

Input: the annotations of an op's parameters, and the values of a call. Used by `gptrs.ir.op` alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import FunctionType, UnionType
from typing import Any, Literal, cast, get_args, get_origin

import numpy as np

from gptrs.errors import ArgumentError
from gptrs.ir.dims import Dim
from gptrs.ir.interpreters import program_of
from gptrs.ir.program import Program
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, as_dtype

OTHER_NAMES = {
    "axis": ("axes",),
    "axes": ("axis",),
    "dim": ("axis", "axes"),
    "keepdim": ("keepdims",),
    "dims": ("axes", "perm", "axis"),
    "input": ("x",),
    "other": ("y",),
    "tensors": ("arrays",),
    "end": ("stop",),
    "steps": ("num",),
    "interpolation": ("method",),
    **dict.fromkeys(("ary", "array", "m", "val", "z", "A", "ar", "prototype"), ("x",)),
    "a": ("x", "x1", "obj", "data"),
    "b": ("y",),
    "v": ("x2", "x"),
    "x1": ("x",),
    "x2": ("y",),
    "a1": ("x",),
    "a2": ("y",),
    "object": ("data",),
    "tup": ("arrays",),
    "N": ("n_rows",),
    "M": ("n_cols", "m"),
}
"""Keywords of NumPy, torch and of our own schemas for one thing: an op takes any of them in the
place of the one that its signature has."""
_PLAIN = frozenset([int, float, bool, str, type(None)])


def classes_of(hint: Any) -> tuple[type, ...]:
    """The Python classes of an annotated operand or attribute: unions expanded, tuples as
    ``tuple``, a float also given as an integer."""
    origin = get_origin(hint)
    if origin is Literal:
        return tuple(type(cast("object", choice)) for choice in get_args(hint))
    if isinstance(origin, type) and origin is not UnionType:
        return (origin,)
    if origin is not None:
        return tuple(found for part in get_args(hint) for found in classes_of(part))
    return (int, float) if hint is float else (hint,)


def renamed_keywords(kwargs: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """``kwargs`` under the names that ``known`` has of `OTHER_NAMES`."""
    result: dict[str, Any] = {}
    for name, value in kwargs.items():
        others = () if name in known else OTHER_NAMES.get(name, ())
        free = [other for other in others if other in known and other not in kwargs]
        result[free[0] if free else name] = value
    return result


def expected(classes: tuple[type, ...]) -> str:
    """``classes`` in the user's words."""
    words: dict[type, str] = {
        Tensor: "a Tensor",
        tuple: "a tuple or list",
        type(None): "None",
        str: "a string",
        bool: "True or False",
        int: "an integer",
        np.ndarray: "an array",
        DType: "a dtype",
        Dim: "a dimension",
        Program: "a program",
        float: "a number",
        complex: "a number",
    }
    if float in classes:
        classes = tuple(kind for kind in classes if kind not in (bool, int, Dim))
    return " or ".join(dict.fromkeys(words[kind] for kind in classes))


def attribute(name: str, value: Any) -> Any:
    """An attribute in normal form: no lists, no NumPy scalars, dtypes as `DType`."""
    if type(value) in _PLAIN and not name.endswith("dtype"):  # most calls
        return value
    if isinstance(value, Tensor):
        raise ArgumentError(
            f"attribute {name} must be known while tracing, found a Tensor ({value.type})",
            fix="pass a Python number, or make the argument static with static_argnames",
        )
    if value is None or isinstance(value, np.ndarray | Program):
        return cast("Any", value)
    if isinstance(value, FunctionType):  # as a program's text has it
        return program_of(value)
    if name.endswith("dtype"):
        return as_dtype(value)
    if isinstance(value, np.generic):
        return cast("Any", value.item())
    if isinstance(value, tuple | list):
        return tuple(attribute(name, v) for v in cast("Sequence[Any]", value))
    return value

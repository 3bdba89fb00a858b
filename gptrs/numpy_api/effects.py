"""print, callback and check inside compiled functions: effects at run time, in program order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from gptrs import tree
from gptrs.errors import ArgumentError, shown
from gptrs.ir.dims import Dim
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.host_functions import HostFunction
from gptrs.ir.operand_trees import take_apart
from gptrs.ir.templates import template
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import Type, as_dtype
from gptrs.numpy_api.function import as_tensor, public

__all__ = ["callback", "check", "print"]


@public
def print(text: Any, /, *values: Any, **named: Any) -> None:
    """Print at run time, each time that the program comes to this line.

    ``ptir.print("x = {}, {y:.3f}", x, y=y)`` fills a format string; the formats of numbers apply to
    each element of an array. ``ptir.print(x, y)`` prints values with spaces between them. Values
    may be tensors and containers of them; what Python knows while tracing is printed as it was
    then. Lines appear on standard output in the order of the program, also from loops and from the
    branches of ``ptir.cond`` that are taken. Raises `ArgumentError` where the text does not fit.
    """
    if not isinstance(text, str):
        values = text, *values
        text = " ".join(["{}"] * len(values))
    filled, found = template(text, values, named)
    OPS["print"](found, text=filled)


@public
def callback(function: Callable[..., Any], /, *values: Any, result: Any = None) -> Any:
    """Call ``function(*values)``, a Python function, at run time.

    It gets NumPy arrays, copies of its own, in the containers of ``values``. Without ``result``
    what it returns is ignored. With it, its value comes back as tensors: ``result`` has the
    containers that it returns, and in place of each array a ``ptir.Type``, a text such as
    ``"f32[2,3]"``, or anything with a shape and a dtype. It is called once each time that the
    program comes to this line, in the order of the program; its exceptions reach the caller.
    Raises `ArgumentError`, `ShapeError` or `DTypeError` where it returns something else than
    ``result`` says.
    """
    if not callable(function):
        raise ArgumentError(f"function is {shown(function)}, which cannot be called")
    parts = take_apart(values, "values", modules=False)
    if strange := [path for path, leaf in parts.named() if not isinstance(leaf, Tensor)]:
        raise ArgumentError(
            f"{strange[0]} is no array, of which a callback takes any number",
            fix="let the function read it from around it (functools.partial, a closure)",
        )
    types: tuple[Type, ...] = ()
    form: tree.Structure | None = None
    if result is not None:
        leaves, form = tree.flatten(result, is_leaf=_has_type, label="result")
        named = zip(tree.paths(form, "result"), leaves, strict=True)
        types = tuple(_type(path, leaf) for path, leaf in named)
    host = HostFunction(function, parts.structure, form)
    returned = OPS["callback"](tuple(parts.tensors), function=host, result=types)
    if form is None:
        return None
    several = cast("tuple[Any, ...]", returned if len(types) > 1 else (returned,))
    return tree.unflatten(form, several[: len(types)])


@public
def check(condition: Any, text: str, /, *values: Any, **named: Any) -> None:
    """Raise `CheckError` at run time, with ``text``, unless ``condition`` holds everywhere.

    ``text`` is a format string for ``values``, as that of ``ptir.print``. Compiled programs test
    the condition in native code: Python runs when it fails, and not before. The error has your
    line; nothing after the check is run.
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"text is {shown(text)}, expected a string", fix='ptir.check(x > 0, "x is {}", x)'
        )
    filled, found = template(text, values, named)
    holds = as_tensor(condition)
    if holds.ndim:
        holds = FUNCTIONS["all"](holds)
    OPS["check"](holds, found, text=filled)


def _has_type(value: object) -> bool:
    return isinstance(value, Type | str) or (hasattr(value, "shape") and hasattr(value, "dtype"))


def _type(path: str, value: Any) -> Type:
    """The type that a leaf of ``result`` stands for."""
    if isinstance(value, Type):
        return value
    if isinstance(value, str):
        return Type.parse(value)
    if isinstance(value, Tensor):
        return value.type
    if not _has_type(value):
        raise ArgumentError(
            f"{path} is {shown(value)}, expected a shape and a dtype",
            fix='ptir.Type((2, 3), ptir.f32), "f32[2,3]", or an array like it',
        )
    if (array := as_array(value)) is not None:
        return Type.of(array)
    shape: tuple[int | Dim, ...] = tuple(value.shape)
    return Type(shape, as_dtype(value.dtype))

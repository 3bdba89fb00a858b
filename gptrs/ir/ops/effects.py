"""Effects: print, callback, check. They act when the program runs, in the order of its text.

Each has a result so that it is an instruction like any other: a callback those of its function, the
others, which nothing reads, a token. `gptrs.numpy_api.effects` has the functions that people call.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from gptrs.errors import ArgumentError, CheckError, DTypeError, ShapeError
from gptrs.ir import effect_tape
from gptrs.ir.host_functions import HostFunction, known
from gptrs.ir.kinds import OpKind
from gptrs.ir.primitives import Primitive
from gptrs.ir.program import Attrs, Fails
from gptrs.ir.templates import fill
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type, i1

__all__ = ["callback", "check"]

_TOKEN = Type((), i1)
_DONE = np.zeros((), np.bool_)


class Effect(Primitive[..., Any]):
    """An op with an effect. Its type rule is not remembered: that would keep functions alive."""

    def __init__(self, rule: Any) -> None:
        super().__init__(rule, kind=OpKind.EFFECT)

    def fails(self, operands: Sequence[Any], attrs: Attrs) -> Fails:
        return Fails.AT_ELEMENTS

    def infer(self, operands: Sequence[Any], attrs: Attrs) -> tuple[Type, ...]:
        return cast("tuple[Type, ...]", self.rule(*operands, **attrs))


@Effect
def print_(values: tuple[Any, ...] = (), *, text: str) -> tuple[Type, ...]:
    """Write ``text``, with the elements of ``values`` in its fields, to standard output as a
    line."""
    return (_TOKEN,)


@print_.numpy
def _(values: tuple[Any, ...] = (), *, text: str) -> Array:
    if not effect_tape.is_replaying():
        builtins.print(fill(text, values), flush=True)
    return _DONE


@Effect
def callback(
    values: tuple[Any, ...] = (), *, function: object, result: tuple[Type, ...] = ()
) -> tuple[Type, ...]:
    """Call ``function``, a Python function, with ``values``; its results have the types
    ``result``."""
    return result or (_TOKEN,)


@callback.canonical
def _(values: tuple[Any, ...], *, function: object, result: tuple[Any, ...]) -> Attrs:
    if isinstance(function, str):
        if function not in known:
            raise ArgumentError(
                f"this process has no function {function!r}: the text of a program has names of"
                " Python functions, and not the functions",
                fix="trace the function again",
            )
        function = known[function]
    if not isinstance(function, HostFunction):
        raise ArgumentError(
            f"function is {function!r}, expected one of a program",
            fix="call ptir.callback, and not ptir.ops.callback",
        )
    types = tuple(Type.parse(r) if isinstance(r, str) else r for r in result)
    return {"function": function, "result": types}


@callback.numpy
def _(
    values: tuple[Any, ...] = (), *, function: HostFunction, result: tuple[Type, ...]
) -> tuple[Array, ...]:
    return function(values, result) or (_DONE,)


@Effect
def check(holds: Tensor, values: tuple[Any, ...] = (), *, text: str) -> tuple[Type, ...]:
    """Raise `CheckError` unless ``holds``, one i1, with the elements of ``values`` in ``text``."""
    if holds.type.dtype is not i1:
        raise DTypeError(f"holds is {holds.type}, expected i1[]", fix="compare: x > 0")
    if holds.type != _TOKEN:
        raise ShapeError(f"holds is {holds.type}, expected i1[]", fix="ptir.reduce_all(holds)")
    return (_TOKEN,)


@check.numpy
def _(holds: Array, values: tuple[Any, ...] = (), *, text: str) -> Array:
    if not (holds or effect_tape.is_replaying()):
        raise CheckError(fill(text, values))
    return holds

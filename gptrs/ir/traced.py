"""Errors about traced values: their description, and the user's source line.

Used by `Tensor`, the interpreters and `gptrs.ir.hints`.
"""

from __future__ import annotations

from typing import Any, Protocol

from gptrs.errors import PtirError, TraceError, user_location

_ARGUMENT = "argument "


class Typed(Protocol):
    """The attributes of a tensor that errors use."""

    value: Any

    @property
    def type(self) -> object: ...


def located(error: PtirError) -> PtirError:
    """``error`` with the user's current line."""
    error.where = error.where or user_location()
    return error


def leak(tensor: Typed) -> TraceError:
    """The error for a traced tensor used outside of its trace."""
    return TraceError(
        f"a traced value ({described(tensor)}) was used outside the function that it was traced in",
        fix="return it from the function instead of keeping it in a global, a closure or an object",
    )


def described(tensor: Typed) -> str:
    """The origin of ``tensor``, if it is known, and its type."""
    origin = tensor.value.origin if tensor.value is not None else ""
    return f"{origin}, {tensor.type}" if origin else str(tensor.type)


def argument_name(operand: object) -> str:
    """The name of the argument that ``operand`` is; "" if it is none."""
    value: object = getattr(operand, "value", None)
    origin: str = getattr(value, "origin", "")
    return origin.removeprefix(_ARGUMENT) if origin.startswith(_ARGUMENT) else ""


def code_of(operand: object, default: str) -> str:
    """The expression for ``operand`` in the user's code: the name of an argument, or a number."""
    if isinstance(operand, int | float | complex):
        return repr(operand)
    return argument_name(operand) or default


def cast_text(name: str, dtype: object) -> str:
    """The code that gives ``name`` this ``dtype``."""
    return f"ptir.cast({name}, dtype='{dtype}')"

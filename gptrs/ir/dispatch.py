"""Op dispatch: the table of ops, and the stack of interpreters.

`OPS` maps names to ops; importing `gptrs.ir.ops` fills it. An interpreter gives a call to an op its
meaning: `Eager` computes, `Recorder` writes a program, `Quote` builds the pattern of a rewrite
rule. The current interpreter is a context variable, so threads and tasks trace independently.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from gptrs.ir.program import Attrs, Operation
from gptrs.locks import late_import

OPS: dict[str, Any] = {}
"""Every op by its name. The values are the callables of `gptrs.ir.op`."""


class _Functions(dict[str, Any]):
    """Loads a function's module on first use: it is in a layer above this one."""

    def __missing__(self, name: str) -> Any:
        return late_import("gptrs.numpy_api").load(name)


FUNCTIONS: dict[str, Any] = _Functions()
"""The public functions over the ops (`gptrs.numpy_api`), which operators and methods call."""


class Interpreter(Protocol):
    """The meaning of a call to an op in the current context."""

    def apply(self, op: Operation, operands: tuple[Any, ...], attrs: Attrs) -> Any:
        """The result of ``op``: a Tensor, or a tuple of them."""
        ...


_current: ContextVar[Interpreter | None] = ContextVar("gptrs_interpreter", default=None)


def current() -> Interpreter | None:
    """The interpreter of this context; None means eager."""
    return _current.get()


def is_recording(recorder: object) -> bool:
    """Whether ``recorder`` traces the function of this context, or one of its enclosing
    functions."""
    found: object = current()
    while found is not None and found is not recorder:
        found = getattr(found, "enclosing", None)  # only the recorders of regions have one
    return found is not None


@contextmanager
def interpreter(new: Interpreter | None) -> Generator[None, None, None]:
    """Make ``new`` the interpreter of calls to ops inside the block."""
    token = _current.set(new)
    try:
        yield
    finally:
        _current.reset(token)

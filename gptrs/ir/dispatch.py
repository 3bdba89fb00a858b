"""The table of ops, and what a call to an op means right now.

An interpreter gives calls their meaning: `Eager` computes, `Recorder` writes a program, `Quote`
builds the pattern of a rewrite rule. The current one belongs to the context, so threads and tasks
trace without seeing each other.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from gptrs.ir.program import Attrs, Operation

OPS: dict[str, Any] = {}
"""Every op by its name. The values are the callables of `gptrs.ir.op`."""


class Interpreter(Protocol):
    """The meaning of a call to an op."""

    def apply(self, op: Operation, operands: tuple[Any, ...], attrs: Attrs) -> Any:
        """The result of ``op``: a Tensor, or a tuple of them."""
        ...


_current: ContextVar[Interpreter | None] = ContextVar("gptrs_interpreter", default=None)


def current() -> Interpreter | None:
    """The interpreter of this context; None means eager."""
    return _current.get()


def is_recording(recorder: object) -> bool:
    """Whether ``recorder`` writes the program of this context, or of a function around it."""
    found: object = current()
    while found is not None and found is not recorder:
        found = getattr(found, "enclosing", None)  # only the recorders of regions have one
    return found is not None


@contextmanager
def interpreter(new: Interpreter | None) -> Generator[None, None, None]:
    """Calls to ops inside the block mean what ``new`` says."""
    token = _current.set(new)
    try:
        yield
    finally:
        _current.reset(token)

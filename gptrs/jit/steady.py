"""Loops of calls between which nobody changes what the functions read besides their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token
from typing import Any

from gptrs.jit.guards import Guard


class Steady:
    """Enter it around each call of a loop, as often as you like.

    A decorated function looks at every call whether a model's attributes, globals and closures are
    as they were when it was traced. In blocks of one `Steady` it looks at the first call alone:
    what is changed after that may go unnoticed in them.
    """

    def __init__(self) -> None:
        self._seen: dict[Guard, Sequence[Any]] = {}
        self._tokens: list[Token[Steady | None]] = []

    def __enter__(self) -> Steady:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._tokens.pop())

    def read(self, guard: Guard, roots: list[object]) -> Sequence[Any] | None:
        """What ``guard`` reads, read once and kept, so that no id comes to mean another thing."""
        found = self._seen.get(guard)
        if found is None and (found := guard.read(roots)) is not None:
            self._seen[guard] = found
        return found


_current: ContextVar[Steady | None] = ContextVar("gptrs_steady", default=None)


def read(guard: Guard, roots: list[object]) -> Sequence[Any] | None:
    """What ``guard`` reads, when that is what it was, or was in this context's `Steady`."""
    steady = _current.get()
    return guard.read(roots) if steady is None else steady.read(guard, roots)

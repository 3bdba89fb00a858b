"""Loops of calls between which nobody changes what the functions read besides their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

from gptrs.jit.guards import Guard


class Steady:
    """Enter it around each call of a loop, as often as you like.

    A decorated function looks at every call whether a model's attributes, globals and closures are
    as they were when it was traced. In blocks of one `Steady` it looks at the first call alone:
    what is changed after that may go unnoticed in them.
    """

    def __init__(self) -> None:
        self._seen: dict[Guard, Sequence[Any]] = {}

    def __enter__(self) -> Steady:
        _entered.set((self, _entered.get()))
        return self

    def __exit__(self, *_: object) -> None:
        entered = _entered.get()
        assert entered is not None
        _entered.set(entered[1])

    def read(self, guard: Guard, roots: list[object]) -> Sequence[Any] | None:
        """What ``guard`` reads, read once and kept, so that no id comes to mean another thing."""
        found = self._seen.get(guard)
        if found is None and (found := guard.read(roots)) is not None:
            self._seen[guard] = found
        return found


# The innermost, and those around it: of a context, as several threads may share one.
_Entered: TypeAlias = "tuple[Steady, _Entered] | None"
_entered: ContextVar[_Entered] = ContextVar("gptrs_steady", default=None)


def read(guard: Guard, roots: list[object]) -> Sequence[Any] | None:
    """What ``guard`` reads, when that is what it was, or was in this context's `Steady`."""
    entered = _entered.get()
    return guard.read(roots) if entered is None else entered[0].read(guard, roots)

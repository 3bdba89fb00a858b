"""Guards evaluated once for a loop of calls, instead of at every call."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

from gptrs.jit.guards import Guard


class assume_unchanged:  # noqa: N801 - a context manager, called like a function
    """Skip the guards of jitted functions after the first call in the blocks of one of these.

    A jitted function checks at every call that a model's attributes, globals and closures are as
    they were when it was traced. In the blocks of one `assume_unchanged()` it checks at the first
    call alone: a later change may go unnoticed in them. Enter the same object around each call of
    a loop:

        unchanged = ptir.assume_unchanged()
        for token in tokens:
            with unchanged:
                logits, cache = model(token, cache)
    """

    def __init__(self) -> None:
        self._seen: dict[Guard, Sequence[Any]] = {}

    def __enter__(self) -> assume_unchanged:
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
_Entered: TypeAlias = "tuple[assume_unchanged, _Entered] | None"
_entered: ContextVar[_Entered] = ContextVar("gptrs_steady", default=None)


def read(guard: Guard, roots: list[object]) -> Sequence[Any] | None:
    """What ``guard`` reads if it holds, or held before in this context's `assume_unchanged`."""
    entered = _entered.get()
    return guard.read(roots) if entered is None else entered[0].read(guard, roots)

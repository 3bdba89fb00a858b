"""``ptir.assume_unchanged``: guards evaluated once for a loop of calls, instead of at every call.

`CallCache.find` evaluates guards through `read` below. Inside a block the values that a guard read
first are kept and returned for later calls. Saves 0.12 ms of a decode step
(benchmarks/log/calls_and_starts.md); text generation enters one block per text
(`gptrs.text.generation`).
"""

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
        """The values that ``guard`` reads, read once. They are kept, so that no id is used
        again."""
        found = self._seen.get(guard)
        if found is None and (found := guard.read(roots)) is not None:
            self._seen[guard] = found
        return found


# A linked list, innermost block first. It belongs to a context: threads may share a block.
_Entered: TypeAlias = "tuple[assume_unchanged, _Entered] | None"
_entered: ContextVar[_Entered] = ContextVar("gptrs_assume_unchanged", default=None)


def read(guard: Guard, roots: list[object]) -> Sequence[Any] | None:
    """The values that ``guard`` reads; None if it fails. In a block of `assume_unchanged`, those of
    its first evaluation there."""
    entered = _entered.get()
    return guard.read(roots) if entered is None else entered[0].read(guard, roots)

"""Effects of one run, kept so that other runs of the same program have none.

A comparison runs a program several times. The first run is recorded: it prints, and calls the
functions of `ptir.callback`. Others replay: they print nothing, check nothing, and get what those
functions returned, in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from gptrs.errors import ElementError
from gptrs.ir.types import Array

Results = tuple[Array, ...]


class Tape:
    """The results of the callbacks of one run, in order."""

    def __init__(self) -> None:
        self.results: list[Results] = []


_recording: ContextVar[Tape | None] = ContextVar("gptrs_recorded_effects", default=None)
_replaying: ContextVar[Iterator[Results] | None] = ContextVar(
    "gptrs_replayed_effects", default=None
)


@contextmanager
def recorded(tape: Tape) -> Generator[None]:
    """Inside the block the results of callbacks are kept on ``tape``."""
    token = _recording.set(tape)
    try:
        yield
    finally:
        _recording.reset(token)


@contextmanager
def replayed(tape: Tape) -> Generator[None]:
    """Inside the block, which runs the recorded program once, effects come from ``tape``."""
    token = _replaying.set(iter(tape.results))
    try:
        yield
    finally:
        _replaying.reset(token)


def is_replaying() -> bool:
    """Whether effects come from a tape in this context."""
    return _replaying.get() is not None


def note(results: Results) -> None:
    """Keep what a callback returned, if this run is recorded."""
    if (tape := _recording.get()) is not None:
        tape.results.append(tuple(np.array(result) for result in results))


def next_results(label: str) -> Results:
    """What the callback returned when the run was recorded. Raises `ElementError` if it was called
    less often then."""
    replay = _replaying.get()
    found = None if replay is None else next(replay, None)
    if found is None:
        raise ElementError(f"the callback {label} is called more often than in the recorded run")
    return tuple(np.array(result) for result in found)

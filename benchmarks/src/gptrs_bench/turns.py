"""Interleaved measurement of several sides, so that disturbances affect all alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from gptrs import events

PAUSE = 0.1  # seconds in which the threads of one side fall asleep before the other's turn

Clock: TypeAlias = Callable[[], float]
Measured: TypeAlias = dict[str, Any]
"""A `Measurement` as JSON."""


@dataclass(frozen=True)
class Measurement:
    """Figures of each side, one a round; the side ``ours`` is the one that others stand beside."""

    mode: str
    threads: int | None  # None where it does not matter
    unit: str
    sides: dict[str, list[float]]


@dataclass(frozen=True)
class TurnEnded:
    """An event: a side was measured once. ``total`` is how often all sides will be."""

    side: str
    number: int  # from 1 up
    total: int


def clock_of(threads: int) -> Clock:
    """CPU time of one thread, which other processes disturb less; wall-clock time of several."""
    return time.process_time if threads == 1 else time.perf_counter


def in_turn(
    sides: dict[str, Callable[[], float]], rounds: int, *, pause: float = PAUSE
) -> dict[str, list[float]]:
    """What the sides return, round by round; a first round is not counted."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    total, ended = (rounds + 1) * len(sides), 0
    for number in range(rounds + 1):
        for name, run in sides.items():
            time.sleep(pause)
            figure = run()
            if number > 0:
                found[name].append(figure)
            ended += 1
            if events.listening():
                events.emit(TurnEnded(name, ended, total))
    return found

"""Measuring several sides in turn, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PAUSE = 0.1  # seconds in which the threads of one side fall asleep before the other's turn

Clock = Callable[[], float]
Measured = dict[str, Any]  # a `Measurement` as JSON


@dataclass(frozen=True)
class Measurement:
    """Figures of each side, one a round; the side ``ours`` is the one that others stand beside."""

    mode: str
    threads: int | None  # None where it does not matter
    unit: str
    sides: dict[str, list[float]]


def in_turn(
    sides: dict[str, Callable[[], float]], rounds: int, *, pause: float = PAUSE
) -> dict[str, list[float]]:
    """What the sides return, round by round; a first round is not counted."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, run in sides.items():
            time.sleep(pause)
            figure = run()
            if number > 0:
                found[name].append(figure)
    return found

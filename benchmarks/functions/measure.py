"""Measuring cases: results compared, then all sides timed in turns of random order.

The side before another one decides what the caches hold and how fast the cores run: in a fixed
order it is always the same one. The orders are the same in each run.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from benchmarks.functions import sides
from benchmarks.functions.case import Case
from gptrs_bench.turns import Clock, clock_of

# Relative to the greatest element: sums of the sides have orders of their own.
TOLERANCE = {"float64": 1e-8, "float32": 2e-4, "float16": 2e-2, "bfloat16": 6e-2}
FASTMATH = 1e-3  # of a peer's integers: points at an edge fall to its other side
SLOW = 20  # times the best: a side that is slower is measured once
LEAST_ROUNDS, MOST_ROUNDS = 3, 40
CALLS = 8  # of a turn, unless they take longer than so many turns should


@dataclass
class Line:
    """A measured case: µs of each side, and why a side has none."""

    family: str
    name: str
    threads: int
    times: dict[str, float] = field(default_factory=dict[str, float])
    failed: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def best(self) -> str:
        """The fastest peer."""
        return min((side for side in self.times if side != "ours"), key=self.times.__getitem__)

    @property
    def ratio(self) -> float | None:
        """Our time over that of the best peer; None where one of the two is missing."""
        compared = "ours" in self.times and len(self.times) > 1
        return self.times["ours"] / self.times[self.best] if compared else None


def measure(case: Case, peers: Iterable[str], threads: int, seconds: float, turn: float) -> Line:
    """All sides of a case. A side that raises or whose result differs has a reason and no time.

    ``seconds`` is the time that all rounds take together, about; ``turn`` the least time of a turn.
    """
    line = Line(case.family, str(case), threads)
    arguments = case.arguments()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = sides.as_arrays(case.xp(np, *arguments))
        calls: dict[str, sides.Call] = {}
        for name in ("ours", *peers):
            try:
                call = _call(name, case, arguments)
                if call is None:
                    continue
                kinds = {leaf.dtype.name for leaf in sides.as_arrays(arguments)}
                compare(sides.as_arrays(call()), expected, kinds, FASTMATH * (name != "ours"))
                calls[name] = call
            except Exception as error:
                words = str(error).strip().splitlines() or [""]
                line.failed[name] = f"{type(error).__name__}: {words[0]}"[:80]
        line.times = in_turn(calls, clock_of(threads), seconds, turn)
    return line


def _call(name: str, case: Case, arguments: tuple[Any, ...]) -> sides.Call | None:
    return sides.ours(case, arguments) if name == "ours" else sides.peer(name, case, arguments)


def compare(
    found: list[Any], expected: list[Any], kinds: Set[str] = frozenset(), differing: float = 0
) -> None:
    """Raise `AssertionError` unless both have the same elements, floats within `TOLERANCE`.

    ``kinds`` are the dtypes of the arguments, ``differing`` the share of integers that may differ.
    """
    assert len(found) == len(expected), f"{len(found)} results, expected {len(expected)}"
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape, f"shape {one.shape}, expected {other.shape}"
        if other.dtype.kind in "iub":
            assert np.mean(one != other) <= differing, "integers differ"
            continue
        named = {one.dtype.name, other.dtype.name, *kinds}
        limit = max(TOLERANCE.get(kind, 0) for kind in named)
        wide = other.astype(np.float64)
        top = np.abs(wide[np.isfinite(wide)]).max(initial=0)
        close = np.isclose(one.astype(np.float64), wide, limit, limit * top, equal_nan=True)
        assert close.all(), f"{np.mean(~close):.1%} of the elements differ"


def in_turn(
    calls: dict[str, sides.Call], clock: Clock, seconds: float, turn: float
) -> dict[str, float]:
    """Medians in µs. The first call of a turn is not timed: idle threads of another side may still
    spin, and its data is in the caches. A result of some MB is in them after five calls, so a turn
    has `CALLS`: with fewer for the slower of two sides, that one seems slower still."""
    once = {name: _once(call) for name, call in calls.items()}
    best = min(once.values(), default=0.0)
    fast = {
        name: call for name, call in calls.items() if once[name] <= SLOW * best or once[name] < turn
    }
    counts = {name: _calls_of_a_turn(once[name], turn) for name in fast}
    found: dict[str, list[float]] = {name: [] for name in fast}
    order, shuffled = list(fast), random.Random(0)
    start = time.perf_counter()
    for number in range(MOST_ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() - start > seconds:
            break
        shuffled.shuffle(order)
        for name in order:
            call = fast[name]
            call()
            begin = clock()
            for _ in range(counts[name]):
                call()
            found[name].append((clock() - begin) / counts[name])
    return {name: 1e6 * (median(found[name]) if name in fast else once[name]) for name in calls}


def _calls_of_a_turn(once: float, turn: float) -> int:
    return max(1, int(turn / once), min(CALLS, int(CALLS * turn / once)))


def _once(call: sides.Call) -> float:
    """Seconds of the faster of two calls."""
    taken: list[float] = []
    for _ in range(2):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return max(min(taken), 1e-7)

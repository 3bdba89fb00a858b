"""The table of the benchmark: lines, geometric means, and where we are behind."""

from __future__ import annotations

from math import exp, log

from benchmarks.functions.measure import Line
from benchmarks.functions.sides import NAMES

BEHIND, TINY = 1.25, 5.0  # times the best peer; µs of work below which that does not count
_WIDTH = 52


def head(threads: int) -> str:
    """The columns; times in µs."""
    peers = "".join(f"{name:>11}" for name in NAMES)
    return f"\n{_threads(threads) + ', µs':{_WIDTH}}{'ours':>11}{peers}   ours / best"


def row(line: Line) -> str:
    """A case; what failed is named behind."""
    label = f"{line.family}: {line.name}"
    times = "".join(_time(line, side) for side in ("ours", *NAMES))
    ratio = "" if line.ratio is None else f"{line.ratio:8.2f}"
    failed = "".join(f"  {side} {why}" for side, why in line.failed.items())
    return f"{label:{_WIDTH}}{times}{ratio:>14}{'  ' + line.best if ratio else ''}{failed}"


def summary(lines: list[Line], threads: int) -> str:
    """Geometric means of our time over that of the best peer, overall and by family."""
    made = [f"\n{_threads(threads)}: ours / best, geometric means"]
    for family in dict.fromkeys(line.family for line in lines):
        ratios = _ratios([line for line in lines if line.family == family])
        behind = sum(ratio > 1 for ratio in ratios)
        made.append(f"  {family:18}{mean(ratios):8.2f}   behind in {behind} of {len(ratios)}")
    ratios = _ratios(lines)
    behind, far = (sum(ratio > limit for ratio in ratios) for limit in (1.0, BEHIND))
    made.append(f"  {'all':18}{mean(ratios):8.2f}   behind in {behind} of {len(ratios)}")
    made.append(f"above {BEHIND}: {far}")
    compared = [line for line in lines if (line.ratio or 0) > BEHIND]
    for line in sorted(compared, key=lambda line: -(line.ratio or 0)):
        tiny = "  (tiny)" if line.times[line.best] < TINY else ""
        made.append(f"  {line.ratio:10.2f}  {line.family}: {line.name}  {line.best}{tiny}")
    failing = [line for line in lines if "ours" in line.failed]
    made.append(f"failing: {len(failing)}")
    for line in failing:
        made.append(f"  {line.family}: {line.name}  {line.failed['ours']}")
    return "\n".join(made)


def mean(ratios: list[float]) -> float:
    """The geometric mean; NaN of nothing."""
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios else float("nan")


def _ratios(lines: list[Line]) -> list[float]:
    return [line.ratio for line in lines if line.ratio is not None]


def _time(line: Line, side: str) -> str:
    return f"{line.times[side]:11.1f}" if side in line.times else f"{'':11}"


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"

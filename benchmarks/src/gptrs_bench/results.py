"""Results of a comparison: figures of each side and skipped peers, as rows, JSON and CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

HIGHER = ("tokens/s", "GB/s", "GFLOP/s", "×", "%")  # the units of which more is better


def better(unit: str, ours: float, theirs: float) -> float:
    """How many times as good ours is."""
    return ours / theirs if unit in HIGHER else theirs / ours


def thread_count(number: int) -> str:
    """``number`` as words."""
    return f"{number} thread{'s' * (number > 1)}"


@dataclass(frozen=True)
class Result:
    """Figures of each side, one a round; the side ``ours`` is the one that others stand beside.

    ``count`` is of tokens or images; ``differences`` say how far each side's logits were from ours
    before it was timed.
    """

    model: str
    mode: str
    count: int
    threads: int
    unit: str
    sides: dict[str, list[float]]
    differences: dict[str, float]

    def rows(self) -> list[Row]:
        """One for each side, ours first, then the others by how good they are."""
        others = [name for name in self.sides if name != "ours"]
        others.sort(key=lambda name: better(self.unit, 1.0, median(self.sides[name])))
        return [self._row(name) for name in ("ours", *others)]

    def _row(self, side: str) -> Row:
        figures = self.sides[side]
        first, middle, third = (
            quantiles(figures, n=4, method="inclusive") if len(figures) > 1 else figures * 3
        )
        pairs = zip(self.sides["ours"], figures, strict=True)
        ratio = median(better(self.unit, *pair) for pair in pairs)
        about = self.model, self.mode, self.count, self.threads, self.unit
        rounds = len(figures)
        difference = self.differences.get(side)
        return Row(*about, side, middle, first, third, ratio, rounds, difference)


@dataclass(frozen=True)
class Row:
    """A side in a `Result`: the median of its figures, their quartiles, the median of the rounds'
    ratios (how many times as good ours is), and how far its logits were from ours."""

    model: str
    mode: str
    count: int
    threads: int
    unit: str
    side: str
    median: float
    first_quartile: float
    third_quartile: float
    times_as_good: float
    rounds: int
    difference: float | None


@dataclass(frozen=True)
class Excluded:
    """A side that was not measured. ``is_wrong`` if it ran and gave something else than ours."""

    model: str
    side: str
    reason: str
    threads: int | None = None
    is_wrong: bool = False

    def __str__(self) -> str:
        where = f", {thread_count(self.threads)}" if self.threads else ""
        return f"{self.model}{where}: {self.side} is left out: {self.reason}"


def as_json(
    about: dict[str, Any], results: list[Result], excluded: list[Excluded]
) -> dict[str, Any]:
    """The machine, every figure with what is made of it, and who was left out."""
    return {
        **about,
        "results": [
            {**asdict(row), "figures": result.sides[row.side]}
            for result in results
            for row in result.rows()
        ],
        "left_out": [asdict(each) for each in excluded],
    }


def as_csv(results: list[Result]) -> str:
    """A header and a line for each `Row`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, Row.__dataclass_fields__, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for result in results for row in result.rows())
    return text.getvalue()

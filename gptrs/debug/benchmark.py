"""What the timing of a composite's implementations found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BenchmarkRan:
    """Event: implementations of ``composite`` were timed on operands of these types. ``seconds``
    of one run, by name; a candidate that cannot run on made-up numbers is missing."""

    composite: str
    types: tuple[str, ...]
    seconds: Mapping[str, float]
    winner: str

    def __str__(self) -> str:
        times = ", ".join(f"{name} {s * 1e6:.1f} µs" for name, s in self.seconds.items())
        return f"{self.composite}({', '.join(self.types)}): {self.winner} of {times or 'nothing'}"

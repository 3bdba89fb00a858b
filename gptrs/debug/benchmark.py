"""Event of the autotuner: the measured times of a composite's implementations
(`gptrs.jit.benchmark`)."""

from __future__ import annotations

from collections.abc import Mapping

from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class BenchmarkRan:
    """Event: implementations of ``composite`` were timed on operands of these types. ``seconds``
    per run, by name, without candidates that cannot run on the generated inputs."""

    composite: str
    types: tuple[str, ...]
    seconds: Mapping[str, float]
    winner: str

    def __str__(self) -> str:
        times = ", ".join(f"{name} {s * 1e6:.1f} µs" for name, s in self.seconds.items())
        return f"{self.composite}({', '.join(self.types)}): {self.winner} of {times or 'nothing'}"

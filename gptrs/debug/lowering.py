"""Events of a lowering (begun, traced, lowered, planned), and the record that collects them.

`gptrs.jit.lower` emits the events after a miss of the program cache; `gptrs.debug.watch` and the
command line listen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from gptrs.backends.base import PlanReport
from gptrs.debug.benchmark import BenchmarkRan
from gptrs.errors import Location
from gptrs.ir.program import Program
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.base import PassRan


@dataclass(frozen=True)
class LoweringBegan:
    """Event: a function is about to be traced, for a ``reason`` whose text is it."""

    function: str
    reason: object
    where: Location | None


@dataclass(frozen=True)
class ProgramTraced:
    """Event: a function was traced into ``program``."""

    program: Program
    seconds: float


@dataclass(frozen=True)
class TraceStopped:
    """Event: a trace ended with an error; ``program`` has what was recorded, without results."""

    program: Program


@dataclass(frozen=True)
class ProgramLowered:
    """Event: ``program`` is the result of all passes."""

    program: Program
    seconds: float


@dataclass(frozen=True)
class ProgramPlanned:
    """Event: a backend has planned a program."""

    report: Callable[[], PlanReport]
    """The report of the plan at the sizes of the call."""
    seconds: float


@dataclass
class Lowering:
    """The record of one lowering. A step that failed, and those after it, are None."""

    function: str
    reason: str
    """The reason of the trace."""
    where: Location | None
    """The line of the call."""
    traced: ProgramTraced | None = None
    stopped: Program | None = None
    """What was recorded by a trace that ended with an error."""
    passes: list[PassRan] = field(default_factory=list[PassRan])
    benchmarks: list[BenchmarkRan] = field(default_factory=list[BenchmarkRan])
    lowered: ProgramLowered | None = None
    planned: ProgramPlanned | None = None
    kernels_compiled: int = 0
    kernels_loaded: int = 0
    """Kernels from the cache on disk."""

    def _stages(self) -> dict[str, ProgramTraced | ProgramLowered | ProgramPlanned | None]:
        return {"trace": self.traced, "passes": self.lowered, "plan": self.planned}

    def times(self) -> str:
        """The time of each step that ended: ``trace 1.0 ms, passes 2.0 ms, plan 3.0 ms``."""
        done = {name: stage for name, stage in self._stages().items() if stage is not None}
        return ", ".join(f"{name} {stage.seconds * 1e3:.1f} ms" for name, stage in done.items())

    @property
    def failed(self) -> str:
        """The name of the step that did not end; "" if all did."""
        return next((name for name, stage in self._stages().items() if stage is None), "")

    def hear(self, event: object) -> None:
        """Record ``event``."""
        from gptrs.kernels.compiler.loaded_object import (
            KernelReady,  # loads LLVM, which tracing does not need
        )

        if isinstance(event, ProgramTraced):
            self.traced = event
        elif isinstance(event, TraceStopped):
            self.stopped = event.program
        elif isinstance(event, PassRan):
            self.passes.append(event)
        elif isinstance(event, BenchmarkRan):
            self.benchmarks.append(event)
        elif isinstance(event, ProgramLowered):
            self.lowered = event
        elif isinstance(event, ProgramPlanned):
            self.planned = event
        elif isinstance(event, KernelReady) and event.kernel:
            self.kernels_compiled += not event.cached
            self.kernels_loaded += event.cached

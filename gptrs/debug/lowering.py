"""What happens between a call that finds no program and the plan that it runs: three events, and a
record that they fill in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gptrs.backends.base import PlanReport
from gptrs.debug.benchmark import BenchmarkRan
from gptrs.errors import Location
from gptrs.ir.program import Program
from gptrs.passes.base import PassRan


@dataclass(frozen=True)
class ProgramTraced:
    """Event: a function left ``program`` behind."""

    program: Program
    seconds: float


@dataclass(frozen=True)
class ProgramLowered:
    """Event: all passes made ``program``."""

    program: Program
    seconds: float


@dataclass(frozen=True)
class ProgramPlanned:
    """Event: a backend is ready to run a program."""

    report: Callable[[], PlanReport]
    """What a run does at the sizes of the call."""
    seconds: float


@dataclass
class Lowering:
    """One program on its way to a plan. A step that failed, and those after it, leave None."""

    function: str
    reason: str
    """Why it was traced."""
    where: Location | None
    """The call."""
    traced: ProgramTraced | None = None
    passes: list[PassRan] = field(default_factory=list[PassRan])
    benchmarks: list[BenchmarkRan] = field(default_factory=list[BenchmarkRan])
    lowered: ProgramLowered | None = None
    planned: ProgramPlanned | None = None
    kernels_compiled: int = 0
    kernels_loaded: int = 0
    """Kernels that came from the cache on disk."""

    def hear(self, event: object) -> None:
        """Add what ``event`` says."""
        from gptrs.kernels.compiler.loaded_object import (
            KernelReady,  # loads LLVM, which tracing can do without
        )

        if isinstance(event, ProgramTraced):
            self.traced = event
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

"""What a backend is: it claims composites, and makes plans of programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gptrs.ir.program import Instruction, Program
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.passes.base import Stage


@dataclass(frozen=True)
class DeviceInfo:
    """Something that programs can run on. ``memory`` is in bytes."""

    name: str
    threads: int
    memory: int


StepKind: TypeAlias = Literal["call", "region", "reference", "view", "control"]


@dataclass(frozen=True)
class StepReport:
    """What a plan does for one value: by a claimed kernel, a fused loop, the reference, by running
    the steps of branches and loop bodies, which come next in the list, or by nothing (another shape
    of an array that is there)."""

    kind: StepKind
    name: str
    """The target, the kernel of the loop, or the op."""
    instructions: int
    """How many instructions it stands for."""
    result: str
    """Its type."""
    kernels: tuple[str, ...] = ()
    note: str = ""
    copy: bool = False
    """Whether it copies an array as a whole."""
    source: str = ""
    """Of a fused loop: a Numba function that runs alone."""


@dataclass(frozen=True)
class ParameterReport:
    """A form of a parameter that a plan holds."""

    name: str
    number: int
    """The parameter's place among the program's."""
    form: str
    """As `gptrs.backends.parameter_cache.form_name` calls it."""
    bytes: int


@dataclass(frozen=True)
class PlanReport:
    """What a plan does at given sizes, in order."""

    program: str
    steps: tuple[StepReport, ...]
    native_steps: int = 0
    arena_bytes: int = 0
    parameter_bytes: int = 0
    """Of weights in a form of the backend's own."""
    result_bytes: int = 0
    """Of results that a run makes; donated arguments that come back are none."""
    parameters: tuple[ParameterReport, ...] = ()
    """The forms of parameters that a plan holds, each once."""
    loading_bytes: int = 0
    """The most that making these forms takes beside them, and what memory they leave unused."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels, each once."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.kernels))

    @property
    def copies(self) -> tuple[StepReport, ...]:
        """The steps that copy an array as a whole."""
        return tuple(step for step in self.steps if step.copy)

    def instructions(self, *kinds: StepKind) -> int:
        """How many instructions are done by steps of these kinds; all of them without any."""
        return sum(s.instructions for s in self.steps if not kinds or s.kind in kinds)


class Plan(ABC):
    """A program made ready to run, at any size of its symbols, by any thread."""

    @abstractmethod
    def run(
        self, arguments: Sequence[Array | Parameter], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        """The results for ``arguments``, one per parameter of the program.

        No result shares memory with an argument or another result, but that a donated argument may
        come back as a result. Raises `ElementError` with the user's line for elements that have no
        result.
        """

    @abstractmethod
    def report(self, sizes: Mapping[str, int]) -> PlanReport:
        """What a run at these sizes does."""


class Backend(ABC):
    """A way to run programs. One instance serves all threads."""

    name: str
    passes: tuple[Stage, ...] = ()  # its part of the pipeline, after claims

    @abstractmethod
    def claims(self, instruction: Instruction) -> bool:
        """Whether this composite, as it stands, is left whole for a kernel of this backend."""

    @abstractmethod
    def plan(self, program: Program, *, precise: bool = False) -> Plan:
        """Make ``program``, rewritten by the passes, ready to run.

        A ``precise`` plan gives the bits that eager mode gives: each instruction rounds as its
        NumPy meaning does, and sums have its order.
        """

    @abstractmethod
    def devices(self) -> tuple[DeviceInfo, ...]:
        """What the backend can use on this machine."""

"""What a backend is: it claims composites, and makes plans of programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gptrs.ir.program import Instruction, Program
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.passes.base import Pass


@dataclass(frozen=True)
class DeviceInfo:
    """Something that programs can run on. ``memory`` is in bytes."""

    name: str
    threads: int
    memory: int


class Plan(ABC):
    """A program made ready to run, at any size of its symbols, by any thread."""

    @abstractmethod
    def run(
        self, arguments: Sequence[Array | Parameter], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        """The results for ``arguments``, one per parameter of the program.

        No result shares memory with an argument or another result. Raises `ElementError` with the
        user's line for elements that have no result.
        """


class Backend(ABC):
    """A way to run programs. One instance serves all threads."""

    name: str
    passes: tuple[Pass, ...] = ()  # run after the common pipeline

    @abstractmethod
    def claims(self, instruction: Instruction) -> bool:
        """Whether this composite, as it stands, is left whole for a kernel of this backend."""

    @abstractmethod
    def plan(self, program: Program) -> Plan:
        """Make ``program``, rewritten by the passes, ready to run."""

    @abstractmethod
    def devices(self) -> tuple[DeviceInfo, ...]:
        """What the backend can use on this machine."""

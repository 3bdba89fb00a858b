"""A plan at one set of sizes and threads: what `binding` makes and `run` executes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gptrs.backends.faer.buffer_assignment import Allocation, BufferAssignment
from gptrs.backends.faer.calls.forms import Form
from gptrs.backends.faer.joint_steps import Part
from gptrs.backends.faer.stage_chains import Stage
from gptrs.backends.faer.steps import PlanStep, Single
from gptrs.backends.weight_residency import Lease
from gptrs.identity_key import getter
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.driver.step_table import Status, StepTable
from gptrs.lazy_dataclass import dataclass

READY = 0x001 | 0x100
"""NumPy's flags of a contiguous, aligned array; and of a writeable one."""
WRITEABLE = 0x400
ARENA = 0
"""The number of the arena among the buffers."""


class Buffer(NamedTuple):
    """An array outside of the arena: an argument, a parameter or constant (perhaps packed), a
    result."""

    kind: Literal["argument", "parameter", "constant", "result"]
    number: int
    """The index of the program's parameter, instruction or result."""
    form: Form | None = None


class Segment(NamedTuple):
    """Native steps ``first`` to ``last``, or an instruction that Python runs."""

    first: int
    last: int
    reference: Single | None = None


@dataclass
class Bound:
    """A plan at one set of sizes and threads. It serves one call at a time."""

    key: tuple[int, ...]
    """The number of threads, then the sizes."""
    sizes: Mapping[str, int]
    assignment: BufferAssignment
    status: Status = field(default_factory=Status)
    buffers: dict[Buffer, int] = field(default_factory=dict[Buffer, int])  # numbers from 1 up
    offsets: dict[Allocation, int] = field(default_factory=dict[Allocation, int])  # in the arena
    arena_bytes: int = 0
    segments: list[Segment] = field(default_factory=list[Segment])
    owners: list[PlanStep] = field(default_factory=list[PlanStep])  # of each native step
    kernels: list[Kernel] = field(default_factory=list[Kernel])  # of each native step
    joint: dict[PlanStep, tuple[Part | Stage, ...]] = field(
        default_factory=dict[PlanStep, tuple[Part | Stage, ...]]
    )
    """By the first step of several that are one native step: all of them."""
    table: StepTable = field(default_factory=lambda: StepTable([]))
    argument_blocks: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    relocations: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = field(
        default_factory=list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    )
    """By buffer: the words that hold an address in it, and their offsets in it."""
    single_relocations: list[tuple[int, int] | None] = field(
        default_factory=list[tuple[int, int] | None]
    )
    """The same as Python integers, for buffers with a single relocation."""
    blocks_view: memoryview = field(default_factory=lambda: memoryview(b""))
    """The argument blocks, for writing a single word fast."""
    addresses: memoryview = field(default_factory=lambda: memoryview(b""))
    """By buffer: its address in the argument blocks now. Native calls write there, too."""
    inputs: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """Arguments that kernels read: buffer, number, flags that the array must have."""
    outputs: list[tuple[int, int, tuple[int, ...], Any]] = field(
        default_factory=list[tuple[int, int, tuple[int, ...], Any]]
    )
    """Results: buffer, number, shape, dtype."""
    weights: list[tuple[int, int, Form | None]] = field(
        default_factory=list[tuple[int, int, Form | None]]
    )
    """Parameters that kernels read: buffer, number, form."""
    pick: Callable[[Any], Sequence[object]] = field(default=getter(()))
    """Selects these parameters from the arguments."""
    lease: Lease = field(default_factory=Lease)
    """Keeps the parameters that the argument blocks point to, in the order of `weights`."""
    estimates: list[float] = field(default_factory=list[float])  # of each native step, ns
    time: float = 0.0
    """An estimate of the time of a run on one thread, in ns; infinite if it is not loops alone."""
    polls: bool = False
    """Whether a kernel may run for long and polls for signals."""
    results: Callable[[Sequence[Any]], Any] | None = None
    """Selects the results from the `outputs` and the arguments; None unless all steps are native
    and no result has to be copied or reshaped."""
    held: list[object] = field(default_factory=list[object])
    """What argument blocks point to besides: the bindings of loops."""

    @property
    def threads(self) -> int:
        return self.key[0]

    def relocate(self, buffer: int, address: int) -> None:
        """Relocate ``buffer`` to an address: update all argument blocks that point into it."""
        self.addresses[buffer] = -1  # until all words are written: an interrupt may come between
        single = self.single_relocations[buffer]
        if single is not None:
            self.blocks_view[single[0]] = address + single[1]
        else:
            places, offsets = self.relocations[buffer]
            self.argument_blocks[places] = offsets + address
        self.addresses[buffer] = address

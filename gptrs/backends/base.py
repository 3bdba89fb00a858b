"""The backend interface: claims of composites, plans of programs, and reports of plans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from gptrs.backends.weight_residency import Lease
from gptrs.errors import ArgumentError
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.types import Array
from gptrs.kernels.driver.driver import NativeDriver
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.base import Stage


@dataclass(frozen=True)
class DeviceInfo:
    """A device that programs can run on. Memory is in bytes."""

    index: int
    """Its number among the devices of the backend."""
    name: str
    total_memory: int
    free_memory: int | None = None
    """What other processes leave; None where the driver does not say."""
    compute_capability: str | None = None
    """The version of its instructions: ``"9.0"`` of an NVIDIA H100, ``"gfx942"`` of an MI300."""
    unified_memory: bool = False
    """Whether it shares its memory with the CPU."""
    is_software: bool = False
    """Whether the CPU plays it: the CPU's own backend is faster."""

    @property
    def room(self) -> int:
        """The memory to count on: what is free, else all of it."""
        return self.total_memory if self.free_memory is None else self.free_memory


@dataclass(frozen=True)
class Availability:
    """Whether a backend can run here: true in conditions unless there is a reason that it can't."""

    reason: str = ""
    """What is missing or broken."""
    fix: str = ""
    """What to do about it."""
    is_absent: bool = False
    """Whether nothing is there at all, neither package nor driver: no reason to warn."""

    def __bool__(self) -> bool:
        return not self.reason


StepKind: TypeAlias = Literal[
    "call", "region", "kernel", "reference", "view", "control", "loop", "host"
]


class NativeKernel(Protocol):
    """A compiled kernel, to look at."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str:
        """The text that it was compiled from: Python for Numba, or LLVM IR."""
        ...

    def llvm(self) -> str:
        """Its LLVM IR, optimised for this CPU."""
        ...

    def assembly(self) -> str:
        """Its assembly."""
        ...


@dataclass(frozen=True)
class StepReport:
    """One step of a plan: a kernel call, a fused region, a user's kernel, the NumPy reference,
    control flow (followed by the steps of its branches and loop bodies), control flow as one
    generated kernel (a loop), or a view (no work: an
    existing array in another shape), or a function of Python (host)."""

    kind: StepKind
    name: str
    """The target, the kernel of the loop, or the op."""
    instructions: int
    """The number of instructions that it runs."""
    result: str
    """Its type; those of several results with commas between them."""
    kernels: tuple[str, ...] = ()
    """The names of the kernels that it runs."""
    note: str = ""
    copy: bool = False
    """Whether it copies an array as a whole."""
    module: Callable[[], str] | None = None
    """Of a fused loop: writes `source`."""
    native: tuple[NativeKernel, ...] = ()
    """The kernels that can show their LLVM IR and assembly."""
    members: tuple[Instruction, ...] = ()
    """The instructions of `PlanReport.scheduled` that it runs; one of these may be an intermediate
    form that is in no program."""
    estimate: float | None = None
    """The time on one thread that the schedule assumes, in nanoseconds; None where it assumes
    none."""

    @property
    def source(self) -> str:
        """Of a fused loop: a Python module with the function that was compiled, and one that runs
        it alone; else nothing."""
        return self.module() if self.module else ""


@dataclass(frozen=True)
class PlanBound:
    """Event: the plan of ``program`` was bound to sizes that it had no free binding for."""

    program: str
    seconds: float


@dataclass(frozen=True)
class ArenaReport:
    """An intermediate array in the arena, while the steps ``first`` to ``last`` run."""

    values: tuple[Value, ...]
    """The values of `PlanReport.scheduled` that share it."""
    offset: int
    bytes: int
    first: int
    last: int
    """Indices of `PlanReport.steps`."""


@dataclass(frozen=True)
class TableReport:
    """What the steps of a step table are, for profiles: see `gptrs.kernels.driver.live_tables`."""

    program: Program
    """The program whose instructions the steps run."""
    sizes: Mapping[str, int]
    threads: int
    native: tuple[StepReport, ...]
    """By native step; several that run one step have the same report."""
    arguments: tuple[int, ...]
    """By native step: the address of its argument block."""
    steps: Mapping[object, StepReport]
    """By step of the plan, those that Python runs among them; steps that became one native step
    have the same report."""


@dataclass(frozen=True)
class ParameterReport:
    """A form of a parameter that a plan holds in memory."""

    name: str
    number: int
    """The index of the program's parameter."""
    form: str
    """See `gptrs.backends.parameter_cache.form_name`."""
    bytes: int


@dataclass(frozen=True)
class PlanReport:
    """The steps of a plan at given sizes, in order, and its memory."""

    program: str
    steps: tuple[StepReport, ...]
    native_steps: int = 0
    arena_bytes: int = 0
    parameter_bytes: int = 0
    """The size of weights in packed forms."""
    result_bytes: int = 0
    """The size of results that a run allocates; returned donated arguments are not counted."""
    parameters: tuple[ParameterReport, ...] = ()
    """The forms of parameters that a plan holds, each once."""
    loading_bytes: int = 0
    """The peak of temporary memory while these forms are made, plus memory left unused."""
    scheduled: Program | None = None
    """The program whose instructions the steps run."""
    arena: tuple[ArenaReport, ...] = ()
    """The intermediate arrays, but for those of branches and loop bodies."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels, each once."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.kernels))

    @property
    def native(self) -> dict[str, NativeKernel]:
        """The kernels by name."""
        native: dict[str, NativeKernel] = {}
        for kernel in (kernel for step in self.steps for kernel in step.native):
            native.setdefault(kernel.name, kernel)
        return native

    @property
    def copies(self) -> tuple[StepReport, ...]:
        """The steps that copy an array as a whole."""
        return tuple(step for step in self.steps if step.copy)

    def instructions(self, *kinds: StepKind) -> int:
        """The number of instructions done by steps of these kinds; of all steps without any."""
        return sum(s.instructions for s in self.steps if not kinds or s.kind in kinds)


@dataclass(frozen=True)
class Launch:
    """A plan bound to sizes, as native calls run it (`gptrs.jit.native_call`): what a call takes
    and gives back, the words that it writes addresses to, and the run of the step table.

    Arrays are numbered: ``inputs``, then ``outputs``. Words are given by their addresses.
    """

    bound: object
    """The binding; a call takes it out of ``free``."""
    free: list[Any]
    arenas: list[Any] | None
    """Free arenas, of which a call takes the last; None if the plan needs none."""
    arena_type: type
    """Of an arena, whose slot ``words`` is an array of its address and size."""
    arena_bytes: int
    arena_address: int
    """The word that holds the address of the arena that the argument blocks point to."""
    arena_relocations: list[tuple[int, int]]
    """Words that hold addresses in the arena, and the offsets there."""
    lease: Lease | None
    """Of the packed weights."""
    inputs: list[tuple[int, int]]
    """Arguments of the plan, by number, and the flags that NumPy must show."""
    outputs: list[tuple[tuple[int, ...], Any]]
    """Shapes and dtypes of arrays to make."""
    relocations: list[tuple[int, int, int]]
    """Array, word, offset in the array."""
    copies: list[tuple[int, int, int]]
    """Arrays whose elements are copied after the run: source, target, bytes."""
    results: list[int]
    """The output that each result is."""
    driver: NativeDriver
    order: int
    """The order of the run, for the driver."""
    status: int
    threads: int
    poll: int
    """The function that kernels poll for signals, or 0."""
    is_brief: bool
    """Whether a run is so short that it keeps the GIL."""
    held: tuple[object, ...]


HOST = "cpu"
"""The device of arrays in the memory of the host."""


class Plan(ABC):
    """A compiled program: it runs at any size of its symbols, from any thread."""

    device: str = HOST
    """Where results can stay between calls (`run_on_device`): the name of the backend."""
    source: str = ""
    """What runs a call as Python, for plans that are one function."""

    @abstractmethod
    def run(
        self, arguments: Sequence[Array | Parameter], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        """The results for ``arguments``, one per parameter of the program.

        No result shares memory with an argument or another result, except that a donated argument
        may be returned as a result. Raises `ElementError` with the user's line for elements that
        have no result.
        """

    def run_on_device(
        self, arguments: Sequence[Array | Parameter | DeviceArray], sizes: Mapping[str, int]
    ) -> tuple[DeviceArray, ...]:
        """`run` of a plan on a `device`: results stay there, and so do arguments that come from
        there. It is an error for a plan on the host."""
        raise NotImplementedError

    def launch(self, sizes: Mapping[str, int]) -> Launch | None:
        """The binding that the last run at these sizes used; None where native code cannot run it
        alone."""
        return None

    def load(self, arguments: Sequence[Array | Parameter], sizes: Mapping[str, int]) -> None:
        """Make what a run at these sizes makes of its parameters and does not make again. Only
        the parameters among ``arguments`` are read."""
        return

    @abstractmethod
    def report(self, sizes: Mapping[str, int]) -> PlanReport:
        """The steps of a run at these sizes."""


class Backend(ABC):
    """A way to compile and run programs. One instance serves all threads."""

    name: str
    passes: tuple[Stage, ...] = ()  # run in the pipeline after `legalize`
    needs_driver: bool = False
    """Whether a driver of the system answers `is_available` and `devices`, and may crash or hang:
    they are called in a process of their own first (`gptrs.backends.probe`)."""

    @classmethod
    def missing(cls) -> Availability:
        """What is not installed for it, told at once and without asking a driver."""
        return Availability()

    @abstractmethod
    def claims(self, instruction: Instruction) -> bool:
        """Whether this composite instruction is left whole for a kernel of this backend."""

    @abstractmethod
    def plan(self, program: Program, *, precise: bool = False) -> Plan:
        """Compile ``program``, which the passes have lowered.

        A ``precise`` plan gives the bits of eager mode: each instruction rounds as its NumPy
        meaning does, and sums have its order.
        """

    def to_device(self, array: Array) -> DeviceArray:
        """A copy of ``array`` on the first device. Raises `ArgumentError` where the backend
        computes in the memory of the host."""
        raise ArgumentError(f"the backend {self.name} computes on the CPU", fix="to_device('cpu')")

    def is_available(self) -> Availability:
        """Whether the backend can run here, with the reason if it cannot."""
        return Availability() if self.devices() else Availability("there is no device for it")

    @abstractmethod
    def devices(self) -> tuple[DeviceInfo, ...]:
        """The devices of this machine that the backend can use; the first one runs programs."""

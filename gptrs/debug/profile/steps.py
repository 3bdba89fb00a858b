"""What a step of a plan is: its kernel, the user's line and module, arithmetic and traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import NamedTuple, TypeVar

from gptrs.backends.base import StepReport, TableReport
from gptrs.backends.instruction_costs import flops, traffic, value_bytes
from gptrs.debug.call_groups import Groups
from gptrs.ir.program import Instruction, Program, Value
from gptrs.lazy_dataclass import dataclass

T = TypeVar("T")


@dataclass(eq=False)
class ProfiledStep:
    """A step of a plan with all of its runs."""

    program: str
    """The name of the function, or of the region of a loop."""
    number: int
    """Its place among the steps of the plan."""
    kind: str
    kernel: str
    """The kernel's target, the fused loop, or the op that Python ran."""
    op: str
    """The op that most of the arithmetic is of."""
    line: str
    """The user's line of that op."""
    function: str
    """The user's function of that line."""
    module: str
    """The path of the layer, as `Module.modules` names it; empty outside of layers."""
    result: str
    flops: int
    """Floating-point operations of one run."""
    bytes: int
    """Bytes that one run reads and writes, each array once."""
    calls: int = 0
    ns: float = 0.0
    """The time of all runs."""
    shares: dict[int, float] = field(default_factory=dict[int, float])
    """By worker: the ns of the chunks that it ran."""


class Row(NamedTuple):
    """A line of a table: a group of steps."""

    name: str
    calls: int
    ms: float
    share: float
    """Of the time of all steps, 0 to 1."""
    gflops: float
    """10⁹ floating-point operations a second; 0 where none are counted."""
    gbytes: float
    """10⁹ bytes a second that are read and written, each array once a step."""
    limit: float | None = None
    """How near it comes to the nearer limit of this machine, multiply-adds of f32 or reading from
    memory on as many threads: 1 is there, more is possible where arrays are in caches or numbers
    are narrower. None where the limits were not measured (``gptrs env --measure``)."""


class Span(NamedTuple):
    """Something that took time on one thread, in ns of `time.perf_counter_ns`."""

    kind: str
    """run (of a plan's steps), step, chunks (that a worker ran of a step), python (a step), or
    trace, pass, plan, bind (a plan to sizes), compile, load (kernels from the cache on disk), pack
    (weights)."""
    name: str
    thread: int
    start: float
    end: float
    step: ProfiledStep | None = None


class TableSteps:
    """The steps of one table, in the order of its native steps."""

    def __init__(self, report: TableReport) -> None:
        self.program = report.program.name
        self.arguments = report.arguments
        made: dict[int, ProfiledStep] = {}
        modules = _modules(report.program)
        reads = _readers(report.program)
        self._by_step: dict[object, ProfiledStep] = {}
        for number, (step, told) in enumerate(report.steps.items()):
            found = _step(report, number, told, modules, reads)
            made[id(told)] = self._by_step[step] = found
        self.native = [made[id(told)] for told in report.native]
        self.steps = list(made.values())

    def of(self, step: object) -> ProfiledStep | None:
        """A step that Python ran."""
        return self._by_step.get(step)


def _step(
    report: TableReport,
    number: int,
    told: StepReport,
    modules: Mapping[Instruction, str],
    readers: Mapping[Value, int],
) -> ProfiledStep:
    costs = {i: (flops(i, report.sizes), sum(traffic(i, report.sizes))) for i in told.members}
    main = max(told.members, key=lambda i: costs[i], default=None)
    where = None if main is None else main.where or _first(i.where for i in told.members)
    module = "" if main is None else modules.get(main, "")
    target = None if main is None else main.attrs.get("target")
    return ProfiledStep(
        report.program.name,
        number,
        told.kind,
        told.name,
        _op_name(target) if isinstance(target, str) else "" if main is None else main.op.name,
        "" if where is None else where.place,
        "" if where is None else where.function,
        module,
        told.result,
        sum(cost for cost, _ in costs.values()),
        _traffic(report, told, readers),
    )


def _op_name(target: str) -> str:
    """``matmul`` of a custom call's target such as ``gpt_rs.faer.matmul.f32.v1``."""
    parts = target.split(".")
    return parts[2] if len(parts) > 2 else target


def _traffic(report: TableReport, told: StepReport, readers: Mapping[Value, int]) -> int:
    """What a step reads from outside of it, and what others read of it."""
    if told.kind == "view":
        return 0
    if len(told.members) == 1:
        return sum(traffic(told.members[0], report.sizes, in_place=not told.copy))
    made = {value for member in told.members for value in member.results}
    uses: dict[Value, int] = {}
    for member in told.members:
        for value in member.values():
            uses[value] = uses.get(value, 0) + 1
    read = (value_bytes(value, report.sizes) for value in uses if value not in made)
    left = (value for value in made if readers.get(value, 0) > uses.get(value, 0))
    return sum(read) + sum(value_bytes(value, report.sizes) for value in left)


def _readers(program: Program) -> dict[Value, int]:
    found: dict[Value, int] = {}
    for value in program.results:
        found[value] = found.get(value, 0) + 1
    for instruction in program.body:
        for value in instruction.values():
            found[value] = found.get(value, 0) + 1
    return found


def _modules(program: Program) -> dict[Instruction, str]:
    """The layer of each instruction, by the calls that led to it."""
    groups, found = Groups(program.name), dict[Instruction, str]()
    for instruction in program.body:
        path, group = "", groups.of(instruction.where)
        while group is not None and not path:
            path, group = groups.entries[group].get("path", ""), groups.entries[group]["parent"]
        found[instruction] = path
    return found


def _first(items: Iterator[T | None]) -> T | None:
    return next((item for item in items if item is not None), None)

"""Buffer assignment: the memory of each value of a program, before sizes are known.

Input: the steps of `schedule` in order. Values share an allocation where one is the other in
another shape, and where an update may overwrite an operand without a later use. An `Allocation` is
an array from outside, a result, or a lifetime in the arena. No result is memory of an argument,
except of donated ones. `binding` assigns arena offsets once sizes are known.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gptrs.backends.faer.calls.base import Form
from gptrs.backends.faer.calls.gather_scatter import Update
from gptrs.backends.faer.schedule import CallStep, ControlStep, PlanStep, ReferenceStep, RegionStep
from gptrs.backends.faer.step_templates import structure_key
from gptrs.ir.program import Fails, Program, Value


@dataclass(eq=False)
class Allocation:
    """Memory of one or more values.

    ``number`` is the index of the program's parameter, of its instruction (a constant) or of its
    result. An arena allocation is live from step ``first`` to step ``last``.
    """

    values: list[Value]
    kind: Literal["arena", "argument", "parameter", "constant", "result"] = "arena"
    number: int = -1
    donated: bool = False
    first: int = -1
    last: int = -1


@dataclass(eq=False)
class Placed:
    """A step with its buffers, and the arena allocations whose lifetimes begin and end with it."""

    work: PlanStep
    number: int
    view: bool  # there is nothing to do: the result is an array that is there, in another shape
    in_place: bool = False  # the result overwrites what it is an update of
    hindrance: str = ""  # what an update copies, as it cannot overwrite it, and why
    homes: list[Allocation] = field(default_factory=list[Allocation])
    """Of its operands, then of the result."""
    packed: list[frozenset[Form]] = field(default_factory=list[frozenset[Form]])
    """By operand: the forms in which a parameter is kept."""
    structure_key: Hashable = None
    """Equal for calls that do the same with other arrays; None for what is one of a kind."""
    begin: list[Allocation] = field(default_factory=list[Allocation])
    end: list[Allocation] = field(default_factory=list[Allocation])


def _named(step: PlanStep) -> str:
    """A step in messages: the op that may fail, or its own, and the user's line."""
    instruction = step.instruction
    inside = step.call.members if isinstance(step, CallStep) else ()
    name: str = instruction.attrs["target"] if inside else instruction.op.name
    name = next((i.op.name for i in inside if i.fails is not Fails.NEVER), name)
    return f"{name} at {instruction.where}" if instruction.where else name


class BufferAssignment:
    """The allocations of all values of ``program``, whose steps run in this order.

    A failing call leaves its arguments unchanged: no donated argument is overwritten before a step
    that may fail at elements, or, if ``careful``, at sizes.
    """

    def __init__(
        self, program: Program, work: Sequence[PlanStep], *, careful: bool = False
    ) -> None:
        self.program = program
        self._all_work = work
        self.homes: dict[Value, Allocation] = {}
        self.steps: list[Placed] = []
        """The work in order."""
        self.packed: dict[Value, set[Form]] = {}
        """The forms in which parameters and constants are wanted."""
        self._results = set(program.results)
        enough = Fails.AT_SIZES if careful else Fails.AT_ELEMENTS
        failing = (n for n, step in enumerate(work) if step.instruction.fails >= enough)
        self._last_failing = max(failing, default=-1)
        self._last_read = {v: n for n, step in enumerate(work) for v in step.inputs}
        for number, param in enumerate(program.params):
            home = self._new(param, -1)
            home.kind = "parameter" if param.role == "parameter" else "argument"
            home.number, home.donated = number, param.donated
        for number, instruction in enumerate(program.body):
            if instruction.op.name == "constant":
                home = self._new(instruction.result, -1)
                home.kind, home.number = "constant", number
        for number, step in enumerate(work):
            self._place(step, number)
        for number, value in enumerate(program.results):
            home = self.homes[value]
            if home.kind == "arena":
                home.kind, home.number = "result", number
        self._schedule(len(work))
        self._gather()

    def _schedule(self, count: int) -> None:
        """Record at each step the arena allocations whose lifetimes begin and end there."""
        first: list[list[Allocation]] = [[] for _ in range(count)]
        last: list[list[Allocation]] = [[] for _ in range(count)]
        for home in dict.fromkeys(self.homes.values()):
            if home.kind == "arena":
                first[home.first].append(home)
                last[home.last].append(home)
        for placed in self.steps:
            placed.begin, placed.end = first[placed.number], last[placed.number]

    def _gather(self) -> None:
        """Record for each step its allocations, the packed forms of its operands, and its structure
        key."""
        for work in [placed.work for placed in self.steps]:
            if isinstance(work, CallStep):
                for value, form in work.call.packed().items():
                    self.packed.setdefault(work.outer(value), set()).add(form)
            elif isinstance(work, ControlStep):
                self._gather_regions(work)
        for placed in self.steps:
            work = placed.work
            if placed.view or isinstance(work, ReferenceStep | ControlStep):
                continue
            placed.homes = [self.homes[value] for value in work.arrays]
            placed.packed = [frozenset(self.packed.get(value, ())) for value in work.arrays]
            if isinstance(work, CallStep):
                places = {value: place for place, value in enumerate(work.operands)}
                placed.structure_key = (
                    structure_key(work.call, places),
                    placed.in_place,
                    tuple(placed.packed),
                )

    def _gather_regions(self, work: ControlStep) -> None:
        """Collect the forms in which the regions of control flow read the parameters of this
        program."""
        for plan in work.plans.values():
            for param, value in zip(plan.program.params, work.given, strict=True):
                forms = plan.packed.get(param)
                if forms and self.homes[value].kind == "parameter":
                    self.packed.setdefault(value, set()).update(forms)

    def _new(self, value: Value, number: int) -> Allocation:
        home = self.homes[value] = Allocation([value], first=number)
        home.last = max(number, self._last_read.get(value, number))
        return home

    def _place(self, step: PlanStep, number: int) -> None:
        shared: Allocation | None = None
        hindrance = self._hindrance(step, number)
        for value in step.results:
            shared = self._shared(step, value, hindrance)
            if shared is None:
                self._new(value, number)
                continue
            shared.values.append(value)
            shared.last = max(shared.last, self._last_read.get(value, number))
            self.homes[value] = shared
        view = shared is not None and isinstance(step, RegionStep)
        self.steps.append(Placed(step, number, view, shared is not None, hindrance))

    def _shared(self, step: PlanStep, value: Value, hindrance: str) -> Allocation | None:
        """The allocation that the result ``value`` of a step can reuse."""
        if isinstance(step, RegionStep) and step.region.copies is not None:
            home = self.homes[step.region.copies]
            if value not in self._results or self._free_for_result(home):
                return home
        if isinstance(step, CallStep) and isinstance(step.call, Update) and not hindrance:
            return self.homes[step.outer(step.call.x)]
        return None

    def _hindrance(self, step: PlanStep, number: int) -> str:
        """Why an update copies its operand instead of overwriting it; empty if it works in
        place."""
        if not (isinstance(step, CallStep) and isinstance(step.call, Update)):
            return ""
        home = self.homes[step.outer(step.call.x)]
        whose = home.values[0].origin or "the old array"
        if home.kind != "arena" and not home.donated:
            return f"{whose}, which is not donated"
        with_itself = step.call.update.value is step.call.x
        if with_itself or sum(self.homes[value] is home for value in step.inputs) > 1:
            return f"{whose}, which it also reads"
        if home.last > number:
            return f"{whose}, which {_named(self._all_work[home.last])} reads later"
        if not self._free_for_result(home):
            return f"{whose}, which is a result too"
        if home.kind == "argument" and self._last_failing >= number:
            return f"{whose}, as {_named(self._all_work[self._last_failing])} may fail"
        return ""

    def _free_for_result(self, home: Allocation) -> bool:
        """Whether a result may be in this memory: it is ours, and no other result is in it."""
        ours = home.kind == "arena" or home.donated
        return ours and self._results.isdisjoint(home.values)

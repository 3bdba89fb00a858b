"""Buffer assignment: the memory of each value of a program, before sizes are known.

Input: the steps of `schedule` in order. Values share an allocation where one is the other in
another shape, and where an update may overwrite an operand without a later use. Of a concat along
the outermost axis, operands that nobody reads later are made at their places in the result. An
`Allocation` is an array from outside, a result, or a lifetime in the arena. No result is memory of
an argument, except of donated ones. `binding` assigns arena offsets once sizes are known.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import field
from typing import Literal

from gptrs.backends.faer.calls.base import values_of
from gptrs.backends.faer.calls.forms import Form
from gptrs.backends.faer.matched_calls import MatchedCall
from gptrs.backends.faer.step_templates import structure_key
from gptrs.backends.faer.steps import (
    CallStep,
    ControlStep,
    HostStep,
    KernelStep,
    PlanStep,
    ReferenceStep,
    RegionStep,
    UpdateStep,
)
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Fails, Instruction, Program, Value
from gptrs.lazy_dataclass import dataclass

_IN_PYTHON = ReferenceStep | KernelStep | HostStep


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
    inside: Allocation | None = None
    """The memory that this one is a part of, from element ``place`` on."""
    place: DimLike = 0


@dataclass(eq=False)
class AssignedStep:
    """A step with its buffers, and the arena allocations whose lifetimes begin and end with it."""

    step: PlanStep
    number: int
    view: bool  # no work: the result is an existing array in another shape
    in_place: bool = False  # the result overwrites the operand that it updates
    copy_reason: str = ""  # the operand that an update copies, and why it cannot overwrite it
    allocations: list[Allocation] = field(default_factory=list[Allocation])
    """The buffers of its operands, then of the results."""
    placed: frozenset[int] = frozenset()
    """The operands, by number, that are already at their places in the result."""
    packed: list[frozenset[Form]] = field(default_factory=list[frozenset[Form]])
    """By operand: the packed forms of a parameter that the plan keeps."""
    structure_key: Hashable = None
    """Equal for steps that can share a template; None for a step that shares none."""
    allocated: list[Allocation] = field(default_factory=list[Allocation])
    """Arena allocations whose lifetimes begin at this step."""
    freed: list[Allocation] = field(default_factory=list[Allocation])
    """Arena allocations whose lifetimes end at this step."""


def _label(step: PlanStep) -> str:
    """A step in messages: the op that may fail, or its own, and the user's line."""
    instruction = step.instruction
    name: str = instruction.attrs["target"] if isinstance(step, CallStep) else instruction.op.name
    inside: Collection[Instruction] = ()
    if isinstance(step, CallStep):
        inside = step.call.members
    elif isinstance(step, RegionStep):
        inside = step.region.members
    name = next((i.op.name for i in inside if i.fails is not Fails.NEVER), name)
    return f"{name} at {instruction.where}" if instruction.where else name


def _fails(step: PlanStep) -> Fails:
    """When a step fails; nothing is known of a user's kernel."""
    if isinstance(step, RegionStep):
        return step.fails
    return Fails.AT_ELEMENTS if isinstance(step, KernelStep) else step.instruction.fails


def base_of(step: PlanStep) -> Value | None:
    """The array that an update changes a part of, and may overwrite."""
    if isinstance(step, UpdateStep):
        return step.base
    if isinstance(step, CallStep) and (value := step.call.overwrites) is not None:
        return step.outer(value)
    return None


def _reads(step: PlanStep, base: Value) -> bool:
    """Whether what an update stores depends on the array that it changes."""
    if isinstance(step, UpdateStep):
        return base in step.region.inputs
    assert isinstance(step, CallStep)
    return [step.outer(value) for value in values_of(step.call)].count(base) > 1


class BufferAssignment:
    """The allocations of all values of ``program``, whose steps run in this order.

    A failing call leaves its arguments unchanged: no donated argument is overwritten before a step
    that may fail at elements, or, with ``preserve_arguments``, at sizes.
    """

    def __init__(
        self, program: Program, schedule: Sequence[PlanStep], *, preserve_arguments: bool = False
    ) -> None:
        self.program = program
        self._schedule = schedule
        self.allocations: dict[Value, Allocation] = {}
        self.steps: list[AssignedStep] = []
        """The steps in order."""
        self.packed: dict[Value, set[Form]] = {}
        """The packed forms of parameters and constants that kernels read."""
        self._results = set(program.results)
        self._structure_keys: dict[MatchedCall, Hashable] = {}
        enough = Fails.AT_SIZES if preserve_arguments else Fails.AT_ELEMENTS
        failing = (n for n, step in enumerate(schedule) if _fails(step) >= enough)
        self._last_failing = max(failing, default=-1)
        self._last_read = {v: n for n, step in enumerate(schedule) for v in step.inputs}
        for number, param in enumerate(program.params):
            allocation = self._new(param, -1)
            allocation.kind = "parameter" if param.role == "parameter" else "argument"
            allocation.number, allocation.donated = number, param.donated
        for number, instruction in enumerate(program.body):
            if instruction.op is constant:
                allocation = self._new(instruction.result, -1)
                allocation.kind, allocation.number = "constant", number
        for number, step in enumerate(schedule):
            self._assign(step, number)
        for number, value in enumerate(program.results):
            allocation = self.allocations[value]
            if allocation.kind == "arena":
                allocation.kind, allocation.number = "result", number
        for assigned in self.steps:
            self._place_operands(assigned)
        self._set_lifetimes(len(schedule))
        self._collect_buffers()

    def _place_operands(self, assigned: AssignedStep) -> None:
        """Let operands that a step would copy into its result be made there, where it is the last
        one that reads them."""
        step = assigned.step
        if not isinstance(step, CallStep) or not (parts := step.call.parts):
            return
        made, begin = self.allocations[step.outer(step.call.result)], assigned.number
        if made.first != begin:
            return
        placed: set[int] = set()
        for number, operand in enumerate(step.operands):
            one = self.allocations[step.arrays[number]]
            free = one.kind == "arena" and one.inside is None and 0 <= one.first < one.last == begin
            if operand in parts and free and not self._results.intersection(one.values):
                one.inside, one.place = made, parts[operand]
                made.first = min(made.first, one.first)
                placed.add(number)
        assigned.placed = frozenset(placed)

    def _set_lifetimes(self, count: int) -> None:
        """Record at each step the arena allocations whose lifetimes begin and end there."""
        first: list[list[Allocation]] = [[] for _ in range(count)]
        last: list[list[Allocation]] = [[] for _ in range(count)]
        for allocation in dict.fromkeys(self.allocations.values()):
            if allocation.kind == "arena" and allocation.inside is None:
                first[allocation.first].append(allocation)
                last[allocation.last].append(allocation)
        for assigned in self.steps:
            assigned.allocated, assigned.freed = first[assigned.number], last[assigned.number]

    def _collect_buffers(self) -> None:
        """Record for each step its allocations, the packed forms of its operands, and its structure
        key."""
        for step in self._schedule:
            if isinstance(step, CallStep):
                for value, form in step.call.packed().items():
                    self.packed.setdefault(step.outer(value), set()).add(form)
            elif isinstance(step, ControlStep):
                self._collect_region_forms(step)
        for assigned in self.steps:
            step = assigned.step
            if assigned.view or isinstance(step, _IN_PYTHON):
                continue
            assigned.allocations = [self.allocations[value] for value in step.arrays]
            assigned.packed = [frozenset(self.packed.get(value, ())) for value in step.arrays]
            if isinstance(step, CallStep):
                assigned.structure_key = (
                    self._structure_key(step.matched),
                    assigned.in_place,
                    assigned.placed,
                    tuple(assigned.packed),
                )

    def _structure_key(self, matched: MatchedCall) -> Hashable:
        found = self._structure_keys.get(matched)
        if found is None:
            places = {value: place for place, value in enumerate(matched.operands)}
            found = self._structure_keys[matched] = structure_key(matched.call, places)
        return found

    def _collect_region_forms(self, step: ControlStep) -> None:
        """Collect the forms in which the regions of control flow read the parameters of this
        program."""
        for plan in step.plans.values():
            for param, value in zip(plan.program.params, step.given, strict=True):
                forms = plan.packed.get(param)
                if forms and self.allocations[value].kind == "parameter":
                    self.packed.setdefault(value, set()).update(forms)

    def _new(self, value: Value, number: int) -> Allocation:
        allocation = self.allocations[value] = Allocation([value], first=number)
        allocation.last = max(number, self._last_read.get(value, number))
        return allocation

    def _assign(self, step: PlanStep, number: int) -> None:
        shared: Allocation | None = None
        copy_reason = self._copy_reason(step, number)
        for value in step.results:
            shared = self._shared_allocation(step, value, copy_reason)
            if shared is None:
                self._new(value, number)
                continue
            shared.values.append(value)
            shared.last = max(shared.last, self._last_read.get(value, number))
            self.allocations[value] = shared
        view = (
            shared is not None and isinstance(step, RegionStep) and step.region.copies is not None
        )
        self.steps.append(AssignedStep(step, number, view, shared is not None, copy_reason))

    def _shared_allocation(
        self, step: PlanStep, value: Value, copy_reason: str
    ) -> Allocation | None:
        """The allocation that the result ``value`` of a step can reuse."""
        if isinstance(step, RegionStep) and step.overwritten is not None:
            return self.allocations[step.overwritten]
        if isinstance(step, RegionStep) and step.region.copies is not None:
            allocation = self.allocations[step.region.copies]
            if value not in self._results or self._can_hold_result(allocation):
                return allocation
        base = base_of(step)
        return None if base is None or copy_reason else self.allocations[base]

    def _copy_reason(self, step: PlanStep, number: int) -> str:
        """Why an update copies its operand instead of overwriting it; empty if it works in
        place."""
        base = base_of(step)
        if base is None:
            return ""
        allocation = self.allocations[base]
        whose = allocation.values[0].origin or "the old array"
        if allocation.kind != "arena" and not allocation.donated:
            return f"{whose}, which is not donated"
        if _reads(step, base) or sum(self.allocations[v] is allocation for v in step.inputs) > 1:
            return f"{whose}, which it also reads"
        if allocation.last > number:
            return f"{whose}, which {_label(self._schedule[allocation.last])} reads later"
        if not self._can_hold_result(allocation):
            return f"{whose}, which is a result too"
        # A call that updates an array fails before it writes, if at all.
        if allocation.kind == "argument" and self._last_failing > number:
            return f"{whose}, as {_label(self._schedule[self._last_failing])} may fail"
        return ""

    def _can_hold_result(self, allocation: Allocation) -> bool:
        """Whether a result may be in this memory: it is ours, and no other result is in it."""
        ours = allocation.kind == "arena" or allocation.donated
        return ours and self._results.isdisjoint(allocation.values)

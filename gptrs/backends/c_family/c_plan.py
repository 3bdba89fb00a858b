"""`CPlan`: what a program does in C: its kernel calls in memory, and the plans of its regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gptrs.backends.c_family.control import is_control, loop_body
from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.backends.c_family.memory import Assignment, assign
from gptrs.backends.c_family.schedule import KernelStep, Schedule, schedule_of
from gptrs.backends.c_family.size_checks import SizeCheck, has_size_check, size_checks
from gptrs.ir.ops.control import cond, scan
from gptrs.ir.program import Fails, Instruction, Program, Value
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Control:
    """A branch or a loop, as programs that C functions run."""

    instruction: Instruction
    regions: tuple[CPlan, ...]
    """Of cond both branches, of scan the body, of while_loop the condition and the body."""
    changed: tuple[int, ...] = ()
    """The parts of the state that a loop changes: the first parameters of its body, donated."""


@dataclass(frozen=True)
class CPlan:
    """A program with places for its values."""

    assignment: Assignment
    checks: Sequence[SizeCheck]
    controls: Mapping[Instruction, Control]

    @property
    def program(self) -> Program:
        return self.assignment.schedule.program

    def nested(self) -> Iterator[CPlan]:
        """This plan, and those of all regions in it."""
        yield self
        for control in self.controls.values():
            for region in control.regions:
                yield from region.nested()

    def without_form(self) -> list[Instruction]:
        """The instructions that have no C form, here and in regions."""
        found: dict[Instruction, None] = {}
        for plan in self.nested():
            schedule = plan.assignment.schedule
            found.update(dict.fromkeys(i for i in schedule.others if i not in plan.controls))
            for instruction in plan.program.body:
                fails = instruction.fails is Fails.AT_SIZES and not has_size_check(instruction)
                if fails and instruction not in plan.controls:
                    found[instruction] = None
        return list(found)

    def stored(self) -> set[Value]:
        """The values whose arrays are read or written."""
        places, assignment = self.assignment.places, self.assignment
        steps = (s for s in assignment.steps if isinstance(s, KernelStep))
        used = {places[v] for step in steps for call in step.calls for v in call.values}
        used |= {places[value] for value, _ in assignment.copies}
        used |= {places[v] for control in self.controls for v in control.values()}
        return {v for v, place in places.items() if place in used}


def c_plan(program: Program) -> CPlan:
    """The plan of a program that was lowered for C."""
    schedule = schedule_of(program)
    return CPlan(assign(schedule, others_in_slots=True), size_checks(program), _controls(schedule))


def _controls(schedule: Schedule) -> dict[Instruction, Control]:
    return {i: _control(i) for i in schedule.others if is_control(i) and _is_in_memory(i)}


def _is_in_memory(instruction: Instruction) -> bool:
    values = (*instruction.values(), *instruction.results)
    return all(value.type.dtype.name in IN_MEMORY for value in values)


def _control(instruction: Instruction) -> Control:
    attrs = instruction.attrs
    if instruction.op is cond:
        return Control(instruction, (c_plan(attrs["then"]), c_plan(attrs["otherwise"])))
    step = loop_body(instruction)
    body = c_plan(step.program)
    regions = (body,) if instruction.op is scan else (c_plan(attrs["condition"]), body)
    return Control(instruction, regions, step.changed)

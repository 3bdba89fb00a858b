"""`DevicePlan`: the kernel calls of a program, bound to sizes, enqueued on a device in order.

A run uploads the arguments that are not on the device, enqueues all kernels without waiting, and
waits once, for the results or for the status of elements that may have none. Branches and loops are
plans of their own (`gptrs.backends.c_family.control_runs`). An instruction
without a kernel runs on the host, which waits for its operands. Where an element has no result, the
run ends in the reference, whose error says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gptrs.backends.base import Plan, PlanReport, StepReport
from gptrs.backends.c_family.control_runs import control_run
from gptrs.backends.c_family.device import DeviceBuffer, KernelDevice, Launch
from gptrs.backends.c_family.kernel import KernelCall
from gptrs.backends.c_family.memory import Assignment, Place, assign
from gptrs.backends.c_family.schedule import AliasStep, KernelStep, OtherStep, schedule_of
from gptrs.backends.reference import ReferencePlan
from gptrs.ir.device_array import DeviceArray, on_host
from gptrs.ir.dims import Dim, size_at, surely_greater
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Instruction, Program, Value, map_values
from gptrs.ir.sizes import apply, failing_at_sizes, fails_at, filled
from gptrs.ir.types import Array, Type, si32
from gptrs.lazy_dataclass import dataclass

Argument: TypeAlias = Array | Parameter | DeviceArray
_HEAVY = 64  # scalar operations of a work item


class DevicePlan(Plan):
    """The steps of a program on a device."""

    def __init__(self, program: Program, on: KernelDevice) -> None:
        self.device, self._on, self._given = on.backend, on, program
        self._schedule = schedule_of(
            program, on.dtypes, on.makers, on.most_arrays, grouped=on.has_groups
        )
        self.program = self._schedule.program
        self._assignment: Assignment = assign(self._schedule, item_bytes=on.item_bytes)
        self._calls = [
            call
            for step in self._assignment.steps
            if isinstance(step, KernelStep)
            for call in step.calls
        ]
        found = (
            control_run(step.instruction, on.dtypes, lambda region: DevicePlan(region, on))
            for step in self._assignment.steps
            if isinstance(step, OtherStep)
        )
        self.controls = {run.instruction: run for run in found if run is not None}
        with on.lock:
            on.compile(call.kernel for call in self._calls)
        results = (result for instruction in program.body for result in instruction.results)
        dims = {n.terms: n for r in results for n in r.type.shape if isinstance(n, Dim)}
        self._unsure = failing_at_sizes(program)
        self._may_be_negative = [n for n in dims.values() if not surely_greater(n, -1)]
        self._constants: dict[int, Any] = {}

    def run(self, arguments: Sequence[Argument], sizes: Mapping[str, int]) -> tuple[Array, ...]:
        with self._on.lock:
            run = self.enqueued(arguments, sizes, {})
            if run is None or (found := run.arrays()) is None:
                return self._refer(arguments, sizes)
            return found

    def run_on_device(
        self, arguments: Sequence[Argument], sizes: Mapping[str, int]
    ) -> tuple[DeviceArray, ...]:
        with self._on.lock:
            run = self.enqueued(arguments, sizes, {})
            if run is None or run.has_failed():
                return tuple(map(self._on.put, self._refer(arguments, sizes)))
            return run.buffers()

    def load(self, arguments: Sequence[Argument], sizes: Mapping[str, int]) -> None:
        with self._on.lock:
            for argument in arguments:
                if isinstance(argument, Parameter):
                    self._on.weights(argument)

    def enqueued(
        self,
        arguments: Sequence[Argument],
        sizes: Mapping[str, int],
        states: dict[DevicePlan, _State | None],
    ) -> Run | None:
        """A run whose steps are all on their way; None where they have no results. ``states`` has
        what the plans of the whole call need at these sizes."""
        if self not in states:
            states[self] = self._state(sizes)
        if states[self] is None:
            return None
        run = Run(self, self._on, self._assignment, arguments, sizes, states)
        return run if run.enqueue() else None

    def _state(self, sizes: Mapping[str, int]) -> _State | None:
        if not self._fits(sizes):  # the op that they do not fit has an error for that, if it runs
            return None
        launches = self._launches(sizes)
        if not self._on.fits(launches.values()):
            return None
        failing = sum(launch.status is not None for launch in launches.values())
        status = self._on.upload(np.zeros(failing, np.int32)) if failing else None
        return _State(launches, status, Type((failing,), si32))

    def _refer(self, arguments: Sequence[Argument], sizes: Mapping[str, int]) -> tuple[Array, ...]:
        given = [a if isinstance(a, Parameter) else on_host(a) for a in arguments]
        return ReferencePlan(self._given).run(given, sizes)

    def _fits(self, sizes: Mapping[str, int]) -> bool:
        if any(size_at(extent, sizes) < 0 for extent in self._may_be_negative):
            return False
        return not any(fails_at(instruction, sizes) for instruction in self._unsure)

    def _launches(self, sizes: Mapping[str, int]) -> dict[KernelCall, Launch]:
        """The calls at these sizes; those without work items are left out."""
        found: dict[KernelCall, Launch] = {}
        failing = 0
        for call in self._calls:
            extent = size_at(call.extent, sizes)
            if not extent or not call.is_for(sizes):
                continue
            kernel = call.kernel
            numbers = [size_at(n, sizes) for n in call.numbers]
            numbers += [sizes[symbol] for symbol in kernel.symbols]
            heavy = size_at(call.work, sizes) > _HEAVY
            status = failing if kernel.fails else None
            found[call] = Launch(kernel, extent, tuple(numbers), heavy, status)
            failing += kernel.fails
        return found

    def constant(self, number: int) -> Any:
        """The buffer of a constant, uploaded once."""
        found = self._constants.get(number)
        if found is None:
            value = self.program.body[number].attrs["value"]
            found = self._constants[number] = self._on.upload(np.asarray(value))
        return found

    def report(self, sizes: Mapping[str, int]) -> PlanReport:
        steps = [self._step_report(step) for step in self._schedule.steps]
        steps += [
            StepReport("view", i.op.name, 1, str(i.result.type), note="read in place", members=(i,))
            for i in self._schedule.read_in_place
        ]
        slots = sum(slot.bytes(sizes) for slot in self._assignment.slots)
        return PlanReport(
            self.program.name,
            tuple(steps),
            native_steps=len(self._calls),
            arena_bytes=slots,
            scheduled=self.program,
        )

    def _step_report(self, step: KernelStep | AliasStep | OtherStep) -> StepReport:
        if isinstance(step, OtherStep):
            instruction = step.instruction
            is_control = instruction in self.controls
            types = ", ".join(str(result.type) for result in instruction.results)
            note = "on the host: there is no kernel for it"
            members = (instruction,)
            name = instruction.op.name
            if is_control:
                return StepReport("control", name, 1, types, members=members)
            return StepReport("reference", name, 1, types, note=note, members=members)
        members = tuple(step.members)
        shown = str(step.result.type)
        if isinstance(step, AliasStep):
            return StepReport("view", "reshape", len(members), shown, members=members)
        kernels = tuple(self._on.name_of(call.kernel) for call in step.calls)
        kind = "region" if step.is_region else "call"
        return StepReport(kind, step.name, len(members), shown, kernels, members=members)


@dataclass(frozen=True)
class _State:
    """What all runs of a plan in one call share."""

    launches: Mapping[KernelCall, Launch]
    status: Any
    """The buffer of failures; None where no kernel may fail."""
    status_type: Type


class Run:
    """One call of a plan, with the device's lock held."""

    def __init__(
        self,
        plan: DevicePlan,
        device: KernelDevice,
        assignment: Assignment,
        arguments: Sequence[Argument],
        sizes: Mapping[str, int],
        states: dict[DevicePlan, _State | None],
    ) -> None:
        self._plan, self.device, self._assignment = plan, device, assignment
        self._arguments, self.sizes, self._states = arguments, sizes, states
        self._buffers: dict[Place, Any] = {}

    def enqueue(self) -> bool:
        """Run the steps; false where one needs an element that has no result."""
        state = self._states[self._plan]
        assert state is not None
        for step in self._assignment.steps:
            if isinstance(step, KernelStep):
                for call in step.calls:
                    if (launch := state.launches.get(call)) is not None:
                        arrays = [self._buffer(value) for value in call.values]
                        self.device.launch(launch, arrays, state.status)
            elif (control := self._plan.controls.get(step.instruction)) is not None:
                if (found := control.enqueue(self)) is None:
                    return False
                for result, array in zip(step.instruction.results, found, strict=True):
                    self._buffers[self._assignment.places[result]] = array.buffer
            else:
                if self.has_failed():
                    return False
                self._on_host(step.instruction)
        return True

    def nested(
        self, plan: DevicePlan, arguments: Sequence[DeviceBuffer]
    ) -> tuple[DeviceBuffer, ...] | None:
        """The results of a branch or of a step, which are on their way; None where it has none."""
        run = plan.enqueued(arguments, self.sizes, self._states)
        return None if run is None else run.buffers()

    def on_device(self, value: Value) -> DeviceBuffer:
        """The array of a value, which is not to be written."""
        return self.device.array(self._buffer(value), self._type(value))

    def copied(self, value: Value) -> DeviceBuffer:
        """The array of a value in memory of its own."""
        type = self._type(value)
        return self.device.array(self.device.copy(self._buffer(value), type), type)

    def empty(self, value: Value) -> DeviceBuffer:
        """Memory for the array of a value."""
        size = size_at(value.type.size, self.sizes) * self.device.item_bytes(value.type.dtype)
        return self.device.array(self.device.allocate(size), self._type(value))

    def flag(self, buffer: DeviceBuffer) -> bool | None:
        """A truth value on the device; None where an element before it has no result."""
        found, *statuses = self.device.download([(buffer.buffer, buffer.type), *self._statuses()])
        return None if any(map(np.any, statuses)) else bool(found)

    def has_failed(self) -> bool:
        """Whether an element has no result, as far as the steps have run."""
        statuses = self._statuses()
        return bool(statuses) and any(map(np.any, self.device.download(statuses)))

    def _statuses(self) -> list[tuple[Any, Type]]:
        """The failures of all plans of the call."""
        found = (state for state in self._states.values() if state is not None)
        return [(s.status, s.status_type) for s in found if s.status is not None]

    def arrays(self) -> tuple[Array, ...] | None:
        """The results on the host; None where an element has none."""
        wanted = [(self._buffer(v), self._type(v)) for v in self._plan.program.results]
        statuses = self._statuses()
        found = self.device.download([*statuses, *wanted])
        if any(map(np.any, found[: len(statuses)])):
            return None
        return tuple(found[len(statuses) :])

    def buffers(self) -> tuple[DeviceBuffer, ...]:
        """The results on the device, in memory of their own."""
        copied = {number for _, number in self._assignment.copies}
        found: list[DeviceBuffer] = []
        for number, value in enumerate(self._plan.program.results):
            buffer, type = self._buffer(value), self._type(value)
            if number in copied:
                buffer = self.device.copy(buffer, type)
            found.append(self.device.array(buffer, type))
        return tuple(found)

    def _type(self, value: Value) -> Type:
        return filled(value.type, self.sizes)

    def _on_host(self, instruction: Instruction) -> None:
        """Run an instruction by its meaning."""
        operands = filled(map_values(instruction.operands, self.host), self.sizes)
        attrs = {name: filled(value, self.sizes) for name, value in instruction.attrs.items()}
        with np.errstate(all="ignore"):
            found = apply(instruction, operands, attrs)
        for result, array in zip(instruction.results, found, strict=True):
            self._buffers[self._assignment.places[result]] = self.device.upload(array)

    def host(self, value: Value) -> Any:
        place = self._assignment.places[value]
        if place.kind == "argument" and place not in self._buffers:
            argument = self._arguments[place.number]
            array = argument.numpy() if isinstance(argument, Parameter) else on_host(argument)
            return array.reshape(self._type(value).shape)  # a reshape has its place, too
        (found,) = self.device.download([(self._buffer(value), self._type(value))])
        return found

    def _buffer(self, value: Value) -> Any:
        place = self._assignment.places[value]
        found = self._buffers.get(place)
        if found is None:
            found = self._buffers[place] = self._made(place, value)
        return found

    def _made(self, place: Place, value: Value) -> Any:
        match place.kind:
            case "argument":
                argument = self._arguments[place.number]
                if isinstance(argument, Parameter):
                    return self.device.weights(argument)
                if isinstance(argument, DeviceBuffer) and argument.device == self.device.backend:
                    return argument.buffer
                return self.device.upload(on_host(argument))
            case "data":
                return self._plan.constant(place.number)
            case "slot":
                return self.device.allocate(self._assignment.slots[place.number].bytes(self.sizes))
            case _:
                size = size_at(value.type.size, self.sizes)
                return self.device.allocate(size * self.device.item_bytes(value.type.dtype))

"""`OpenCLPlan`: the kernel calls of a program, bound to sizes, enqueued in order.

A run uploads its arguments, enqueues all kernels without waiting, and waits when it reads results.
An instruction without a kernel runs on the host, which waits for its operands. Where an element has
no result, the run ends in the reference, whose error says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gptrs.backends.base import Plan, PlanReport, StepReport
from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.backends.c_family.kernel import KernelCall
from gptrs.backends.c_family.memory import Assignment, Place, assign
from gptrs.backends.c_family.schedule import AliasStep, KernelStep, OtherStep, schedule_of
from gptrs.backends.opencl.device import Device
from gptrs.backends.opencl.dialect import kernel_name
from gptrs.backends.reference import ReferencePlan
from gptrs.ir.dims import Dim, size_at, surely_greater
from gptrs.ir.program import Instruction, Program, Value, map_values
from gptrs.ir.sizes import apply, failing_at_sizes, fails_at, filled
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array

_HEAVY = 64  # scalar operations of a work item


@dataclass(frozen=True)
class _Launch:
    """A kernel call at given sizes."""

    call: KernelCall
    extent: int
    numbers: list[int]
    heavy: bool
    status: int | None


class OpenCLPlan(Plan):
    """The steps of a program on a device."""

    def __init__(self, program: Program, device: Device) -> None:
        self.program, self._device = program, device
        dtypes = frozenset(IN_MEMORY) - (frozenset() if device.has_f64 else {"f64"})
        self._schedule = schedule_of(program, dtypes)
        self._assignment: Assignment = assign(self._schedule)
        self._calls = [
            call
            for step in self._assignment.steps
            if isinstance(step, KernelStep)
            for call in step.calls
        ]
        with device.lock:
            device.compile(call.kernel for call in self._calls)
        results = (result for instruction in program.body for result in instruction.results)
        dims = {n.terms: n for r in results for n in r.type.shape if isinstance(n, Dim)}
        self._unsure = failing_at_sizes(program)
        self._may_be_negative = [n for n in dims.values() if not surely_greater(n, -1)]
        self._constants: dict[int, Any] = {}

    def run(
        self, arguments: Sequence[Array | Parameter], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        if not self._fits(sizes):  # the op that they do not fit has an error for that, if it runs
            return ReferencePlan(self.program).run(arguments, sizes)
        with self._device.lock:
            results = _Run(self, self._device, self._assignment, arguments, sizes).run()
        if results is None:  # an element has no result: the reference says which
            return ReferencePlan(self.program).run(arguments, sizes)
        return results

    def load(self, arguments: Sequence[Array | Parameter], sizes: Mapping[str, int]) -> None:
        with self._device.lock:
            for argument in arguments:
                if isinstance(argument, Parameter):
                    self._device.weights(argument)

    def _fits(self, sizes: Mapping[str, int]) -> bool:
        if any(size_at(extent, sizes) < 0 for extent in self._may_be_negative):
            return False
        return not any(fails_at(instruction, sizes) for instruction in self._unsure)

    def launches(self, sizes: Mapping[str, int]) -> dict[KernelCall, _Launch]:
        """The calls at these sizes; those without work items are left out."""
        found: dict[KernelCall, _Launch] = {}
        failing = 0
        for call in self._calls:
            if not (extent := size_at(call.extent, sizes)):
                continue
            kernel = call.kernel
            numbers = [size_at(n, sizes) for n in call.numbers]
            numbers += [sizes[symbol] for symbol in kernel.symbols]
            heavy = size_at(call.work, sizes) > _HEAVY
            found[call] = _Launch(call, extent, numbers, heavy, failing if kernel.fails else None)
            failing += kernel.fails
        return found

    def constant(self, number: int) -> Any:
        """The buffer of a constant, uploaded once."""
        found = self._constants.get(number)
        if found is None:
            value = self.program.body[number].attrs["value"]
            found = self._constants[number] = self._device.upload(np.asarray(value))
        return found

    def report(self, sizes: Mapping[str, int]) -> PlanReport:
        steps = [_report(step) for step in self._schedule.steps]
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


def _report(step: KernelStep | AliasStep | OtherStep) -> StepReport:
    if isinstance(step, OtherStep):
        instruction = step.instruction
        types = ", ".join(str(result.type) for result in instruction.results)
        note = "on the host: there is no kernel for it"
        members = (instruction,)
        return StepReport("reference", instruction.op.name, 1, types, note=note, members=members)
    members = tuple(step.members)
    shown = str(step.result.type)
    if isinstance(step, AliasStep):
        return StepReport("view", "reshape", len(members), shown, members=members)
    kernels = tuple(kernel_name(call.kernel) for call in step.calls)
    kind = "region" if step.is_region else "call"
    return StepReport(kind, step.name, len(members), shown, kernels, members=members)


class _Run:
    """One call of a plan, with the device's lock held."""

    def __init__(
        self,
        plan: OpenCLPlan,
        device: Device,
        assignment: Assignment,
        arguments: Sequence[Array | Parameter],
        sizes: Mapping[str, int],
    ) -> None:
        self._plan, self._device, self._assignment = plan, device, assignment
        self._arguments, self._sizes = arguments, sizes
        self._buffers: dict[Place, Any] = {}
        self._launches = plan.launches(sizes)
        self._failing = sum(launch.status is not None for launch in self._launches.values())
        self._status = device.fill(4 * self._failing) if self._failing else None

    def run(self) -> tuple[Array, ...] | None:
        """The results; None where an element has none."""
        for step in self._assignment.steps:
            if isinstance(step, OtherStep):
                if self._has_failed():
                    return None
                self._on_host(step.instruction)
                continue
            for call in step.calls:
                if (launch := self._launches.get(call)) is not None:
                    self._launch(launch)
        if self._has_failed():
            return None
        values = self._plan.program.results
        return tuple(self._array(value) for value in values)

    def _launch(self, launch: _Launch) -> None:
        arguments = [self._buffer(value) for value in launch.call.values] + launch.numbers
        if launch.status is not None:
            arguments += [self._status, launch.status]
        kernel = launch.call.kernel
        self._device.launch(kernel, launch.extent, arguments, heavy=launch.heavy)

    def _has_failed(self) -> bool:
        if self._status is None:
            return False
        return bool(self._device.download(self._status, (self._failing,), np.int32).any())

    def _on_host(self, instruction: Instruction) -> None:
        """Run an instruction by its meaning."""
        operands = filled(map_values(instruction.operands, self._host), self._sizes)
        attrs = {name: filled(value, self._sizes) for name, value in instruction.attrs.items()}
        with np.errstate(all="ignore"):
            found = apply(instruction, operands, attrs)
        for result, array in zip(instruction.results, found, strict=True):
            place = self._assignment.places[result]
            self._buffers[place] = self._device.upload(array)

    def _host(self, value: Value) -> Any:
        place = self._assignment.places[value]
        if place.kind == "argument" and place not in self._buffers:
            argument = self._arguments[place.number]
            return argument.numpy() if isinstance(argument, Parameter) else argument
        return self._array(value)

    def _array(self, value: Value) -> Array:
        """The elements of a value, as an array of the caller's own."""
        shape = tuple(size_at(n, self._sizes) for n in value.type.shape)
        return self._device.download(self._buffer(value), shape, value.type.dtype.numpy)

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
                    return self._device.weights(argument)
                return self._device.upload(argument)
            case "data":
                return self._plan.constant(place.number)
            case "slot":
                return self._device.allocate(self._slots[place.number])
            case _:
                return self._device.allocate(_bytes(value, self._sizes))

    @property
    def _slots(self) -> Sequence[int]:
        return [slot.bytes(self._sizes) for slot in self._assignment.slots]


def _bytes(value: Value, sizes: Mapping[str, int]) -> int:
    return size_at(value.type.size, sizes) * value.type.dtype.numpy.itemsize

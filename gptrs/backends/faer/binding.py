"""Binding of a plan to sizes: the step table, arena offsets, and relocations of addresses.

Input: a `BufferAssignment`, concrete sizes, a number of threads. Each step's template
(`step_templates`, shared by equal steps) is instantiated: its argument block is appended to one
array of words, and each word that holds an address becomes a relocation against a buffer. Output: a
`Bound`, which `run` executes; only addresses change from call to call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from gptrs.backends.faer.arena import OffsetAllocator
from gptrs.backends.faer.bound import ARENA, READY, WRITEABLE, Bound, Buffer, Segment
from gptrs.backends.faer.buffer_assignment import Allocation, AssignedStep, BufferAssignment
from gptrs.backends.faer.calls.base import Binder
from gptrs.backends.faer.calls.forms import Form
from gptrs.backends.faer.joint_steps import JointStep, Part
from gptrs.backends.faer.prepared_memory import Contents, PreparedMemory, prepared_contents
from gptrs.backends.faer.stage_chains import Chain, Stage, chains_of
from gptrs.backends.faer.step_templates import (
    Sizes,
    StepTemplate,
    TemplateBuilder,
    TemplateStep,
    chunk_count,
)
from gptrs.backends.faer.steps import (
    CallStep,
    CheckStep,
    ControlStep,
    LoopStep,
    PlanStep,
    RegionStep,
    Single,
)
from gptrs.backends.machine import MACHINE
from gptrs.identity_key import getter
from gptrs.ir.program import Value
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.driver.polling import poll_address
from gptrs.kernels.driver.step_table import Step, StepTable

BindLoop = Callable[[ControlStep, Binder, Mapping[str, int]], list[object] | None]
"""Gives a binder the step of a loop, and returns what has to live as long; None where Python has a
part in the loop."""


class _Binder:
    """Concatenates the steps of a plan and allocates its intermediate arrays in the arena."""

    def __init__(self, isa: Isa, bound: Bound, bind_loop: BindLoop) -> None:
        self._bind_loop = bind_loop
        self._assignment, self._isa, self._bound = bound.assignment, isa, bound
        self._size = Sizes(bound.sizes)
        self._templates: dict[Hashable, StepTemplate] = {}
        self._offsets = OffsetAllocator()
        self._argument_blocks: list[int] = []
        self._relocations: list[list[tuple[int, int]]] = [[]]
        self._steps: list[tuple[Kernel, int, int, int]] = []
        self._joint = JointStep(self._size)
        self._prepared = PreparedMemory(self._offsets)

    def add_all(self, steps: Sequence[AssignedStep]) -> None:
        """Append all steps in order, chains of stages as one."""
        chains, place = chains_of(steps, self._size, self._bound.threads), 0
        while place < len(steps):
            chain, count = chains.get(place), 0
            if chain is not None and self._add_chain(chain, steps[place:]):
                count = len(chain.stages)
            else:
                self._add(steps[place])
                count = 1
            place += count

    def _add_chain(self, chain: Chain, steps: Sequence[AssignedStep]) -> bool:
        """Append the first steps, the stages of a chain, as one native step; False where they have
        to be several."""
        members, bound = steps[: len(chain.stages)], self._bound
        templates = [self._template(assigned) for assigned in members]
        known = chain.with_kernels(templates)
        if known is None:
            return False
        self._close_joint()
        self._prepared.keep({})
        for allocation in (each for assigned in members for each in assigned.allocated):
            bound.offsets[allocation] = self._offsets.allocate(self._bytes(allocation))
        slots: list[list[tuple[int, int]]] = []
        values: list[list[Value]] = []
        for assigned, template, stage in zip(members, templates, known.stages, strict=True):
            forms = () if template is None else template.forms
            slots.append([self._slot(assigned.allocations[n], form) for n, form in forms])
            values.append([stage.step.operands[n] for n, _ in forms])
        kernel, words, relocations = known.words(self._isa, slots, values)
        self._append_joint(kernel, words, relocations, known.slots, known.stages)
        bound.time += known.time
        self._joint.freed += [each for assigned in members for each in assigned.freed]
        self._free_memory()
        return True

    def _append_joint(
        self,
        kernel: Kernel,
        words: Sequence[int],
        relocations: Iterable[tuple[int, int, int]],
        extent: int,
        parts: Sequence[Part | Stage],
    ) -> None:
        """Append the native step of several steps. Relocations are place, buffer, offset."""
        start, bound = len(self._argument_blocks), self._bound
        self._argument_blocks += words
        for place, buffer, offset in relocations:
            self._relocations[buffer].append((start + place, offset))
        time = sum(part.native.time for part in parts)
        least = MACHINE.streamed_piece if isinstance(parts[0], Part) else MACHINE.piece
        chunks = chunk_count(bound.threads, extent, time, least=least)
        self._steps.append((kernel, start, extent, chunks))
        bound.owners.append(parts[0].step)
        bound.estimates.append(time)
        bound.joint[parts[0].step] = tuple(parts)

    def _add(self, assigned: AssignedStep) -> None:
        """Append the native steps of a step, or a segment that Python runs."""
        offsets = self._bound.offsets
        template = None if assigned.view else self._template(assigned)
        part = self._joint.joined(assigned, template)
        if part is None and not assigned.view:
            self._close_joint()
            part = self._joint.joined(assigned, template)  # as the first of another step
        contents = prepared_contents(None if part else template, assigned)
        if not assigned.view:
            self._prepared.keep(contents)
        for allocation in assigned.allocated:
            offsets[allocation] = self._offsets.allocate(self._bytes(allocation))
        if part is not None and template is not None:
            slots = [self._slot(assigned.allocations[n], form) for n, form in template.forms]
            self._joint.parts.append(part)
            self._joint.slots.append(slots)
        elif not assigned.view:
            if template is None or template.steps is None:
                assert isinstance(assigned.step, Single)
                at = len(self._steps)
                self._bound.segments.append(Segment(at, at, assigned.step))
            else:
                self._instantiate(template, assigned, contents)
        self._joint.freed += assigned.freed
        if not self._joint.parts:
            self._free_memory()

    def _free_memory(self) -> None:
        """Free what no step reads any more: parts of a joint step overwrite nothing that another
        reads."""
        for allocation in self._joint.freed:
            self._offsets.free(self._bound.offsets[allocation], self._bytes(allocation))
        self._joint.freed.clear()

    def _close_joint(self) -> None:
        """Append the native step of the products that have joined."""
        joint, bound = self._joint, self._bound
        if joint.parts:
            leader = joint.parts[0]
            if len(joint.parts) == 1:
                self._append(leader.native, joint.slots[0], leader.step)
            else:
                kernel, words, relocations = joint.words(self._isa)
                extent = max(part.end for part in joint.parts)
                self._append_joint(kernel, words, relocations, extent, joint.parts)
            bound.time += math.inf
        self._free_memory()
        self._joint = JointStep(self._size)

    def _template(self, assigned: AssignedStep) -> StepTemplate | None:
        step = assigned.step
        if not isinstance(step, CallStep | RegionStep | LoopStep | CheckStep | ControlStep):
            return None
        found = self._templates.get(assigned.structure_key)
        if found is None:
            builder = TemplateBuilder(
                self._isa,
                self._bound.threads,
                self._bound.status.address,
                self._size,
                step.operands,
                assigned.packed,
                assigned.in_place,
                assigned.placed,
            )
            if isinstance(step, ControlStep):
                held = self._bind_loop(step, builder, self._bound.sizes)
                self._bound.held.append(held)
                return None if held is None else builder.template
            found = builder.build(step.call if isinstance(step, CallStep) else step)
            if assigned.structure_key is not None:
                self._templates[assigned.structure_key] = found
        return found

    def _instantiate(
        self, template: StepTemplate, assigned: AssignedStep, contents: Contents
    ) -> None:
        """Append the steps of a template with the arrays of this step; ``contents`` is what they
        prepare."""
        allocations = assigned.allocations
        slots = [self._slot(allocations[operand], form) for operand, form in template.forms]
        scratch, steps = self._prepared.allocate(template, contents)
        slots += [(ARENA, offset) for offset in reversed(scratch)]  # slots -1, -2, ...
        is_loop = isinstance(assigned.step, RegionStep)
        for native in steps:
            self._append(native, slots, assigned.step)
            self._bound.time += native.time if is_loop else math.inf
        self._prepared.free(template, contents, scratch)

    def _append(self, native: TemplateStep, slots: list[tuple[int, int]], owner: PlanStep) -> None:
        """Append a native step, whose slots are in these buffers."""
        kernel, block, addresses, extent, chunks, time, _ = native
        start = len(self._argument_blocks)
        self._argument_blocks += block
        for place, slot, displacement in addresses:
            buffer, offset = slots[slot]
            self._relocations[buffer].append((start + place, offset + displacement))
        self._steps.append((kernel, start, extent, chunks))
        self._bound.owners.append(owner)
        self._bound.estimates.append(time)

    def _slot(self, allocation: Allocation, form: Form | None) -> tuple[int, int]:
        """The buffer of an allocation, and its offset there."""
        if allocation.inside is not None:
            buffer, offset = self._slot(allocation.inside, form)
            size = allocation.values[0].type.dtype.numpy.itemsize
            return buffer, offset + size * self._size(allocation.place)
        if allocation.kind == "arena":
            return ARENA, self._bound.offsets[allocation]
        buffer, numbers = Buffer(allocation.kind, allocation.number, form), self._bound.buffers
        if buffer not in numbers:
            numbers[buffer] = len(numbers) + 1
            self._relocations.append([])
        return numbers[buffer], 0

    def _bytes(self, allocation: Allocation) -> int:
        type = allocation.values[0].type
        size = type.dtype.numpy.itemsize
        for extent in type.shape:
            size *= self._size(extent)
        return size

    def finish(self) -> None:
        """Build the step table and the relocations."""
        self._close_joint()
        bound = self._bound
        bound.arena_bytes = self._offsets.size
        bound.argument_blocks = np.array(self._argument_blocks, np.int64)
        bound.blocks_view = bound.argument_blocks.data
        bound.single_relocations = [r[0] if len(r) == 1 else None for r in self._relocations]
        base = bound.argument_blocks.ctypes.data
        bound.kernels = [kernel for kernel, *_ in self._steps]
        steps = [
            Step(kernel.address, base + 8 * start, extent, chunks)
            for kernel, start, extent, chunks in self._steps
        ]
        bound.table = StepTable(steps, bound.kernels)
        numbers = range(len(bound.buffers) + 1)
        places = np.array([p for n in numbers for p, _ in self._relocations[n]], np.int64)
        offsets = np.array([o for n in numbers for _, o in self._relocations[n]], np.int64)
        start = 0
        for number in numbers:
            end = start + len(self._relocations[number])
            bound.relocations.append((places[start:end], offsets[start:end]))
            start = end
        bound.addresses = np.zeros(len(bound.relocations), np.int64).data
        bound.segments = _merged_segments(bound.segments, len(self._steps))
        for buffer, number in bound.buffers.items():
            match buffer.kind:
                case "argument":
                    donated = self._assignment.program.params[buffer.number].donated
                    required = READY | WRITEABLE if donated else READY
                    bound.inputs.append((number, buffer.number, required))
                case "parameter":
                    bound.weights.append((number, buffer.number, buffer.form))
                case "result":
                    result = self._assignment.program.results[buffer.number]
                    kind = result.type.dtype.numpy
                    bound.outputs.append((number, buffer.number, self._shape(result), kind))
                case _:
                    pass
        bound.polls = any(isinstance(step, LoopStep | ControlStep) for step in bound.owners)
        if bound.polls:  # loaded now, it becomes part of the file of a compiled function
            poll_address()
        bound.pick = getter([number for _, number, _ in bound.weights])
        bound.outputs.sort(key=lambda output: output[1])
        places = self._result_places([number for _, number, *_ in bound.outputs])
        if places is not None and not any(segment.reference for segment in bound.segments):
            bound.results = getter(places)

    def _result_places(self, written: list[int]) -> list[int] | None:
        """The index of each result among the written outputs and the arguments; None where a result
        has to be copied or reshaped."""
        program, places = self._assignment.program, list[int]()
        for number, value in enumerate(program.results):
            allocation, shape = self._assignment.allocations[value], self._shape(value)
            if allocation.kind == "result" and allocation.number == number and number in written:
                places.append(written.index(number))
            elif allocation.donated and self._shape(program.params[allocation.number]) == shape:
                places.append(len(written) + allocation.number)
            else:
                return None
        return places if len(set(places)) == len(places) else None  # each is handed out once

    def _shape(self, value: Value) -> tuple[int, ...]:
        return tuple(map(self._size, value.type.shape))


def _merged_segments(references: Sequence[Segment], count: int) -> list[Segment]:
    """Native segments between the segments that Python runs."""
    segments: list[Segment] = []
    first = 0
    for reference in references:
        if reference.first > first:
            segments.append(Segment(first, reference.first))
        segments.append(reference)
        first = reference.first
    if count > first:
        segments.append(Segment(first, count))
    return segments


def bind(
    assignment: BufferAssignment,
    isa: Isa,
    sizes: Mapping[str, int],
    key: tuple[int, ...],
    bind_loop: BindLoop,
) -> Bound:
    """The plan of ``assignment`` at ``sizes``; the first number of ``key`` is the number of
    threads."""
    bound = Bound(key, dict(sizes), assignment)
    binder = _Binder(isa, bound, bind_loop)
    binder.add_all(assignment.steps)
    binder.finish()
    return bound

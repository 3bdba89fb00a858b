"""Plan reports: steps, copies, memory and parameter forms of a bound plan, for `explain` and
tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from gptrs.backends.base import (
    ArenaReport,
    ParameterReport,
    PlanReport,
    StepReport,
    TableReport,
)
from gptrs.backends.faer.bound import Bound
from gptrs.backends.faer.buffer_assignment import AssignedStep, BufferAssignment
from gptrs.backends.faer.calls.forms import Form, WinogradPanels
from gptrs.backends.faer.packed_weights import form_bytes
from gptrs.backends.faer.scalars import has_rule
from gptrs.backends.faer.slabs import SLAB_BYTES
from gptrs.backends.faer.steps import (
    CallStep,
    CheckStep,
    ControlStep,
    HostStep,
    KernelStep,
    LoopStep,
    PlanStep,
    RegionStep,
    UpdateStep,
)
from gptrs.backends.faer.weight_packing import READ_BYTES
from gptrs.backends.instruction_costs import value_bytes
from gptrs.backends.parameter_cache import form_name
from gptrs.ir.dims import size_at
from gptrs.ir.implementations.kernels import python_function
from gptrs.ir.program import DerivedParam, Param
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.compiler.parallel_loop import LoopSource
from gptrs.large_pages import LARGE


def _step_reports(bound: Bound) -> list[tuple[AssignedStep, StepReport]]:
    kernels: dict[PlanStep, dict[str, Kernel]] = {}
    for owner, kernel in zip(bound.owners, bound.kernels, strict=True):
        kernels.setdefault(owner, {})[kernel.name] = kernel
    estimates: dict[PlanStep, float] = {}
    for owner, estimate in zip(bound.owners, bound.estimates, strict=True):
        estimates[owner] = estimates.get(owner, 0.0) + estimate
    chunks = dict(zip(bound.owners, bound.table.words[:, 3].tolist(), strict=True))
    leaders: dict[PlanStep, PlanStep] = {}
    for leader, parts in bound.joint.items():
        for part in parts:
            leaders[part.step] = leader
            kernels[part.step] = {part.native.kernel.name: part.native.kernel}
            estimates[part.step], chunks[part.step] = part.native.time, chunks[leader]
    refused = {segment.reference for segment in bound.segments if segment.reference}
    found: list[tuple[AssignedStep, StepReport]] = []
    for assigned in bound.assignment.steps:
        step = assigned.step
        native = tuple(kernels.get(step, {}).values())
        told = _report(assigned, native, step in refused, bound.sizes, chunks.get(step, 1))
        members = step.region.members if isinstance(step, RegionStep) else (step.instruction,)
        told = replace(told, members=tuple(members), estimate=estimates.get(step))
        if leaders.get(step, step) is not step:
            told = replace(told, note="with the one before")
        found.append((assigned, told))
    return found


def table_report(bound: Bound) -> TableReport:
    """What the steps of the table of ``bound`` are."""
    told: dict[object, StepReport] = {
        assigned.step: report for assigned, report in _step_reports(bound)
    }
    for parts in bound.joint.values():
        told |= dict.fromkeys(
            (part.step for part in parts), _together([told[part.step] for part in parts])
        )
    return TableReport(
        bound.assignment.program,
        bound.sizes,
        bound.threads,
        tuple(told[owner] for owner in bound.owners),
        tuple(bound.table.words[:, 1].tolist()),
        told,
    )


def _together(parts: Sequence[StepReport]) -> StepReport:
    """The report of a native step that several steps have become."""
    return replace(
        parts[0],
        instructions=sum(part.instructions for part in parts),
        result=", ".join(part.result for part in parts),
        members=tuple(member for part in parts for member in part.members),
        estimate=sum(part.estimate or 0.0 for part in parts),
    )


def report(bound: Bound, isa: Isa) -> PlanReport:
    """The report of a plan at the sizes of ``bound``."""
    assignment = bound.assignment
    steps: list[StepReport] = []
    places: list[int] = []  # of each assigned step among the reported ones
    count, largest = bound.table.count, 0
    for assigned, told in _step_reports(bound):
        step = assigned.step
        places.append(len(steps))
        steps.append(told)
        if isinstance(step, ControlStep):
            native = step in bound.owners  # with the arenas of its regions in that of the plan
            count -= native
            for name, plan in step.plans.items():
                inner = plan.report(bound.sizes)
                count += inner.native_steps
                if not native:
                    largest = max(largest, inner.arena_bytes)  # one region runs at a time
                steps += [_inside(name, each) for each in inner.steps]
    sizes = (form.bytes for forms in assignment.packed.values() for form in forms)
    results = (prod(shape) * dtype.itemsize for _, _, shape, dtype in bound.outputs)
    return PlanReport(
        assignment.program.name,
        tuple(steps),
        count,
        bound.arena_bytes + largest,
        sum(sizes),
        sum(results),
        tuple(_parameters(assignment, bound, isa)),
        _loading(assignment, bound, isa),
        assignment.program,
        tuple(_arena(bound, places)),
    )


def _arena(bound: Bound, places: Sequence[int]) -> Iterator[ArenaReport]:
    """The arrays in the arena, in the order in which they are made."""
    for allocation, offset in bound.offsets.items():
        size = value_bytes(allocation.values[0], bound.sizes)
        first, last = places[allocation.first], places[allocation.last]
        yield ArenaReport(tuple(allocation.values), offset, size, first, last)


def _loading(assignment: BufferAssignment, bound: Bound, isa: Isa) -> int:
    """The peak of temporary memory while parameters are loaded: each thread makes one form at a
    time, and allocators may keep the memory of the largest ones. The last page of each slab is
    whole."""
    params = assignment.program.params
    weights = {(number, form) for _, number, form in bound.weights}
    sources = sorted((_made_of(params[number], form) for number, form in weights), reverse=True)
    packed = sum(form_bytes(form, isa) for _, form in weights if form is not None)
    return sum(sources[: bound.threads]) + -(-packed // SLAB_BYTES) * LARGE


def _made_of(param: Param, form: Form | None) -> int:
    """The temporary memory while a form of ``param`` is made, without the form itself."""
    size = _bytes(param)
    if isinstance(param, DerivedParam):
        return sum(map(_bytes, param.sources)) + (0 if form is None else size)
    if form is None:
        return 0
    if isinstance(form, WinogradPanels):
        return size
    return min(2 * size, 4 * READ_BYTES)  # rows as they are read, their panels, and exceptions


def _bytes(param: Param) -> int:
    return int(param.type.size) * param.type.dtype.numpy.itemsize


def _parameters(assignment: BufferAssignment, bound: Bound, isa: Isa) -> Iterator[ParameterReport]:
    """The forms of parameters that kernels, reference steps and regions read."""
    params = assignment.program.params
    forms: dict[tuple[int, Form | str | None], ParameterReport] = {}

    def add(number: int, form: Form | None) -> None:
        param = params[number]
        name = form_name(isinstance(param, DerivedParam), form is not None)
        size = _bytes(param) if form is None else form_bytes(form, isa)
        forms[number, form] = ParameterReport(param.name, number, name, size)

    for _, number, form in bound.weights:
        add(number, form)
    for segment in bound.segments:
        step = segment.reference
        if isinstance(step, ControlStep):
            for number, inner in _of_regions(assignment, bound, step):
                report = replace(inner, name=params[number].name, number=number)
                forms.setdefault((number, inner.form), report)
        elif step is not None:
            for allocation in [assignment.allocations[value] for value in step.inputs]:
                if allocation.kind == "parameter":
                    add(allocation.number, None)
    yield from forms.values()


def _of_regions(
    assignment: BufferAssignment, bound: Bound, step: ControlStep
) -> Iterator[tuple[int, ParameterReport]]:
    """The forms of this program's parameters in the regions of a step, by parameter number."""
    for plan in step.plans.values():
        for inner in plan.report(bound.sizes).parameters:
            allocation = assignment.allocations[step.given[inner.number]]
            if allocation.kind == "parameter":
                yield allocation.number, inner


def _inside(region: str, step: StepReport) -> StepReport:
    """A step of a region, for the flat list of steps."""
    note = f"in {region}{', ' if step.note else ''}{step.note}"
    return replace(step, note=note)


def _report(
    assigned: AssignedStep,
    kernels: tuple[Kernel, ...],
    refused: bool,
    sizes: Mapping[str, int],
    chunks: int,
) -> StepReport:
    step = assigned.step
    type = str(step.results[0].type)
    names = tuple(kernel.name for kernel in kernels)
    if isinstance(step, RegionStep):
        count = len(step.region.members)
        if assigned.view:
            return StepReport("view", "another shape", count, type)
        rendered = step.rendered
        copy = step.region.copies is not None
        note = "copies an argument, as results are new" if copy else ""
        if isinstance(step, UpdateStep) and step.base is not None:
            copy = not assigned.in_place
            note = f"copies {assigned.copy_reason}" if copy else "in place"
        module = partial(rendered.module, partial(size_at, sizes=sizes), chunks)
        type = ", ".join(str(result.type) for result in step.results)
        return StepReport("region", rendered.name, count, type, names, note, copy, module, kernels)
    if isinstance(step, ControlStep):
        types = ", ".join(str(result.type) for result in step.results)
        return StepReport("control", step.instruction.op.name, 1, types)
    if isinstance(step, LoopStep):
        types = ", ".join(str(result.type) for result in step.results)
        count, written = 1 + step.written.instructions, step.written
        module = LoopSource(written.name, written.source).text
        return StepReport("loop", written.name, count, types, names, module=module, native=kernels)
    if isinstance(step, KernelStep):
        name = python_function(step.kernel.function).__name__
        types = ", ".join(str(result.type) for result in step.results)
        return StepReport("kernel", step.instruction.op.name, 1, types, note=f"by {name}")
    if isinstance(step, HostStep):
        where = step.instruction.where
        return StepReport("host", step.instruction.op.name, 1, "", note=f"at {where}")
    if isinstance(step, CheckStep):
        where = step.instruction.where
        return StepReport("call", "check", 1, "", names, f"at {where}", native=kernels)
    if not isinstance(step, CallStep) or refused:
        op = step.instruction.op
        note = "no scalar rule" if op.elementwise and not has_rule(op) else ""
        return StepReport("reference", op.name, 1, type, note=note)
    copy = step.call.overwrites is not None and not assigned.in_place
    note = f"copies {assigned.copy_reason}" if copy else "in place" if assigned.in_place else ""
    if assigned.placed:
        note = "operands are made in place"
    target: str = step.instruction.attrs["target"]
    count = len(step.call.members)
    return StepReport("call", target, count, type, names, note, copy, native=kernels)

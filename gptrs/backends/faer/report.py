"""Plan reports: steps, copies, memory and parameter forms of a bound plan, for `explain` and
tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from gptrs.backends.base import ParameterReport, PlanReport, StepReport
from gptrs.backends.faer.binding import Bound
from gptrs.backends.faer.buffer_assignment import BufferAssignment, Placed
from gptrs.backends.faer.calls.base import Form, WinogradPanels
from gptrs.backends.faer.calls.gather_scatter import Update
from gptrs.backends.faer.packed_weights import form_bytes
from gptrs.backends.faer.schedule import CallStep, ControlStep, PlanStep, RegionStep
from gptrs.backends.faer.slabs import SLAB_BYTES
from gptrs.backends.faer.weight_packing import READ_BYTES
from gptrs.backends.parameter_cache import form_name
from gptrs.ir.program import DerivedParam, Param
from gptrs.kernels.compiler.isa import Isa
from gptrs.large_pages import LARGE


def report(bound: Bound, isa: Isa) -> PlanReport:
    """The report of a plan at the sizes of ``bound``."""
    storage = bound.storage
    kernels: dict[PlanStep, dict[str, None]] = {}
    for owner, name in zip(bound.owners, bound.names, strict=True):
        kernels.setdefault(owner, {})[name] = None
    refused = {segment.reference for segment in bound.segments if segment.reference}
    steps: list[StepReport] = []
    native, largest = bound.table.count, 0
    for placed in storage.steps:
        steps.append(_report(placed, tuple(kernels.get(placed.work, ())), placed.work in refused))
        if isinstance(placed.work, ControlStep):
            for name, plan in placed.work.plans.items():
                inner = plan.report(bound.sizes)
                native += inner.native_steps
                largest = max(largest, inner.arena_bytes)  # one region runs at a time
                steps += [_inside(name, step) for step in inner.steps]
    sizes = (form.bytes for forms in storage.packed.values() for form in forms)
    results = (prod(shape) * dtype.itemsize for _, _, shape, dtype in bound.outputs)
    return PlanReport(
        storage.program.name,
        tuple(steps),
        native,
        bound.arena_bytes + largest,
        sum(sizes),
        sum(results),
        tuple(_parameters(storage, bound, isa)),
        _loading(storage, bound, isa),
    )


def _loading(storage: BufferAssignment, bound: Bound, isa: Isa) -> int:
    """The peak of temporary memory while parameters are loaded: each thread makes one form at a
    time, and allocators may keep the memory of the largest ones. The last page of each slab is
    whole."""
    params = storage.program.params
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


def _parameters(storage: BufferAssignment, bound: Bound, isa: Isa) -> Iterator[ParameterReport]:
    """The forms of parameters that kernels, reference steps and regions read."""
    params = storage.program.params
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
            for number, inner in _of_regions(storage, bound, step):
                report = replace(inner, name=params[number].name, number=number)
                forms.setdefault((number, inner.form), report)
        elif step is not None:
            for home in [storage.homes[value] for value in step.inputs]:
                if home.kind == "parameter":
                    add(home.number, None)
    yield from forms.values()


def _of_regions(
    storage: BufferAssignment, bound: Bound, step: ControlStep
) -> Iterator[tuple[int, ParameterReport]]:
    """The forms of this program's parameters in the regions of a step, by parameter number."""
    for plan in step.plans.values():
        for inner in plan.report(bound.sizes).parameters:
            home = storage.homes[step.given[inner.number]]
            if home.kind == "parameter":
                yield home.number, inner


def _inside(region: str, step: StepReport) -> StepReport:
    """A step of a region, for the flat list of steps."""
    note = f"in {region}{', ' if step.note else ''}{step.note}"
    return replace(step, note=note)


def _report(placed: Placed, kernels: tuple[str, ...], refused: bool) -> StepReport:
    work = placed.work
    type = str(work.results[0].type)
    if isinstance(work, RegionStep):
        count = len(work.region.members)
        if placed.view:
            return StepReport("view", "another shape", count, type)
        rendered = work.rendered
        copy = work.region.copies is not None
        note = "copies an argument, as results are new" if copy else ""
        made = kernels, note, copy, rendered.standalone
        return StepReport("region", rendered.name, count, type, *made)
    if isinstance(work, ControlStep):
        types = ", ".join(str(result.type) for result in work.results)
        return StepReport("control", work.instruction.op.name, 1, types)
    if not isinstance(work, CallStep) or refused:
        return StepReport("reference", work.instruction.op.name, 1, type)
    copy = isinstance(work.call, Update) and not placed.in_place
    note = f"copies {placed.hindrance}" if copy else "in place" if placed.in_place else ""
    target: str = work.instruction.attrs["target"]
    return StepReport("call", target, len(work.call.members), type, kernels, note, copy)

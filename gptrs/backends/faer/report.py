"""What a plan does, step by step, for `explain` and for tests."""

from __future__ import annotations

from dataclasses import replace

from gptrs.backends.base import PlanReport, StepReport
from gptrs.backends.faer.binding import Bound
from gptrs.backends.faer.calls.rows import Update
from gptrs.backends.faer.storage import Placed, Storage
from gptrs.backends.faer.work import CallStep, ControlStep, RegionStep, Work

_COPIES = "copies the old array: read later, not donated, or a later step may fail"


def report(storage: Storage, bound: Bound) -> PlanReport:
    """What the steps of ``storage`` do at the sizes of ``bound``."""
    kernels: dict[Work, dict[str, None]] = {}
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
    return PlanReport(
        storage.program.name, tuple(steps), native, bound.arena_bytes + largest, sum(sizes)
    )


def _inside(region: str, step: StepReport) -> StepReport:
    """A step of a region in the list of all steps."""
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
    note = _COPIES if copy else "in place" if placed.in_place else ""
    target: str = work.instruction.attrs["target"]
    return StepReport("call", target, len(work.call.members), type, kernels, note, copy)

"""The plan of a view: steps, memory and kernels as JSON.

Steps have the numbers of their instructions and an estimate of their time. Where the schedule has
none, the time is that of the arithmetic or of the memory traffic, whichever is longer, on one
thread.
"""

from __future__ import annotations

from typing import Any

from gptrs.backends.base import PlanReport, StepReport
from gptrs.debug.profile.profile import Profile
from gptrs.debug.profile.steps import ProfiledStep
from gptrs.debug.view.tables import Tables

Json = dict[str, Any]
_FLOPS_PER_NS, _BYTES_PER_NS = 8.0, 8.0  # of code that is no tuned kernel


def plan_json(report: PlanReport, tables: Tables, *, listings: bool) -> Json:
    """The plan; with ``listings`` also the LLVM IR and assembly of its kernels, which are compiled
    once more for it."""
    numbers = {name: number for number, name in enumerate(report.native)}
    return {
        "steps": [_step(step, tables, numbers) for step in report.steps],
        "arena": [
            {
                "values": [n for v in each.values if (n := tables.number_of(v)) is not None],
                "offset": each.offset,
                "bytes": each.bytes,
                "first": each.first,
                "last": each.last,
            }
            for each in report.arena
        ],
        "arena_bytes": report.arena_bytes,
        "parameter_bytes": report.parameter_bytes,
        "result_bytes": report.result_bytes,
        "parameters": [
            {"name": form.name, "form": form.form, "bytes": form.bytes}
            for form in report.parameters
        ],
        "kernels": [
            {
                "name": kernel.name,
                "source": kernel.source,
                "llvm": kernel.llvm() if listings else "",
                "assembly": kernel.assembly() if listings else "",
            }
            for kernel in report.native.values()
        ],
    }


def measured_json(plan: Json, times: Profile) -> Json | None:
    """The mean times of the steps of ``plan`` in a profile, one after the other; None if it has
    none of them."""
    found: dict[tuple[str, str], list[ProfiledStep]] = {}
    for each in times.steps:
        found.setdefault((each.kernel, each.result), []).append(each)
    steps: list[Json] = []
    runs, start = 0, 0.0
    for number, step in enumerate(plan["steps"]):
        same = found.get((step["name"], step["result"]))
        if same:
            each = same.pop(0) if len(same) > 1 else same[0]
            ns = each.ns / each.calls
            steps.append({"step": number, "start": round(start, 1), "ns": round(ns, 1)})
            runs, start = max(runs, each.calls), start + ns
    return {"runs": runs, "steps": steps} if steps else None


def _step(step: StepReport, tables: Tables, kernels: dict[str, int]) -> Json:
    found = (tables.member(instruction) for instruction in step.members)
    members = sorted({number for number in found if number is not None})
    told = [tables.instructions[number] for number in members]
    arithmetic = sum(each["flops"] for each in told)
    estimate = step.estimate
    if estimate is None and step.kind != "view":
        moved = sum(each["read"] + each["written"] for each in told)
        estimate = max(arithmetic / _FLOPS_PER_NS, moved / _BYTES_PER_NS)
    return {
        "kind": step.kind,
        "name": step.name,
        "result": step.result,
        "note": step.note,
        "copy": step.copy,
        "members": members,
        "flops": arithmetic,
        "ns": round(estimate or 0.0, 1),
        "kernels": [kernels[name] for name in step.kernels if name in kernels],
        "source": step.source,
    }

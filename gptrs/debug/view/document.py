"""The document of a view: a lowering as plain data, which the page draws.

    name, reason, where, sizes   of the call
    files                        source files of the user's lines
    groups                       calls of modules and functions (`gptrs.debug.call_groups`)
    values, instructions         of all stages, by number (`tables`)
    stages                       traced, each pass that changed the program, scheduled: a program as
                                 numbers, milliseconds, rewrites by rule
    idle                         passes that changed nothing: name and milliseconds
    plan                         steps, arena, kernels (`plan`); null if there is none
    measured                     times of the steps of a run; null if none were measured
    error                        what ended the lowering, or the run; null if nothing did

A lowering that failed half way has the stages up to there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from gptrs import __version__
from gptrs.backends.base import PlanReport
from gptrs.debug.lowering import Lowering
from gptrs.debug.profile.profile import Profile
from gptrs.debug.view.plan import measured_json, plan_json
from gptrs.debug.view.tables import Tables
from gptrs.errors import PtirError

Json = dict[str, Any]
FORMAT = 1


def document(
    lowering: Lowering,
    sizes: Mapping[str, int],
    *,
    error: BaseException | None = None,
    listings: bool = True,
    times: Profile | None = None,
) -> Json:
    """The document of ``lowering`` at ``sizes`` of the symbols. ``error`` is what ended it,
    ``times`` is a profile of calls."""
    tables = Tables(lowering.function, sizes)
    stages = _stages(lowering, tables)
    report = None if lowering.planned is None else lowering.planned.report()
    plan: Json | None = None
    if report is not None:
        _add_scheduled(report, stages, tables)
        plan = plan_json(report, tables, listings=listings)
    idle = [ran for ran in lowering.passes if ran.after is ran.before]
    return {
        "format": FORMAT,
        "version": __version__,
        "name": lowering.function,
        "reason": lowering.reason,
        "where": tables.line(lowering.where),
        "sizes": dict(sizes),
        "error": None if error is None else _error(error, tables),
        "stages": stages,
        "idle": [{"name": ran.name, "ms": _ms(ran.seconds)} for ran in idle],
        "plan": plan,
        "measured": None if plan is None or times is None else measured_json(plan, times),
        "files": tables.files,
        "groups": tables.groups.entries,
        "values": tables.values,
        "instructions": tables.instructions,
    }


def _stages(lowering: Lowering, tables: Tables) -> list[Json]:
    stages: list[Json] = []
    if lowering.stopped is not None:
        stages.append({"name": "traced", **tables.program(lowering.stopped), "partial": True})
    if lowering.traced is not None:
        program, seconds = lowering.traced.program, lowering.traced.seconds
        stages.append({"name": "traced", **tables.program(program), "ms": _ms(seconds)})
    for ran in lowering.passes:
        if ran.after is not ran.before:
            rules = [{"rule": rule, "count": n} for rule, n in Counter(ran.rewrites).items()]
            program = tables.program(ran.after)
            stages.append({"name": ran.name, **program, "ms": _ms(ran.seconds), "rules": rules})
    return stages


def _add_scheduled(report: PlanReport, stages: list[Json], tables: Tables) -> None:
    """Add the program that the steps run as a stage, unless it is that of the last pass."""
    if report.scheduled is not None:
        program = tables.program(report.scheduled)
        if not stages or any(stages[-1][key] != value for key, value in program.items()):
            stages.append({"name": "expand", **program})


def _error(error: BaseException, tables: Tables) -> Json:
    where = error.where if isinstance(error, PtirError) else None
    return {
        "type": type(error).__name__,
        "text": str(error),
        "group": tables.groups.of(where),
        **tables.line(where),
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 3)

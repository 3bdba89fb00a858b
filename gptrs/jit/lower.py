"""From a function to the plan of its program: traced, rewritten by the passes, planned."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from gptrs import events, settings
from gptrs.backends.base import Backend
from gptrs.debug.fuel import rationed
from gptrs.debug.lowering import ProgramLowered, ProgramPlanned, ProgramTraced
from gptrs.debug.passes import Passes
from gptrs.ir.program import Program
from gptrs.ir.rewrite import Fuel
from gptrs.jit.arguments import Arguments, Options
from gptrs.jit.chooser import Chooser, chooser
from gptrs.jit.overrides import Overrides
from gptrs.jit.trace import Entry, trace
from gptrs.passes.base import Context, PassRan
from gptrs.passes.pipeline import lower


def prepare(
    function: Callable[..., Any],
    arguments: Arguments,
    name: str,
    backend: Backend,
    options: Options,
    overrides: Overrides,
) -> Entry:
    """Everything that calls like this one need, with an event after each of the three steps."""
    start = perf_counter()
    traced = trace(function, arguments, name)
    end = perf_counter()
    events.emit(ProgramTraced(traced.program, end - start))
    start = perf_counter()
    choose = chooser(overrides, backend, arguments.sizes, options.is_precise)
    program = lowered(traced.program, backend, options, choose)
    end = perf_counter()
    events.emit(ProgramLowered(program, end - start))
    start = perf_counter()
    plan = backend.plan(program, precise=options.is_precise)
    end = perf_counter()
    events.emit(ProgramPlanned(partial(plan.report, arguments.sizes), end - start))
    return Entry.of(traced, program, plan, choose.choices if choose else ())


def lowered(
    program: Program, backend: Backend, options: Options, choose: Chooser | None = None
) -> Program:
    """``program`` after all passes, as the settings and the options of its function say."""
    limit, log = settings.fuel(), settings.fuel_log()
    if limit < 0 and not log:
        return _lowered(program, backend, options, Fuel(), choose)
    with rationed(limit, log, program.name) as fuel:
        return _lowered(program, backend, options, fuel, choose)


def passes_over(
    program: Program, backend: Backend, options: Options, choose: Chooser | None = None
) -> Passes:
    """What all passes do to ``program``; the fuel of the process is not spent on that."""
    ran: list[PassRan] = []
    with events.listen(lambda event: ran.append(event) if isinstance(event, PassRan) else None):
        _lowered(program, backend, options, Fuel(), choose)
    return Passes(program, tuple(ran))


def _lowered(
    program: Program, backend: Backend, options: Options, fuel: Fuel, choose: Chooser | None
) -> Program:
    context = Context(backend, fuel, options.is_precise, choose=choose)
    return lower(program, context, check=settings.verify())

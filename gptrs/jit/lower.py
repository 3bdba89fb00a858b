"""Lowering pipeline of one function: trace, passes, plan, with an event after each step.

`prepare` runs on a miss of the program cache and returns the cache entry: `record`, then `planned`,
which `gptrs.jit.ahead_of_time` runs by themselves. `passes_over` reruns the passes for
``fn.passes``, without spending the process's fuel (`gptrs.debug.fuel`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from time import perf_counter
from types import FunctionType

from gptrs import events, settings
from gptrs.backends.base import Backend
from gptrs.debug.fuel import limited_fuel
from gptrs.debug.lowering import ProgramLowered, ProgramPlanned, ProgramTraced
from gptrs.debug.passes import Passes
from gptrs.ir.call_stack import recorded_calls
from gptrs.ir.program import Program
from gptrs.ir.promotion import strictness
from gptrs.ir.rewrite import Fuel
from gptrs.jit.arguments import Arguments
from gptrs.jit.chooser import Chooser, chooser
from gptrs.jit.options import Options
from gptrs.jit.overrides import Overrides
from gptrs.jit.second_trace import SecondTrace
from gptrs.jit.trace import Entry, Traced, trace
from gptrs.passes.base import Context, PassRan
from gptrs.passes.pipeline import lower


def prepare(
    function: FunctionType,
    arguments: Arguments,
    name: str,
    backend: Backend,
    options: Options,
    overrides: Overrides,
) -> Entry:
    """Trace, lower and plan: the cache entry for calls with this key."""
    traced = record(function, arguments, name, options)
    return planned(traced, arguments.sizes, backend, options, overrides)


def record(function: FunctionType, arguments: Arguments, name: str, options: Options) -> Traced:
    """Trace; twice with GPTRS_DEBUG, for what differs."""
    second = SecondTrace(function, arguments, name, options) if settings.debug() else None
    start = perf_counter()
    with strictness(options.strict_dtypes), recorded_calls():
        traced = trace(function, arguments, name)
    end = perf_counter()
    events.emit(ProgramTraced(traced.program, end - start))
    if second is not None:
        second.compare(traced)
    return traced


def planned(
    traced: Traced,
    sizes: Mapping[str, int],
    backend: Backend,
    options: Options,
    overrides: Overrides,
) -> Entry:
    """Lower and plan a traced function; ``sizes`` are those of a call."""
    start = perf_counter()
    choose = chooser(overrides, backend, sizes, options.is_precise)
    program = lowered(traced.program, backend, options, choose)
    end = perf_counter()
    events.emit(ProgramLowered(program, end - start))
    start = perf_counter()
    plan = backend.plan(program, precise=options.is_precise)
    end = perf_counter()
    events.emit(ProgramPlanned(partial(plan.report, sizes), end - start))
    return Entry.of(traced, program, plan, choose.choices if choose else ())


def lowered(
    program: Program, backend: Backend, options: Options, choose: Chooser | None = None
) -> Program:
    """``program`` after all passes, by the settings and the options of its function."""
    limit, log = settings.fuel(), settings.fuel_log()
    if limit < 0 and not log:
        return _lowered(program, backend, options, Fuel(), choose)
    with limited_fuel(limit, log, program.name) as fuel:
        return _lowered(program, backend, options, fuel, choose)


def passes_over(
    program: Program, backend: Backend, options: Options, choose: Chooser | None = None
) -> Passes:
    """A record of all passes over ``program``; no fuel of the process is spent."""
    ran: list[PassRan] = []
    with events.listen(lambda event: ran.append(event) if isinstance(event, PassRan) else None):
        _lowered(program, backend, options, Fuel(), choose)
    return Passes(program, tuple(ran))


def _lowered(
    program: Program, backend: Backend, options: Options, fuel: Fuel, choose: Chooser | None
) -> Program:
    context = Context(backend, fuel, options.is_precise, choose=choose)
    return lower(program, context, check=settings.verify())

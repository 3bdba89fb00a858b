"""One recording: timestamps of the driver, events of traces and plans, as spans and totals."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from threading import get_ident
from typing import NamedTuple

from gptrs import events
from gptrs.backends.base import PlanBound
from gptrs.debug.lowering import ProgramPlanned, ProgramTraced
from gptrs.debug.profile.profile import Profile
from gptrs.debug.profile.steps import ProfiledStep, Span, TableSteps
from gptrs.errors import ArgumentError
from gptrs.kernels.compiler.loaded_object import KernelReady
from gptrs.kernels.driver import live_tables
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.recording import Chunks, Recording, Run
from gptrs.kernels.driver.threads import thread_count
from gptrs.locks import new_lock
from gptrs.passes.base import PassRan


class _Told(NamedTuple):
    """A step that Python ran."""

    table: int
    step: object
    thread: int
    start: int
    end: int


class _Outer(NamedTuple):
    """A step that ran others: a loop, or one that Python ran."""

    kind: str  # of its span
    step: ProfiledStep
    thread: int
    start: float
    end: float


_running: list[int] = []  # the process that a profile runs in
_lock = new_lock()


@contextmanager
def profile() -> Generator[Profile]:
    """Profile the block: every run of a compiled function in it, on any thread.

        with gptrs.profile() as p:
            model.generate("Once upon a time")
        print(p)

    The `Profile` is complete when the block ends. Raises `ArgumentError` where a profile is running
    already.

    A child that is forked inside of the block records nothing of its own, and runs as fast as
    without a profile; the parent's recording goes on. If the child leaves the block too, its copy
    of the `Profile` has what the parent had recorded until the fork. It may begin another one.
    """
    me = os.getpid()
    with _lock:
        if me in _running:
            raise ArgumentError("a profile is running already", fix="end it first: one at a time")
        _running[:] = [me]
    try:
        recorder = _Recorder()
        found = Profile()
        with recorder.recorded():
            try:
                yield found
            finally:
                recorder.finish(found)
    finally:
        _running.clear()


class _Recorder:
    def __init__(self) -> None:
        self._driver = current_driver()
        self._recording = Recording(self._driver.ticks)
        self._told: list[_Told] = []
        self._spans: list[Span] = []
        self._start = time.perf_counter_ns()

    @contextmanager
    def recorded(self) -> Generator[None]:
        with ExitStack() as stack:
            stack.enter_context(live_tables.kept())
            stack.enter_context(events.listen(self._hear))
            live_tables.listeners.append(self._tell)
            stack.callback(live_tables.listeners.remove, self._tell)
            stack.callback(self._recording.close)
            self._driver.record(self._recording.address)
            stack.callback(self._driver.record, 0)
            yield

    def _tell(self, table: int, step: object, thread: int, start: int, end: int) -> None:
        self._told.append(_Told(table, step, thread, start, end))

    def _hear(self, event: object) -> None:
        if isinstance(event, ProgramTraced):
            self._add("trace", event.program.name, event.seconds)
        elif isinstance(event, PassRan):
            self._add("pass", event.name, event.seconds)
        elif isinstance(event, ProgramPlanned):
            self._add("plan", "plan", event.seconds)
        elif isinstance(event, KernelReady):
            kind = "load" if event.cached else "compile"
            self._add(kind, ", ".join(event.names[:3]), event.seconds)
        elif isinstance(event, PlanBound):
            self._add("bind", event.program, event.seconds)

    def _add(self, kind: str, name: str, seconds: float) -> None:
        end = time.perf_counter_ns()
        self._spans.append(Span(kind, name, get_ident(), end - seconds * 1e9, end))

    def finish(self, found: Profile) -> None:
        """Turn the recording into ``found``."""
        end = time.perf_counter_ns()
        self._driver.record(0)
        records = list(self._recording.records())
        runs = [each for each in records if isinstance(each, Run)]
        tables = _tables({run.table for run in runs} | {told.table for told in self._told})
        spans, outer = list(self._spans), [*_run_by_python(self._told, tables)]
        for run in runs:
            spans += _spans_of(run, tables.get(run.table), outer)
        spans += [*_outer_spans(outer, spans)]
        places = {
            address: step
            for table in tables.values()
            for address, step in zip(table.arguments, table.native, strict=True)
        }
        for each in records:
            if isinstance(each, Chunks):
                spans += _chunk_span(each, places.get(each.arguments))
        found.fill(
            steps=[step for table in tables.values() for step in table.steps if step.calls],
            spans=sorted(spans, key=lambda span: span.start),
            start=self._start,
            end=end,
            lost=self._recording.lost,
            threads=max((run.threads for run in runs), default=thread_count() if self._told else 0),
        )


def _tables(addresses: Iterable[int]) -> dict[int, TableSteps]:
    """The steps of each table; the bindings of one program at the same sizes have them in
    common."""
    found: dict[int, TableSteps] = {}
    for address in addresses:
        report = live_tables.report_of(address)
        if report is not None:
            found[address] = TableSteps(report)
    return found


def _spans_of(run: Run, table: TableSteps | None, outer: list[_Outer]) -> Generator[Span]:
    """The run of a table and its steps; native steps of one step of the plan are one span. Loops
    are added to ``outer``."""
    ns = run.ns.tolist()
    ended = next((place for place, tick in enumerate(ns) if not tick), len(ns)) - 1
    if ended < 0:
        return
    if table is None:  # a table of its own, that is freed at once
        yield Span("pack", "weights into panels", run.thread, ns[0], ns[ended])
        return
    yield Span("run", table.program, run.thread, ns[0], ns[ended])
    place = 0
    while place < ended:
        step, begin = table.native[run.first + place], ns[place]
        while place < ended and table.native[run.first + place] is step:
            place += 1
        if step.kind == "control":
            outer.append(_Outer("step", step, run.thread, begin, ns[place]))
            continue
        step.calls += 1
        step.ns += ns[place] - begin
        yield Span("step", step.kernel, run.thread, begin, ns[place], step)


def _run_by_python(told: Iterable[_Told], tables: dict[int, TableSteps]) -> Generator[_Outer]:
    """The steps that Python ran."""
    for each in told:
        table = tables.get(each.table)
        step = None if table is None else table.of(each.step)
        if step is not None:
            yield _Outer("python", step, each.thread, each.start, each.end)


def _outer_spans(outer: Iterable[_Outer], native: list[Span]) -> Generator[Span]:
    """Steps that ran others, without the time of those."""
    inner: dict[int, list[Span]] = {}
    for span in native:
        if span.kind == "step":
            inner.setdefault(span.thread, []).append(span)
    taken: list[_Outer] = []
    for each in sorted(outer, key=lambda t: t.end - t.start):  # inner ones first
        step = each.step
        within = [s for s in inner.get(each.thread, ()) if each.start <= s.start < each.end]
        nested = [t for t in taken if t.thread == each.thread and each.start <= t.start < each.end]
        free = [s for s in within if not any(t.start <= s.start < t.end for t in nested)]
        direct = [t for t in nested if not any(_contains(u, t) for u in nested)]
        step.calls += 1
        step.ns += each.end - each.start
        step.ns -= sum(s.end - s.start for s in free) + sum(t.end - t.start for t in direct)
        taken.append(each)
        yield Span(each.kind, step.kernel, each.thread, each.start, each.end, step)


def _contains(outer: _Outer, inner: _Outer) -> bool:
    return outer is not inner and outer.start <= inner.start and inner.end <= outer.end


def _chunk_span(chunks: Chunks, step: ProfiledStep | None) -> Generator[Span]:
    if step is None or not chunks.chunks:
        return
    step.shares[chunks.worker] = step.shares.get(chunks.worker, 0.0) + chunks.end - chunks.start
    if chunks.worker:  # those of the calling thread are the step itself
        yield Span("chunks", step.kernel, chunks.thread, chunks.start, chunks.end, step)

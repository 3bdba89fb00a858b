"""`FaerPlan`: a program as native steps, bound to sizes on their first use, and run without Python
ops.

The constructor schedules the program, assigns buffers and compiles all kernels. `run` takes a
binding of the call's sizes from a cache of recently used ones, an arena, and calls
`gptrs.backends.faer.run.run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np

from gptrs import events
from gptrs.backends.base import Launch, Plan, PlanBound, PlanReport
from gptrs.backends.faer.arena import ArenaPool
from gptrs.backends.faer.binding import bind
from gptrs.backends.faer.bound import Bound, Buffer
from gptrs.backends.faer.buffer_assignment import BufferAssignment
from gptrs.backends.faer.calls.base import Binder
from gptrs.backends.faer.calls.forms import Form
from gptrs.backends.faer.expansions import expanded
from gptrs.backends.faer.launch import launch_of
from gptrs.backends.faer.run import load, run
from gptrs.backends.faer.schedule import schedule_of
from gptrs.backends.faer.steps import (
    CallStep,
    CheckStep,
    ControlStep,
    Iterations,
    LoopStep,
    PlanStep,
    RegionStep,
)
from gptrs.backends.parameter_cache import ParameterCache
from gptrs.backends.reference import ReferencePlan
from gptrs.backends.weight_residency import Lease
from gptrs.ir.dims import Dim, size_at, surely_greater
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Fails, Instruction, Program, Value
from gptrs.ir.sizes import failing_at_sizes, fails_at
from gptrs.ir.types import Array
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.loaded_object import together
from gptrs.kernels.driver import live_tables
from gptrs.kernels.driver.threads import thread_count
from gptrs.locks import cached_property, late_import, new_lock

_KEPT = 64  # bindings of a plan; the only arrays they hold are parameters


class _SizesError(Exception):
    """A fused instruction fails at these sizes, or an array would have a negative extent."""


class FaerPlan(Plan):
    """The compiled steps of a program, and its bindings by sizes.

    A region has the ``symbols`` of the enclosing program, which may occur in its body alone. A
    ``precise`` plan fuses instructions that give NumPy's bits, and leaves the rest to NumPy.
    """

    def __init__(
        self,
        program: Program,
        parameters: ParameterCache,
        arenas: ArenaPool,
        symbols: Iterable[str] = (),
        *,
        precise: bool = False,
    ) -> None:
        self._meaning = program
        self.program = program = expanded(program, precise=precise)
        self.isa = isa.current()
        self._symbols = sorted({*program.symbols(), *symbols})
        self._parameters, self.arenas = parameters, arenas
        self._precise = precise
        with together():
            self._schedule = schedule_of(program, self.isa, self._plan_region, precise=precise)
            self._assignment = BufferAssignment(program, self._schedule)
            for assigned in self._assignment.steps:
                if not assigned.view:
                    self._prepare(assigned.step)
        self._preserving_assignment: BufferAssignment | None = None
        self._lock = new_lock()
        self._spare: list[Bound] = []  # bindings of the calls that ended last
        self._bound: dict[tuple[int, ...], list[Bound]] = {}  # the others, by key
        self._constants: dict[Buffer, Array] = {}
        results = (result for instruction in program.body for result in instruction.results)
        dims = {n.terms: n for r in results for n in r.type.shape if isinstance(n, Dim)}
        self._unsure = failing_at_sizes(program)
        kept = set(program.body)
        gone = (i for i in self._meaning.body if i not in kept and i.fails is Fails.AT_SIZES)
        self._unsure_in_loops = [*gone, *_failing_in_loops(self._schedule)]
        self._may_be_negative = [n for n in dims.values() if not surely_greater(n, -1)]

    def _plan_region(self, region: Program) -> FaerPlan:
        given = self._parameters, self.arenas, self._symbols
        return FaerPlan(region, *given, precise=self._precise)

    def key(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The key of bindings for a call."""
        return (thread_count(), *[sizes[symbol] for symbol in self._symbols])

    @property
    def packed(self) -> Mapping[Value, Set[Form]]:
        return self._assignment.packed

    def _assignment_at(self, sizes: Mapping[str, int]) -> BufferAssignment:
        """The buffer assignment for ``sizes``: where a step may fail at them, one that keeps
        donated arguments intact."""
        if not any(fails_at(instruction, sizes) for instruction in self._unsure):
            return self._assignment
        if self._preserving_assignment is None:
            self._preserving_assignment = BufferAssignment(
                self.program, self._schedule, preserve_arguments=True
            )
        return self._preserving_assignment

    def _prepare(self, step: PlanStep) -> None:
        """Compile the kernels of a step."""
        if isinstance(step, RegionStep | LoopStep | CheckStep):
            step.kernel  # noqa: B018 - compiled with the others, and not in the first call
        elif isinstance(step, CallStep):
            step.call.compile(self.isa)

    def run(
        self, arguments: Sequence[Array | Parameter], sizes: Mapping[str, int]
    ) -> tuple[Array, ...]:
        key = (thread_count(), *[sizes[symbol] for symbol in self._symbols])
        try:
            bound = self.take(key, sizes)
        except _SizesError:  # the op that they do not fit has an error for that, if it runs
            return ReferencePlan(self._meaning).run(arguments, sizes)
        arena = self.arenas.acquire() if bound.arena_bytes else None
        try:
            return run(self, bound, arena, arguments)
        finally:
            if arena is not None:
                self.arenas.release(arena)
            bound.lease.running = 0
            self._spare.append(bound)

    def load(self, arguments: Sequence[Array | Parameter], sizes: Mapping[str, int]) -> None:
        with suppress(_SizesError):
            bound = self.take(self.key(sizes), sizes)
            try:
                if bound.weights:
                    load(bound, self, arguments)
            finally:
                bound.lease.running = 0
                self._spare.append(bound)

    def launch(self, sizes: Mapping[str, int]) -> Launch | None:
        key = self.key(sizes)
        bound = next((b for b in reversed(self._spare) if b.key == key), None)
        return None if bound is None else launch_of(bound, self._spare, self.arenas)

    @cached_property
    def _loops(self) -> Any:
        return late_import("gptrs.backends.faer.repeat").KeptLoops()

    def repeat(self, iterations: Iterations, sizes: Mapping[str, int]) -> tuple[Array, ...] | None:
        with suppress(_SizesError):  # for whose message each iteration is run by itself
            return self._loops.run(self, iterations, sizes)
        return None

    def put_back(self, bound: Bound) -> None:
        """Let other calls have a binding."""
        self._spare.append(bound)

    def take(self, key: tuple[int, ...], sizes: Mapping[str, int]) -> Bound:
        """A free binding: usually that of the last call. It is for the caller alone."""
        try:
            bound = self._spare.pop()
            if bound.key == key:
                return bound
            self._spare.append(bound)
        except IndexError:  # there is none, or another thread was faster
            pass
        with self._lock:
            self._put_away()
            free = self._bound.pop(key, None)
            if free is not None:
                self._bound[key] = free  # now the most recently used
                if free:
                    return free.pop()
        return self.bind(sizes, key)

    def _put_away(self) -> None:
        """Move the bindings of the last calls to the dictionary by key; the least recently used are
        dropped."""
        while self._spare:
            with suppress(IndexError):
                bound = self._spare.pop()
                self._bound.setdefault(bound.key, []).append(bound)
        while len(self._bound) > _KEPT:
            del self._bound[next(iter(self._bound))]

    def bind(self, sizes: Mapping[str, int], key: tuple[int, ...]) -> Bound:
        """A new binding to ``sizes``; the first number of its key is the number of threads."""
        if any(size_at(extent, sizes) < 0 for extent in self._may_be_negative):
            raise _SizesError
        if any(fails_at(instruction, sizes) for instruction in self._unsure_in_loops):
            raise _SizesError
        start = perf_counter() if events.listening() else None
        bound = bind(self._assignment_at(sizes), self.isa, sizes, key, _bind_loop)
        if start is not None:
            events.emit(PlanBound(self.program.name, perf_counter() - start))
        live_tables.add(bound.table, bound, _table_report)
        for buffer, number in bound.buffers.items():
            if buffer.kind == "constant":
                bound.relocate(number, self._constant(buffer).ctypes.data)
        return bound

    def bind_native(self, sizes: Mapping[str, int], threads: int) -> Bound | None:
        """A binding for a step of another plan; None where Python has a part in this one."""
        with suppress(_SizesError):  # for whose message each iteration is run by itself
            bound = self.bind(sizes, (threads, *self.key(sizes)[1:]))
            if not any(segment.reference for segment in bound.segments):
                return bound
        return None

    def _constant(self, buffer: Buffer) -> Array:
        found = self._constants.get(buffer)
        if found is None:
            found = np.ascontiguousarray(self.program.body[buffer.number].attrs["value"])
            if buffer.form is not None:
                found = _packed_weights().pack(found, buffer.form, self.isa)
            self._constants[buffer] = found
        return found

    def report(self, sizes: Mapping[str, int]) -> PlanReport:
        key = self.key(sizes)
        try:
            return _reports().report(self.bind(sizes, key), self.isa)
        except _SizesError:
            return ReferencePlan(self._meaning).report(sizes)

    def parameter(self, lease: Lease, parameter: Any, form: Form | None) -> Array:
        """The elements of a parameter in the given form."""
        if isinstance(parameter, Parameter):
            return _packed_weights().form_of(self._parameters, lease, parameter, form, self.isa)
        # A region's, which is computed.
        if form is None:
            return parameter
        return _packed_weights().pack(parameter, form, self.isa, keep=False)


# Imported where a program has weights or loops, or somebody asks: a first call takes 50 ms.


def _packed_weights() -> Any:
    return late_import("gptrs.backends.faer.packed_weights")


def _reports() -> Any:
    return late_import("gptrs.backends.faer.report")


def _bind_loop(step: ControlStep, b: Binder, sizes: Mapping[str, int]) -> Any:
    return late_import("gptrs.backends.faer.native_loops").bind_loop(step, b, sizes)


def _table_report(bound: Bound) -> Any:
    return _reports().table_report(bound)


def _failing_in_loops(schedule: Sequence[PlanStep]) -> Iterator[Instruction]:
    """The instructions in fused loops whose failure depends on the sizes: no kernel reports it."""
    for step in schedule:
        if isinstance(step, RegionStep):
            yield from (m for m in step.region.members if m.fails is Fails.AT_SIZES)
        elif isinstance(step, LoopStep):
            for region in step.instruction.regions():
                yield from failing_at_sizes(region)

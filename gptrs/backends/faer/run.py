"""One call of a bound plan: relocate addresses, load parameters, run the step table.

`run` is the fast path of nearly all calls, where microseconds count for small programs. Calls with
reference steps, control flow, copied results or errors continue in `Call`.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from math import prod
from threading import current_thread, get_ident, main_thread
from time import perf_counter_ns
from typing import Any, Protocol, cast

import numpy as np

from gptrs import events
from gptrs.backends.faer.arena import Arena
from gptrs.backends.faer.bound import ARENA, READY, Bound
from gptrs.backends.faer.buffer_assignment import Allocation
from gptrs.backends.faer.calls.forms import Form
from gptrs.backends.faer.control import drive
from gptrs.backends.faer.result_memory import empty
from gptrs.backends.faer.steps import (
    CallStep,
    ControlStep,
    KernelStep,
    LoopStep,
    RegionStep,
    Single,
)
from gptrs.backends.faer.user_kernels import run_kernel
from gptrs.backends.reference import ReferencePlan
from gptrs.backends.weight_residency import Lease, next_use
from gptrs.errors import CheckError, ElementError
from gptrs.identity_key import identities
from gptrs.ir.dims import size_at
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Param, Program, Value
from gptrs.ir.types import Array
from gptrs.kernels.checks import CHECKED
from gptrs.kernels.driver import live_tables
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.polling import poll_address, raise_kept
from gptrs.kernels.driver.step_table import EXCEPTION, INTERRUPTED, POLL, Failure
from gptrs.kernels.driver.threads import spread

Arguments = Sequence[Array | Parameter]

_WORTH_THREADS = 2**22  # elements to load, some milliseconds for one thread
_NOTHING = np.empty(0, np.uint8)  # the memory of values without elements
_at = ctypes.addressof
_buffer_of: Any = ctypes.c_char.from_buffer


class Weights(Protocol):
    """The source of parameters in packed forms (`FaerPlan`)."""

    def parameter(self, lease: Lease, parameter: Any, form: Form | None) -> Array: ...


def address_of(array: Array) -> int:
    """The address of the elements of an array in C order."""
    try:  # a third of the time, for writeable arrays
        return _at(_buffer_of(array))
    except (TypeError, ValueError):
        return array.__array_interface__["data"][0]


def run(
    weights: Weights, bound: Bound, arena: Arena | None, arguments: Arguments
) -> tuple[Array, ...]:
    """The results for ``arguments``; intermediate values, if there are any, are in ``arena``."""
    now = bound.addresses
    given: Arguments = arguments
    if arena is not None:
        arena.reserve(bound.arena_bytes)
        if now[ARENA] != arena.address:
            bound.relocate(ARENA, arena.address)
    for buffer, number, wanted in bound.inputs:
        array: Any = arguments[number]
        if array.flags.num & wanted != wanted:
            array = np.array(array, order="C")
            given = [*given[:number], array, *given[number + 1 :]]
        try:  # as `address_of`
            address = _at(_buffer_of(array))
        except (TypeError, ValueError):
            address = address_of(array)
        if now[buffer] != address:
            bound.relocate(buffer, address)
    made: list[Array] = []
    for buffer, _, shape, dtype in bound.outputs:
        made.append(array := empty(shape, dtype))
        try:
            address = _at(_buffer_of(array))
        except (TypeError, ValueError):
            address = address_of(array)
        if now[buffer] != address:
            bound.relocate(buffer, address)
    if bound.weights:
        load(bound, weights, arguments)
    if bound.polls:
        set_poll(bound)
    if bound.results is not None:
        failure = current_driver().run(bound.table, bound.status, threads=bound.threads)
        if failure is None:
            return bound.results((*made, *given))
        Call(bound, arena, given, made).fail(failure)
    return Call(bound, arena, given, made).results()


def set_poll(bound: Bound) -> None:
    """Have kernels that may run for long look for signals, where Python handles them."""
    bound.status.words[POLL] = poll_address() if current_thread() is main_thread() else 0


def load(bound: Bound, weights: Weights, arguments: Arguments) -> None:
    """Load the parameters and relocate their buffers. In most calls they are the same as in the
    last one."""
    lease = bound.lease
    lease.running = get_ident()
    lease.used = next_use()
    given = identities(bound.pick(arguments))
    if given == lease.given:
        return
    lease.end()
    loaded: dict[int, Array] = {}
    # Large ones first, so that threads end at the same time.
    sizes = [int(arguments[number].size) for _, number, _ in bound.weights]
    order = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    total = sum(sizes)
    with events.working("loading weights", total) as work:

        def load(place: int) -> None:
            _, number, form = bound.weights[place]
            loaded[place] = weights.parameter(lease, arguments[number], form)
            work.done += sizes[place]

        spread(load, order, bound.threads if total > _WORTH_THREADS else 1)
    held: list[object] = []
    for place, (buffer, number, _) in enumerate(bound.weights):
        array = loaded[place]
        if array.flags.num & READY != READY:
            array = np.array(array, order="C")
        bound.relocate(buffer, array.ctypes.data)
        # A model without references is freed, and the ids of its parameters may be reused.
        held += [array, weakref.ref(arguments[number], lease.end)]
    lease.given, lease.held = given, held


class Call:
    """The slow path of a call: reference steps, control flow, copied results, errors."""

    def __init__(
        self, bound: Bound, arena: Arena | None, given: Arguments, made: Sequence[Array]
    ) -> None:
        self._bound, self._arena, self._given = bound, arena, given
        self._assignment = bound.assignment
        numbers = [number for _, number, *_ in bound.outputs]
        self._made = dict(zip(numbers, made, strict=True))

    def results(self) -> tuple[Array, ...]:
        """Run the steps. Raises `ElementError` where an element has no result."""
        bound, driver = self._bound, current_driver()
        table, status, threads = bound.table, bound.status, bound.threads
        for first, last, reference in bound.segments:
            if reference is not None:
                if live_tables.listeners:
                    self._refer_and_tell(reference)
                else:
                    self._refer(reference)
                continue
            failure = driver.run(table, status, threads=threads, first=first, last=last)
            if failure is not None:
                self.fail(failure)
        returned: set[Allocation] = set()
        return tuple([self._result(value, returned) for value in self._assignment.program.results])

    def fail(self, failure: Failure) -> None:
        """Raise the error of a kernel that failed: the reference evaluates the step again for its
        message. Or the exception of a signal handler that ended it."""
        if failure.code == INTERRUPTED:
            raise_kept(self._bound.status.words[EXCEPTION:].tolist())
        step = self._bound.owners[failure.step]
        assert isinstance(step, Single | RegionStep)
        if isinstance(step, ControlStep):
            drive(step, self._argument, self._bound.sizes)
        else:
            self._evaluate(step)
        if isinstance(step, LoopStep) and failure.code >= CHECKED:  # NumPy rounds otherwise
            check = step.written.checks[failure.code - CHECKED]
            error = CheckError(f"{check.attrs['text']} (the values are not known any more)")
            error.where = check.where
            raise error
        raise ElementError(f"a kernel failed with code {failure.code} at element {failure.index}")

    def _refer_and_tell(self, step: Single) -> None:
        start = perf_counter_ns()
        try:
            self._refer(step)
        finally:
            live_tables.tell(self._bound.table, step, start, perf_counter_ns())

    def _refer(self, step: Single) -> None:
        """Run an instruction by its NumPy meaning or a user's kernel, or a control step by the
        plans of its regions."""
        if isinstance(step, ControlStep):
            for value, array in zip(
                step.results, drive(step, self._argument, self._bound.sizes), strict=True
            ):
                self._put(value, array)
            return
        if isinstance(step, KernelStep):
            bound = self._bound
            run_kernel(step.instruction, step.kernel, self._look, bound.sizes, bound.threads)
            return
        for value, array in zip(step.results, self._evaluate(step), strict=True):
            np.copyto(self._look(value), array)

    def _put(self, value: Value, array: Array) -> None:
        """Store ``array``, which has no other reference, as the elements of ``value``."""
        allocation = self._assignment.allocations[value]
        if allocation.kind == "result" and allocation.number not in self._made:
            self._made[allocation.number] = array
        else:
            np.copyto(self._look(value), array)

    def _argument(self, value: Value) -> Array | Parameter:
        """An operand of a region: a parameter as it was passed, anything else as an array."""
        allocation, params = self._assignment.allocations[value], self._assignment.program.params
        if allocation.kind == "parameter" and value is params[allocation.number]:
            return self._given[allocation.number]
        return self._look(value)

    def _evaluate(self, step: Single | RegionStep) -> tuple[Array, ...]:
        instruction, inputs = step.instruction, step.inputs
        params = cast("tuple[Param, ...]", inputs)
        if isinstance(step, CallStep):
            program: Program = instruction.attrs["definition"]
        elif isinstance(step, RegionStep):
            inside = [i for i in self._assignment.program.body if i in step.region.members]
            program = Program("step", params, tuple(inside), step.results)
        else:
            program = Program("step", params, (instruction,), instruction.results)
        arrays = [self._look(value) for value in inputs]
        return ReferencePlan(program).run(arrays, self._bound.sizes)

    def _look(self, value: Value) -> Array:
        """A value as a NumPy array over its buffer."""
        allocation = self._assignment.allocations[value]
        shape = tuple([size_at(n, self._bound.sizes) for n in value.type.shape])
        dtype = value.type.dtype.numpy
        found: Any
        if allocation.inside is not None:
            whole = self._look(allocation.inside.values[0]).reshape(-1)
            begin = size_at(allocation.place, self._bound.sizes)
            found = whole[begin : begin + prod(shape)]
        elif allocation.kind == "arena":
            begin, size = self._bound.offsets[allocation], dtype.itemsize
            for extent in shape:
                size *= extent
            block = _NOTHING if self._arena is None else self._arena.block
            found = block[begin : begin + size].view(dtype)
        elif allocation.kind == "result":
            if allocation.number not in self._made:
                self._made[allocation.number] = empty(shape, dtype)
            found = self._made[allocation.number]
        elif allocation.kind == "constant":
            found = self._assignment.program.body[allocation.number].attrs["value"]
        else:
            found = self._given[allocation.number]
            found = found.numpy() if isinstance(found, Parameter) else found
        return found if found.shape == shape else found.reshape(shape)

    def _result(self, value: Value, returned: set[Allocation]) -> Array:
        """A result in memory without another reference."""
        allocation = self._assignment.allocations[value]
        array = self._look(value)
        if (allocation.kind == "result" or allocation.donated) and allocation not in returned:
            returned.add(allocation)
            return array
        return np.array(array, order="C")

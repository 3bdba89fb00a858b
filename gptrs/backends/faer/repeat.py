"""Loops over bound plans: the iterations of a scan or while_loop, run by the driver.

Input: the plan of a body whose steps are all native, and `Iterations`. The state is kept twice:

    iteration     0    1    2            state k:  first, second    xs, ys:  one item further each
    reads         A    B    A                      time, by the moves of `Repetition`
    writes        B    A    B

A state of which an iteration writes a block alone (a stencil that leaves the edges) is copied to
both buffers, and each iteration writes the block: the step that would copy the rest is skipped.
A result that lies where a parameter does stays there: a cache that the body updates in place, a
state that it returns as it was. Any other result that no step writes to its own place (one that is
returned twice, an item of xs, a constant) is copied after each iteration.

Output: the last state. Iterations run in batches of some milliseconds, between which Python looks
for signals; a kernel that failed is run again for its message, as after a single call.

A loop is prepared once for its sizes, with bindings of its own (`KeptLoops`). A call takes it for
itself, has its tables point to the arrays of the call (`repeat_layout`), and puts it back.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, Protocol, cast

import numpy as np

from gptrs.backends.faer.arena import LINE, Arena, ArenaPool
from gptrs.backends.faer.bound import ARENA, Bound
from gptrs.backends.faer.repeat_layout import Layout, Tables
from gptrs.backends.faer.run import Call, Weights, address_of, load, set_poll
from gptrs.backends.faer.steps import Iterations
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Program
from gptrs.ir.types import Array
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.repetition import Repetition, Steps
from gptrs.kernels.driver.step_table import CODE

Sizes = Mapping[str, int]

_BATCH = 0.02  # seconds of iterations between looks at signals
_FIRST = 8  # iterations of the first batch
_KEPT = 16  # prepared loops of a body; the only arrays they hold are parameters


class Repeatable(Weights, Protocol):
    """A plan that may be bound for several runs (`FaerPlan`)."""

    program: Program
    arenas: ArenaPool

    def key(self, sizes: Sizes) -> tuple[int, ...]: ...
    def take(self, key: tuple[int, ...], sizes: Sizes) -> Bound: ...
    def put_back(self, bound: Bound) -> None: ...


class KeptLoops:
    """The prepared loops of a body that no call uses, the most recently used last.

    They change by single operations of a list, without a lock.
    """

    def __init__(self) -> None:
        self._loops: list[_Loop] = []

    def run(self, body: Repeatable, given: Iterations, sizes: Sizes) -> tuple[Array, ...] | None:
        """The last state of ``given``; None where a step is not native."""
        plans = [body]
        if given.condition is not None:
            plans.append(cast("Repeatable", given.condition))
        keys = [plan.key(sizes) for plan in plans]
        loop = self._take((keys, given.length, given.reverse)) or _prepared(
            plans, keys, given, sizes
        )
        if loop is None:
            return None
        try:
            return loop.call(plans, given)
        finally:
            self._loops.append(loop)
            while len(self._loops) > _KEPT:
                with suppress(IndexError):  # another thread was faster
                    self._loops.pop(0)

    def _take(self, key: object) -> _Loop | None:
        for loop in reversed([*self._loops]):
            if loop.key == key:
                with suppress(ValueError):  # another thread took it
                    self._loops.remove(loop)
                    return loop
        return None


def _prepared(
    plans: Sequence[Repeatable], keys: list[tuple[int, ...]], given: Iterations, sizes: Sizes
) -> _Loop | None:
    """A loop with bindings of its own; None where Python has a part in it."""
    bounds: list[Bound] = []
    for plan, key in zip(plans, keys, strict=True):
        bounds.append(plan.take(key, sizes))
    native = not any(segment.reference for bound in bounds for segment in bound.segments)
    if native and all(bound.outputs for bound in bounds[1:]):
        return _Loop((keys, given.length, given.reverse), bounds, given)
    for plan, bound in zip(plans, bounds, strict=True):
        plan.put_back(bound)
    return None  # or a condition that computes nothing


class _Loop:
    """A prepared loop. It serves one call at a time."""

    def __init__(self, key: object, bounds: Sequence[Bound], given: Iterations) -> None:
        self.key, self._bounds, self._batch = key, bounds, _FIRST
        self._layout = layout = Layout(bounds, given)
        self._numbers = layout.numbers
        self._reverse, self._length = given.reverse, given.length
        self._flag = np.zeros((), np.bool_)
        moves = [move for places in layout.places for move in places.moves]
        self._tables = tables = Tables(moves, layout.copies)
        body, *asked = [Steps(bound.table, bound.status, bound.threads) for bound in bounds]
        self._repetition = Repetition(
            body._replace(table=layout.table),
            tables.moves,
            tables.copies,
            asked[0] if asked else None,
            address_of(self._flag),
        )

    def call(self, plans: Sequence[Repeatable], given: Iterations) -> tuple[Array, ...]:
        """Run all iterations, and return the last state."""
        arenas = [
            plan.arenas.acquire() if bound.arena_bytes else None
            for plan, bound in zip(plans, self._bounds, strict=True)
        ]
        try:
            memory = self._memory(given)
            self._relocate(memory, arenas)
            for plan, bound, arguments in zip(
                plans, self._bounds, self._given(memory, 0), strict=True
            ):
                if bound.weights:
                    load(bound, plan, arguments)
                if bound.polls:
                    set_poll(bound)
                bound.status.words[CODE] = 0
            n = self._iterate(memory, arenas)
            return tuple([memory[k] for k in self._state(n)])
        finally:
            for plan, bound, arena in zip(plans, self._bounds, arenas, strict=True):
                if arena is not None:
                    plan.arenas.release(arena)
                bound.lease.running = 0

    def _memory(self, given: Iterations) -> list[Any]:
        """The arrays of a call by number, as kernels read them."""
        layout = self._layout
        first = [_copied(a, start) for a, start in zip(given.state, layout.starts, strict=True)]
        second = [
            a if stays else _copied(a, start) if keeps else np.empty_like(a)
            for a, stays, keeps, start in zip(
                first, layout.stays, layout.keeps, layout.starts, strict=True
            )
        ]
        arrays: list[Any] = [*first, *given.xs, *given.fixed]
        arrays += [*second, *given.ys, *given.asked, self._flag, None]
        for number, wanted in self._layout.required:
            array = arrays[number]
            if isinstance(array, np.ndarray) and array.flags.num & wanted != wanted:
                arrays[number] = np.array(cast("Array", array), order="C")
        for copied in self._layout.copied:
            found = arrays[copied] if isinstance(copied, int) else copied
            found = found.numpy() if isinstance(found, Parameter) else found
            arrays.append(np.ascontiguousarray(found))
        return arrays

    def _relocate(self, memory: Sequence[Any], arenas: Sequence[Arena | None]) -> None:
        """Have the argument blocks and the tables point to the arrays of a call."""
        addresses = [address_of(a) if type(a) is np.ndarray else 0 for a in memory]
        for bound, places, arena in zip(self._bounds, self._layout.places, arenas, strict=True):
            if arena is not None:
                arena.reserve(bound.arena_bytes)
                if bound.addresses[ARENA] != arena.address:
                    bound.relocate(ARENA, arena.address)
            places.relocate(addresses)
        if arenas[0] is not None:
            addresses[self._numbers.arena] = arenas[0].address
        self._tables.patch(addresses)

    def _state(self, n: int) -> list[int]:
        """The numbers of the state that iteration ``n`` reads."""
        return self._numbers.second if n % 2 else self._numbers.first

    def _given(self, memory: Sequence[Any], n: int) -> list[list[Any]]:
        """What the plans are given in iteration ``n``; the first one whole xs."""
        numbers, state = self._numbers, [memory[k] for k in self._state(n)]
        body = [*state, *[memory[k] for k in (*numbers.xs, *numbers.fixed)]]
        return [body, [*state, *[memory[k] for k in numbers.asked]]][: len(self._bounds)]

    def _iterate(self, memory: Sequence[Any], arenas: Sequence[Arena | None]) -> int:
        """Run the iterations; the one that did not run any more."""
        end = sys.maxsize if self._length is None else self._length
        driver, n = current_driver(), 0
        while n < end:
            start, last = perf_counter(), min(n + self._batch, end)
            reached = driver.repeat(self._repetition, n, last)
            if reached < last:
                self._fail(reached, memory, arenas)
                return reached
            took = perf_counter() - start
            most = int((last - n) * _BATCH / max(took, 1e-9))
            self._batch = max(1, min(8 * self._batch, most))
            n = reached
        return n

    def _fail(self, n: int, memory: Sequence[Any], arenas: Sequence[Arena | None]) -> None:
        """Raise the error of iteration ``n``, if it failed."""
        numbers, given = self._numbers, self._given(memory, n)
        at = (self._length or 0) - 1 - n if self._reverse else n
        written = [memory[k] for k in self._state(n + 1)]
        made: list[Array] = []
        for _, number, shape, _ in self._bounds[0].outputs:
            count = len(written)
            target = written[number] if number < count else memory[numbers.ys[number - count]][at]
            made.append(np.asarray(target).reshape(shape))
        first = len(written)
        for k in range(first, first + len(numbers.xs)):
            given[0][k] = given[0][k][at]
        results = [made, [self._flag]]
        for bound, arena, arguments, outputs in reversed(
            [*zip(self._bounds, arenas, given, results, strict=False)]
        ):
            failure = bound.status.failure()
            if failure is not None:
                Call(bound, arena, arguments, outputs).fail(failure)


def _copied(array: Array, start: int) -> Array:
    """A copy in C order; byte ``start``, if it is not 0, begins a cache line."""
    if not start:
        return np.array(array, order="C")
    memory = np.empty(array.nbytes + LINE, np.uint8)
    first = -(address_of(memory) + start) % LINE
    copy: Array = np.ndarray(array.shape, array.dtype, memory.data, first)
    copy[...] = array
    return copy

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
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from time import perf_counter
from typing import Protocol, cast

import numpy as np

from gptrs.backends.faer.arena import Arena
from gptrs.backends.faer.binding import Bound
from gptrs.backends.faer.run import Call, Weights, address_of, load, set_poll
from gptrs.backends.faer.schedule import Iterations, UpdateStep
from gptrs.ir.program import Program, Value
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.repetition import COPY_WORDS, MOVE_WORDS, Place, Repetition, Steps
from gptrs.kernels.driver.step_table import CODE

_BATCH = 0.02  # seconds of iterations between looks at signals
_FIRST = 8  # iterations of the first batch
Sizes = Mapping[str, int]
Argument = Array | Parameter


class Repeatable(Weights, Protocol):
    """A plan that may be bound for several runs (`FaerPlan`)."""

    program: Program

    def bound(self, sizes: Sizes) -> AbstractContextManager[tuple[Bound, Arena | None]]: ...


def repeat(body: Repeatable, given: Iterations, sizes: Sizes) -> tuple[Array, ...] | None:
    """The last state of ``given``; None where a step is not native."""
    with ExitStack() as stack:
        bindings = [_Binding(body, *stack.enter_context(body.bound(sizes)))]
        if given.condition is not None:
            condition = cast("Repeatable", given.condition)
            bindings.append(_Binding(condition, *stack.enter_context(condition.bound(sizes))))
        native = all(binding.native for binding in bindings)
        if not native or not all(binding.bound.outputs for binding in bindings[1:]):
            return None  # or a condition that computes nothing
        return _Loop(bindings, given).run()


class _Binding:
    """A bound plan whose operands and results move."""

    def __init__(self, plan: Repeatable, bound: Bound, arena: Arena | None) -> None:
        self._plan, self.bound, self._arena = plan, bound, arena
        self.moves: list[tuple[int, ...]] = []
        self.held: list[object] = []
        self._table = bound.table

    @property
    def native(self) -> bool:
        """Whether Python has no part in its steps."""
        return not any(segment.reference for segment in self.bound.segments)

    @property
    def steps(self) -> Steps:
        return Steps(self._table, self.bound.status, self.bound.threads)

    def keeps_rest(self, number: int) -> bool:
        """Whether result ``number`` is parameter ``number`` with a new block. From now on the steps
        write the block only."""
        program, owners = self.bound.assignment.program, self.bound.owners
        result, allocations = program.results[number], self.bound.assignment.allocations
        if allocations[result].kind != "result" or allocations[result].number != number:
            return False
        for step in dict.fromkeys(owners):
            if isinstance(step, UpdateStep) and result in step.results:
                if step.base is not program.params[number]:
                    return False
                *copying, _ = (n for n, owner in enumerate(owners) if owner is step)
                self._table = self._table.without(copying)
                return True
        return False

    def place(self, buffer: int, place: Place) -> None:
        """Have a buffer lie at ``place``."""
        bound = self.bound
        if place.even == place.odd and not place.stride:
            bound.relocate(buffer, place.even)
            return
        bound.addresses[buffer] = -1  # to be set by the next call
        base = bound.argument_blocks.ctypes.data
        words, offsets = bound.relocations[buffer]
        for word, offset in zip(words.tolist(), offsets.tolist(), strict=True):
            even, odd = place.even + offset, place.odd + offset
            self.moves.append((base + 8 * word, even, odd, place.stride))

    def give(self, arguments: list[Argument], places: list[Place]) -> None:
        """Place the operands, whose arrays are ``arguments``; other ones are copied if need be."""
        bound = self.bound
        for buffer, number, wanted in bound.inputs:
            array = arguments[number]
            if isinstance(array, np.ndarray) and array.flags.num & wanted != wanted:
                array = arguments[number] = np.array(array, order="C")
                places[number] = _fixed(array)
            self.place(buffer, places[number])
        if bound.weights:
            load(bound, self._plan, arguments)
        if bound.polls:
            set_poll(bound)
        bound.status.words[CODE] = 0

    def source(self, value: Value, arguments: Sequence[Argument], places: list[Place]) -> Place:
        """Where a result is that no step writes to its own place."""
        allocation = self.bound.assignment.allocations[value]
        if allocation.kind == "arena":
            base = 0 if self._arena is None else self._arena.address
            return _fixed_at(base + self.bound.offsets[allocation])
        if allocation.kind == "argument":
            return places[allocation.number]
        if allocation.kind == "constant":
            found = self._plan.program.body[allocation.number].attrs["value"]
        else:
            found = arguments[allocation.number]
            found = found.numpy() if isinstance(found, Parameter) else found
        self.held.append(array := np.array(found, order="C"))
        return _fixed(array)

    def fail(self, given: Sequence[Argument], made: Sequence[Array]) -> None:
        """Raise the error of the iteration that failed, if one did."""
        failure = self.bound.status.failure()
        if failure is not None:
            Call(self.bound, self._arena, given, made).fail(failure)


class _Loop:
    """The memory of a loop, and its iterations."""

    def __init__(self, bindings: list[_Binding], given: Iterations) -> None:
        self._given, self._body = given, bindings[0]
        self._condition = bindings[1] if len(bindings) > 1 else None
        self._flag = np.zeros((), np.bool_)
        program = self._body.bound.assignment.program
        allocations = self._body.bound.assignment.allocations
        stays = [
            allocations[value].kind == "argument" and allocations[value].number == k
            for k, value in enumerate(program.results[: len(given.state)])
        ]
        self._first = given.state
        self._second = [
            a if same else a.copy() if self._body.keeps_rest(k) else np.empty_like(a)
            for k, (a, same) in enumerate(zip(given.state, stays, strict=True))
        ]
        self._xs = [np.require(x, requirements=["C", "A"]) for x in given.xs]
        self._fixed, self._asked = [*given.fixed], [*given.asked]
        self._copies: list[tuple[int, ...]] = []
        self._bind(program, stays)

    def _bind(self, program: Program, stays: Sequence[bool]) -> None:
        body, state = self._body, [*map(_between, self._first, self._second)]
        arguments: list[Argument] = [*self._first, *self._xs, *self._fixed]
        places = [*state, *map(self._along, self._xs), *map(_fixed, self._fixed)]
        body.give(arguments, places)
        self._fixed = arguments[len(arguments) - len(self._fixed) :]
        targets = [*map(_between, self._second, self._first), *map(self._along, self._given.ys)]
        written = {number: buffer for buffer, number, *_ in body.bound.outputs}
        for number, value in enumerate(program.results):
            allocation = body.bound.assignment.allocations[value]
            if number < len(stays) and stays[number]:
                continue
            if number in written:
                body.place(written[number], targets[number])
                continue
            if allocation.kind == "result":
                source = targets[allocation.number]
            else:
                source = body.source(value, arguments, places)
            self._copies.append((*source, *targets[number], self._item(number)))
        if self._condition is not None:
            asked: list[Argument] = [*self._first, *self._asked]
            self._condition.give(asked, [*state, *map(_fixed, self._asked)])
            self._asked = asked[len(state) :]
            ((flag, *_),) = self._condition.bound.outputs
            self._condition.place(flag, _fixed(self._flag))

    def _item(self, number: int) -> int:
        """The bytes of a result of one iteration."""
        count = len(self._first)
        if number < count:
            return self._first[number].nbytes
        y = self._given.ys[number - count]
        return y.nbytes // max(1, len(y))

    def _along(self, array: Array) -> Place:
        """The place of one item after the other along the first axis."""
        length = len(array)
        item = array.nbytes // max(1, length)
        start = address_of(array)
        if self._given.reverse:
            return Place(start + (length - 1) * item, start + (length - 1) * item, -item)
        return Place(start, start, item)

    def run(self) -> tuple[Array, ...]:
        """Run all iterations, and return the last state."""
        end = sys.maxsize if self._given.length is None else self._given.length
        moves = [move for b in (self._body, self._condition) if b for move in b.moves]
        repetition = Repetition(
            self._body.steps,
            np.array(moves, np.int64).reshape(-1, MOVE_WORDS),
            np.array(self._copies, np.int64).reshape(-1, COPY_WORDS),
            self._condition and self._condition.steps,
            address_of(self._flag),
        )
        driver, n, batch = current_driver(), 0, _FIRST
        while n < end:
            start, last = perf_counter(), min(n + batch, end)
            reached = driver.repeat(repetition, n, last)
            if reached < last:
                self._fail(reached)
                n = reached
                break
            took = perf_counter() - start
            batch = max(1, min(8 * batch, int(batch * _BATCH / max(took, 1e-9))))
            n = reached
        return tuple(self._second if n % 2 else self._first)

    def _fail(self, n: int) -> None:
        """Raise the error of iteration ``n``, if it failed."""
        state = self._second if n % 2 else self._first
        written = self._first if n % 2 else self._second
        at = (self._given.length or 0) - 1 - n if self._given.reverse else n
        if self._condition is not None:
            self._condition.fail([*state, *self._asked], [self._flag])
        made: list[Array] = []
        for _, number, shape, _ in self._body.bound.outputs:
            count = len(state)
            target = written[number] if number < count else self._given.ys[number - count][at]
            made.append(np.asarray(target).reshape(shape))
        self._body.fail([*state, *[x[at] for x in self._xs], *self._fixed], made)


def _between(even: Array, odd: Array) -> Place:
    return Place(address_of(even), address_of(odd))


def _fixed(array: Argument) -> Place:
    return _fixed_at(0 if isinstance(array, Parameter) else address_of(array))


def _fixed_at(address: int) -> Place:
    return Place(address, address)

"""Loops as steps of the plan that contains them: a scan or while_loop whose body is native.

Input: a `ControlStep` at known sizes, and the plans of its regions. They are bound for this step
alone, and the step's argument block (`gptrs.kernels.driver.loop_kernel`) says where each array lies
that their kernels read and write:

    operands            in the buffers of the plan, of which iteration 0 reads copies of the state
    state               the last one in the result, the other one of two buffers in scratch memory
    ys                  in the results
    arenas, the flag    in scratch memory

So a plan with loops is native as a whole: its calls run without Python (`launch`). A region with a
part in Python, or one that packs an array that is computed, is left to
`gptrs.backends.faer.repeat`, whose layout (`repeat_layout`) is used here, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, cast

import numpy as np

from gptrs.backends.faer.arena import LINE
from gptrs.backends.faer.bound import ARENA, Bound
from gptrs.backends.faer.calls.base import Address, Binder, Word
from gptrs.backends.faer.repeat_layout import Copy, Layout, Location
from gptrs.backends.faer.steps import ControlStep, Iterations
from gptrs.ir.ops.control import cond, while_loop
from gptrs.ir.program import Value
from gptrs.ir.types import Array
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.loop_kernel import Field, loop_kernel

_ENDLESS = 1 << 62


class Bindable(Protocol):
    """The plan of a region that may be bound for a step of its own (`FaerPlan`)."""

    def bind_native(self, sizes: Mapping[str, int], threads: int) -> Bound | None: ...


class UnboundLoopError(Exception):
    """Python has a part in the loop."""


def bind_loop(step: ControlStep, b: Binder, sizes: Mapping[str, int]) -> list[object] | None:
    """Give ``b`` the step, and return what has to live as long; None where Python has a part in
    the loop."""
    driver = current_driver().native()
    if step.instruction.op is cond or driver is None:
        return None
    names = ("body", "condition") if step.instruction.op is while_loop else ("body",)
    plans = [cast("Bindable", step.plans[name]) for name in names]
    bounds = [plan.bind_native(sizes, b.threads) for plan in plans]
    if any(bound is None for bound in bounds):
        return None
    try:
        loop = _NativeLoop(step, b, [bound for bound in bounds if bound is not None])
        words = loop.words(driver.words, driver.repeat, driver.ticks)
    except UnboundLoopError:
        return None
    b.step(loop_kernel(), words, 1, loop.time)
    return loop.kept


class _NativeLoop:
    """The argument block of a loop."""

    def __init__(self, step: ControlStep, b: Binder, bounds: list[Bound]) -> None:
        self._b, self._bounds = b, bounds
        groups = [o for o in step.instruction.operands if isinstance(o, tuple)]
        state, *more, captured = [[v for v in group if isinstance(v, Value)] for group in groups]
        xs = more[0] if more else []
        if any(not bound.outputs for bound in bounds[1:]):
            raise UnboundLoopError  # a condition that computes nothing
        attrs, count = step.instruction.attrs, len(state)
        self._is_while = step.instruction.op is while_loop
        self._length = _ENDLESS if self._is_while else b.size(attrs["length"])
        first, along = ([self._stand_in(v) for v in group] for group in (state, xs))
        ys = [self._stand_in(v) for v in step.results[count:]]
        fixed = [self._stand_in(v) for v in captured]
        asked = fixed if self._is_while else ()
        reverse = not self._is_while and attrs["reverse"]
        iterations = Iterations(first, along, fixed, ys, reverse, asked=asked)
        self._layout = Layout(bounds, iterations)
        self._operands = [*state, *xs, *captured], [*state, *captured]
        self._state, self._results = state, step.results
        self._flag = b.scratch(1)
        self._arenas = [b.scratch(bound.arena_bytes) for bound in bounds]
        self._places = self._placed(xs, captured)
        self.time = self._length * sum(bounds[0].estimates) if not self._is_while else 0.0
        self.kept: list[object] = [bounds, self._layout, self._layout.copied]

    def _stand_in(self, value: Value) -> Array:
        """An array of the type of a value, with the memory of one element."""
        shape = [max(self._b.size(extent), 0) for extent in value.type.shape]
        return np.broadcast_to(np.zeros((), value.type.dtype.numpy), shape)

    def _bytes(self, value: Value) -> int:
        return self._stand_in(value).nbytes

    def _placed(self, xs: Sequence[Value], captured: Sequence[Value]) -> dict[int, Word]:
        """The address of each array of the layout, by its number."""
        b, layout, count = self._b, self._layout, len(self._state)
        numbers = layout.numbers
        places: dict[int, Word] = {}
        odd = not self._is_while and self._length % 2 == 1
        for k, (value, stays) in enumerate(zip(self._state, layout.stays, strict=True)):
            two = [b.address(self._results[k])]
            if not stays:
                start = -layout.starts[k] % LINE
                scratch = b.scratch(self._bytes(value) + start)
                two.append(Address(scratch.slot, scratch.offset + start))
            places[numbers.second[k]], places[numbers.first[k]] = two[-1], two[0]
            if odd and not stays:
                places[numbers.first[k]], places[numbers.second[k]] = two[1], two[0]
        for group, values in (
            (numbers.xs, xs),
            (numbers.fixed, captured),
            (numbers.ys, self._results[count:]),
            (numbers.asked, captured if self._is_while else ()),
        ):
            places |= {n: b.address(value) for n, value in zip(group, values, strict=True)}
        places[numbers.flag], places[numbers.arena] = self._flag, self._arenas[0]
        for place, copied in enumerate(layout.copied):
            if isinstance(copied, int):
                raise UnboundLoopError  # a result that is a parameter of the region
            places[numbers.count + place] = copied.ctypes.data
        return places

    def words(self, driver: int, repeat: int, ticks: int) -> list[Word]:
        """The argument block."""
        orders: list[int] = []
        for table, bound in zip([self._layout.table, None], self._bounds, strict=False):
            table = table or bound.table
            order = table.order(0, table.count, bound.status.address, bound.threads)
            self.kept.append(order)
            orders += [order[1], bound.status.address]
        if len(orders) == 2:  # without a condition
            orders += [0, orders[1]]
        rows = [
            [*self._before()],
            [*self._pointers()],
            [*self._moves()],
            [*map(self._copy, self._layout.copies)],
            [*self._after()],
        ]
        head: list[Word] = [driver, repeat, ticks, self._b.status, *orders, self._flag]
        head += [self._length, *map(len, rows)]
        assert len(head) == Field.ROWS
        return [*head, *[word for several in rows for row in several for word in row]]

    def _before(self) -> Iterator[list[Word]]:
        """The copies of the initial state: to both buffers, where iterations write blocks alone."""
        layout = self._layout
        for k, value in enumerate(self._state):
            source, size = self._b.address(value), self._bytes(value)
            yield [self._places[layout.numbers.first[k]], source, size]
            if layout.keeps[k]:
                yield [self._places[layout.numbers.second[k]], source, size]

    def _after(self) -> Iterator[list[Word]]:
        """The copies of a last state in the second buffers to the results."""
        numbers, stays = self._layout.numbers, self._layout.stays
        for k, value in enumerate(self._state):
            if self._is_while and not stays[k]:
                first, second = self._places[numbers.first[k]], self._places[numbers.second[k]]
                yield [first, second, self._bytes(value)]

    def _pointers(self) -> Iterator[list[Word]]:
        """The words of the argument blocks of the regions that point into arrays that stay."""
        for bound, places, arena, operands in zip(
            self._bounds, self._layout.places, self._arenas, self._operands, strict=False
        ):
            base = bound.argument_blocks.ctypes.data
            targets: list[tuple[int, Word]] = [(ARENA, arena)]
            targets += [(buffer, self._places[number]) for buffer, number in places.fixed]
            for buffer, number, form in bound.weights:
                operand = operands[number]
                packed = self._b.address(operand) if form is None else None
                packed = packed or (self._b.panels(operand, form) if form else None)
                if packed is None:
                    raise UnboundLoopError  # an array that is computed would have to be packed
                targets.append((buffer, packed))
            for buffer, target in targets:
                words, offsets = bound.relocations[buffer]
                for word, offset in zip(words.tolist(), offsets.tolist(), strict=True):
                    yield [base + 8 * word, _beyond(target, offset)]

    def _moves(self) -> Iterator[list[Word]]:
        for places in self._layout.places:
            for word, location, offset in places.moves:
                yield [word, *self._location(location, offset)]

    def _copy(self, copy: Copy) -> list[Word]:
        return [*self._location(copy.source), *self._location(copy.target), copy.size]

    def _location(self, location: Location, offset: int = 0) -> list[Word]:
        offset += location.start
        even, odd = (_beyond(self._places[n], offset) for n in (location.even, location.odd))
        return [even, odd, location.stride]


def _beyond(place: Word, offset: int) -> Word:
    """``offset`` bytes further."""
    if isinstance(place, Address):
        return Address(place.slot, place.offset + offset)
    return place + offset

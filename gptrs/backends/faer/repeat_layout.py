"""Layout of a repeated loop: its arrays by number, and the tables of their addresses.

A loop is prepared once, and called with other arrays each time. So what it reads and writes is
described by `Location`, the numbers of two arrays and an offset. The words of the tables of
`gptrs.kernels.driver.repetition` that are addresses are patched at each call:

    words [moves · 4 + copies · 7],  words[place] = addresses[number] + offset  for each patch
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gptrs.backends.faer.bound import READY, Bound
from gptrs.backends.faer.steps import Iterations, UpdateStep
from gptrs.ir.program import Program, Value
from gptrs.ir.types import Array
from gptrs.kernels.driver import live_tables
from gptrs.kernels.driver.repetition import COPY_WORDS, MOVE_WORDS


class Location(NamedTuple):
    """Where an array lies: in array ``even`` or ``odd``, by the iteration, from byte ``start`` on,
    ``stride`` bytes further each time."""

    even: int
    odd: int
    stride: int = 0
    start: int = 0


def fixed(number: int, start: int = 0) -> Location:
    """The same place in all iterations."""
    return Location(number, number, 0, start)


class Move(NamedTuple):
    """A word at address ``word`` that points ``offset`` bytes into an array."""

    word: int
    location: Location
    offset: int


class Copy(NamedTuple):
    """Bytes that are copied after each iteration."""

    source: Location
    target: Location
    size: int


class Places:
    """The buffers of a binding that lie in a loop's arrays."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self.fixed: list[tuple[int, int]] = []  # buffer, number of the array
        self.moves: list[Move] = []

    def put(self, buffer: int, location: Location) -> None:
        """Have a buffer lie at ``location``."""
        bound = self._bound
        if location.even == location.odd and not location.stride:
            self.fixed.append((buffer, location.even))
            return
        base = bound.argument_blocks.ctypes.data
        words, offsets = bound.relocations[buffer]
        for word, offset in zip(words.tolist(), offsets.tolist(), strict=True):
            self.moves.append(Move(base + 8 * word, location, offset))

    def relocate(self, addresses: Sequence[int]) -> None:
        """Relocate the buffers that stay, if arrays are elsewhere than in the last call."""
        bound = self._bound
        now = bound.addresses
        for buffer, number in self.fixed:
            if now[buffer] != addresses[number]:
                bound.relocate(buffer, addresses[number])


class Tables:
    """The moves and copies of a repetition, and the patches of their addresses."""

    def __init__(self, moves: Sequence[Move], copies: Sequence[Copy]) -> None:
        self._words: list[int] = []
        self._patches: list[tuple[int, int, int]] = []
        for move in moves:
            self._words.append(move.word)
            self._add(move.location, move.offset)
        for source, target, size in copies:
            self._add(source)
            self._add(target)
            self._words.append(size)
        self._array = np.array(self._words, np.int64)
        split = MOVE_WORDS * len(moves)
        self.moves: NDArray[np.int64] = self._array[:split].reshape(-1, MOVE_WORDS)
        self.copies: NDArray[np.int64] = self._array[split:].reshape(-1, COPY_WORDS)
        self._view = self._array.data

    def _add(self, location: Location, offset: int = 0) -> None:
        at, offset = len(self._words), location.start + offset
        self._patches += [(at, location.even, offset), (at + 1, location.odd, offset)]
        self._words += [0, 0, location.stride]

    def patch(self, addresses: Sequence[int]) -> None:
        """Have the tables point into arrays at these addresses."""
        words = self._view  # of few words: NumPy's own way takes longer up to some thirty
        for place, number, offset in self._patches:
            words[place] = addresses[number] + offset


class Numbers:
    """The numbers of a loop's arrays: what the body is given comes first, in its order."""

    def __init__(self, given: Iterations) -> None:
        self.count = 0
        self.first, self.xs = self._next(given.state), self._next(given.xs)
        self.fixed, self.second = self._next(given.fixed), self._next(given.state)
        self.ys, self.asked = self._next(given.ys), self._next(given.asked)
        self.flag, self.arena, *_ = self._next((None, None))

    def _next(self, arrays: Sequence[object]) -> list[int]:
        self.count += len(arrays)
        return [*range(self.count - len(arrays), self.count)]


class Layout:
    """Where body and condition read and write, for arrays of the sizes of ``given``."""

    def __init__(self, bounds: Sequence[Bound], given: Iterations) -> None:
        self._body, self._reverse = bounds[0], given.reverse
        self.numbers = Numbers(given)
        self.table = self._body.table
        self.places = [Places(bound) for bound in bounds]
        self.required: list[tuple[int, int]] = []
        """Numbers of arrays, and the flags that they must have."""
        self.copied: list[Array | int] = []
        """What has the last numbers, in C order: constants, and arrays of other numbers."""
        program, allocations = self._body.assignment.program, self._body.assignment.allocations
        self.stays = [
            allocations[value].kind == "argument" and allocations[value].number == k
            for k, value in enumerate(program.results[: len(given.state)])
        ]
        """By state: whether it is not written, or in place."""
        self.keeps = [not stays and self._keeps_rest(k) for k, stays in enumerate(self.stays)]
        """By state: whether an iteration writes a block of it alone."""
        self.starts = [self._start(k) if keeps else 0 for k, keeps in enumerate(self.keeps)]
        """By state: the byte that best begins a cache line, the first one of the block."""
        for k, stays in enumerate(self.stays):
            if stays:
                self.numbers.second[k] = self.numbers.first[k]
        self.copies = self._place_body(program, given)
        if len(bounds) > 1:
            self._place_condition(bounds[1])

    def _keeps_rest(self, number: int) -> bool:
        """Whether result ``number`` is parameter ``number`` with a new block. From now on the steps
        write the block only."""
        program, owners = self._body.assignment.program, self._body.owners
        result, allocations = program.results[number], self._body.assignment.allocations
        if allocations[result].kind != "result" or allocations[result].number != number:
            return False
        for step in dict.fromkeys(owners):
            if isinstance(step, UpdateStep) and result in step.results:
                if step.base is not program.params[number]:
                    return False
                *copying, _ = (n for n, owner in enumerate(owners) if owner is step)
                self.table = self.table.without(copying)
                live_tables.add_copy(self._body.table, self.table)
                return True
        return False

    def _start(self, number: int) -> int:
        result = self._body.assignment.program.results[number]
        for step in dict.fromkeys(self._body.owners):
            if isinstance(step, UpdateStep) and result in step.results:
                start = step.region.output.offset * result.type.dtype.numpy.itemsize
                return start if isinstance(start, int) else 0
        return 0

    def _place_body(self, program: Program, given: Iterations) -> list[Copy]:
        """Place the operands and results of the body; the results that have to be copied."""
        numbers, bound, places = self.numbers, self._body, self.places[0]
        along = [self._along(n, x) for n, x in zip(numbers.xs, given.xs, strict=True)]
        state = [*map(Location, numbers.first, numbers.second)]
        sources = [*state, *along, *map(fixed, numbers.fixed)]
        for buffer, number, wanted in bound.inputs:
            places.put(buffer, sources[number])
            self.required.append((number, wanted))
        self.required += [(number, READY) for number in numbers.xs]
        targets = [*map(Location, numbers.second, numbers.first)]
        targets += [self._along(n, y) for n, y in zip(numbers.ys, given.ys, strict=True)]
        sizes = [a.nbytes for a in given.state] + [y.nbytes // max(1, len(y)) for y in given.ys]
        written = {number: buffer for buffer, number, *_ in bound.outputs}
        copies: list[Copy] = []
        for number, value in enumerate(program.results):
            if number < len(self.stays) and self.stays[number]:
                continue
            if number in written:
                places.put(written[number], targets[number])
                continue
            source = self._source(value, sources, targets)
            copies.append(Copy(source, targets[number], sizes[number]))
        return copies

    def _place_condition(self, bound: Bound) -> None:
        numbers, places = self.numbers, self.places[1]
        state = [*map(Location, numbers.first, numbers.second)]
        sources = [*state, *map(fixed, numbers.asked)]
        arrays = [*numbers.first, *numbers.asked]
        for buffer, number, wanted in bound.inputs:
            places.put(buffer, sources[number])
            self.required.append((arrays[number], wanted))
        ((flag, *_),) = bound.outputs
        places.put(flag, fixed(numbers.flag))

    def _source(
        self, value: Value, sources: Sequence[Location], targets: Sequence[Location]
    ) -> Location:
        """Where a result is that no step writes to its own place."""
        bound = self._body
        allocation = bound.assignment.allocations[value]
        match allocation.kind:
            case "result":
                return targets[allocation.number]
            case "arena":
                return fixed(self.numbers.arena, bound.offsets[allocation])
            case "argument":
                return sources[allocation.number]
            case "constant":
                found = bound.assignment.program.body[allocation.number].attrs["value"]
                self.copied.append(np.array(found, order="C"))
            case _:
                self.copied.append(allocation.number)
        return fixed(self.numbers.count + len(self.copied) - 1)

    def _along(self, number: int, array: Array) -> Location:
        """The place of one item after the other along the first axis."""
        length = len(array)
        item = array.nbytes // max(1, length)
        if self._reverse:
            return Location(number, number, -item, (length - 1) * item)
        return Location(number, number, item)

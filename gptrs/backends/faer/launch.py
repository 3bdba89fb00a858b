"""The launch of a binding: what native calls need to run it without Python.

Only a binding whose steps are all native has one. A result is an array that they write, or a copy
of one or of an argument.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gptrs.backends.base import Launch
from gptrs.backends.faer.arena import Arena, ArenaPool
from gptrs.backends.faer.bound import ARENA, READY, WRITEABLE, Bound
from gptrs.backends.faer.result_memory import ALIGNED
from gptrs.ir.dims import size_at
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.polling import poll_address

_BRIEF = 1000.0  # ns: to release the GIL and to take it again is 50


def launch_of(bound: Bound, free: list[Any], arenas: ArenaPool) -> Launch | None:
    """The launch of ``bound``, which waits in ``free``; None if Python has a part in its runs."""
    native = current_driver().native()
    if native is None or any(segment.reference for segment in bound.segments):
        return None
    if any(wanted & WRITEABLE for _, _, wanted in bound.inputs):  # donated: the handle changes
        return None
    results = _Results(bound)
    if not results.known or results.is_large():
        return None
    order = bound.table.order(0, bound.table.count, bound.status.address, bound.threads)
    addresses = np.asarray(bound.addresses).ctypes.data
    buffers = {source: buffer for source, (buffer, *_) in enumerate(bound.inputs)}
    buffers |= {len(results.inputs) + n: buffer for n, (buffer, *_) in enumerate(bound.outputs)}
    return Launch(
        bound=bound,
        free=free,
        arenas=arenas.free if bound.arena_bytes else None,
        arena_type=Arena,
        arena_bytes=bound.arena_bytes,
        arena_address=addresses + 8 * ARENA,
        arena_relocations=_words(bound, addresses, ARENA),
        lease=bound.lease if bound.weights else None,
        inputs=results.inputs,
        outputs=results.outputs,
        relocations=[
            (source, *word)
            for source, buffer in buffers.items()
            for word in _words(bound, addresses, buffer)
        ],
        copies=results.copies(),
        results=results.places,
        driver=native,
        order=order[1],
        status=bound.status.address,
        threads=bound.threads,
        poll=poll_address() if bound.polls else 0,
        is_brief=bound.time < _BRIEF and not bound.polls,
        held=(bound, order),
    )


class _Results:
    """The arrays of a launch: those that kernels read and write, and for results that are no array
    of their own, copies: of an argument, or of another result."""

    def __init__(self, bound: Bound) -> None:
        self.inputs = [(number, wanted) for _, number, wanted in bound.inputs]
        self.outputs: list[tuple[tuple[int, ...], Any]] = [
            (shape, dtype) for _, _, shape, dtype in bound.outputs
        ]
        self.places: list[int] = []
        self.known = True
        self._copies: list[tuple[bool, int, int]] = []  # of an input, its index, the output
        self._written = {number: place for place, (_, number, *_) in enumerate(bound.outputs)}
        self._bound = bound
        for number in range(len(bound.assignment.program.results)):
            self._add(number)

    def _add(self, number: int) -> None:
        value = self._bound.assignment.program.results[number]
        allocation = self._bound.assignment.allocations[value]
        if allocation.kind == "result" and allocation.number in self._written:
            if allocation.number == number:
                self.places.append(self._written[number])
                return
            of_input, place = False, self._written[allocation.number]
        elif allocation.kind == "argument" and not allocation.donated:
            of_input, place = True, self._input(allocation.number)
        else:
            self.known = False
            return
        shape = tuple([size_at(extent, self._bound.sizes) for extent in value.type.shape])
        self._copies.append((of_input, place, len(self.outputs)))
        self.places.append(len(self.outputs))
        self.outputs.append((shape, value.type.dtype.numpy))

    def is_large(self) -> bool:
        """Whether one of them is in memory of `gptrs.backends.faer.result_memory`."""
        return any(self._bytes(number) >= ALIGNED for number in range(len(self.outputs)))

    def _input(self, number: int) -> int:
        """The index among the inputs of an argument, which need not be read by a kernel."""
        numbers = [known for known, _ in self.inputs]
        if number not in numbers:
            self.inputs.append((number, READY))
            return len(numbers)
        return numbers.index(number)

    def copies(self) -> list[tuple[int, int, int]]:
        """Source, target and bytes, by the numbers of arrays."""
        first = len(self.inputs)
        return [
            (place if of_input else first + place, first + target, self._bytes(target))
            for of_input, place, target in self._copies
        ]

    def _bytes(self, output: int) -> int:
        shape, dtype = self.outputs[output]
        return prod(shape) * dtype.itemsize


def _words(bound: Bound, addresses: int, buffer: int) -> list[tuple[int, int]]:
    """The words that hold addresses in ``buffer`` and their offsets, with that in
    ``bound.addresses``."""
    base = bound.argument_blocks.ctypes.data
    words, offsets = bound.relocations[buffer]
    found = [(base + 8 * w, o) for w, o in zip(words.tolist(), offsets.tolist(), strict=True)]
    return [(addresses + 8 * buffer, 0), *found]

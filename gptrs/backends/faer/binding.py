"""A plan bound to sizes: its step table, with the addresses that change from call to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gptrs.backends.faer.arena import Places
from gptrs.backends.faer.calls.base import Address, Binder, Panels, Word
from gptrs.backends.faer.storage import Home, Placed, Storage
from gptrs.backends.faer.work import CallStep, ReferenceStep, RegionStep, Work
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.program import Value
from gptrs.kernels.compile import Kernel
from gptrs.kernels.driver import Status, Step, StepTable
from gptrs.kernels.isa import Isa

READY = 0x001 | 0x100
"""The flags of an array in C order whose elements are aligned, and of one to write into."""
WRITEABLE = 0x400
ARENA = 0
"""The number of the arena among the buffers."""
_SERIAL_NS = 8000.0  # work below is not worth waking a thread
_PIECE_NS = 4000.0  # and no thread gets pieces smaller than this
_CHUNKS = 4  # a thread, so that a late one holds up little


class Buffer(NamedTuple):
    """An array from outside: of an argument, a parameter or constant (perhaps packed), a result."""

    kind: Literal["argument", "parameter", "constant", "result"]
    number: int
    """Of the program's parameter, instruction or result."""
    form: Panels | None = None


class Segment(NamedTuple):
    """Native steps ``first`` to ``last``, or an instruction for the reference."""

    first: int
    last: int
    reference: ReferenceStep | None = None


@dataclass
class Bound:
    """Everything that a run needs at one set of sizes and threads. Serves one call at a time."""

    key: tuple[int, ...]
    """The number of threads, then the sizes."""
    sizes: Mapping[str, int]
    status: Status = field(default_factory=Status)
    buffers: dict[Buffer, int] = field(default_factory=dict[Buffer, int])  # numbers from 1 up
    offsets: dict[Home, int] = field(default_factory=dict[Home, int])  # in the arena
    arena_bytes: int = 0
    segments: list[Segment] = field(default_factory=list[Segment])
    owners: list[Work] = field(default_factory=list[Work])  # of each native step
    names: list[str] = field(default_factory=list[str])  # of the kernel of each native step
    table: StepTable = field(default_factory=lambda: StepTable([]))
    words: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    patches: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = field(
        default_factory=list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    )
    """By buffer: the words that hold an address in it, and how far behind its beginning."""
    addresses: list[int] = field(default_factory=list[int])
    """By buffer: the address that the words have now."""
    inputs: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """Arguments that kernels read: buffer, number, flags that the array must have."""
    outputs: list[tuple[int, int, tuple[int, ...], Any]] = field(
        default_factory=list[tuple[int, int, tuple[int, ...], Any]]
    )
    """Results: buffer, number, shape, dtype."""
    weights: list[tuple[int, int, Panels | None]] = field(
        default_factory=list[tuple[int, int, Panels | None]]
    )
    """Parameters that kernels read: buffer, number, form."""
    loaded: list[Any] = field(default_factory=list[Any])
    """The parameters that the words point to now, in the order of `weights`."""
    held: list[Any] = field(default_factory=list[Any])
    """Their elements, which must not go away meanwhile."""
    direct: bool = False
    """Whether the results of a call are those that kernels write, in order."""

    @property
    def threads(self) -> int:
        return self.key[0]

    def move(self, buffer: int, address: int) -> None:
        """Have the words point to ``buffer`` at another address."""
        places, offsets = self.patches[buffer]
        if len(places) == 1:
            self.words[places[0]] = address + offsets[0]
        else:
            self.words[places] = offsets + address
        self.addresses[buffer] = address


class _Binder(Binder):
    def __init__(
        self, storage: Storage, packed: Mapping[Value, set[Panels]], isa: Isa, bound: Bound
    ) -> None:
        self.isa, self.threads, self.status = isa, bound.threads, bound.status.address
        self._storage, self._packed, self._bound = storage, packed, bound
        self._sizes: dict[int, tuple[Dim, int]] = {}
        self._outer: Callable[[Value], Value] = _same
        self._places = Places()
        self._scratch: list[tuple[int, int]] = []
        self._words: list[int] = []
        self._patches: dict[int, list[tuple[int, int]]] = {ARENA: []}
        self._steps: list[tuple[Kernel, int, int, int]] = []

    def size(self, value: DimLike) -> int:
        if not isinstance(value, Dim):
            return value
        found = self._sizes.get(id(value))
        if found is None:  # kept with the dim, so that no other one gets its id
            found = self._sizes[id(value)] = value, value.at(self._bound.sizes)
        return found[1]

    def address(self, value: Value, offset: DimLike = 0) -> Address:
        value = self._outer(value)
        home = self._storage.homes[value]
        size = self.size(offset) * value.type.dtype.numpy.itemsize
        if home.kind == "arena":
            return Address(ARENA, self._bound.offsets[home] + size)
        return Address(self._number(Buffer(home.kind, home.number)), size)

    def panels(self, value: Value, form: Panels) -> Address | None:
        value = self._outer(value)
        if form not in self._packed.get(value, ()):
            return None
        home = self._storage.homes[value]
        assert home.kind != "arena"
        return Address(self._number(Buffer(home.kind, home.number, form)), 0)

    def scratch(self, size: int) -> Address:
        offset = self._places.take(size)
        self._scratch.append((offset, size))
        return Address(ARENA, offset)

    def step(self, kernel: Kernel, words: Sequence[Word], extent: int, time: float) -> None:
        if extent <= 0:
            return
        start = len(self._words)
        for word in words:
            if isinstance(word, Address):
                self._patches[word.buffer].append((len(self._words), word.offset))
                self._words.append(0)
            else:
                self._words.append(word)
        self._steps.append((kernel, start, extent, self._chunks(extent, time)))

    def _chunks(self, extent: int, time: float) -> int:
        if self.threads == 1 or time < _SERIAL_NS:
            return 1
        return max(1, min(extent, self.threads * _CHUNKS, int(time / _PIECE_NS)))

    def _number(self, buffer: Buffer) -> int:
        numbers = self._bound.buffers
        if buffer not in numbers:
            numbers[buffer] = len(numbers) + 1
            self._patches[numbers[buffer]] = []
        return numbers[buffer]

    def place(self, placed: Placed) -> None:
        """Take the steps of a piece of work."""
        for home in placed.begin:
            self._bound.offsets[home] = self._places.take(self.bytes_of(home))
        before = len(self._steps)
        if not placed.view and not self._bind(placed.work):
            del self._steps[before:]
            assert not isinstance(placed.work, RegionStep)
            self._bound.segments.append(Segment(before, before, placed.work))
        self._bound.owners += [placed.work] * (len(self._steps) - before)
        for offset, size in self._scratch:
            self._places.give(offset, size)
        self._scratch.clear()
        for home in placed.end:
            self._places.give(self._bound.offsets[home], self.bytes_of(home))

    def bytes_of(self, home: Home) -> int:
        type = home.values[0].type
        size = type.dtype.numpy.itemsize
        for extent in type.shape:
            size *= self.size(extent)
        return size

    def _bind(self, work: Work) -> bool:
        match work:
            case RegionStep():
                work.bind(self)
                return True
            case CallStep():
                self._outer = work.outer
                done = work.call.bind(self)
                self._outer = _same
                return done
            case _:
                return False

    def finish(self) -> None:
        """Make the table."""
        bound = self._bound
        bound.arena_bytes = self._places.size
        bound.words = np.array(self._words, np.int64)
        base = bound.words.ctypes.data
        bound.table = StepTable(
            Step(kernel.address, base + 8 * start, extent, chunks)
            for kernel, start, extent, chunks in self._steps
        )
        numbers = range(len(bound.buffers) + 1)
        places = np.array([p for n in numbers for p, _ in self._patches[n]], np.int64)
        offsets = np.array([o for n in numbers for _, o in self._patches[n]], np.int64)
        start = 0
        for number in numbers:
            end = start + len(self._patches[number])
            bound.patches.append((places[start:end], offsets[start:end]))
            start = end
        bound.addresses = [0] * len(bound.patches)
        bound.names = [kernel.name for kernel, *_ in self._steps]
        bound.segments = _joined(bound.segments, len(self._steps))
        for buffer, number in bound.buffers.items():
            match buffer.kind:
                case "argument":
                    donated = self._storage.program.params[buffer.number].donated
                    wanted = READY | WRITEABLE if donated else READY
                    bound.inputs.append((number, buffer.number, wanted))
                case "parameter":
                    bound.weights.append((number, buffer.number, buffer.form))
                case "result":
                    type = self._storage.program.results[buffer.number].type
                    shape = tuple(map(self.size, type.shape))
                    bound.outputs.append((number, buffer.number, shape, type.dtype.numpy))
                case _:
                    pass
        bound.outputs.sort(key=lambda output: output[1])
        written = [number for _, number, *_ in bound.outputs]
        bound.direct = written == list(range(len(self._storage.program.results)))


def _same(value: Value) -> Value:
    return value


def _joined(references: Sequence[Segment], count: int) -> list[Segment]:
    """Native segments between the instructions for the reference."""
    segments: list[Segment] = []
    first = 0
    for reference in references:
        if reference.first > first:
            segments.append(Segment(first, reference.first))
        segments.append(reference)
        first = reference.first
    if count > first:
        segments.append(Segment(first, count))
    return segments


def bind(
    storage: Storage,
    packed: Mapping[Value, set[Panels]],
    isa: Isa,
    sizes: Mapping[str, int],
    key: tuple[int, ...],
) -> Bound:
    """The plan of ``storage`` at ``sizes``; the first number of ``key`` is that of threads."""
    bound = Bound(key, dict(sizes))
    binder = _Binder(storage, packed, isa, bound)
    for placed in storage.steps:
        binder.place(placed)
    binder.finish()
    return bound

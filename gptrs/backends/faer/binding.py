"""Binding of a plan to sizes: the step table, arena offsets, and relocations of addresses.

Input: a `BufferAssignment`, concrete sizes, a number of threads. Each step's template
(`step_templates`, shared by equal steps) is instantiated: its argument block is appended to one
array of words, and each word that holds an address becomes a relocation against a buffer. Output: a
`Bound`, which `run` executes; only addresses change from call to call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gptrs.backends.faer.arena import Places
from gptrs.backends.faer.buffer_assignment import Allocation, BufferAssignment, Placed
from gptrs.backends.faer.calls.base import Form
from gptrs.backends.faer.schedule import CallStep, PlanStep, RegionStep, Single
from gptrs.backends.faer.step_templates import Sizes, StepTemplate, TemplateBuilder
from gptrs.backends.weight_residency import Lease
from gptrs.identity_key import getter
from gptrs.ir.program import Value
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.driver.step_table import Status, Step, StepTable

READY = 0x001 | 0x100
"""NumPy's flags of a contiguous, aligned array; and of a writeable one."""
WRITEABLE = 0x400
ARENA = 0
"""The number of the arena among the buffers."""


class Buffer(NamedTuple):
    """An array outside of the arena: an argument, a parameter or constant (perhaps packed), a
    result."""

    kind: Literal["argument", "parameter", "constant", "result"]
    number: int
    """The index of the program's parameter, instruction or result."""
    form: Form | None = None


class Segment(NamedTuple):
    """Native steps ``first`` to ``last``, or an instruction that Python runs."""

    first: int
    last: int
    reference: Single | None = None


@dataclass
class Bound:
    """A plan at one set of sizes and threads. It serves one call at a time."""

    key: tuple[int, ...]
    """The number of threads, then the sizes."""
    sizes: Mapping[str, int]
    storage: BufferAssignment
    status: Status = field(default_factory=Status)
    buffers: dict[Buffer, int] = field(default_factory=dict[Buffer, int])  # numbers from 1 up
    offsets: dict[Allocation, int] = field(default_factory=dict[Allocation, int])  # in the arena
    arena_bytes: int = 0
    segments: list[Segment] = field(default_factory=list[Segment])
    owners: list[PlanStep] = field(default_factory=list[PlanStep])  # of each native step
    names: list[str] = field(default_factory=list[str])  # of the kernel of each native step
    table: StepTable = field(default_factory=lambda: StepTable([]))
    words: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    patches: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = field(
        default_factory=list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    )
    """By buffer: the words that hold an address in it, and how far behind its beginning."""
    only: list[tuple[int, int] | None] = field(default_factory=list[tuple[int, int] | None])
    """The same for buffers with one such word, in Python's numbers."""
    view: memoryview = field(default_factory=lambda: memoryview(b""))
    """The words, for writing one of them fast."""
    addresses: list[int] = field(default_factory=list[int])
    """By buffer: the address that the words have now."""
    inputs: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """Arguments that kernels read: buffer, number, flags that the array must have."""
    outputs: list[tuple[int, int, tuple[int, ...], Any]] = field(
        default_factory=list[tuple[int, int, tuple[int, ...], Any]]
    )
    """Results: buffer, number, shape, dtype."""
    weights: list[tuple[int, int, Form | None]] = field(
        default_factory=list[tuple[int, int, Form | None]]
    )
    """Parameters that kernels read: buffer, number, form."""
    pick: Callable[[Any], Sequence[object]] = field(default=getter(()))
    """The arguments that are these parameters."""
    lease: Lease = field(default_factory=Lease)
    """Keeps the parameters that the words point to now, in the order of `weights`."""
    results: Callable[[Sequence[Any]], Any] | None = None
    """Takes the results from the `outputs` and the arguments, where all steps are native, and no
    result has to be copied or reshaped."""

    @property
    def threads(self) -> int:
        return self.key[0]

    def move(self, buffer: int, address: int) -> None:
        """Relocate ``buffer`` to an address: update all argument words that point into it."""
        self.addresses[buffer] = -1  # until all words are written: an interrupt may come between
        only = self.only[buffer]
        if only is not None:
            self.view[only[0]] = address + only[1]
        else:
            places, offsets = self.patches[buffer]
            self.words[places] = offsets + address
        self.addresses[buffer] = address


class _Binder:
    """Concatenates the steps of a plan and allocates its intermediate arrays in the arena."""

    def __init__(self, isa: Isa, bound: Bound) -> None:
        self._storage, self._isa, self._bound = bound.storage, isa, bound
        self._size = Sizes(bound.sizes)
        self._templates: dict[Hashable, StepTemplate] = {}
        self._places = Places()
        self._words: list[int] = []
        self._patches: list[list[tuple[int, int]]] = [[]]
        self._steps: list[tuple[Kernel, int, int, int]] = []

    def place(self, placed: Placed) -> None:
        """Append the native steps of a step, or a segment that Python runs."""
        offsets = self._bound.offsets
        for home in placed.begin:
            offsets[home] = self._places.take(self._bytes(home))
        if not placed.view:
            template = self._template(placed)
            if template is None or template.steps is None:
                assert isinstance(placed.work, Single)
                at = len(self._steps)
                self._bound.segments.append(Segment(at, at, placed.work))
            else:
                self._instantiate(template, placed)
        for home in placed.end:
            self._places.give(offsets[home], self._bytes(home))

    def _template(self, placed: Placed) -> StepTemplate | None:
        work = placed.work
        if not isinstance(work, CallStep | RegionStep):
            return None
        found = self._templates.get(placed.structure_key)
        if found is None:
            builder = TemplateBuilder(
                self._isa,
                self._bound.threads,
                self._bound.status.address,
                self._size,
                work.operands,
                placed.packed,
                placed.in_place,
            )
            found = builder.build(work.call if isinstance(work, CallStep) else work)
            if placed.structure_key is not None:
                self._templates[placed.structure_key] = found
        return found

    def _instantiate(self, template: StepTemplate, placed: Placed) -> None:
        """Append the steps of a template with the arrays of this step."""
        slots = [self._slot(placed.homes[operand], form) for operand, form in template.forms]
        rooms = [self._places.take(size) for size in template.scratch]
        slots += [(ARENA, room) for room in reversed(rooms)]  # they are counted from the end
        words, patches = self._words, self._patches
        for kernel, plain, addresses, extent, chunks in template.steps or ():
            start = len(words)
            words += plain
            for place, slot, behind in addresses:
                buffer, offset = slots[slot]
                patches[buffer].append((start + place, offset + behind))
            self._steps.append((kernel, start, extent, chunks))
            self._bound.owners.append(placed.work)
        for room, size in zip(rooms, template.scratch, strict=True):
            self._places.give(room, size)

    def _slot(self, home: Allocation, form: Form | None) -> tuple[int, int]:
        """The buffer of an allocation, and its offset there."""
        if home.kind == "arena":
            return ARENA, self._bound.offsets[home]
        buffer, numbers = Buffer(home.kind, home.number, form), self._bound.buffers
        if buffer not in numbers:
            numbers[buffer] = len(numbers) + 1
            self._patches.append([])
        return numbers[buffer], 0

    def _bytes(self, home: Allocation) -> int:
        type = home.values[0].type
        size = type.dtype.numpy.itemsize
        for extent in type.shape:
            size *= self._size(extent)
        return size

    def finish(self) -> None:
        """Build the step table and the relocations."""
        bound = self._bound
        bound.arena_bytes = self._places.size
        bound.words = np.array(self._words, np.int64)
        bound.view = bound.words.data
        bound.only = [pairs[0] if len(pairs) == 1 else None for pairs in self._patches]
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
                    result = self._storage.program.results[buffer.number]
                    kind = result.type.dtype.numpy
                    bound.outputs.append((number, buffer.number, self._shape(result), kind))
                case _:
                    pass
        bound.pick = getter([number for _, number, _ in bound.weights])
        bound.outputs.sort(key=lambda output: output[1])
        places = self._result_places([number for _, number, *_ in bound.outputs])
        if places is not None and not any(segment.reference for segment in bound.segments):
            bound.results = getter(places)

    def _result_places(self, written: list[int]) -> list[int] | None:
        """The index of each result among the written outputs and the arguments; None where a result
        has to be copied or reshaped."""
        program, places = self._storage.program, list[int]()
        for number, value in enumerate(program.results):
            home, shape = self._storage.homes[value], self._shape(value)
            if home.kind == "result" and home.number == number and number in written:
                places.append(written.index(number))
            elif home.donated and self._shape(program.params[home.number]) == shape:
                places.append(len(written) + home.number)
            else:
                return None
        return places if len(set(places)) == len(places) else None  # each is handed out once

    def _shape(self, value: Value) -> tuple[int, ...]:
        return tuple(map(self._size, value.type.shape))


def _joined(references: Sequence[Segment], count: int) -> list[Segment]:
    """Native segments between the segments that Python runs."""
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
    storage: BufferAssignment, isa: Isa, sizes: Mapping[str, int], key: tuple[int, ...]
) -> Bound:
    """The plan of ``storage`` at ``sizes``; the first number of ``key`` is the number of
    threads."""
    bound = Bound(key, dict(sizes), storage)
    binder = _Binder(isa, bound)
    for placed in storage.steps:
        binder.place(placed)
    binder.finish()
    return bound

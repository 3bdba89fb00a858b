"""Step templates: the native steps of a call or region at known sizes, with symbolic buffer
addresses.

Layers of one model make equal calls on other arrays, so that one template serves all of them
(`structure_key`). `binding` instantiates a template with the buffers of a step.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import field, fields, is_dataclass
from typing import Any, NamedTuple

from gptrs.backends.faer.calls.base import ASIDE, PIECES, UNEVEN_PIECES, Address, Binder, Call, Word
from gptrs.backends.faer.calls.forms import Form
from gptrs.backends.faer.steps import CheckStep, LoopStep, RegionStep
from gptrs.backends.machine import MACHINE
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.program import Value
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.lazy_dataclass import dataclass


class TemplateStep(NamedTuple):
    """One native step: its argument block with zeros for addresses, and the relocations of these
    words.

    A relocation is (index of the word, slot, offset in bytes). Slots are the arrays of the call in
    the order of `StepTemplate.forms`; scratch memory counts from -1 down.
    """

    kernel: Kernel
    argument_block: list[int]
    relocations: list[tuple[int, int, int]]
    extent: int
    chunks: int
    time: float
    """An estimate of its time on one thread, in ns."""
    prepares: int | None = None
    """The slot of scratch memory that it fills, and nothing else: see `Binder.step`."""


@dataclass
class StepTemplate:
    """The native steps of a call; None where its kernels do not support these sizes."""

    steps: list[TemplateStep] | None = field(default_factory=list[TemplateStep])
    forms: list[tuple[int, Form | None]] = field(default_factory=list[tuple[int, Form | None]])
    """By slot: the number of the operand, and its form. The last operands are the results."""
    scratch: list[int] = field(default_factory=list[int])
    """The sizes of scratch memory, in bytes."""


class Sizes:
    """Evaluation of dims at the sizes of a call, memoised."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._known: dict[int, tuple[Dim, int]] = {}

    def __call__(self, value: DimLike) -> int:
        if value.__class__ is int:
            return value  # pyright: ignore[reportReturnType]
        if not isinstance(value, Dim):
            return value
        found = self._known.get(id(value))
        if found is None:  # kept with the dim, so that no other one gets its id
            found = self._known[id(value)] = value, value.at(self._sizes)
        return found[1]


class TemplateBuilder(Binder):
    """Builds a template: the `Binder` that a call or region writes its steps to."""

    def __init__(
        self,
        isa: Isa,
        threads: int,
        status: int,
        sizes: Sizes,
        operands: Sequence[Value],
        packed: Sequence[frozenset[Form]],
        in_place: bool,
        placed: Set[int] = frozenset(),
    ) -> None:
        self.isa, self.threads, self.status, self.in_place = isa, threads, status, in_place
        self.size = sizes
        self.placed = {operands[number] for number in placed}
        self.template = StepTemplate()
        self._places = {value: number for number, value in enumerate(operands)}
        self._packed = packed
        self._slots: dict[tuple[int, Form | None], int] = {}

    def _slot(self, operand: int, form: Form | None) -> int:
        if (operand, form) not in self._slots:
            self._slots[operand, form] = len(self.template.forms)
            self.template.forms.append((operand, form))
        return self._slots[operand, form]

    def address(self, value: Value, offset: DimLike = 0) -> Address:
        size = self.size(offset) * value.type.dtype.numpy.itemsize
        return Address(self._slot(self._places[value], None), size)

    def panels(self, value: Value, form: Form) -> Address | None:
        operand = self._places[value]
        return Address(self._slot(operand, form), 0) if form in self._packed[operand] else None

    def scratch(self, size: int) -> Address:
        self.template.scratch.append(size)
        return Address(-len(self.template.scratch), 0)

    def step(
        self,
        kernel: Kernel,
        words: Sequence[Word],
        extent: int,
        time: float,
        grain: int = 1,
        least: float = MACHINE.piece,
        prepares: Address | None = None,
        uneven: bool = False,
    ) -> None:
        if extent <= 0:
            return
        addresses = [(n, w.slot, w.offset) for n, w in enumerate(words) if isinstance(w, Address)]
        block = [0 if isinstance(w, Address) else w for w in words]
        chunks = chunk_count(self.threads, extent, time, grain, least, uneven=uneven)
        assert self.template.steps is not None
        slot = None if prepares is None else prepares.slot
        step = TemplateStep(kernel, block, addresses, extent, chunks, time, slot)
        self.template.steps.append(step)

    def build(self, step: Call | RegionStep | LoopStep | CheckStep) -> StepTemplate:
        """The template of a call, a region or a loop."""
        if step.bind(self) is False:
            self.template = StepTemplate(None)
        return self.template


def chunk_count(
    threads: int,
    extent: int,
    time: float,
    grain: int = 1,
    least: float = MACHINE.piece,
    *,
    uneven: bool = False,
) -> int:
    """How many chunks a step is cut into that takes so many ns on one thread: each of ``grain`` or
    more of its extent, unless a thread had none, and of ``least`` ns; more if its items are
    ``uneven``."""
    if threads == 1 or time < MACHINE.serial:
        return 1
    pieces = threads * (UNEVEN_PIECES if uneven else PIECES)
    # Chunks of one or two items would be uneven.
    pieces = extent if extent <= 2 * pieces else pieces
    pieces = min(pieces, max(threads, extent // grain))
    return max(1, min(pieces, int(time / least)))


def structure_key(thing: Any, places: Mapping[Value, int]) -> Hashable:
    """A hashable key of a call without the identity of its arrays: equal for calls that share a
    template."""
    if isinstance(thing, Value):
        shape = structure_key(thing.type.shape, places)
        return "operand", places[thing], thing.type.dtype.name, shape
    if isinstance(thing, Dim):
        return thing.terms
    if isinstance(thing, tuple):
        return tuple([structure_key(part, places) for part in thing])  # pyright: ignore[reportUnknownVariableType]
    if is_dataclass(thing) and not isinstance(thing, type):
        named = [f.name for f in fields(thing) if f.name not in ASIDE]
        return type(thing), *[structure_key(getattr(thing, name), places) for name in named]
    return thing

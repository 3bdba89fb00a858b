"""Stage chains: consecutive regions that read each other's results become one native step.

    t[i] = f(x[i − 1], x[i], x[i + 1])         for each block of planes:
    out[i] = g(t[i], t[i + 1])            ──▶      compute the planes of t that are not there yet
                                                   compute the planes of out

Stages of a stencil store an array that the next one reads a few planes around each of its own, a
plane being one index of the outermost axis. In blocks of planes, what is stored is read from the
second cache, from a window that the next block takes again, and what both stages read comes from
memory once. Each element is computed by the same kernel as alone. A chain is taken where

- nobody but the chain reads the results of all stages but the last, which are in the arena, and no
  stage writes what an other one reads besides;
- plain loops compute the regions, which cannot fail, with whole planes, and a stage reads an
  earlier one's result at a fixed number of planes before and after its own;
- the arrays are larger than the second cache, blocks of planes are not, and there are enough of
  them for all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from gptrs.backends.faer.buffer_assignment import AssignedStep
from gptrs.backends.faer.calls.base import kernel
from gptrs.backends.faer.loop_writer import LoopWriter
from gptrs.backends.faer.neighbour_writer import NeighbourWriter
from gptrs.backends.faer.render import writer_of
from gptrs.backends.faer.step_templates import StepTemplate, TemplateStep
from gptrs.backends.faer.steps import PlanStep, RegionStep
from gptrs.backends.faer.strided_copy import copy_of
from gptrs.backends.machine import MACHINE
from gptrs.backends.regions import Region
from gptrs.backends.views import Load, View
from gptrs.ir.dims import DimLike
from gptrs.ir.program import Fails, Value
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.stage_chain import (
    ARRAY_WORDS,
    STAGE_WORDS,
    USE_WORDS,
    Field,
    room_for,
    stage_chain_kernel,
)
from gptrs.lazy_dataclass import dataclass

_MOST_STAGES = 8
_AGAIN = 4  # a block has so many times the planes that it keeps of the one before
_SHARES = 2  # of each thread; each computes the planes around it a second time

Size = Callable[[DimLike], int]


@dataclass(frozen=True)
class Stage:
    """A step of a chain, and what it computes for planes b … e of the last one: ``low`` planes
    before b (a negative number) to ``high`` after e."""

    step: RegionStep
    planes: int
    rows: int
    """Of each plane, in its kernel's extent."""
    joined: int
    """The indices of its outermost loop in a plane."""
    low: int
    high: int
    plane_bytes: Mapping[Value, int]
    """By result."""
    alone: TemplateStep | None = None

    @property
    def native(self) -> TemplateStep:
        """Its native step, if it were alone."""
        assert self.alone is not None
        return self.alone


@dataclass(frozen=True)
class Chain:
    """Stages in order, for blocks of so many planes."""

    stages: Sequence[Stage]
    block: int
    slots: int

    @property
    def time(self) -> float:
        """An estimate of its time on one thread, in ns."""
        return sum(stage.native.time for stage in self.stages)

    def with_kernels(self, templates: Sequence[StepTemplate | None]) -> Chain | None:
        """The chain with the native steps of its stages; None where one has several."""
        stages: list[Stage] = []
        for stage, template in zip(self.stages, templates, strict=True):
            steps = template.steps if template is not None and not template.scratch else None
            if steps is None or len(steps) != 1 or steps[0].extent != stage.planes * stage.rows:
                return None
            stages.append(replace(stage, alone=steps[0]))
        return replace(self, stages=stages)

    def words(
        self,
        isa: Isa,
        slots: Sequence[Sequence[tuple[int, int]]],
        values: Sequence[Sequence[Value]],
    ) -> tuple[Kernel, list[int], list[tuple[int, int, int]]]:
        """The kernel of the chain, its argument block, and the relocations of that: place, buffer,
        offset. ``slots`` are buffer and offset of each stage's slots, which hold ``values``."""
        made = [value for stage in self.stages[:-1] for value in stage.plane_bytes]
        held = [
            [values_[slot] for _, slot, _ in stage.native.relocations]
            for stage, values_ in zip(self.stages, values, strict=True)
        ]
        uses = sum(value in made for several in held for value in several)
        head = Field.ROWS + STAGE_WORDS * len(self.stages)
        head += ARRAY_WORDS * len(made) + USE_WORDS * uses
        blocks, rows = list[int](), list[int]()
        relocations: list[tuple[int, int, int]] = []
        places: dict[Value, list[int]] = {value: [] for value in made}
        for stage, known, several in zip(self.stages, slots, held, strict=True):
            native, start = stage.native, head + len(blocks)
            blocks += native.argument_block
            rows += [native.kernel.address, stage.rows, stage.planes, stage.low, stage.high, start]
            for (place, slot, displacement), value in zip(native.relocations, several, strict=True):
                buffer, offset = known[slot]
                relocations.append((start + place, buffer, offset + displacement))
                if value in places:
                    places[value].append(start + place)
        for number, stage in enumerate(self.stages[:-1]):
            window = self.block + stage.high - stage.low
            for value, size in stage.plane_bytes.items():
                rows += [places[value][0], number, window * size, size]
        for number, value in enumerate(made):
            rows += [word for place in places[value] for word in (place, number)]
        counts = [len(self.stages), len(made), uses]
        words = [*counts, self.stages[-1].planes, self.slots, self.block, *rows, *blocks]
        words += [0] * (room_for(len(words)) - len(words))
        return kernel(stage_chain_kernel, isa, len(words)), words, relocations


def chains_of(steps: Sequence[AssignedStep], size: Size, threads: int) -> Mapping[int, Chain]:
    """The chains among ``steps`` at known sizes, by the place of their first stage."""
    found: dict[int, Chain] = {}
    held = [_array_bytes([one.step], size) for one in steps]
    last = len(steps) - 1
    while last > 0:
        large = sum(held[max(0, last + 1 - _MOST_STAGES) : last + 1]) > MACHINE.l2_bytes
        stages = _stages(steps, last, size) if large else []
        chain = _chain(stages, size, threads) if len(stages) > 1 else None
        if chain is not None:
            found[last + 1 - len(stages)] = chain
            last -= len(stages)
        else:
            last -= 1
    return found


def _stages(steps: Sequence[AssignedStep], last: int, size: Size) -> list[Stage]:
    """The stages of the longest chain that ends with step number ``last``."""
    may_be = all(
        type(one.step) is RegionStep and not one.view for one in steps[last - 1 : last + 1]
    )
    if not may_be or not _is_private(steps[last - 1], steps[last : last + 1]):
        return []  # most steps
    end = _stage(steps[last], size)
    if end is None:
        return []
    stages, members = [end], [steps[last]]
    for assigned in reversed(steps[max(0, last + 1 - _MOST_STAGES) : last]):
        stage = _stage(assigned, size)
        if stage is None or not _is_private(assigned, members):
            break
        reach = _reach(stage, stages, size)
        if reach is None:
            break
        stages.insert(0, replace(stage, low=reach[0], high=reach[1]))
        members.insert(0, assigned)
    return stages


def _stage(assigned: AssignedStep, size: Size) -> Stage | None:
    """A step as a stage; None where it cannot be one."""
    step = assigned.step
    if type(step) is not RegionStep or assigned.view or step.fails is not Fails.NEVER:
        return None
    region = step.region
    loops = region.inner if region.is_flat else region.rows
    if not loops or writer_of(region, shared=step.shared) not in (LoopWriter, NeighbourWriter):
        return None
    if region.copies is not None or copy_of(region) is not None:
        return None
    count = size(loops[0])
    outermost = next((n for n in map(size, region.result.type.shape) if n != 1), 1)
    joined = count // outermost if outermost and count % outermost == 0 else 1
    planes, rows = count // joined, joined * prod(map(size, loops[1:]))
    sizes: dict[Value, int] = {}
    for one in (region, *region.others):
        stride, made = size(one.output.strides[0]) * joined, one.result.type
        if size(one.output.offset) or planes * stride != prod(map(size, made.shape)):
            return None
        sizes[one.result] = stride * made.dtype.numpy.itemsize
    return Stage(step, planes, rows, joined, 0, 0, sizes)


def _is_private(assigned: AssignedStep, later: Sequence[AssignedStep]) -> bool:
    """Whether only ``later`` steps read a step's results, and none of them writes what it reads."""
    made = assigned.allocations[len(assigned.allocations) - len(assigned.step.results) :]
    ends = later[-1].number
    alone = all(
        one.kind == "arena"
        and one.inside is None
        and len(one.values) == 1
        and assigned.number < one.last <= ends
        for one in made
    )
    written = [one for step in later for one in step.allocations[-len(step.step.results) :]]
    return alone and not any(one in written for one in assigned.allocations)


def _reach(stage: Stage, later: Sequence[Stage], size: Size) -> tuple[int, int] | None:
    """The planes that ``later`` stages read for a plane of the last one, from the first to the one
    after the last; None where they are not a fixed number of planes around it."""
    lows, highs = list[int](), list[int]()
    for reader in later:
        for value, view in _loads(reader.step.region):
            if value not in stage.plane_bytes:
                continue
            plane = stage.plane_bytes[value] // value.type.dtype.numpy.itemsize
            axes = zip(map(size, view.shape), map(size, view.strides), strict=True)
            (count, step), *rest = axes
            if step * reader.joined != plane or count != reader.planes * reader.joined:
                return None
            first = last = size(view.offset)
            for extent, stride in ((reader.joined, step), *rest):
                length = (extent - 1) * stride
                first, last = first + min(length, 0), last + max(length, 0)
            lows.append(reader.low + first // plane)
            highs.append(reader.high + last // plane)
    return (min(lows), max(highs)) if lows else None


def _loads(region: Region) -> Iterator[tuple[Value, View]]:
    for part in region.parts:
        if isinstance(part, Load):
            yield part.value, part.view


def _array_bytes(steps: Sequence[PlanStep], size: Size) -> int:
    """The bytes of all arrays that steps read and write."""
    types = [v.type for v in {v for step in steps for v in (*step.inputs, *step.results)}]
    return sum(prod(map(size, t.shape)) * t.dtype.numpy.itemsize for t in types)


def _chain(stages: Sequence[Stage], size: Size, threads: int) -> Chain | None:
    """The chain of ``stages``, if it is faster than they are one after the other."""
    if _array_bytes([stage.step for stage in stages], size) <= MACHINE.l2_bytes:
        return None
    inner = stages[:-1]
    plane = sum(sum(stage.plane_bytes.values()) for stage in inner)
    kept = sum((s.high - s.low) * sum(s.plane_bytes.values()) for s in inner)
    widest = max(stage.high - stage.low for stage in inner)
    planes = stages[-1].planes
    cached, shared = (MACHINE.l2_bytes // 2 - kept) // plane, planes // (2 * threads)
    block = max(1, _AGAIN * widest, min(cached, shared))
    most = planes // (2 * block)  # shares of two blocks at least
    if most < threads or block * plane + kept > MACHINE.l3_bytes // 4:
        return None
    slots = 1 if threads == 1 else min(_SHARES * threads, most)
    room = (slots * (block + s.high - s.low) <= s.planes for s in inner)
    return Chain(stages, block, slots) if all(room) else None

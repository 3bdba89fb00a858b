"""Memory planning: a place for each value of a schedule.

Arguments, constants and results have arrays of their own. Intermediate values share slots: a value
takes one whose value is not read any more. A reshape is its source's array, and an update takes
the memory of the array that it updates where nobody reads that later: a slot, or a donated
argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal, NamedTuple, TypeAlias

from gptrs.backends.c_family.kernels.moving import copy_call
from gptrs.backends.c_family.schedule import AliasStep, KernelStep, OtherStep, Schedule, Step
from gptrs.ir.dims import DimLike, size_at
from gptrs.ir.ops.literal import constant
from gptrs.ir.program import Value
from gptrs.ir.types import DType
from gptrs.lazy_dataclass import dataclass

Kind: TypeAlias = Literal["argument", "data", "slot", "result", "given"]
_SAMPLE = 64  # the extent that symbols are assumed to have where slots are compared
ALIGNMENT = 64


class Place(NamedTuple):
    """An array: of an argument, the data of a constant (by its instruction), a slot, a result, what
    the host or a nested program gives."""

    kind: Kind
    number: int


@dataclass
class Slot:
    """Memory of several values, one after the other: as many bytes as the largest has."""

    sizes: list[DimLike] = field(default_factory=list["DimLike"])
    """In bytes."""

    def bytes(self, sizes: Mapping[str, int]) -> int:
        return max((size_at(n, sizes) for n in self.sizes), default=0)


@dataclass(frozen=True)
class Assignment:
    """The places of all values, and the steps that are left to run."""

    schedule: Schedule
    steps: tuple[KernelStep | OtherStep, ...]
    places: dict[Value, Place]
    slots: tuple[Slot, ...]
    results: tuple[Place, ...]
    """Where each result of the program is."""
    copies: tuple[tuple[Value, int], ...]
    """Values to copy to results in the end."""


def host_bytes(dtype: DType) -> int:
    """The size of an element in the memory of the host."""
    return dtype.numpy.itemsize


def assign(
    schedule: Schedule,
    *,
    item_bytes: Callable[[DType], int] = host_bytes,
    others_in_slots: bool = False,
) -> Assignment:
    """Places for the values of ``schedule``; ``item_bytes`` is the size of an element.

    What no kernel computes has buffers of its own, or slots, by ``others_in_slots``.
    """
    return _Planner(schedule, item_bytes, others_in_slots=others_in_slots).plan()


def bytes_of(value: Value) -> DimLike:
    """The size of a value's array."""
    return value.type.size * host_bytes(value.type.dtype)


class _Planner:
    def __init__(
        self, schedule: Schedule, item_bytes: Callable[[DType], int], *, others_in_slots: bool
    ) -> None:
        self._schedule, self._item_bytes = schedule, item_bytes
        self._place_other = self._place if others_in_slots else self._place_alone
        program = schedule.program
        self._places: dict[Value, Place] = {
            param: Place("argument", n) for n, param in enumerate(program.params)
        }
        self._donated = {Place("argument", n) for n, p in enumerate(program.params) if p.donated}
        for n, instruction in enumerate(program.body):
            if instruction.op is constant:
                self._places[instruction.result] = Place("data", n)
        self._numbers: dict[Value, int] = {}  # of results that get an array of their own
        for number, value in enumerate(program.results):
            self._numbers.setdefault(value, number)
        self._root: dict[Value, Value] = {}
        self._slots: list[Slot] = []
        self._free: list[int] = []
        self._given = 0

    def plan(self) -> Assignment:
        steps = self._schedule.steps
        for step in steps:
            if isinstance(step, AliasStep) and step.result not in self._numbers:
                self._root[step.result] = self._of(step.source)
        last = self._last_uses(steps)
        kept: list[KernelStep | OtherStep] = []
        for number, step in enumerate(steps):
            if isinstance(step, AliasStep):
                if step.result in self._numbers:
                    kept.append(self._copy(step))
                else:
                    self._places[step.result] = self._places[self._of(step.source)]
                    continue
            elif isinstance(step, KernelStep):
                kept.append(self._placed(step, number, last))
                for value in step.others:
                    self._place(value)
            else:
                for result in step.instruction.results:
                    self._place_other(result)
                kept.append(step)
            self._release(number, last)
        return self._done(tuple(kept))

    def _of(self, value: Value) -> Value:
        """The value whose array ``value`` has."""
        while value in self._root:
            value = self._root[value]
        return value

    def _last_uses(self, steps: Sequence[Step]) -> dict[Value, int]:
        last: dict[Value, int] = {}
        for number, step in enumerate(steps):
            for value in (*_read(step), *_written(step)):
                last[self._of(value)] = number
        for result in self._schedule.program.results:
            last[self._of(result)] = len(steps)
        return last

    def _copy(self, step: AliasStep) -> KernelStep:
        """An alias that is a result of the program, as a copy."""
        self._place(step.result)
        call = copy_call(step.source, step.result, [])
        return KernelStep((call,), step.result, step.members, "copy", is_region=True)

    def _placed(self, step: KernelStep, number: int, last: dict[Value, int]) -> KernelStep:
        """The step, without its copy where its result takes the memory of the operand."""
        if step.copied is not None and self._may_overwrite(step, number, last):
            source = self._of(step.copied)
            place = self._places[source]
            self._places[step.result] = place
            if place.kind == "slot":
                last[source] = -1  # the result frees the slot
            return replace(step, calls=step.calls[1:])
        self._place(step.result)
        return step

    def _may_overwrite(self, step: KernelStep, number: int, last: dict[Value, int]) -> bool:
        assert step.copied is not None
        source = self._of(step.copied)
        place = self._places[source]
        if last[source] > number or source in self._numbers:
            return False
        if any(self._of(v) is source for call in step.calls[1:] for v in call.read):
            return False
        if place in self._donated:
            return True
        return place.kind == "slot" and step.result not in self._numbers

    def _place(self, value: Value) -> None:
        if value in self._numbers:
            self._places[value] = Place("result", self._numbers[value])
            return
        size = value.type.size * self._item_bytes(value.type.dtype)
        number = self._slot(size)
        self._slots[number].sizes.append(size)
        self._places[value] = Place("slot", number)

    def _place_alone(self, value: Value) -> None:
        """A place for a value whose buffer comes with it, so that no other value has room there."""
        if value in self._numbers:
            self._places[value] = Place("result", self._numbers[value])
        else:
            self._places[value] = Place("given", self._given)
            self._given += 1

    def _slot(self, size: DimLike) -> int:
        """A free slot: the smallest that is large enough, else the largest, else a new one."""
        wanted = _sample(size)
        rooms = {n: max(map(_sample, self._slots[n].sizes)) for n in self._free}
        enough = [n for n, room in rooms.items() if room >= wanted]
        if rooms:
            by_room = {room: n for n, room in rooms.items()}
            chosen = by_room[min((rooms[n] for n in enough), default=max(by_room))]
            self._free.remove(chosen)
            return chosen
        self._slots.append(Slot())
        return len(self._slots) - 1

    def _release(self, number: int, last: dict[Value, int]) -> None:
        for value, end in last.items():
            if end == number and (place := self._places.get(value)) and place.kind == "slot":
                self._free.append(place.number)

    def _done(self, steps: tuple[KernelStep | OtherStep, ...]) -> Assignment:
        results: list[Place] = []
        copies: list[tuple[Value, int]] = []
        seen: set[Place] = set()
        for number, value in enumerate(self._schedule.program.results):
            place = self._places[self._of(value)]
            mine = place == Place("result", number) or place in self._donated
            moved = place in self._donated and value is self._schedule.program.params[place.number]
            if not mine or place in seen or moved:
                copies.append((value, number))
                place = Place("result", number)
            seen.add(place)
            results.append(place)
        places = {value: self._places[self._of(value)] for value in self._root} | self._places
        given = self._schedule, steps, places, tuple(self._slots)
        return Assignment(*given, tuple(results), tuple(copies))


def _sample(size: DimLike) -> int:
    if isinstance(size, int):
        return size
    return size_at(size, dict.fromkeys(size.symbols(), _SAMPLE))


def _read(step: Step) -> tuple[Value, ...]:
    match step:
        case KernelStep():
            return tuple(v for call in step.calls for v in call.read)
        case AliasStep():
            return (step.source,)
        case OtherStep():
            return tuple(step.instruction.values())


def _written(step: Step) -> tuple[Value, ...]:
    match step:
        case KernelStep():
            return (step.result, *step.others)
        case AliasStep():
            return (step.result,)
        case OtherStep():
            return step.instruction.results

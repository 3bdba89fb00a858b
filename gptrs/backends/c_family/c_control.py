"""Branches and loops as C, over the functions of their regions.

    cond        if (flag) then(...); else otherwise(...);
    while_loop  for (;;) { condition(...); if (!going) break; body(...); }
    scan        for each row: body(...), which reads a row of the xs and writes one of the ys

A part of the state that the body changes has two arrays: that of the result, and one more where the
body cannot write in place. They change their roles in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gptrs.backends.c_family.c_plan import Control, CPlan
from gptrs.backends.c_family.index_text import dim_text
from gptrs.backends.c_family.memory import ALIGNMENT, bytes_of
from gptrs.ir.ops.control import cond, scan
from gptrs.ir.program import Value
from gptrs.lazy_dataclass import dataclass

Pointer = Callable[[Value], str]


@dataclass(frozen=True)
class ControlText:
    """A branch or a loop in the function around it, in which ``at`` is where the room begins."""

    lines: list[str]
    room: str
    """The bytes that it needs after the slots of that function."""


@dataclass(frozen=True)
class Region:
    """The function of a region."""

    name: str
    plan: CPlan
    outputs: tuple[int, ...]
    """The results that have arrays of their own."""

    @property
    def arena_bytes(self) -> str:
        return f"{self.name}_arena_bytes(sizes)"

    def call(self, inputs: Sequence[str], outputs: Mapping[int, str]) -> list[str]:
        """Lines that run it, with what is left of the room as its arena."""
        given = ["sizes", "weights", "room", *inputs, *(outputs[n] for n in self.outputs)]
        run = f"const int status = {self.name}_run({', '.join(given)});"
        return ["{", f"  {run}", "  if (status) return status;", "}"]


def aligned(size: str) -> str:
    """The bytes that an array takes in an arena."""
    return f"((size_t){size} + {ALIGNMENT - 1}) / {ALIGNMENT} * {ALIGNMENT}"


def control_text(control: Control, regions: Sequence[Region], pointer: Pointer) -> ControlText:
    """The text of a branch or of a loop, whose operands and results are where ``pointer`` says."""
    if control.instruction.op is cond:
        return _branch(control, regions, pointer)
    return _Loop(control, regions, pointer).text()


def _branch(control: Control, regions: Sequence[Region], pointer: Pointer) -> ControlText:
    instruction = control.instruction
    flag, *given = instruction.values()
    inputs = [pointer(value) for value in given]
    outputs = dict(enumerate(map(pointer, instruction.results)))
    then, otherwise = (region.call(inputs, outputs) for region in regions)
    sizes = [f"(isize){region.arena_bytes}" for region in regions]
    return ControlText(
        [_ROOM, f"if (*(const u8 *){pointer(flag)})", *then, "else", *otherwise],
        f"greatest({', '.join(sizes)})",
    )


_ROOM = "char *room = (char *)arena + at;"


class _Loop:
    """Writes a loop. Of part n of the state, ``state_n`` is where it is, ``next_n`` where the body
    writes it if it cannot write it in place."""

    def __init__(self, control: Control, regions: Sequence[Region], pointer: Pointer) -> None:
        self._control, self._regions, self._pointer = control, regions, pointer
        instruction = control.instruction
        self._state, *others = map(_several, instruction.operands)
        self._captured = others[-1]
        self._xs = others[0] if instruction.op is scan else ()
        self._results = instruction.results
        self._body = regions[-1]
        self._places = self._body.plan.assignment.results
        self._rooms: list[str] = []
        changed = control.changed
        self._from = {
            n: changed[place.number]
            for n, place in zip(changed, self._places, strict=False)
            if place.kind != "result"
        }
        """By part that is written in place: the part in whose memory that is."""
        self._crosses = any(n != m for n, m in self._from.items())

    def text(self) -> ControlText:
        """The loop, with what comes before and after it."""
        lines = [_ROOM, *self._begin()]
        lines += self._scan() if self._control.instruction.op is scan else self._while()
        lines += self._end()
        sizes = "0"
        for region in self._regions:
            sizes = f"greatest({sizes}, (isize){region.arena_bytes})"
        return ControlText(lines, " + ".join([*self._rooms, f"(size_t){sizes}"]))

    def _begin(self) -> list[str]:
        """The state at first."""
        lines: list[str] = []
        for n in self._control.changed:
            home = self._pointer(self._results[n])
            lines += (
                self._roomy(f"state_{n}", n) if self._crosses else [f"void *state_{n} = {home};"]
            )
            lines.append(self._copy(n, f"state_{n}", self._pointer(self._state[n])))
            if n not in self._from:
                lines += self._roomy(f"next_{n}", n)
        return lines

    def _roomy(self, name: str, part: int) -> list[str]:
        """An array for a part of the state in the room."""
        size = aligned(dim_text(bytes_of(self._state[part])))
        self._rooms.append(size)
        return [f"void *{name} = room;", f"room += {size};"]

    def _copy(self, part: int, target: str, source: str) -> str:
        return f"memcpy({target}, {source}, (size_t){dim_text(bytes_of(self._state[part]))});"

    def _end(self) -> list[str]:
        """The state at last, where the results are."""
        lines: list[str] = []
        for n, value in enumerate(self._state):
            home = self._pointer(self._results[n])
            if n not in self._control.changed:
                lines.append(self._copy(n, home, self._pointer(value)))
            elif self._crosses or n not in self._from:
                lines.append(f"if (state_{n} != {home}) {self._copy(n, home, f'state_{n}')}")
        return lines

    def _now(self, part: int) -> str:
        if part in self._control.changed:
            return f"state_{part}"
        return self._pointer(self._state[part])

    def _run(self, rows: Sequence[str], ys: Sequence[tuple[str, Value]]) -> list[str]:
        """Lines of one iteration."""
        changed = self._control.changed
        kept = [n for n in range(len(self._state)) if n not in changed]
        inputs = [self._now(n) for n in (*changed, *kept)]
        inputs += [*rows, *map(self._pointer, self._captured)]
        names = [*(f"next_{n}" for n in changed), *(name for name, _ in ys)]
        lines = self._body.call(inputs, dict(enumerate(names)))
        for (name, value), place in zip(ys, self._places[len(changed) :], strict=True):
            if place.kind != "result":  # it is written where a part of the state was
                size = dim_text(bytes_of(value))
                lines.append(f"memcpy({name}, state_{changed[place.number]}, (size_t){size});")
        return [*lines, *self._turn()]

    def _turn(self) -> list[str]:
        """Lines that make the next state the state."""
        lines: list[str] = []
        written = {m: n for n, m in self._from.items()}
        moved = [n for n in self._control.changed if self._from.get(n) != n]
        lines += [f"void *const was_{n} = state_{n};" for n in moved]
        for n in moved:
            lines.append(
                f"state_{n} = {f'was_{self._from[n]}' if n in self._from else f'next_{n}'};"
            )
            if n not in self._from:
                free = n
                while free in written:
                    free = written[free]
                lines.append(f"next_{n} = was_{free};")
        return ["{", *(f"  {line}" for line in lines), "}"] if lines else []

    def _while(self) -> list[str]:
        condition = self._regions[0]
        inputs = [self._now(n) for n in range(len(self._state))]
        inputs += map(self._pointer, self._captured)
        return [
            "for (;;) {",
            "  u8 going = 0;",
            *(f"  {line}" for line in condition.call(inputs, {0: "&going"})),
            "  if (!going) break;",
            *(f"  {line}" for line in self._run((), ())),
            "}",
        ]

    def _scan(self) -> list[str]:
        attrs = self._control.instruction.attrs
        length = dim_text(attrs["length"])
        row = f"{length} - 1 - step" if attrs["reverse"] else "step"
        params = self._body.plan.program.params[len(self._state) :]
        rows = [
            f"(const char *){self._pointer(x)} + row * {dim_text(bytes_of(param))}"
            for x, param in zip(self._xs, params, strict=False)
        ]
        elements = self._body.plan.program.results[len(self._control.changed) :]
        ys = [
            (f"(char *){self._pointer(y)} + row * {dim_text(bytes_of(element))}", element)
            for y, element in zip(self._results[len(self._state) :], elements, strict=True)
        ]
        return [
            f"for (isize step = 0; step < {length}; step++) {{",
            f"  const isize row = {row};",
            "  (void)row;",
            *(f"  {line}" for line in self._run(rows, ys)),
            "}",
        ]


def _several(operand: Any) -> tuple[Value, ...]:
    return operand or ()

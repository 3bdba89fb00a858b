"""Which instructions share a loop: a program as regions and the instructions that stay outside.

The rule. An instruction that works by element, reduces or moves elements is *fused* into whatever
reads it. A value is stored, and is the result of a region of its own, when it is a result of the
program; when an instruction outside of regions reads it; when regions for two or more stored values
would compute it and it is not cheap (cheap is what only counts, compares, moves, converts and
combines truth values, at most `MOST_CHEAP` instructions of it); when a reshape cannot be expressed
as strides over what it is made of; when a reduction runs over another one that depends on the axes
reduced, or reductions of different rows meet in one element; and when a region would have more than
`MOST_MEMBERS` instructions. Regions read parameters, values stored by earlier regions and results
of the instructions outside, so that in program order nothing is read before it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gptrs.backends.regions import Region, region_of
from gptrs.backends.views import (
    MOVING,
    Apply,
    Expression,
    Iota,
    Literal,
    Load,
    Reduce,
    View,
    dependence,
    map_views,
    walk,
)
from gptrs.ir.dims import Dim, DimLike, Shape, same, surely_greater
from gptrs.ir.program import Instruction, Operand, Program, Value
from gptrs.ir.types import Array, DType

MOST_MEMBERS = 48
MOST_CHEAP = 16

DTYPES = frozenset(
    [
        "i1",
        "si8",
        "ui8",
        "si16",
        "ui16",
        "si32",
        "ui32",
        "si64",
        "ui64",
        "bf16",
        "f16",
        "f32",
        "f64",
    ]
)
"""The dtypes of regions; instructions on others stay outside."""

REDUCING = frozenset(
    ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all"]
)
_COMPARING = frozenset(["less", "less_equal", "equal", "not_equal", "greater", "greater_equal"])
_LOGICAL = frozenset(["logical_and", "logical_or", "logical_not"])
_CHEAP = _COMPARING | _LOGICAL | MOVING | {"iota", "full", "constant", "cast"}
_COUNTING = frozenset(["add", "sub", "neg", "maximum", "minimum"])  # cheap on integers


@dataclass(frozen=True)
class Grouping:
    """A program as steps in the order in which they run."""

    program: Program
    steps: tuple[Region | Instruction, ...]

    @property
    def regions(self) -> tuple[Region, ...]:
        return tuple(step for step in self.steps if isinstance(step, Region))

    @property
    def outside(self) -> tuple[Instruction, ...]:
        """The instructions that no region can do."""
        return tuple(step for step in self.steps if isinstance(step, Instruction))


def group(program: Program, dtypes: frozenset[str] = DTYPES) -> Grouping:
    """The regions of ``program``, by the rule at the head of this file. Instructions on other
    ``dtypes`` stay outside."""
    fused = {i.result: i for i in program.body if can_fuse(i, dtypes)}
    stored = {v for i in program.body for v in i.values() if i.results[0] not in fused}
    stored.update(program.results)
    # What is shared is stored first, so that the limit of members seldom decides where to cut;
    # and again, as what was stored since may have made readers of one value two.
    _store_what_is_shared(fused, stored)
    _Builder(fused, stored).build()
    _store_what_is_shared(fused, stored)
    final = _Builder(fused, stored).build()
    steps: list[Region | Instruction] = []
    for instruction in program.body:
        if instruction.results[0] not in fused:
            steps.append(instruction)
        elif instruction.result in stored:
            made = final.made[instruction.result]
            steps.append(region_of(instruction.result, made.expression, made.members))
    return Grouping(program, tuple(steps))


def _store_what_is_shared(fused: dict[Value, Instruction], stored: set[Value]) -> None:
    """From the last instruction to the first: which stored values are each value computed for?"""
    cheap = _cheap_values(fused, stored)
    roots: dict[Value, set[Value]] = {}
    for value, instruction in reversed(fused.items()):
        uses = roots.get(value, set())
        if len(uses) > 1 and value not in cheap:
            stored.add(value)
        if value in stored:
            uses = {value}
        for operand in instruction.values():
            roots.setdefault(operand, set()).update(uses)


def _cheap_values(fused: dict[Value, Instruction], stored: set[Value]) -> set[Value]:
    members: dict[Value, frozenset[Instruction]] = {}
    for value, instruction in fused.items():
        inlined = [v for v in instruction.values() if v in fused and v not in stored]
        if _is_cheap(instruction) and all(v in members for v in inlined):
            found = frozenset([instruction]).union(*(members[v] for v in inlined))
            if len(found) <= MOST_CHEAP:
                members[value] = found
    return set(members)


@dataclass(frozen=True)
class _Made:
    expression: Expression
    members: frozenset[Instruction]


@dataclass
class _Builder:
    """Expressions for values in terms of what is stored; what does not fit is stored as well."""

    fused: dict[Value, Instruction]
    stored: set[Value]
    made: dict[Value, _Made] = field(default_factory=dict[Value, _Made])

    def build(self) -> _Builder:
        for value in self.fused:
            self.expression(value)
        return self

    def expression(self, value: Value) -> None:
        """Make the expression of a fused value from those of its operands."""
        instruction = self.fused[value]
        if len(self._members(instruction)) > MOST_MEMBERS:
            self._store(instruction.values())
        if instruction.op.name in MOVING:
            made = self._moved(instruction)
        elif instruction.op.name in REDUCING:
            made = self._reduced(instruction)
        else:
            made = self._applied(instruction)
        self.made[value] = _Made(made, self._members(instruction))

    def _store(self, values: Iterable[Value]) -> None:
        self.stored.update(v for v in values if v in self.fused)

    def _members(self, instruction: Instruction) -> frozenset[Instruction]:
        inlined = [self.made[v].members for v in instruction.values() if self._inlined(v)]
        return frozenset([instruction]).union(*inlined)

    def _inlined(self, value: Value) -> bool:
        return value in self.fused and value not in self.stored

    def _read(self, operand: Operand, dtype: DType) -> Expression:
        if not isinstance(operand, Value):
            assert isinstance(operand, bool | int | float | Dim)
            return Literal(dtype, operand)
        if self._inlined(operand):
            return self.made[operand].expression
        return Load(operand, View.contiguous(operand.type.shape))

    def _moved(self, instruction: Instruction) -> Expression:
        (x,) = instruction.values()

        def change(view: View, kept: int) -> View | None:
            return view.moved(instruction, kept)

        moved = map_views(self._read(x, x.type.dtype), change)
        if moved is None:
            self.stored.add(x)
            moved = map_views(self._read(x, x.type.dtype), change)
        assert moved is not None, "an array without gaps can be reshaped"
        return moved

    def _reduced(self, instruction: Instruction) -> Expression:
        (x,) = instruction.values()
        axes: tuple[int, ...] = instruction.attrs["axes"]
        rest = [a for a in range(x.type.rank) if a not in axes]
        inner = _reductions(self._read(x, x.type.dtype))
        rows = frozenset(a for a in rest if not same(x.type.shape[a], 1))
        if any(dependence(r, x.type.rank) != rows for r in inner):
            self.stored.add(x)
        change = _rows_last(x.type.shape, axes, kept=instruction.attrs["keepdims"])
        body = map_views(self._read(x, x.type.dtype), change)
        assert body is not None
        accumulator = instruction.attrs.get("accum_dtype") or x.type.dtype
        dtype = instruction.result.type.dtype
        extents = tuple(x.type.shape[a] for a in axes)
        return Reduce(instruction.op.name, dtype, accumulator.compute, body, extents)

    def _applied(self, instruction: Instruction) -> Expression:
        type = instruction.result.type
        if instruction.op.name == "iota":
            strides = tuple(int(a == instruction.attrs["axis"]) for a in range(type.rank))
            ones = tuple(0 if same(n, 1) else s for n, s in zip(type.shape, strides, strict=True))
            return Iota(type.dtype, View(type.shape, ones))
        if instruction.op.name in ("full", "constant"):
            return _literal(instruction.attrs["value"], type.dtype)
        rows: frozenset[int] | None = None
        for value in instruction.values():
            for reduction in _reductions(self._read(value, type.dtype)):
                depends = dependence(reduction, type.rank)
                rows = depends if rows is None else rows
                if depends != rows:
                    self.stored.add(value)
        dtype = next(v.type.dtype for v in reversed(list(instruction.values())))
        operands = tuple(self._read(o, dtype) for o in instruction.operands)
        return Apply(instruction.op.name, type.dtype, operands)


def _rows_last(shape: Shape, axes: tuple[int, ...], *, kept: bool) -> Callable[..., View]:
    """For the body of a reduction: the axes that stay (those of extent 1 if ``kept``), then the
    others."""
    rest = [a for a in range(len(shape)) if a not in axes]

    def change(view: View, around: int) -> View:
        last = view.permuted([*axes, *range(len(shape), len(shape) + around)])
        first = view.permuted(rest)
        if kept:
            whole = [(1, 0) if a in axes else (n, view.strides[a]) for a, n in enumerate(shape)]
            first = View(tuple(n for n, _ in whole), tuple(s for _, s in whole))
        return View(first.shape + last.shape, first.strides + last.strides, view.offset)

    return change


def _reductions(expression: Expression) -> list[Reduce]:
    return [part for part in walk(expression) if isinstance(part, Reduce)]


def _literal(value: Any, dtype: DType) -> Literal:
    """A number in an array: rounded to the array's dtype."""
    if isinstance(value, Dim):
        return Literal(dtype, value)
    with np.errstate(all="ignore"):
        rounded: Array = np.asarray(value).astype(dtype.numpy).astype(dtype.compute.numpy)
    return Literal(dtype, rounded.item())


def can_fuse(instruction: Instruction, dtypes: frozenset[str] = DTYPES) -> bool:
    """Whether a region can compute the instruction: it has a form in loops and cannot fail."""
    name, attrs = instruction.op.name, instruction.attrs
    types = [v.type for v in (*instruction.values(), *instruction.results)]
    if any(type.dtype.name not in dtypes for type in types):
        return False
    if name in REDUCING:
        fails = name in ("reduce_max", "reduce_min") and not types[0].dtype.is_float
        axes: tuple[int, ...] = attrs["axes"]
        return not fails or all(surely_greater(types[0].shape[a], 0) for a in axes)
    if name == "slice":
        boxes = zip(types[0].shape, attrs["starts"], attrs["sizes"], attrs["strides"], strict=True)
        return all(_fits(*box) for box in boxes)
    if name == "constant":
        return same(types[0].size, 1)
    if name == "cast":  # f64 is rounded to 16 bits at once
        return not (types[0].dtype.bits == 64 and types[1].dtype.name in ("bf16", "f16"))
    if name in ("div", "remainder", "pow") and not types[-1].dtype.is_float:
        return name != "pow" and _is_positive(instruction.operands[1])
    if name in ("shift_left", "shift_right"):
        return type(instruction.operands[1]) is int and instruction.operands[1] >= 0
    return instruction.op.elementwise or name in MOVING or name in ("iota", "full")


def _fits(extent: DimLike, start: DimLike, size: DimLike, stride: int) -> bool:
    end = start + (size - 1) * stride + 1
    inside = surely_greater(start, -1) and surely_greater(extent + 1, end)
    if same(size, 0):
        return surely_greater(extent + 1, start)
    return inside and surely_greater(size, -1)


def _is_positive(operand: Operand) -> bool:
    return isinstance(operand, int | Dim) and surely_greater(operand, 0)


def _is_cheap(instruction: Instruction) -> bool:
    name = instruction.op.name
    return name in _CHEAP or (name in _COUNTING and instruction.result.type.dtype.is_integer)

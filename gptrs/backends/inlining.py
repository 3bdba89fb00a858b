"""Inlining for loop fusion: each fused value as an expression over the values that are stored.

Input: the fused instructions and the set of stored values. Output: an `Expression` for every fused
value, and the further values that have to be stored because an expression cannot inline them (the
structural rules of `gptrs.backends.fusion`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np

from gptrs.backends.regions import Region, region_of
from gptrs.backends.views import (
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
from gptrs.ir.dims import Dim, Shape, product, same
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.bitcast import bitcast, bits_dtype
from gptrs.ir.ops.elementwise import add, logical_and, logical_or, maximum, minimum, mul
from gptrs.ir.ops.literal import constant, full, iota
from gptrs.ir.ops.reduce import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from gptrs.ir.ops.shape import broadcast_to, slice_
from gptrs.ir.program import Fails, Instruction, Operand, Operation, Value
from gptrs.ir.types import Array, DType
from gptrs.lazy_dataclass import dataclass

MOST_MEMBERS = 48
MOST_PARTS = 96
MOST_UNROLLED = 4
"""The most elements of a reduction that is written out: it needs no loop, nor rows of its own."""
_DROPPING = frozenset([broadcast_to, slice_])
"""Views that may leave out elements, or have none."""


@dataclass(frozen=True, eq=False)
class Inlined:
    """A fused value as an expression over stored values."""

    expression: Expression
    members: frozenset[Instruction] = frozenset()
    parts: frozenset[Expression] = frozenset()
    """All subexpressions."""
    rows: Mapping[Reduce, frozenset[int]] = field(default_factory=dict[Reduce, frozenset[int]])
    """Its reductions, and the axes of the value on which each depends."""


class Inliner:
    """Builds the expressions of all fused values, and finds values that cannot be inlined.

    ``stored`` grows between builds; expressions that it does not affect are kept.
    """

    def __init__(self, fused: Mapping[Value, Instruction], stored: set[Value]) -> None:
        self.fused, self.stored = fused, stored
        self.made: dict[Value, Inlined] = {}
        self._sources: dict[Value, list[Inlined | None]] = {}
        self._regions: dict[Value, tuple[Inlined, Region]] = {}
        self._wanted: list[Value] = []  # by the instruction that is looked at

    def inlining(self, value: Value) -> Inliner:
        """The same with a stored value to be inlined; this one stays as it is."""
        other = Inliner(self.fused, self.stored - {value})
        other.made, other._sources = dict(self.made), dict(self._sources)
        other._regions = dict(self._regions)
        return other

    def build(self, values: Iterable[Value] | None = None) -> set[Value]:
        """Build the expressions, or those of ``values`` in program order where no other has
        changed. Returns the values that have to be stored as well, for another build."""
        wanted: set[Value] = set()
        for value in self.fused if values is None else values:
            instruction = self.fused[value]
            inlined = [v in self.fused and v not in self.stored for v in instruction.values()]
            pairs = zip(instruction.values(), inlined, strict=True)
            sources = [self.made[v] if inline else None for v, inline in pairs]
            if sources == self._sources.get(value):
                continue
            self.made[value] = self._made(instruction)
            self._sources[value] = sources
            if self._wanted:  # it will be stored: its uses are built on a plain array
                self.made[value] = Inlined(Load(value, View.contiguous(value.type.shape)))
                del self._sources[value]
                wanted.update(self._wanted)
                self._wanted.clear()
        return wanted

    def region(self, value: Value) -> Region:
        """The loops that compute a stored value."""
        made = self.made[value]
        before, region = self._regions.get(value, (None, None))
        if region is None or before is not made:
            region = region_of(value, made.expression, made.members)
            self._regions[value] = made, region
        return region

    def _made(self, instruction: Instruction) -> Inlined:
        inlined = [self.made[v] for v in instruction.values() if self._inlined(v)]
        members = frozenset([instruction]).union(*(m.members for m in inlined))
        if len(members) > MOST_MEMBERS:
            self._want(instruction.values())
        if instruction.op.kind is OpKind.VIEW:
            expression = self._moved(instruction, members)
        elif instruction.op.kind is OpKind.REDUCTION:
            expression = self._reduced(instruction)
        else:
            expression = self._applied(instruction)
            parts = frozenset([expression]).union(*(m.parts for m in inlined))
            if len(parts) > MOST_PARTS:
                self._want(instruction.values())
            rows = {r: axes for m in inlined for r, axes in m.rows.items()}
            return Inlined(expression, members, parts, rows)
        parts = frozenset(walk(expression))
        if len(parts) > MOST_PARTS:
            self._want(instruction.values())
        rank = instruction.result.type.rank
        rows = {p: dependence(p, rank) for p in parts if isinstance(p, Reduce)}
        return Inlined(expression, members, parts, rows)

    def _want(self, values: Iterable[Value]) -> None:
        self._wanted.extend(v for v in values if self._inlined(v))

    def _inlined(self, value: Value) -> bool:
        return value in self.fused and value not in self.stored

    def _read(self, operand: Operand, dtype: DType) -> Expression:
        if not isinstance(operand, Value):
            assert isinstance(operand, bool | int | float | complex | Dim)
            return Literal(dtype, operand)
        if self._inlined(operand):
            return self.made[operand].expression
        return Load(operand, View.contiguous(operand.type.shape))

    def _moved(self, instruction: Instruction, members: Set[Instruction]) -> Expression:
        (x,) = instruction.values()
        if instruction.op in _DROPPING and any(m.fails is Fails.AT_ELEMENTS for m in members):
            self._want([x])  # an element that has no result fails, used or not

        def change(view: View, kept: int) -> View | None:
            return view.moved(instruction, kept)

        moved = map_views(self._read(x, x.type.dtype), change)
        if moved is None:
            self._want([x])
            moved = Load(instruction.result, View.contiguous(instruction.result.type.shape))
        return moved

    def _reduced(self, instruction: Instruction) -> Expression:
        (x,) = instruction.values()
        axes: tuple[int, ...] = instruction.attrs["axes"]
        rest = [a for a in range(x.type.rank) if a not in axes]
        rows = frozenset(a for a in rest if not same(x.type.shape[a], 1))
        if self._inlined(x):
            inner = self.made[x].rows.items()
            self._want(r.value for r, depends in inner if depends != rows)
        change = _rows_last(x.type.shape, axes, kept=instruction.attrs["keepdims"])
        body = map_views(self._read(x, x.type.dtype), change)
        assert body is not None
        accumulator = instruction.attrs.get("accum_dtype") or x.type.dtype
        value = instruction.result
        extents = tuple(x.type.shape[a] for a in axes)
        if accumulator is value.type.dtype is x.type.dtype and (count := _unrolled(body, extents)):
            return _joined(instruction, body, count)
        return Reduce(instruction.op, value.type.dtype, accumulator.compute, body, extents, value)

    def _applied(self, instruction: Instruction) -> Expression:
        value = instruction.result
        type = value.type
        if instruction.op is iota:
            strides = tuple(int(a == instruction.attrs["axis"]) for a in range(type.rank))
            ones = tuple(0 if same(n, 1) else s for n, s in zip(type.shape, strides, strict=True))
            return Iota(type.dtype, View(type.shape, ones))
        if instruction.op in (full, constant):
            return _literal(instruction.attrs["value"], type.dtype)
        self._agree_on_rows(instruction)
        dtype = next(v.type.dtype for v in reversed(list(instruction.values())))
        operands = tuple(self._read(o, dtype) for o in instruction.operands)
        if instruction.op is bitcast:
            operands = tuple(map(_as_bits, operands))
        attrs = () if instruction.op.scalar_rule is None else tuple(instruction.attrs.items())
        return Apply(instruction.op, type.dtype, operands, value, attrs)

    def _agree_on_rows(self, instruction: Instruction) -> None:
        """Reductions in one region depend on the same rows: those on which the first depends.

        A single row for all elements would be one serial work item that begins with the reduction:
        the reduction is stored instead.
        """
        alone = same(instruction.result.type.size, 1)
        rows: frozenset[int] | None = None
        for value in instruction.values():
            if not self._inlined(value):
                continue
            for reduction, depends in self.made[value].rows.items():
                if depends or alone:
                    rows = depends if rows is None else rows
                if depends != rows:
                    self._want([reduction.value])


def _rows_last(shape: Shape, axes: tuple[int, ...], *, kept: bool) -> Callable[..., View]:
    """The permutation for the body of a reduction: the kept axes (those of extent 1 if ``kept``),
    then the reduced ones."""
    rest = [a for a in range(len(shape)) if a not in axes]

    def change(view: View, around: int) -> View:
        last = view.permuted([*axes, *range(len(shape), len(shape) + around)])
        first = view.permuted(rest)
        if kept:
            whole = [(1, 0) if a in axes else (n, view.strides[a]) for a, n in enumerate(shape)]
            first = View(tuple(n for n, _ in whole), tuple(s for _, s in whole))
        return View(first.shape + last.shape, first.strides + last.strides, view.offset)

    return change


_JOINS: dict[Operation, Operation] = {
    reduce_sum: add,
    reduce_prod: mul,
    reduce_max: maximum,
    reduce_min: minimum,
    reduce_any: logical_or,
    reduce_all: logical_and,
}
"""By reduction, the op that joins two elements."""


def _unrolled(body: Expression, extents: Shape) -> int:
    """The elements of a reduction that is short enough to be written out; 0 for others."""
    count = product(extents)
    if not isinstance(count, int) or not 2 <= count <= MOST_UNROLLED:
        return 0
    return 0 if any(isinstance(part, Reduce) for part in walk(body)) else count


def _joined(instruction: Instruction, body: Expression, count: int) -> Expression:
    """A reduction written out, as elementwise operations on its elements one after the other."""
    (x,) = instruction.values()
    axes: tuple[int, ...] = instruction.attrs["axes"]
    extents = tuple(x.type.shape[a] for a in axes)
    join, value = _JOINS[instruction.op], instruction.result
    total: Expression | None = None
    for number in range(count):
        element = map_views(body, partial(_element, extents, number))
        assert element is not None
        total = element if total is None else Apply(join, body.dtype, (total, element), value)
    assert total is not None
    return total


def _element(extents: Shape, number: int, view: View, around: int) -> View:
    """The view of element ``number`` of a reduction over the last axes of a view."""
    outer, offset = len(view.shape) - len(extents), view.offset
    for extent, stride in zip(reversed(extents), reversed(view.strides), strict=False):
        offset = offset + number % int(extent) * stride
        number //= int(extent)
    return View(view.shape[:outer], view.strides[:outer], offset)


def _as_bits(x: Expression) -> Expression:
    """A loaded narrow float as the integer in memory; arithmetic would lose the payload of NaN."""
    narrow = x.dtype.is_float and x.dtype.compute is not x.dtype
    return replace(x, bits=bits_dtype(x.dtype)) if narrow and isinstance(x, Load) else x


def _literal(value: Any, dtype: DType) -> Literal:
    """A number as an element of an array: rounded to its dtype."""
    if isinstance(value, Dim):
        return Literal(dtype, value)
    with np.errstate(all="ignore"):
        rounded: Array = np.asarray(value).astype(dtype.numpy).astype(dtype.compute.numpy)
    return Literal(dtype, rounded.item())

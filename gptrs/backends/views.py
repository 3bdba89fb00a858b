"""Strided views and expressions: the body of a fused loop as a tree over loads.

A load reads the element at ``offset + Σ strides[axis] · index[axis]`` of its array. An op that only
moves elements is pushed down to the loads, where it changes these numbers and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from gptrs.ir.dims import DimLike, Shape, product, same, same_shape
from gptrs.ir.ops.shape import broadcast_to, slice_, transpose
from gptrs.ir.program import Instruction, Operation, Scalar, Value
from gptrs.ir.types import DType
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """A strided view: the positions of the elements of an array of ``shape``, in elements."""

    shape: Shape
    strides: Shape
    offset: DimLike = 0

    @classmethod
    def contiguous(cls, shape: Shape) -> View:
        """Row-major without gaps; an axis of extent 1 has stride 0."""
        return cls(shape, _row_major(shape))

    def depends(self, axis: int) -> bool:
        """Whether the view has a stride along ``axis``."""
        return not same(self.strides[axis], 0)

    def moved(self, instruction: Instruction, kept: int) -> View | None:
        """The view of the op's result; its last ``kept`` axes stay. None where no strides express
        it."""
        count = len(self.shape) - kept
        outer = View(self.shape[:count], self.strides[:count], self.offset)
        moved = outer.moved_by(instruction.op, instruction.attrs)
        if moved is None:
            return None
        rest = self.shape[count:], self.strides[count:]
        return View(moved.shape + rest[0], moved.strides + rest[1], moved.offset)

    def moved_by(self, op: Operation, attrs: Mapping[str, Any]) -> View | None:
        """The view of the result of an op of kind ``VIEW``."""
        return _moved(self.shape, self.strides, self.offset, op, tuple(attrs.items()))

    def move(self, op: Operation, attrs: Mapping[str, Any]) -> View | None:
        """`moved_by` without the cache."""
        if op is transpose:
            return self.permuted(attrs["perm"])
        if op is broadcast_to:
            return self._broadcast(attrs["shape"])
        if op is slice_:
            return self._sliced(attrs["starts"], attrs["sizes"], attrs["strides"])
        return self._reshaped(attrs["shape"])

    def permuted(self, perm: Sequence[int]) -> View:
        """The axes in another order."""
        shape, strides = self.shape, self.strides
        return View(tuple([shape[p] for p in perm]), tuple([strides[p] for p in perm]), self.offset)

    def _broadcast(self, shape: Shape) -> View:
        new = len(shape) - len(self.shape)
        strides = (0,) * new + tuple(
            stride if same(old, extent) else 0
            for stride, old, extent in zip(self.strides, self.shape, shape[new:], strict=True)
        )
        return View(shape, strides, self.offset)

    def _sliced(self, starts: Shape, sizes: Shape, steps: Shape) -> View:
        offset, strides = self.offset, list[DimLike]()
        for stride, start, size, step in zip(self.strides, starts, sizes, steps, strict=True):
            offset = offset + start * stride
            strides.append(0 if same(size, 1) else stride * step)
        return View(sizes, tuple(strides), offset)

    def _reshaped(self, shape: Shape) -> View | None:
        """Match groups of old and new axes of equal size; an old group must be evenly spaced."""
        if all(not self.depends(axis) for axis in range(len(self.shape))):
            return View(shape, (0,) * len(shape), self.offset)
        if same(product(shape), 0):
            return View.contiguous(shape)
        old = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if not same(n, 1)]
        new = [n for n in shape if not same(n, 1)]
        spaced: list[DimLike] = []
        while old and new:
            left, right = [old.pop(0)], [new.pop(0)]
            while not same(size := product(tuple(n for n, _ in left)), product(tuple(right))):
                # The longer side is not known where extents are symbolic: both are tried.
                if new and _divides(product((*right, new[0])), size):
                    right.append(new.pop(0))
                elif old:
                    left.append(old.pop(0))
                elif new:
                    right.append(new.pop(0))
                else:
                    return None
            if not evenly_spaced(left):
                return None
            spaced += [stride * left[-1][1] for stride in _row_major(tuple(right), ones=False)]
        if old or new:
            return None
        rest = iter(spaced)
        strides = tuple(0 if same(n, 1) else next(rest) for n in shape)
        return View(shape, strides, self.offset)


@lru_cache(4096)  # a program moves many arrays of few shapes, each read many times
def _moved(
    shape: Shape, strides: Shape, offset: DimLike, op: Operation, attrs: tuple[tuple[str, Any], ...]
) -> View | None:
    return View(shape, strides, offset).move(op, dict(attrs))


def evenly_spaced(axes: Sequence[tuple[DimLike, DimLike]]) -> bool:
    """Whether axes (extent, stride) can be traversed as one, with the stride of the last."""
    return all(same(stride, n * inner) for (_, stride), (n, inner) in pairwise(axes))


def _divides(part: DimLike, whole: DimLike) -> bool:
    return not same(part, 0) and same(whole // part * part, whole)


@lru_cache(4096)
def _row_major(shape: Shape, *, ones: bool = True) -> Shape:
    strides: list[DimLike] = []
    total: DimLike = 1
    for extent in reversed(shape):
        strides.append(0 if ones and same(extent, 1) else total)
        total = total * extent
    return tuple(reversed(strides))


@dataclass(frozen=True, eq=False, slots=True)
class Load:
    """A load of an element of a stored value."""

    value: Value
    view: View
    bits: DType | None = None
    """The dtype as which the bits in memory are read, where that is another one of their width."""

    @property
    def dtype(self) -> DType:
        return self.bits or self.value.type.dtype


@dataclass(frozen=True, eq=False, slots=True)
class Iota:
    """A position along an axis: the index that the view computes."""

    dtype: DType
    view: View


@dataclass(frozen=True, eq=False, slots=True)
class Literal:
    """A number, known now or when the sizes are known."""

    dtype: DType
    value: Scalar


@dataclass(frozen=True, eq=False, slots=True)
class Apply:
    """An elementwise op on expressions."""

    op: Operation
    dtype: DType
    operands: tuple[Expression, ...]
    value: Value
    """The value of the program that this is an element of."""
    attrs: tuple[tuple[str, object], ...] = ()
    """The attributes that a scalar rule reads."""


@dataclass(frozen=True, eq=False, slots=True)
class Reduce:
    """A reduction of the body over its last axes, of these extents, in an order that depends on
    nothing but the extents."""

    op: Operation
    dtype: DType
    accumulator: DType
    body: Expression
    extents: Shape
    value: Value
    """The value of the program that this is an element of."""
    chunks: Chunks | None = None
    """Where the first axis of rows counts chunks of the reduction: how they are cut."""


class Chunks(NamedTuple):
    """The chunks of a reduction, of which the last may be shorter than the others."""

    axis: int
    """The axis of the reduction that is cut."""
    extent: DimLike
    """The extent of all chunks together."""


Leaf: TypeAlias = Load | Iota
Expression: TypeAlias = Load | Iota | Literal | Apply | Reduce


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operands of an expression."""
    if isinstance(expression, Apply):
        return expression.operands
    return (expression.body,) if isinstance(expression, Reduce) else ()


def walk(expression: Expression, *, into: bool = True) -> list[Expression]:
    """All subexpressions in postorder, each once; with ``into`` also the bodies of reductions."""
    seen: set[Expression] = set()
    found: list[Expression] = []

    def visit(part: Expression) -> None:
        seen.add(part)
        if into or not isinstance(part, Reduce):
            for child in children(part):
                if child not in seen:
                    visit(child)
        found.append(part)

    visit(expression)
    return found


def map_views(
    expression: Expression, change: Callable[[View, int], View | None], kept: int = 0
) -> Expression | None:
    """The expression with each view changed, or None where one cannot be.

    ``change(view, kept)`` leaves the last ``kept`` axes, those of the enclosing reduction, as they
    are.
    """
    made: dict[tuple[Expression, int], Expression | None] = {}

    def visit(part: Expression, kept: int) -> Expression | None:
        key = part, kept
        if key not in made:
            made[key] = again(part, kept)
        return made[key]

    def again(part: Expression, kept: int) -> Expression | None:
        if isinstance(part, Literal):
            return part
        if isinstance(part, Reduce):
            body = visit(part.body, kept + len(part.extents))
            return None if body is None else replace(part, body=body)
        if isinstance(part, Apply):
            operands = [visit(operand, kept) for operand in part.operands]
            whole = tuple(o for o in operands if o is not None)
            return replace(part, operands=whole) if len(whole) == len(operands) else None
        view = change(part.view, kept)
        return None if view is None else replace(part, view=view)

    return visit(expression, kept)


def dependence(expression: Expression, rank: int) -> frozenset[int]:
    """Those of the first ``rank`` axes on which the expression depends."""
    leaves = [part for part in walk(expression) if isinstance(part, Load | Iota)]
    return frozenset(a for a in range(rank) if any(leaf.view.depends(a) for leaf in leaves))


def is_copy(expression: Expression) -> bool:
    """Whether the expression is a stored value, unchanged or reshaped."""
    return (
        isinstance(expression, Load)
        and same(expression.view.offset, 0)
        and same_shape(expression.view.strides, _row_major(expression.view.shape))
        and same(product(expression.view.shape), expression.value.type.size)
    )

"""Affine conditions on positions: ``iota(...) + 3 > iota(...)`` and the like as linear
inequalities.

Input: a condition (i1) of the program. Output: inequalities between linear forms of positions along
axes, symbolic dimensions and integer values. Used by `masks`. Axes are counted from the end, where
broadcasting leaves them in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from gptrs.ir.dims import Dim, DimLike, same
from gptrs.ir.ops.elementwise import (
    add,
    cast,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    neg,
    sub,
)
from gptrs.ir.ops.literal import iota
from gptrs.ir.ops.shape import broadcast_to, reshape, transpose
from gptrs.ir.program import Instruction, Operand, Operation, Value
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.idioms.products import Makers, number_of

Atom: TypeAlias = int | tuple[Value, int]
"""The position along an axis, or the element, at the position along an axis, of a vector; axis 0
of a number, or of a vector with one element."""


@dataclass(frozen=True)
class Linear:
    """``constant`` plus integer multiples of atoms."""

    weights: Mapping[Atom, int]
    constant: DimLike

    def plus(self, other: Linear, times: int = 1) -> Linear:
        weights = dict(self.weights)
        for atom, weight in other.weights.items():
            weights[atom] = weights.get(atom, 0) + times * weight
        kept = {atom: weight for atom, weight in weights.items() if weight}
        return Linear(kept, self.constant + other.constant * times)


Inequality: TypeAlias = Linear
"""A linear form that is at least 0."""

_ZERO = Linear({}, 0)
_ORDER: dict[Operation, tuple[int, int, int]] = {
    less: (1, 0, 1),
    less_equal: (1, 0, 0),
    greater: (0, 1, 1),
    greater_equal: (0, 1, 0),
}
"""Which operand is the greater one, which the lesser, and less what."""
_OPPOSITE: dict[Operation, Operation] = {
    less: greater_equal,
    less_equal: greater,
    greater: less_equal,
    greater_equal: less,
}


def inequalities(
    condition: Value, makers: Makers, *, positive: bool = True
) -> list[Inequality] | None:
    """The conjunction of inequalities equivalent to ``condition`` (i1), or with ``positive`` False
    to its negation; None if it is not known to be one."""
    maker = makers.get(condition)
    if maker is None:
        return None
    op = maker.op
    if op in _ORDER:
        return _compared(op if positive else _OPPOSITE[op], maker, makers)
    if op is logical_not:
        return inequalities(next(maker.values()), makers, positive=not positive)
    if op in (broadcast_to, reshape, transpose):
        inner = inequalities(next(maker.values()), makers, positive=positive)
        moved = [_moved(one, maker) for one in inner or ()]
        kept = [one for one in moved if one is not None]
        return None if inner is None or len(kept) < len(moved) else kept
    if op is (logical_and if positive else logical_or):
        found: list[Inequality] = []
        for operand in maker.values():
            part = inequalities(operand, makers, positive=positive)
            if part is None:
                return None
            found += part
        return found
    return None


def _compared(op: Operation, maker: Instruction, makers: Makers) -> list[Inequality] | None:
    sides = [linear(operand, makers) for operand in maker.operands]
    first, second, apart = _ORDER[op]
    upper, lower = sides[first], sides[second]
    if upper is None or lower is None:
        return None
    return [upper.plus(lower, -1).plus(Linear({}, -apart))]


def linear(operand: Operand, makers: Makers) -> Linear | None:
    """An integer operand as a linear form of positions; None if it is not linear."""
    if not isinstance(operand, Value):
        if isinstance(operand, int | Dim) and not isinstance(operand, bool):
            return Linear({}, operand)
        return None
    number = number_of(operand, makers)
    if number is not None:
        return Linear({}, number) if isinstance(number, int) else None
    if not operand.type.dtype.is_integer:
        return None
    maker = makers.get(operand)
    found = None if maker is None else _computed(maker, makers)
    if found is None and operand.type.rank < 2:
        axis = 0 if same(operand.type.size, 1) else -1
        return Linear({(operand, axis): 1}, 0)
    return found


def _computed(maker: Instruction, makers: Makers) -> Linear | None:
    op = maker.op
    if op is iota:
        axis: int = maker.attrs["axis"] - maker.results[0].type.rank
        return Linear({axis: 1}, 0)
    if op not in _READ:
        return None
    parts = [linear(operand, makers) for operand in maker.operands]
    first, *rest = parts
    if first is None or None in rest:
        return None
    if op is neg:
        return _ZERO.plus(first, -1)
    if op is cast:
        return first
    if op is add or op is sub:
        (second,) = rest
        return second and first.plus(second, 1 if op is add else -1)
    return _moved(first, maker)


_READ = frozenset([neg, add, sub, broadcast_to, cast, reshape, transpose])


def _without_single(form: Linear, shape: tuple[DimLike, ...]) -> Linear:
    """The form without axes of extent 1, where the position is 0."""
    weights: dict[Atom, int] = {}
    for atom, weight in form.weights.items():
        if not isinstance(atom, int) or not same(shape[atom], 1):
            weights[atom] = weight
    return Linear(weights, form.constant)


def _moved(form: Linear, maker: Instruction) -> Linear | None:
    """``form`` after a broadcast, a transpose, or a reshape that only adds or drops axes of extent
    1."""
    before, after = next(maker.values()).type.shape, maker.results[0].type.shape
    reduced = _without_single(form, before)
    if maker.op is broadcast_to:
        return reduced
    places = _places(before, after, maker)
    if places is None:
        return None
    weights: dict[Atom, int] = {}
    for atom, weight in reduced.weights.items():
        if isinstance(atom, int):
            weights[places[atom]] = weight
        else:
            weights[atom[0], places[atom[1]] if atom[1] else 0] = weight
    return Linear(weights, reduced.constant)


def _places(
    before: tuple[DimLike, ...], after: tuple[DimLike, ...], maker: Instruction
) -> dict[int, int] | None:
    """The new axis of each axis longer than 1, both counted from the end."""
    rank, made = len(before), len(after)
    if maker.op is transpose:
        perm: tuple[int, ...] = maker.attrs["perm"]
        return {perm[i] - rank: i - made for i in range(rank)}
    old = [i - rank for i in range(rank) if not same(before[i], 1)]
    new = [i - made for i in range(made) if not same(after[i], 1)]
    pairs = dict(zip(old, new, strict=False))
    if len(old) != len(new) or not all(same(before[i], after[j]) for i, j in pairs.items()):
        return None
    return pairs

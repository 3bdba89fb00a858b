"""Analysis of attention masks: the keys that are visible to each query.

A mask of constants is evaluated and its elements are read. A mask with symbolic extents or with
limits per row is read as affine inequalities between the positions of queries and keys
(`affine_conditions`). The result is what `attention` can express: causal, a window, a start and a
length per row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Literal, cast

import numpy as np

from gptrs.errors import PtirError
from gptrs.ir.dims import DimLike, same, surely_greater
from gptrs.ir.operands import map_operand
from gptrs.ir.ops.elementwise import select
from gptrs.ir.ops.shape import broadcast_to
from gptrs.ir.program import Operand, Value
from gptrs.ir.types import Array
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.idioms.affine_conditions import Inequality, inequalities
from gptrs.passes.idioms.products import Makers, number_of

_LEAST_FILL = -1e9  # hidden scores are replaced by, or increased by, at most this
_MOST_ELEMENTS = 1 << 24
_MOST_INSTRUCTIONS = 64
_QUERY, _KEY = -2, -1


@dataclass(frozen=True)
class Limit:
    """The first visible key of each row, or the one after the last: ``value``, integers [batch] or
    one of rank 0, ``plus`` a number."""

    value: Value
    plus: DimLike = 0

    def is_same(self, other: Limit | None) -> bool:
        return other is not None and self.value is other.value and same(self.plus, other.plus)


@dataclass(frozen=True)
class Visible:
    """The visible keys, in the attributes and operands of `attention`."""

    causal: bool = False
    window: int | None = None
    start: Limit | None = None
    length: Limit | None = None
    everyone_sees: bool = True
    """Whether each query surely sees a key."""
    fill: float = -math.inf
    """The greatest number that the mask adds to hidden scores."""


def read_mask(
    mask: Value, makers: Makers, *, queries: DimLike, keys: DimLike, hides: bool, rows: int | None
) -> Visible | None:
    """The visible keys of ``mask`` [..., queries, keys]; None if `attention` cannot express them.

    The mask is i1: true where a key is visible, or with ``hides`` where it is not. Or it is added
    to the scores: 0, and -1e9 or less for hidden keys. ``rows`` is the batch axis, counted from the
    end: 0 for a batch of one, None if there is none.
    """
    table = _computed(_unbroadcast(mask, makers), makers)
    if table is not None:
        return _read_table(table, hides)
    added = _added(mask, makers)
    if added is not None:
        condition, positive, fill = added
    elif mask.type.dtype.is_bool:
        condition, positive, fill = mask, not hides, -math.inf
    else:
        return None
    found = inequalities(condition, makers, positive=positive)
    visible = None if found is None else _read(found, queries, keys, rows)
    return visible and replace(visible, fill=fill)


def is_fill(value: float) -> bool:
    """Whether scores of this value count as hidden (-1e9 or less)."""
    return value <= _LEAST_FILL


def _unbroadcast(value: Value, makers: Makers) -> Value:
    while (maker := makers.get(value)) is not None and maker.op is broadcast_to:
        (value,) = maker.values()
    return value


def _added(mask: Value, makers: Makers) -> tuple[Value, bool, float] | None:
    """The condition behind a mask that is added to scores, whether it is true for visible keys, and
    the number added to hidden ones."""
    maker = makers.get(_unbroadcast(mask, makers))
    if maker is not None and maker.op is select:
        condition, *arms = maker.operands
        first, second = (number_of(arm, makers) for arm in arms)
        if isinstance(condition, Value) and first is not None and second is not None:
            if first == 0 and is_fill(second):
                return condition, True, second
            if second == 0 and is_fill(first):
                return condition, False, first
    return None


def _computed(value: Value, makers: Makers) -> Array | None:
    """The elements of ``value`` if it depends on constants alone."""
    arrays: dict[Value, Array] = {}
    count = 0

    def compute(value: Value) -> Array | None:
        nonlocal count
        if value in arrays:
            return arrays[value]
        maker = makers.get(value)
        count += 1
        sizes = [result.type.size for result in maker.results] if maker else []
        small = all(isinstance(n, int) and n <= _MOST_ELEMENTS for n in sizes)
        if maker is None or not small or count > _MOST_INSTRUCTIONS or maker.op.control:
            return None
        if any(compute(operand) is None for operand in maker.values()):
            return None

        def known(operand: Operand) -> object:
            return arrays[operand] if isinstance(operand, Value) else operand

        types = tuple(result.type for result in maker.results)
        operands = [map_operand(known, operand) for operand in maker.operands]
        try:
            results = maker.op.evaluate(operands, maker.attrs, types)
        except PtirError:
            return None
        arrays.update(zip(maker.results, results, strict=True))
        return arrays[value]

    return compute(value)


def _read_table(table: Array, hides: bool) -> Visible | None:
    """The visible keys of a mask with known elements."""
    if table.ndim < 2 or table.size == 0:
        return None
    if table.dtype.kind == "b":
        seen = table != hides
    else:
        seen = table == 0
        if not np.all(seen | (table <= _LEAST_FILL)):
            return None
    fill = -math.inf
    if table.dtype.kind != "b" and not seen.all():
        fill = float(table[~seen].max())
    plane = seen.reshape(-1, *seen.shape[-2:])
    if not np.all(plane == plane[:1]):
        return None
    seen = plane[0]
    queries, keys = map(int, seen.shape)
    if queries == 1 or keys == 1:
        return None if not seen.all() else Visible()  # too little to tell a rule from
    distance = np.subtract(np.arange(keys), np.arange(queries).reshape(-1, 1) + keys - queries)
    causal = not seen[distance > 0].any()
    allowed: Array = distance <= 0 if causal else np.ones_like(seen)
    window = None
    if not np.array_equal(seen, allowed) and seen.any():
        window = max(1, 1 - int(distance[seen].min()))
        allowed &= distance > -window
    if not np.array_equal(seen, allowed):
        return None
    everyone = bool(seen.any(axis=1).all())
    return Visible(causal, window, everyone_sees=everyone, fill=fill)


@dataclass
class _Reading:
    """`Visible` under construction, while inequalities are added."""

    queries: DimLike
    keys: DimLike
    rows: int | None
    causal: bool = False
    start: Limit | None = None
    length: Limit | None = None
    end: Limit | None = None
    """The length that positions are counted back from, None for the number of keys."""
    windows: list[tuple[Value | None, DimLike]] = field(
        default_factory=list[tuple[Value | None, DimLike]]
    )
    """Of each window the value that positions are counted from, and the constant."""


def _read(
    found: Sequence[Inequality],
    queries: DimLike,
    keys: DimLike,
    rows: int | None,
) -> Visible | None:
    reading = _Reading(queries, keys, rows)
    if not all(_take(inequality, reading) for inequality in found):
        return None
    window = _window(reading)
    if window is False:
        return None
    length = reading.end if reading.causal else reading.length
    if reading.length is not None and not reading.length.is_same(length):
        return None  # a position after the last query is after the last visible key
    limited = reading.start is not None or length is not None
    enough = same(queries, keys) or surely_greater(keys, queries)
    certain = not limited and (enough or not reading.causal)
    return Visible(reading.causal, window, reading.start, length, certain)


def _take(inequality: Inequality, reading: _Reading) -> bool:
    """Add one inequality; False if `attention` cannot express it."""
    constant = inequality.constant
    weights = dict(inequality.weights)
    query, key = weights.pop(_QUERY, 0), weights.pop(_KEY, 0)
    row: Value | None = None
    sign = 0
    if weights:
        ((atom, sign),) = weights.items() if len(weights) == 1 else ((None, 0),)
        if not isinstance(atom, tuple) or (atom[1] != reading.rows and atom[0].type.rank):
            return False
        row = atom[0]
    match query, key, sign:
        case 1, -1, 0 | 1:  # key ≤ query + end − queries
            end = None if row is None else Limit(row, constant + reading.queries)
            if end is None and not same(constant, reading.keys - reading.queries):
                return False
            if reading.causal and not _equal(reading.end, end):
                return False
            reading.causal, reading.end = True, end
        case -1, 1, 0 | -1:  # key > query + end − queries − window
            reading.windows.append((row, constant))
        case 0, 1, -1:  # key ≥ start
            start = Limit(cast("Value", row), -constant)
            if reading.start is not None and not start.is_same(reading.start):
                return False
            reading.start = start
        case 0, -1, 1:  # key < length
            length = Limit(cast("Value", row), constant + 1)
            if reading.length is not None and not length.is_same(reading.length):
                return False
            reading.length = length
        case 0, -1, 0:  # key < a number
            return same(constant, reading.keys - 1)
        case 0, 1 | 0, 0:
            return isinstance(constant, int) and constant >= 0
        case _:
            return False
    return True


def _equal(one: Limit | None, other: Limit | None) -> bool:
    return one is other or (one is not None and one.is_same(other))


def _window(reading: _Reading) -> int | Literal[False] | None:
    """The window, None if there is none; False if `attention` cannot express it."""
    end = reading.end if reading.causal else reading.length
    found: set[object] = set()
    for row, constant in reading.windows:
        if row is not (end and end.value):
            return False
        found.add(constant + 1 - reading.queries + (reading.keys if end is None else end.plus))
    if not found:
        return None
    (window,) = found if len(found) == 1 else (False,)
    return window if isinstance(window, int) and window >= 1 else False

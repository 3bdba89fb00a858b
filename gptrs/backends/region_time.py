"""An estimate of the time that a fused region takes on one thread, by `gptrs.backends.machine`.

Input: a region and its scalar operations. Output: its time at given sizes, from

    arithmetic  scalar operations by their costs, loads and stores, by the bytes of an element
    traffic     the bytes of the arrays that it reads and writes, by the cache that holds them all

of which the longer hides a part of the other. `gptrs.backends.fusion` compares by it programs that
store a value with programs that compute it again, and a plan decides by it how many threads share a
region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gptrs.backends.fusible import cost
from gptrs.backends.machine import MACHINE
from gptrs.backends.regions import Region
from gptrs.backends.value_numbering import ValueNumbering
from gptrs.backends.vectorization import prefers_tiles, start_of
from gptrs.backends.views import Expression, Load, Reduce, View, walk
from gptrs.ir.dims import DimLike, product, same
from gptrs.ir.program import Value
from gptrs.ir.types import DType


class RegionTime:
    """The time of a region, for any sizes; ``operations`` as `operation_counts` finds them."""

    def __init__(self, region: Region, operations: Mapping[Value, DimLike]) -> None:
        all_of_them = (region, *region.others)
        costs = {member.results[0]: cost(member) for one in all_of_them for member in one.members}
        self._loads = [found for one in all_of_them for found in loads(one)]
        self._stores = [
            (one.result.type.dtype, product((*one.rows, *one.inner))) for one in all_of_them
        ]
        vectors = len(region.rows) - 1 if prefers_tiles(region) else -1
        self._arithmetic = [(_move(load.dtype, load.view, vectors), n) for load, n in self._loads]
        self._arithmetic += [
            (_move(one.result.type.dtype, one.output, vectors), n)
            for one, (_, n) in zip(all_of_them, self._stores, strict=True)
        ]
        self._arithmetic += [
            (_operation(costs.get(value, 1)) * _bytes(value.type.dtype) / 4, count)
            for value, count in operations.items()
        ]
        if vectors < 0:
            rows = product(region.rows)
            self._arithmetic += [
                (start_of(part), rows)
                for part in region.parts
                if isinstance(part, Reduce) and part.extents
            ]

    def at(self, size: Callable[[DimLike], int]) -> float:
        """Nanoseconds, where ``size`` tells the sizes of symbols."""
        touched: dict[Value, float] = {}
        for load, turns in self._loads:
            touched[load.value] = touched.get(load.value, 0) + size(turns)
        read = sum(
            _bytes(value.type.dtype) * min(count, size(value.type.size))
            for value, count in touched.items()
        )
        written = sum(_bytes(dtype) * size(count) for dtype, count in self._stores)
        traffic = MACHINE.traffic(read, written)
        arithmetic = sum(time * size(count) for time, count in self._arithmetic)
        hidden = MACHINE.overlap * min(arithmetic, traffic)
        return arithmetic + traffic - hidden


def loads(region: Region) -> Iterator[tuple[Load, DimLike]]:
    """The loads of a region, equal ones in a loop once, and how often they are done."""
    numbers = ValueNumbering(len(region.rows))
    rows, elements = product(region.rows), product((*region.rows, *region.inner))
    loops: list[tuple[Expression, DimLike]] = [(region.expression, elements)]
    for part in walk(region.expression):
        if isinstance(part, Reduce):
            loops.append((part.body, rows * product(part.extents)))
    for expression, turns in loops:
        seen: set[int] = set()
        for part in walk(expression, into=False):
            if isinstance(part, Load) and (number := numbers.number(part)) not in seen:
                seen.add(number)
                varies = region.is_flat or numbers.varies(part)
                yield part, turns if varies else rows


def _operation(cost: int) -> float:
    """An operation on an element of 32 bits."""
    return MACHINE.vector_operation if cost == 1 else MACHINE.vector_function * cost


def _move(dtype: DType, view: View, axis: int) -> float:
    """A load or store of an element, in vectors along an axis."""
    contiguous = not view.strides or any(same(view.strides[axis], n) for n in (0, 1))
    return MACHINE.vector_operation * _bytes(dtype) / 4 if contiguous else MACHINE.strided


def _bytes(dtype: DType) -> float:
    return max(dtype.bits, 8) / 8

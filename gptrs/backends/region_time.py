"""An estimate of the time that a fused region takes on one thread, by `gptrs.backends.machine`.

Input: a region and its scalar operations. Output: its time at given sizes, from

    arithmetic  scalar operations by their costs, loads and stores, by the bytes of an element
    traffic     the bytes of the arrays that it reads and writes, by the cache that holds them all

of which the longer hides a part of the other. `gptrs.backends.fusion` compares by it programs that
store a value with programs that compute it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gptrs.backends.fusible import cost
from gptrs.backends.machine import MACHINE
from gptrs.backends.regions import Region
from gptrs.backends.value_numbering import ValueNumbering
from gptrs.backends.views import Expression, Load, Reduce, View, walk
from gptrs.ir.dims import DimLike, product, same, size_at
from gptrs.ir.program import Value
from gptrs.ir.types import DType


class RegionTime:
    """The time of a region, for any sizes; ``operations`` as `operation_counts` finds them."""

    def __init__(self, region: Region, operations: Mapping[Value, DimLike]) -> None:
        costs = {member.results[0]: cost(member) for member in region.members}
        self._elements = product((*region.rows, *region.inner))
        self._loads = list(loads(region))
        self._arithmetic = [(_move(load.dtype, load.view), n) for load, n in self._loads]
        self._arithmetic.append((_move(region.result.type.dtype, region.output), self._elements))
        self._arithmetic += [
            (_operation(costs[value]) * _bytes(value.type.dtype) / 4, count)
            for value, count in operations.items()
        ]
        self._written = _bytes(region.result.type.dtype)

    def at(self, sizes: Mapping[str, int]) -> float:
        """Nanoseconds at these sizes of the symbols."""
        touched: dict[Value, float] = {}
        for load, turns in self._loads:
            touched[load.value] = touched.get(load.value, 0) + size_at(turns, sizes)
        read = sum(
            _bytes(value.type.dtype) * min(count, size_at(value.type.size, sizes))
            for value, count in touched.items()
        )
        written = self._written * size_at(self._elements, sizes)
        if read + written <= MACHINE.l2_bytes:
            traffic = MACHINE.l2_byte * (read + written)
        else:  # a line is read before it is written
            in_cache = read + written <= MACHINE.l3_bytes
            traffic = (MACHINE.l3_byte if in_cache else MACHINE.memory_byte) * (read + 2 * written)
        arithmetic = sum(time * size_at(count, sizes) for time, count in self._arithmetic)
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


def _move(dtype: DType, view: View) -> float:
    """A load or store of an element."""
    contiguous = not view.strides or any(same(view.strides[-1], n) for n in (0, 1))
    return MACHINE.vector_operation * _bytes(dtype) / 4 if contiguous else MACHINE.strided


def _bytes(dtype: DType) -> float:
    return max(dtype.bits, 8) / 8

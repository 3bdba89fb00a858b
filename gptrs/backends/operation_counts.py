"""Operation counts of fused regions: scalar operations by the value that they compute.

Elementwise ops and the steps of reductions count in the loop that evaluates them: the innermost
loop, the loop of a reduction, or once a row. Loads, constants and moves do not count. Run op by op,
each value takes `operations_alone`; the excess is recomputation, which `gptrs.backends.fusion`
limits.
"""

from __future__ import annotations

from gptrs.backends.kept_values import kept_value
from gptrs.backends.regions import Region
from gptrs.backends.value_numbering import ValueNumbering
from gptrs.backends.views import Apply, Expression, Reduce
from gptrs.ir.dims import DimLike, product
from gptrs.ir.kinds import OpKind
from gptrs.ir.program import Instruction, Value


def operations_alone(instruction: Instruction) -> DimLike:
    """The scalar operations of an instruction in a loop nest of its own."""
    kind = instruction.op.kind
    if kind is OpKind.VIEW or kind is OpKind.FILL:
        return 0
    if kind is OpKind.REDUCTION:
        (x,) = instruction.values()
        return x.type.size
    return instruction.result.type.size


def operations(region: Region) -> dict[Value, DimLike]:
    """The scalar operations of ``region``, by value."""
    counter = _Counter(region)
    for one in (region, *region.others):
        counter.visit(one.expression, None, counter.rows * product(one.inner))
    return counter.counts


class _Counter:
    def __init__(self, region: Region) -> None:
        self.rows: DimLike = 1 if region.is_flat else product(region.rows)
        self.counts: dict[Value, DimLike] = {}
        self._numbers = ValueNumbering(len(region.rows))
        self._seen: set[tuple[object, int]] = set()
        kept = kept_value(region, self._numbers)
        self._kept = None if kept is None else self._numbers.number(kept.body)

    def visit(self, part: Expression, loop: object, turns: DimLike) -> None:
        """Count ``part`` in a loop of ``turns`` iterations in total, once for each loop."""
        number = self._numbers.number(part)
        if not self._numbers.varies(part):
            loop, turns = "row", self.rows
        if (loop, number) in self._seen or ("row", number) in self._seen:
            return
        if loop is None and number == self._kept:
            return
        self._seen.add((loop, number))
        if isinstance(part, Apply):
            self.counts[part.value] = self.counts.get(part.value, 0) + turns
            for operand in part.operands:
                self.visit(operand, loop, turns)
        elif isinstance(part, Reduce):
            turns = self.rows * product(part.extents)
            self.counts[part.value] = self.counts.get(part.value, 0) + turns
            self.visit(part.body, number, turns)

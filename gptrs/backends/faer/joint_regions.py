"""Horizontal fusion: regions with the same loops that read the same array become one loop nest.

    for j in elements: out[j] = f(x[j])              for j in elements:
    for j in elements: out1[j] = g(x[j], y[j])   →       a = x[j]
                                                         out[j], out1[j] = f(a), g(a, y[j])

Input: the steps of a plan in order; output: the same, where a region is computed in the loops of an
earlier one. Rows may have reductions of their own, and chunks of reductions are rows: the sum and
the maximum of an array read it once from memory, and then a chunk from the first cache. A later
region that reads an earlier one's result at the same element has its expression in that place, and
a result that no step reads any more is not stored. Two regions are joined if

- they have the same rows, and the same inner axes or none, and no writer of other loops
  (`gptrs.backends.faer.render.writer_of`) takes either;
- both read an array that is not much smaller than their loops, or one reads the other's result;
- what the later one reads is there before the earlier one runs, and neither can fail;
- there are at most `MOST_RESULTS` results: each is a stream of stores;
- together they take no more operations than other regions may (`gptrs.backends.fusion`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Protocol, TypeVar

from gptrs.backends.faer.loop_writer import LoopWriter
from gptrs.backends.faer.render import writer_of
from gptrs.backends.inlining import MOST_MEMBERS, MOST_PARTS
from gptrs.backends.machine import MACHINE
from gptrs.backends.operation_counts import operations, operations_alone
from gptrs.backends.regions import Region
from gptrs.backends.value_numbering import ValueNumbering
from gptrs.backends.vectorization import usual_product
from gptrs.backends.views import Apply, Expression, Load, Reduce, View, walk
from gptrs.ir.dims import same, same_shape
from gptrs.ir.program import Fails, Instruction, Value

MOST_RESULTS = 4
_WINDOW = 16  # steps between two regions, at most: a result takes memory from the earlier one on


class Step(Protocol):
    @property
    def inputs(self) -> tuple[Value, ...]: ...

    @property
    def results(self) -> tuple[Value, ...]: ...


S = TypeVar("S", bound=Step)


def join(
    steps: Sequence[S],
    needed: Iterable[Value],
    region_of: Callable[[S], Region | None],
    step_of: Callable[[Region], S],
) -> list[S]:
    """``steps`` with joint regions; ``region_of`` a step is None where it is not to be joined.
    Results that are ``needed`` are stored whether a step reads them or not."""
    joint: list[S] = []
    regions: list[Region | None] = []
    made_at: dict[Value, int] = {}
    for step in steps:
        region = region_of(step)
        place = len(joint)
        if region is not None and _may_join(region):
            for earlier in range(place - 1, max(place - 1 - _WINDOW, -1), -1):
                other = regions[earlier]
                together = None if other is None else _together(other, region)
                if together and all(made_at.get(v, -1) < earlier for v in together.inputs):
                    joint[earlier], regions[earlier] = step_of(together), together
                    place = earlier
                    break
        else:
            region = None
        if place == len(joint):
            joint.append(step)
            regions.append(region)
        made_at.update(dict.fromkeys(step.results, place))
    read = {*needed, *(value for step in joint for value in step.inputs)}
    for place, region in enumerate(regions):
        if region is not None and region.others and not read.issuperset(region.results):
            joint[place] = step_of(_storing(region, read))
    return joint


def _storing(region: Region, read: Set[Value]) -> Region:
    """A region without the results that nobody reads; with one at least."""
    outputs = [one for one in (region, *region.others) if one.result in read]
    return _joined(outputs or [region], region.members)


def _joined(regions: Sequence[Region], members: frozenset[Instruction]) -> Region:
    """Loops that compute all ``regions``, which have the same loops."""
    alone = [replace(one, others=()) for one in regions]
    first = next((one for one in alone if one.inner), alone[0])  # of rows, and of their elements
    others = tuple(one for one in alone if one is not first)
    return replace(first, others=others, members=members)


def _may_join(region: Region) -> bool:
    """Whether plain loops compute the region, and no kernel for copies does."""
    if region.copies is not None or isinstance(region.expression, Load):
        return False
    never = all(member.fails is Fails.NEVER for member in region.members)
    return never and writer_of(region) is LoopWriter


def _together(earlier: Region, later: Region) -> Region | None:
    """Both regions as one, if they are to be joined."""
    if len(earlier.results) >= MOST_RESULTS or not _same_loops(earlier, later):
        return None
    known = {one.result: one for one in (earlier, *earlier.others)}
    expression = _with_known(later.expression, known, len(later.rows))
    loads = {part.value for part in walk(expression) if isinstance(part, Load)}
    if not loads.isdisjoint(known):
        return None
    reads_result = expression is not later.expression
    if not reads_result and not any(_is_large(v, later) for v in loads & {*earlier.inputs}):
        return None
    members = earlier.members | later.members
    made = _joined((earlier, *earlier.others, replace(later, expression=expression)), members)
    too_long = len(members) > MOST_MEMBERS or len({*made.parts}) > MOST_PARTS
    return None if too_long or _is_too_much(made) else made


def _is_too_much(region: Region) -> bool:
    """Whether scalar operations are too many, as `gptrs.backends.fusion` limits them."""
    taken = sum(usual_product((count,)) for count in operations(region).values())
    alone = sum(usual_product((operations_alone(member),)) for member in region.members)
    return taken > MACHINE.recomputation * alone


def _same_loops(one: Region, other: Region) -> bool:
    if not same_shape(one.rows, other.rows) or one.is_flat != other.is_flat:
        return False
    return not one.inner or not other.inner or same_shape(one.inner, other.inner)


def _is_large(value: Value, region: Region) -> bool:
    """Whether an array is not much smaller than the loops of a region."""
    extents = [part.extents for part in region.parts if isinstance(part, Reduce)]
    longest = max(map(usual_product, [region.inner, *extents]))
    return 2 * usual_product((value.type.size,)) >= usual_product(region.rows) * longest


def _with_known(
    expression: Expression, known: Mapping[Value, Region], row_count: int
) -> Expression:
    """The expression with those of ``known`` results in the place of their loads. The loop of a
    reduction computes elements of the row a second time, if they are cheap."""
    made: dict[Expression, Expression] = {}
    reductions = [part for part in walk(expression) if isinstance(part, Reduce)]
    reduced = {part for reduction in reductions for part in walk(reduction.body)}
    for part in walk(expression):
        match part:
            case Load():
                one = known.get(part.value)
                known_here = (
                    one is not None
                    and _is_stored_exactly(one)
                    and _is_at(part.view, one.output, row_count)
                    and (part not in reduced or _cost_inside(one, row_count) <= MACHINE.spread)
                )
                made[part] = one.expression if one is not None and known_here else part
            case Apply():
                operands = tuple(made[o] for o in part.operands)
                changed = any(a is not b for a, b in zip(operands, part.operands, strict=True))
                made[part] = replace(part, operands=operands) if changed else part
            case Reduce():
                body = made[part.body]
                made[part] = part if body is part.body else replace(part, body=body)
            case _:
                made[part] = part
    return made[expression]


def _cost_inside(region: Region, row_count: int) -> int:
    """The cost of an element of the row, in additions."""
    numbers = ValueNumbering(row_count)
    inside = (part for part in walk(region.expression, into=False) if numbers.varies(part))
    return sum(max(part.op.cost, 1) for part in inside if isinstance(part, Apply))


def _is_stored_exactly(region: Region) -> bool:
    """Whether an element that is read has the bits that were computed."""
    dtype = region.result.type.dtype
    return dtype.compute is dtype and region.expression.dtype is dtype


def _is_at(read: View, written: View, row_count: int) -> bool:
    """Whether a load reads the element that the row, or the turn of its inner loop, computes."""
    strides = (*written.strides, *[0] * (len(read.strides) - len(written.strides)))
    inside = len(written.strides) > row_count
    if inside and not same_shape(read.shape, written.shape):
        return False
    return same(read.offset, written.offset) and same_shape(read.strides, strides)

"""In-place regions: a region whose result takes the memory of an operand that no later step reads.

    dot = x @ y                     out = x @ y
    out[j] = a[j] - dot[j] * 2  →   out[j] = a[j] - out[j] * 2

Input: the steps of a plan in order; output: the same, in which some `RegionStep` has an operand
that it overwrites. The product above is written into the memory of the result: half as much memory
is touched, which then often is in the cache. A region may overwrite an operand if

- an earlier step of the plan made it, in memory of its own, and no other step reads it, nor the
  caller;
- it has the elements of the result, of the same dtype, in the same order, and the loops read each
  of them where they write the result, and nowhere else;
- these are plain loops, that write each element once.

Source: buffer sharing of elementwise ops, as in XLA's buffer assignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from gptrs.backends.faer.joint_regions import Step
from gptrs.backends.faer.loop_writer import LoopWriter
from gptrs.backends.faer.render import writer_of
from gptrs.backends.kept_values import kept_value
from gptrs.backends.regions import Region
from gptrs.backends.value_numbering import ValueNumbering
from gptrs.backends.views import Apply, Load, View, walk
from gptrs.ir.dims import product, same, same_shape
from gptrs.ir.program import Value

S = TypeVar("S", bound=Step)


def in_place(
    steps: Sequence[S],
    needed: Iterable[Value],
    region_of: Callable[[S], Region | None],
    owns: Callable[[S], bool],
    step_of: Callable[[Region, Value], S],
) -> list[S]:
    """``steps`` with regions in place, made by ``step_of``; ``region_of`` a step is None where it
    is not to be in place, and a step ``owns`` its results where they are in memory of their own.
    Results that are ``needed`` are not overwritten."""
    readers = Counter(value for step in steps for value in dict.fromkeys(step.inputs))
    mine = {value for step in steps if owns(step) for value in step.results}
    mine -= {value for value in mine if readers[value] != 1}
    mine -= {*needed}
    made: list[S] = []
    for step in steps:
        region = region_of(step)
        operand = None if region is None else _overwritten(region, mine)
        made.append(step if region is None or operand is None else step_of(region, operand))
    return made


def _overwritten(region: Region, mine: set[Value]) -> Value | None:
    """The first operand that the loops may overwrite."""
    if not mine.intersection(region.inputs) or not _writes_once(region):
        return None
    return next((v for v in region.inputs if v in mine and _has_the_place(v, region)), None)


def _writes_once(region: Region) -> bool:
    """Whether plain loops compute the elements, and keep nothing in the memory of the result."""
    if region.others or not isinstance(region.expression, Apply):
        return False
    kept = kept_value(region, ValueNumbering(len(region.rows)))
    return kept is None and writer_of(region) is LoopWriter


def _has_the_place(operand: Value, region: Region) -> bool:
    """Whether each element is read where the element of the result is written."""
    one, other = operand.type, region.result.type
    if one.dtype is not other.dtype or not same(product(one.shape), product(other.shape)):
        return False
    here = {part for part in walk(region.expression, into=False) if isinstance(part, Load)}
    loads = [p for p in region.parts if isinstance(p, Load) and p.value is operand]
    return all(load in here and _same_view(load.view, region.output) for load in loads)


def _same_view(one: View, other: View) -> bool:
    same_places = same_shape(one.strides, other.strides) and same(one.offset, other.offset)
    return same_places and same_shape(one.shape, other.shape)

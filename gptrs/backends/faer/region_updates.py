"""Updates of a block by the loops that compute it.

    v = f(x)                                      y = x, but for the block, which holds f(x)
    y = dynamic_update_slice(x, v, start)    →

Input: a fused program; output: its steps, where a region whose result is stored into a block of
another array, and read by nothing else, writes the block itself. The block has a known place, and
the region cannot fail: a failing step changes no array.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypeAlias

from gptrs.backends.faer.calls.dynamic_slices import Update
from gptrs.backends.faer.matched_calls import CallMatcher
from gptrs.backends.fusion import FusedProgram
from gptrs.backends.partial_reductions import stages
from gptrs.backends.regions import Region, region_of
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.custom import custom_call
from gptrs.ir.program import Fails, Instruction, Value
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class RegionUpdate:
    """A region that writes a block of its result."""

    region: Region
    base: Value
    """The array that the result is equal to outside of the block."""


FusedStep: TypeAlias = Region | Instruction | RegionUpdate


def fold_updates(fused: FusedProgram, matcher: CallMatcher) -> list[FusedStep]:
    """The steps of ``fused``, with regions that write what updates would store."""
    regions = {region.result: region for region in fused.regions}
    uses = Counter(value for i in fused.program.body for value in i.values())
    uses.update(fused.program.results)
    steps: list[FusedStep] = []
    for step in fused.steps:
        stored = _stored(step, matcher) if isinstance(step, Instruction) else None
        region = None if stored is None else regions.get(stored.update)
        if stored is None or region is None or uses[stored.update] > 1 or not may_move(region):
            steps.append(step)
            continue
        assert isinstance(step, Instruction)
        steps.remove(region)
        members = region.members | {step}
        expression = fused.inlined[stored.update].expression
        steps.append(
            RegionUpdate(region_of(step.result, expression, members, stored.block), stored.base)
        )
    return steps


class _Stored(NamedTuple):
    """An update whose block is known."""

    base: Value
    update: Value
    block: View


def _stored(instruction: Instruction, matcher: CallMatcher) -> _Stored | None:
    if instruction.op is not custom_call:
        return None
    matched = matcher.of(instruction)
    call = matched.call
    if not isinstance(call, Update) or call.update.through:
        return None
    outer = matched.among(instruction)
    if call.x not in outer or call.update.value not in outer:
        return None
    base, update, block = outer[call.x], outer[call.update.value], _block(call)
    # An array that is stored into itself has to be there.
    return None if block is None or base is update else _Stored(base, update, block)


def _block(call: Update) -> View | None:
    """The elements that an update stores; None if their place depends on values."""
    sizes, extents = call.update.view.shape, call.x.type.shape
    strides = View.contiguous(extents).strides
    offset: DimLike = 0
    for size, extent, start, stride in zip(sizes, extents, call.start, strides, strict=True):
        last = extent - size
        if not isinstance(start, int) or not isinstance(last, int) or last < 0:
            return None
        offset = offset + min(max(start, 0), last) * stride
    return View(sizes, strides, offset)


def may_move(region: Region) -> bool:
    """Whether a region may write into an array that others are still to read: it cannot fail, and
    is one loop nest."""
    if region.copies is not None or len(stages(region)) > 1:
        return False
    return all(m.fails is Fails.NEVER for m in region.members)

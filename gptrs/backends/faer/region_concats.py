"""Concats and pads whose operands are computed at their places.

    v = f(x)                            p = f(x) in the block of v; the rest holds nothing yet
    y = concat((a, v, v[:, :1]))   →    y = p, with copies of a and of the block's first column
    y = pad(v, low=…, high=…)      →    y = p, with the border around the block filled

Input: the steps of a fused program; output: the same, where a region whose result only a concat or
a pad reads writes its block of their result, and they what is around it. Several regions write one
after the other. Blocks of a concat that are contiguous need none of this
(`gptrs.backends.faer.buffer_assignment`). Sizes must be known when the program is compiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple, TypeAlias, cast

from gptrs.backends.faer.calls.base import Call
from gptrs.backends.faer.calls.concat_pad import (
    Concat,
    ConcatAround,
    Pad,
    PadAround,
    is_run,
    is_whole,
)
from gptrs.backends.faer.calls.nested_concat import Block
from gptrs.backends.faer.matched_calls import CallMatcher, MatchedCall
from gptrs.backends.faer.region_updates import FusedStep, may_move
from gptrs.backends.fusion import FusedProgram
from gptrs.backends.memory_operands import Source
from gptrs.backends.regions import Region, region_of
from gptrs.backends.views import View
from gptrs.ir.dims import same_shape
from gptrs.ir.ops.custom import custom_call
from gptrs.ir.program import Instruction, Value

_LEAST_RUN = 32
"""The elements of a block that are adjacent in the result, at least: shorter rows are put together
faster than loops write them apart."""

Extents: TypeAlias = tuple[int, ...]
Moved: TypeAlias = Mapping[Value, View]
"""By operand that lies in the result: its place."""


class BlockOfConcat(NamedTuple):
    """A region that writes a block of the result."""

    region: Region
    made: Value
    """What the block is."""
    base: Value | None
    """The result with the blocks that were written before, if there are any."""


class RestOfConcat(NamedTuple):
    """A concat or a pad of which regions have written some blocks."""

    instruction: Instruction
    matched: MatchedCall


ConcatStep: TypeAlias = FusedStep | BlockOfConcat | RestOfConcat


def fold_concats(
    fused: FusedProgram, steps: Sequence[FusedStep], matcher: CallMatcher
) -> list[ConcatStep]:
    """``steps``, with regions that write their blocks of concats."""
    uses = Counter(value for i in fused.program.body for value in i.values())
    uses.update(fused.program.results)
    numbers = {
        step.result: number
        for number, step in enumerate(steps)
        if isinstance(step, Region) and uses[step.result] == 1 and may_move(step)
    }
    found: list[ConcatStep | None] = [*steps]
    for number, step in enumerate(steps):
        if not isinstance(step, Instruction) or step.op is not custom_call:
            continue
        matched = matcher.of(step)
        call, outer = matched.call, matched.among(step)
        if not isinstance(call, Concat | Pad):
            continue
        blocks = _blocks(call)
        made = [b for b in _computed(blocks, call) if outer[b.source.value] in numbers]
        moved = {b.source.value: _place(b, call) for b in made}
        rest = _rest([b for b in blocks if b not in made], moved, call)
        if not made or rest is None:
            continue
        whole = isinstance(call, Concat) and not rest
        base: Value | None = None
        places = sorted((numbers[outer[value]], view) for value, view in moved.items())
        for at, view in places:
            region = cast("Region", steps[at])
            last = whole and at == places[-1][0]
            result = step.result if last else Value(step.result.type, region.result.origin)
            expression = fused.inlined[region.result].expression
            written = region_of(result, expression, region.members, view)
            found[at] = BlockOfConcat(written, region.result, base)
            base = result
        assert base is not None
        found[number] = None if whole else _rest_step(step, matched, base, rest)
    return [step for step in found if step is not None]


def _blocks(call: Concat | Pad) -> tuple[Block, ...]:
    """The blocks that are copied; those of a pad are not between its elements."""
    if isinstance(call, Concat):
        return call.blocks
    return () if any(call.interior) else (Block(call.x, call.low),)


def _computed(blocks: Sequence[Block], call: Concat | Pad) -> list[Block]:
    """Those that an operand fills, one for each operand, and that are long runs."""
    shape = call.result.type.shape
    extents = [n for block in blocks for n in (*block.extents, *block.starts)]
    if not all(isinstance(n, int) for n in (*shape, *extents)):
        return []
    found: dict[Value, Block] = {}
    for block in blocks:
        value = block.source.value
        if not is_whole(block.source) or not same_shape(block.extents, value.type.shape):
            continue
        placed = isinstance(call, Concat) and is_run(block.extents, shape)
        if not placed and _run(block, call) >= _LEAST_RUN:
            found.setdefault(value, block)
    return [*found.values()]


def _run(block: Block, call: Call) -> int:
    """The elements of a block that are adjacent in the result."""
    extents, shape = cast("Extents", block.extents), cast("Extents", call.result.type.shape)
    last = max((axis for axis, n in enumerate(shape) if extents[axis] != n), default=0)
    return prod(extents[last:])


def _place(block: Block, call: Call) -> View:
    """Where a block lies in the result."""
    strides = View.contiguous(call.result.type.shape).strides
    pairs = zip(cast("Extents", block.starts), cast("Extents", strides), strict=True)
    return View(block.extents, strides, sum(start * stride for start, stride in pairs))


def _rest(blocks: Sequence[Block], moved: Moved, call: Call) -> list[Block] | None:
    """The other blocks; those of operands that lie in the result are copied from there. None if
    one cannot be."""
    found: list[Block] = []
    for block in blocks:
        source = block.source
        if source.value in moved:
            view = _within(source.view, moved[source.value])
            if view is None:
                return None
            block = replace(block, source=Source(call.result, view))
        found.append(block)
    return found


def _within(view: View, place: View) -> View | None:
    """``view`` of a contiguous array, where the array lies at ``place``; None if it is no block of
    each of its axes."""
    shape = cast("Extents", place.shape)
    inner = cast("Extents", View.contiguous(shape).strides)
    steps, offset = cast("Extents", view.strides), cast("int", view.offset)
    first = list[int]()
    for stride in inner:
        first.append(offset // stride if stride else 0)
        offset -= first[-1] * stride
    low, high, strides = [*first], [*first], list[int]()
    for extent, step in zip(cast("Extents", view.shape), steps, strict=True):
        axis = next((a for a, s in enumerate(inner) if 0 < s <= abs(step)), None)
        if extent == 1 or step == 0:
            strides.append(0)
            continue
        if axis is None or step % inner[axis]:
            return None
        moved = step // inner[axis]
        low[axis] += min(0, moved * (extent - 1))
        high[axis] += max(0, moved * (extent - 1))
        strides.append(moved * cast("int", place.strides[axis]))
    ends = zip(low, high, shape, strict=True)
    if any(begin < 0 or end >= extent for begin, end, extent in ends):
        return None
    pairs = zip(first, cast("Extents", place.strides), strict=True)
    begin = cast("int", place.offset) + sum(n * stride for n, stride in pairs)
    return View(view.shape, tuple(strides), begin)


def _rest_step(
    step: Instruction, matched: MatchedCall, base: Value, rest: Sequence[Block]
) -> RestOfConcat:
    """What is written around the blocks in ``base``."""
    call, outer = matched.call, matched.among(step)
    read = {block.source.value for block in rest}
    params = [param for param in matched.params if param in read]
    before = Value(base.type, base.origin)
    if isinstance(call, Pad):
        block = Source(call.result, _place(Block(call.x, call.low), call))
        given = (call.low, call.interior, call.value, before)
        copies = PadAround(call.result, call.members, block, *given)
    else:
        copies = ConcatAround(call.result, call.members, tuple(rest), before)
    operands = (base, *(outer[param] for param in params))
    instruction = replace(step, operands=operands)
    return RestOfConcat(instruction, MatchedCall(copies, (before, *params)))

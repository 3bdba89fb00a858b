"""Row rules: which boxes of its operands an op needs for a box of its result.

Input: an instruction, and a box of its result, or of each of several of one shape. Output: by
operand the box that suffices (None: all of it); None where the result cannot be computed in part.
An op names its rule in its declaration; `gptrs.passes.slice_pushdown` asks for it.
"""

from __future__ import annotations

from gptrs.ir.boxes import Box
from gptrs.ir.dims import same
from gptrs.ir.program import Instruction, Value


def elementwise_rows(instruction: Instruction, box: Box) -> dict[Value, Box | None]:
    rank = len(instruction.result.type.shape)
    found: dict[Value, Box | None] = {}
    for value in instruction.values():
        missing = rank - len(value.type.shape)
        axes = {axis: axis + missing for axis in range(len(value.type.shape))}
        found[value] = box.along(axes, value.type.shape)
    return found


def pairs_mixed(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """Elements of the last axis are mixed; the others are those of all operands, broadcast."""
    shape = instruction.result.type.shape
    if not box.is_whole(len(shape) - 1, shape):
        return None
    found: dict[Value, Box | None] = {}
    for value in instruction.values():
        rank = len(value.type.shape)
        axes = {axis: axis + len(shape) - rank for axis in range(rank - 1)}
        found[value] = box.along(axes, value.type.shape)
    return found


def _first(instruction: Instruction, box: Box | None) -> dict[Value, Box | None] | None:
    """A box of the first operand, all of the others; None if another one is the same value."""
    first, *others = instruction.values()
    return None if first in others else {first: box, **dict.fromkeys(others)}


def last_axis_mixed(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """The last axis is mixed, the others are not."""
    x, shape = next(instruction.values()), instruction.result.type.shape
    last = len(shape) - 1
    if last < 0 or not box.is_whole(last, shape):
        return None
    return _first(instruction, box.along({a: a for a in range(last)}, x.type.shape))


def matmul_rows(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """Rows of x make rows of the result; other axes are those of both operands."""
    x, y = instruction.values()
    shape, depth = instruction.result.type.shape, len(x.type.shape)
    last = len(shape) - 1
    if min(depth, len(y.type.shape)) < 2 or not box.is_whole(last, shape):
        return None
    if len(y.type.shape) == 2:
        return _first(instruction, box.along({a: a for a in range(last)}, x.type.shape))
    if not box.covers(range(last - 1), shape):
        return None
    return _first(instruction, box.along({depth - 2: last - 1}, x.type.shape))


def axis_mixed(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """One axis is mixed, and may have another extent in the results; the others are not."""
    (x,) = instruction.values()
    rank, shape = len(x.type.shape), instruction.results[0].type.shape
    mixed = instruction.attrs["axis"] % max(rank, 1)
    if not rank or not box.is_whole(mixed, shape):
        return None
    return {x: box.along({axis: axis for axis in range(rank) if axis != mixed}, x.type.shape)}


def reduced_rows(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """Rows of the axes that are left; what is reduced is read as a whole."""
    (x,) = instruction.values()
    gone, kept = instruction.attrs["axes"], instruction.attrs["keepdims"]
    if kept and not all(box.is_whole(axis, instruction.result.type.shape) for axis in gone):
        return None  # nothing of an axis of 1
    left = [axis for axis in range(len(x.type.shape)) if axis not in gone]
    return {x: box.along({a: a if kept else n for n, a in enumerate(left)}, x.type.shape)}


def dot_general_rows(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """Rows of the left operand make rows of the result."""
    lhs, attrs, shape = next(instruction.values()), instruction.attrs, instruction.result.type.shape
    rank, batch = len(lhs.type.shape), len(attrs["batch_lhs"])
    mixed = {axis % rank for axis in (*attrs["batch_lhs"], *attrs["contract_lhs"])}
    rest = [axis for axis in range(rank) if axis not in mixed]
    after = range(batch + len(rest), len(shape))
    if not box.covers(range(batch), shape) or not box.covers(after, shape):
        return None
    axes = {axis: batch + number for number, axis in enumerate(rest)}
    return _first(instruction, box.along(axes, lhs.type.shape))


def attention_rows(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """The last query stands at the last key: what is left has to end with it."""
    shape, attrs = instruction.result.type.shape, instruction.attrs
    if not all(box.is_whole(axis, shape) for axis in (0, 1, 3)):
        return None
    placed = attrs["causal"] or attrs["window"] is not None
    if placed and not same(box.starts[2] + box.sizes[2], shape[2]):
        return None
    return _first(instruction, box)


def transpose_rows(instruction: Instruction, box: Box) -> dict[Value, Box | None]:
    (x,) = instruction.values()
    axes = {axis: at for at, axis in enumerate(instruction.attrs["perm"])}
    return {x: box.along(axes, x.type.shape)}


def reshape_rows(instruction: Instruction, box: Box) -> dict[Value, Box | None] | None:
    """Leading axes that stay are rows."""
    (x,) = instruction.values()
    before, after = x.type.shape, instruction.result.type.shape
    kept = 0
    while kept < min(len(before), len(after)) and same(before[kept], after[kept]):
        kept += 1
    if not box.covers(range(kept, len(after)), after):
        return None
    return {x: box.along({axis: axis for axis in range(kept)}, before)}

"""Nested concats as one: the result as blocks, each a copy of a strided operand.

    v = concat(a, x, b; axis 0)                    a' a a''
    concat(v[:, 2:0:-1], v, v[:, :3:-1]; axis 1)   x' x x''
                                                   b' b b''

A concat that only another one reads, whole, in slices or repeated, is not stored: a block of the
outer one is a part of an operand of the inner one. So are the borders that np.pad puts around an
array, one axis after the other. Sizes must be known when the program is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.ir.dims import DimLike, Shape, same
from gptrs.ir.ops.shape import broadcast_to, concat, slice_
from gptrs.ir.program import Fails, Instruction, Operation, Value
from gptrs.lazy_dataclass import dataclass

_MOST_BLOCKS = 32
"""Of a result; each is a step."""

Moves: TypeAlias = Mapping[Value, tuple[Instruction, ...]]
"""The slices and broadcasts that lead to a value, first to last."""


@dataclass(frozen=True, eq=False)
class Block:
    """A block of a concat's result, which begins at ``starts``: a copy of ``source``."""

    source: Source
    starts: Shape

    @property
    def extents(self) -> Shape:
        return self.source.view.shape


def blocks_of(core: Instruction, graph: Graph) -> tuple[Value, Members, list[Block]]:
    """The result of ``core`` or of the concats around it, the instructions that it replaces, and
    its blocks."""
    members = Members()
    blocks = _joined(core, {}, [], graph, members) or []
    while (reader := _only_reader(core.result, graph)) is not None:
        outer, moves = reader
        further = Members({**members.found})
        found = _joined(outer, moves, blocks, graph, further)
        if found is None or len(found) > _MOST_BLOCKS:
            break
        core, blocks, members = outer, found, further
    return core.result, members, blocks


def _joined(
    core: Instruction, moves: Moves, inner: Sequence[Block], graph: Graph, members: Members
) -> list[Block] | None:
    """The blocks of a concat; ``moves`` are of the value whose blocks are ``inner``. None where
    they are not known."""
    axis: int = core.attrs["axis"]
    found: list[Block] = []
    at: DimLike = 0
    for value in core.values():
        if value in moves:
            members.add(*moves[value])
            parts = _moved(inner, moves[value])
            if parts is None:
                return None
        else:
            source = members.read_strided(graph, value)
            parts = [Block(source, (0,) * len(value.type.shape))]
        for part in parts:
            starts = [*part.starts]
            starts[axis] = starts[axis] + at
            found.append(replace(part, starts=tuple(starts)))
        at = at + value.type.shape[axis]
    members.add(core)
    return found


def _only_reader(value: Value, graph: Graph) -> tuple[Instruction, Moves] | None:
    """The concat that alone reads ``value``, and the ops through which it does."""
    found: Instruction | None = None
    moves: dict[Value, tuple[Instruction, ...]] = {value: ()}
    pending = [value]
    while pending:
        readers = graph.readers(each := pending.pop())
        if not readers:
            return None
        for reader in readers:
            if reader in graph.taken or reader.fails is not Fails.NEVER:
                return None
            same_rank = reader.op is broadcast_to and reader.result.type.rank == each.type.rank
            if reader.op is slice_ or same_rank:
                moves[reader.result] = (*moves[each], reader)
                pending.append(reader.result)
            elif reader.op is concat and found in (None, reader):
                found = reader
            else:
                return None
    return None if found is None else (found, moves)


def _moved(blocks: Sequence[Block], moves: Sequence[Instruction]) -> list[Block] | None:
    """The blocks of a value after these ops, one after the other; None if a size is symbolic."""
    for move in moves:
        after = [_sliced(b, move) if move.op is slice_ else _broadcast(b, move) for b in blocks]
        if None in after:
            return None
        blocks = [block for block in after if block is not None and 0 not in block.extents]
    return [*blocks]


def _sliced(block: Block, move: Instruction) -> Block | None:
    """What a slice leaves of a block, perhaps nothing."""
    names = ("starts", "sizes", "strides")
    rows = zip(block.starts, block.extents, *(move.attrs[name] for name in names), strict=True)
    axes = [_within(*row) for row in rows if all(isinstance(n, int) for n in row)]
    if len(axes) < len(block.starts):
        return None
    first, sizes, starts = zip(*axes, strict=True)
    attrs = {"starts": first, "sizes": sizes, "strides": move.attrs["strides"]}
    return _through(block, move.op, attrs, starts)


def _broadcast(block: Block, move: Instruction) -> Block | None:
    """A block of a value of which axes of extent 1 are repeated."""
    (value,) = move.values()
    axes = zip(value.type.shape, block.extents, move.attrs["shape"], strict=True)
    shape = tuple(wide if same(old, 1) else extent for old, extent, wide in axes)
    return _through(block, move.op, {"shape": shape}, block.starts)


def _through(block: Block, op: Operation, attrs: Mapping[str, Any], starts: Shape) -> Block | None:
    view = block.source.view.moved_by(op, attrs)
    return None if view is None else Block(replace(block.source, view=view), starts)


def _within(begin: int, extent: int, start: int, size: int, step: int) -> tuple[int, int, int]:
    """Along an axis, of a slice of ``size`` positions from ``start`` on: the first one in the block
    from ``begin`` on, counted from there; how many there are; and which of the slice it is."""
    if step > 0:
        first, last = -((start - begin) // step), (begin + extent - 1 - start) // step
    else:
        first, last = -((begin + extent - 1 - start) // -step), (start - begin) // -step
    first, last = max(first, 0), min(last, size - 1)
    return start + step * first - begin, last - first + 1, first

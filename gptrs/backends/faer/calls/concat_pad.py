"""Concat, pad and tile calls: the result is assembled by strided block copies and fills, or, where
it has few columns, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import dropwhile

import numpy as np

from gptrs.backends.faer.calls.axes import Axis
from gptrs.backends.faer.calls.base import Binder, Call
from gptrs.backends.faer.calls.blocks import (
    compile_copies,
    compile_fills,
    copy_block,
    copy_whole,
    element_bytes,
    fill_block,
)
from gptrs.backends.faer.calls.nested_concat import Block, blocks_of
from gptrs.backends.faer.calls.planes import Piece, compile_planes, put_together
from gptrs.backends.machine import MACHINE
from gptrs.backends.memory_operands import Graph, Matrix, Members, Source, rows_of
from gptrs.backends.views import Load, is_copy
from gptrs.ir.dims import DimLike, Shape, product, same, same_shape
from gptrs.ir.ops.shape import concat, pad, tile
from gptrs.ir.program import Instruction, Value
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.join_rows import join_rows_kernel
from gptrs.lazy_dataclass import dataclass

_SHORT_ROW = 16
"""The most elements of a row that are written out in a kernel of their own."""
_MANY_ROWS = 64


@dataclass(frozen=True, eq=False)
class _Blocks(Call):
    """A partition of the result into blocks, each copied or filled."""

    def compile(self, isa: Isa) -> None:
        compile_copies(isa, self.result)

    def _copy(self, b: Binder, source: Source, axes: Sequence[Axis], offset: int) -> None:
        """Copy a block to ``offset`` of the result."""
        ends = b.address(source.value, source.view.offset), b.address(self.result, offset)
        copy_block(b, ends, axes, element_bytes(self.result))

    def _fill(self, b: Binder, value: bytes, axes: Sequence[Axis], offset: int) -> None:
        """Fill a block at ``offset`` of the result with an element of these bytes."""
        fill_block(b, value, b.address(self.result, offset), axes)


@dataclass(frozen=True, eq=False)
class Concat(_Blocks):
    """concat: one block per operand; nested ones are one."""

    target = "gpt_rs.faer.concat.v1"

    blocks: tuple[Block, ...]

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Concat | None:
        if core.op is not concat:
            return None
        result, members, blocks = blocks_of(core, graph)
        return cls(result, tuple(members.found), tuple(blocks))

    def compile(self, isa: Isa) -> None:
        if (joined := self._joined()) is not None:
            self._join_kernel(joined)
        else:
            compile_planes(isa, self.result, len(self.blocks))
        super().compile(isa)

    def _joined(self) -> list[Matrix] | None:
        """The blocks as matrices side by side whose rows are short."""
        shape, found, column = self.result.type.shape, list[Matrix](), 0
        if len(shape) < 2 or not isinstance(shape[-1], int) or not 0 < shape[-1] <= _SHORT_ROW:
            return None
        for block in self.blocks:
            *before, first = block.starts
            matrix, width = rows_of(block.source.view), block.extents[-1]
            whole = same_shape(block.extents[:-1], shape[:-1]) and not any(before)
            if not whole or first != column or matrix is None or not isinstance(width, int):
                return None
            found.append(matrix)
            column += width
        return found if column == shape[-1] and len(found) > 1 else None

    def _join_kernel(self, matrices: Sequence[Matrix]) -> Kernel:
        widths = [int(block.extents[-1]) for block in self.blocks]
        known = (matrix.stride for matrix in matrices)
        strides = [n if isinstance(n, int) and 0 <= n <= 2 * _SHORT_ROW else None for n in known]
        return join_rows_kernel(element_bytes(self.result), widths, strides)

    def _join(self, b: Binder, matrices: Sequence[Matrix]) -> None:
        """Add the step that writes whole rows."""
        rows, size = b.size(matrices[0].rows), element_bytes(self.result)
        ends = [b.address(block.source.value, block.source.view.offset) for block in self.blocks]
        strides = [b.size(matrix.stride) for matrix in matrices]
        moved = rows * int(self.result.type.shape[-1]) * size
        words = [b.address(self.result), *ends, *strides]
        b.step(self._join_kernel(matrices), words, rows, MACHINE.traffic(moved, moved))

    def bind(self, b: Binder) -> bool:
        shape = [b.size(n) for n in self.result.type.shape]
        steps = _row_major(shape)
        placed = {block for block in self._parts() if block.source.value in b.placed}
        joined = None if placed else self._joined()
        if joined is not None and b.size(joined[0].rows) >= _MANY_ROWS:
            self._join(b, joined)
            return True
        parts = [self._piece(b, block, steps) for block in self.blocks if block not in placed]
        end, size = b.address(self.result), element_bytes(self.result)
        if not placed and put_together(b, end, shape, size, parts):
            return True
        for source, place, axes in parts:
            copy_block(b, (source, b.address(self.result, place)), axes, size)
        return True

    def _piece(self, b: Binder, block: Block, steps: Sequence[int]) -> Piece:
        starts = zip(map(b.size, block.starts), steps, strict=True)
        source = block.source
        begin = b.address(source.value, source.view.offset)
        return Piece(begin, sum(n * step for n, step in starts), _axes(b, source, steps))

    @property
    def parts(self) -> Mapping[Value, DimLike]:
        return {block.source.value: place for block, place in self._parts().items()}

    def _parts(self) -> dict[Block, DimLike]:
        """By block that is contiguous in the result, and has all elements of an operand in their
        order: its place. One for each operand."""
        shape = self.result.type.shape
        found: dict[Block, DimLike] = {}
        values: set[Value] = set()
        for block in self.blocks:
            value = block.source.value
            if value not in values and is_run(block.extents, shape) and is_whole(block.source):
                sizes = [product(shape[axis + 1 :]) for axis in range(len(shape))]
                place: DimLike = 0
                for start, size in zip(block.starts, sizes, strict=True):
                    place = place + start * size
                found[block] = place
                values.add(value)
        return found


@dataclass(frozen=True, eq=False)
class ConcatAround(Concat):
    """The blocks of a concat that are not yet in ``base``, which the result overwrites; sources may
    be parts of the result that are there (`gptrs.backends.faer.region_concats`)."""

    base: Value

    @property
    def overwrites(self) -> Value:
        return self.base

    @property
    def parts(self) -> Mapping[Value, DimLike]:
        return {}

    def bind(self, b: Binder) -> bool:
        if not b.in_place:
            copy_whole(b, self.base, self.result)
        return super().bind(b)


@dataclass(frozen=True, eq=False)
class Pad(_Blocks):
    """pad: the operand as a block, and fills around it and between its elements."""

    target = "gpt_rs.faer.pad.v1"

    x: Source
    low: tuple[int, ...]
    interior: tuple[int, ...]
    value: bytes

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Pad | None:
        if core.op is not pad:
            return None
        members = Members()
        x = members.read_strided(graph, next(core.values()))
        members.add(core)
        low, interior, value = (core.attrs[name] for name in ("low", "interior", "value"))
        element = np.full((), value, core.result.type.dtype.numpy).tobytes()
        return cls(core.result, tuple(members.found), x, low, interior, element)

    def compile(self, isa: Isa) -> None:
        super().compile(isa)
        compile_fills(isa, self.result)

    def bind(self, b: Binder) -> bool:
        shape = [b.size(n) for n in self.result.type.shape]
        steps = _row_major(shape)
        extents = [b.size(n) for n in self.x.view.shape]
        if any(between and n > 1 for n, between in zip(extents, self.interior, strict=True)):
            whole = [Axis(n, 0, step) for n, step in zip(shape, steps, strict=True)]
            self._fill(b, self.value, whole, 0)
        else:
            self._fill_around(b, extents, shape, steps)
        apart = [step * (1 + between) for step, between in zip(steps, self.interior, strict=True)]
        offset = sum(low * step for low, step in zip(self.low, steps, strict=True))
        self._copy(b, self.x, _axes(b, self.x, apart), offset)
        return True

    def _fill_around(
        self, b: Binder, extents: list[int], shape: list[int], steps: list[int]
    ) -> None:
        """Fill before and after the array along each axis, without the corners that an earlier axis
        has filled."""
        offset = 0
        for axis, (extent, low, step) in enumerate(zip(extents, self.low, steps, strict=True)):
            for first, last in ((0, low), (low + extent, shape[axis])):
                sizes = [*extents[:axis], last - first, *shape[axis + 1 :]]
                slab = [Axis(n, 0, s) for n, s in zip(sizes, steps, strict=True)]
                self._fill(b, self.value, slab, offset + first * step)
            offset += low * step


@dataclass(frozen=True, eq=False)
class PadAround(Pad):
    """The border of a pad, around an operand that is at its place in ``base``, which the result
    overwrites."""

    base: Value

    @property
    def overwrites(self) -> Value:
        return self.base

    def bind(self, b: Binder) -> bool:
        if not b.in_place:
            copy_whole(b, self.base, self.result)
        shape = [b.size(n) for n in self.result.type.shape]
        extents = [b.size(n) for n in self.x.view.shape]
        self._fill_around(b, extents, shape, _row_major(shape))
        return True


@dataclass(frozen=True, eq=False)
class Tile(_Blocks):
    """tile: the operand copied several times along each axis."""

    target = "gpt_rs.faer.tile.v1"

    x: Source
    reps: tuple[int, ...]

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Tile | None:
        if core.op is not tile:
            return None
        members = Members()
        x = members.read_strided(graph, next(core.values()))
        members.add(core)
        return cls(core.result, tuple(members.found), x, core.attrs["reps"])

    def bind(self, b: Binder) -> bool:
        steps = _row_major([b.size(n) for n in self.result.type.shape])
        inside = _axes(b, self.x, steps)
        pairs = (
            (Axis(times, 0, axis.extent * axis.result), axis)
            for times, axis in zip(self.reps, inside, strict=True)
        )
        self._copy(b, self.x, [axis for pair in pairs for axis in pair], 0)
        return True


def is_run(extents: Shape, shape: Shape) -> bool:
    """Whether a block of an array of ``shape`` is contiguous: whole but along its first axis of
    more than one element."""
    pairs = zip(extents, shape, strict=True)
    rest = dropwhile(lambda pair: same(pair[0], 1), pairs)
    return all(same(one, other) for one, other in [*rest][1:])


def is_whole(source: Source) -> bool:
    """Whether an operand is read as it lies, all of it."""
    return is_copy(Load(source.value, source.view))


def _axes(b: Binder, source: Source, steps: Sequence[int]) -> list[Axis]:
    """The axes of a block that is copied into an array with these strides."""
    view = source.view
    triples = zip(view.shape, view.strides, steps, strict=True)
    return [Axis(b.size(extent), b.size(stride), step) for extent, stride, step in triples]


def _row_major(shape: Sequence[int]) -> list[int]:
    """The strides of a contiguous array."""
    steps, total = list[int](), 1
    for extent in reversed(shape):
        steps.insert(0, total)
        total *= extent
    return steps

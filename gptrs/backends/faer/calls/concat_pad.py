"""Concat, pad and tile calls: the result is assembled by strided block copies and fills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from gptrs.backends.faer.calls.base import Address, Binder, Call, kernel
from gptrs.backends.faer.graph import Graph, Members, Source
from gptrs.ir.ops.shape import concat, pad, tile
from gptrs.ir.program import Instruction, Value
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.block_copy import ElementBytes, copy_kernel, fill_kernel

_PIECE = 2**15  # bytes of a long run that a thread takes at a time
_FEW = 64  # rows that are cut into pieces for several threads
_ROW_NS, _BYTE_NS, _ELEMENT_NS = 2.0, 0.1, 0.6


class Axis(NamedTuple):
    """An axis of a block: extent, and strides in the source and in the result."""

    extent: int
    source: int
    result: int


@dataclass(frozen=True, eq=False)
class _Blocks(Call):
    """A partition of the result into blocks, each copied or filled."""

    @property
    def _bytes(self) -> ElementBytes:
        return cast("ElementBytes", self.result.type.dtype.numpy.itemsize)

    def compile(self, isa: Isa) -> None:
        kernel(copy_kernel, isa, self._bytes)

    def _copy(self, b: Binder, source: Source, axes: Sequence[Axis], offset: int) -> None:
        """Copy a block to ``offset`` of the result."""
        ends = b.address(source.value, source.view.offset), b.address(self.result, offset)
        for rows, moved in in_rows(b, axes, self._bytes):
            *outer, row, run = rows
            begin = [
                Address(end.slot, end.offset + place * self._bytes)
                for end, place in zip(ends, moved, strict=True)
            ]
            words = [*begin, *run, *row, len(outer), *(n for axis in outer for n in axis)]
            count = _count(rows[:-1])
            apart = run.source != 1 or run.result != 1
            each = run.extent * (_ELEMENT_NS if apart else _BYTE_NS * self._bytes)
            b.step(kernel(copy_kernel, b.isa, self._bytes), words, count, count * (_ROW_NS + each))

    def _fill(self, b: Binder, value: bytes, axes: Sequence[Axis], offset: int) -> None:
        """Fill a block at ``offset`` of the result with an element of these bytes."""
        pattern = np.frombuffer(value * (16 // len(value)), np.int64).tolist()
        end = b.address(self.result, offset)
        for rows, (_, place) in in_rows(b, axes, self._bytes, filled=True):
            *outer, row, run = rows
            begin = Address(end.slot, end.offset + place * self._bytes)
            words = [begin, *pattern, run.extent, row.extent, row.result, len(outer)]
            words += [n for axis in outer for n in (axis.extent, axis.result)]
            count = _count(rows[:-1])
            time = count * (_ROW_NS + _BYTE_NS * self._bytes * run.extent)
            b.step(kernel(fill_kernel, b.isa, self._bytes), words, count, time)


@dataclass(frozen=True, eq=False)
class Concat(_Blocks):
    """concat: one block per operand."""

    target = "gpt_rs.faer.concat.v1"

    parts: tuple[Source, ...]
    axis: int

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Concat | None:
        if core.op is not concat:
            return None
        members = Members()
        parts = [_read(members, graph, value) for value in core.values()]
        members.add(core)
        return cls(core.result, tuple(members.found), tuple(parts), core.attrs["axis"])

    def bind(self, b: Binder) -> bool:
        steps = row_major([b.size(n) for n in self.result.type.shape])
        at = 0
        for part in self.parts:
            self._copy(b, part, _axes(b, part, steps), at * steps[self.axis])
            at += b.size(part.view.shape[self.axis])
        return True


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
        x = _read(members, graph, next(core.values()))
        members.add(core)
        low, interior, value = (core.attrs[name] for name in ("low", "interior", "value"))
        element = np.full((), value, core.result.type.dtype.numpy).tobytes()
        return cls(core.result, tuple(members.found), x, low, interior, element)

    def compile(self, isa: Isa) -> None:
        super().compile(isa)
        kernel(fill_kernel, isa, self._bytes)

    def bind(self, b: Binder) -> bool:
        shape = [b.size(n) for n in self.result.type.shape]
        steps = row_major(shape)
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
        x = _read(members, graph, next(core.values()))
        members.add(core)
        return cls(core.result, tuple(members.found), x, core.attrs["reps"])

    def bind(self, b: Binder) -> bool:
        steps = row_major([b.size(n) for n in self.result.type.shape])
        inside = _axes(b, self.x, steps)
        pairs = (
            (Axis(times, 0, axis.extent * axis.result), axis)
            for times, axis in zip(self.reps, inside, strict=True)
        )
        self._copy(b, self.x, [axis for pair in pairs for axis in pair], 0)
        return True


def _read(members: Members, graph: Graph, value: Value) -> Source:
    """The farthest value behind an operand: a block copy reads any strides."""
    source = members.read(graph.source(value, lambda view: True))
    assert source is not None
    return source


def _axes(b: Binder, source: Source, steps: Sequence[int]) -> list[Axis]:
    """The axes of a block that is copied into an array with these strides."""
    view = source.view
    triples = zip(view.shape, view.strides, steps, strict=True)
    return [Axis(b.size(extent), b.size(stride), step) for extent, stride, step in triples]


def _count(axes: Sequence[Axis]) -> int:
    return int(np.prod([axis.extent for axis in axes], dtype=np.int64))


def row_major(shape: Sequence[int]) -> list[int]:
    """The strides of a contiguous array."""
    steps, total = list[int](), 1
    for extent in reversed(shape):
        steps.insert(0, total)
        total *= extent
    return steps


def in_rows(
    b: Binder, axes: Sequence[Axis], size: int, *, filled: bool = False
) -> list[tuple[list[Axis], tuple[int, int]]]:
    """A block as blocks with as few axes as possible, at least rows and a run; and the offsets of
    each in source and result. Long runs are split, so that several threads get some. ``filled``
    runs have no gaps."""
    if not _count(axes):
        return []
    merged: list[Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        if merged and merged[-1][1:] == (axis.extent * axis.source, axis.extent * axis.result):
            axis = Axis(merged.pop().extent * axis.extent, axis.source, axis.result)
        merged.append(axis)
    if not merged or (filled and merged[-1].result != 1):
        merged.append(Axis(1, 1, 1))
    *outer, run = merged
    piece = _PIECE // size
    if b.threads > 1 and _count(outer) < _FEW and run.extent > piece:
        pieces, rest = divmod(run.extent, piece)
        whole = Axis(pieces, piece * run.source, piece * run.result)
        done = pieces * piece
        found: list[Any] = [([*outer, whole, Axis(piece, *run[1:])], (0, 0))]
        if rest:
            begin = done * run.source, done * run.result
            found.append(([Axis(1, 0, 0), *outer, Axis(rest, *run[1:])], begin))
        return found
    return [([*outer, run] if outer else [Axis(1, 0, 0), run], (0, 0))]

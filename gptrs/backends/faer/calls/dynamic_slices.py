"""Calls of dynamic_slice and dynamic_update_slice: blocks at places that are known at run time.

Starts that are known move the addresses; kernels read the others
(`gptrs.kernels.rowwise.block_copy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from gptrs.backends.faer.calls.axes import Axis
from gptrs.backends.faer.calls.base import Address, Binder, Call, Word
from gptrs.backends.faer.calls.blocks import (
    compile_copies_at,
    copy_block,
    copy_whole,
    element_bytes,
)
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from gptrs.ir.program import Instruction, Operand, Value
from gptrs.kernels.compiler.isa import Isa
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Update(Call):
    """dynamic_update_slice: a block of an array replaced, in place unless the old array has a later
    use."""

    target = "gpt_rs.faer.dynamic_update_slice.v1"

    x: Value
    update: Source
    start: tuple[Operand, ...]

    @property
    def overwrites(self) -> Value:
        return self.x

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Update | None:
        x, update, start = core.operands
        if core.op is not dynamic_update_slice:
            return None
        assert isinstance(x, Value)
        assert isinstance(update, Value)
        members = Members()
        source = members.read_strided(graph, update)
        members.add(core)
        return cls(core.result, tuple(members.found), x, source, cast("tuple[Operand, ...]", start))

    def compile(self, isa: Isa) -> None:
        compile_copies_at(isa, self.result)  # a copy of the whole is bound only if not in place

    def bind(self, b: Binder) -> bool:
        view, block = View.contiguous(self.x.type.shape), self.update.view
        if not _lies_in(b, block, view):
            return False  # an error, which the reference words
        if not b.in_place:
            copy_whole(b, self.x, self.result)
        begin, starts = _starts(b, self.start, block, view, moves_source=False)
        target = b.address(self.result, begin)
        source = b.address(self.update.value, block.offset)
        _copy_block(b, (source, target), block, view.strides, starts, self.result)
        return True


@dataclass(frozen=True, eq=False)
class Slice(Call):
    """dynamic_slice: a block of an array, read where it lies."""

    target = "gpt_rs.faer.dynamic_slice.v1"

    x: Source
    start: tuple[Operand, ...]

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Slice | None:
        x, start = core.operands
        if core.op is not dynamic_slice or not isinstance(x, Value):
            return None
        members = Members()
        source = members.read_strided(graph, x)
        members.add(core)
        start = cast("tuple[Operand, ...]", start)
        return cls(core.result, tuple(members.found), source, start)

    def compile(self, isa: Isa) -> None:
        compile_copies_at(isa, self.result)

    def bind(self, b: Binder) -> bool:
        result, view = View.contiguous(self.result.type.shape), self.x.view
        block = View(result.shape, view.strides, view.offset)
        if not _lies_in(b, block, view):
            return False  # an error, which the reference words
        begin, starts = _starts(b, self.start, block, view, moves_source=True)
        source = b.address(self.x.value, view.offset + begin)
        ends = source, b.address(self.result)
        _copy_block(b, ends, block, result.strides, starts, self.result)
        return True


def _lies_in(b: Binder, block: View, array: View) -> bool:
    pairs = zip(block.shape, array.shape, strict=True)
    return all(b.size(size) <= b.size(extent) for size, extent in pairs)


def _starts(
    b: Binder, start: Sequence[Operand], block: View, array: View, *, moves_source: bool
) -> tuple[int, list[Word]]:
    """The offset of a block in an array by the starts that are known, in elements, and the
    `START_WORDS` of the others."""
    begin, words = 0, list[Word]()
    axes = zip(start, block.shape, array.shape, array.strides, strict=True)
    for entry, *axis in axes:
        size, extent, stride = map(b.size, axis)
        if isinstance(entry, Value):
            dtype = entry.type.dtype
            integer = dtype.numpy.itemsize, 64 - dtype.bits, int(dtype.kind == "int")
            moved = (stride, 0) if moves_source else (0, stride)
            words += [b.address(entry), *integer, extent - size, *moved]
        else:
            begin += stride * min(max(b.size(cast("int", entry)), 0), extent - size)
    return begin, words


def _copy_block(
    b: Binder,
    ends: tuple[Address, Address],
    block: View,
    steps: Sequence[DimLike],
    starts: Sequence[Word],
    result: Value,
) -> None:
    """Add the steps that copy a block from its strides to ``steps``, moved by ``starts``."""
    triples = zip(block.shape, block.strides, steps, strict=True)
    axes = [Axis(*map(b.size, triple)) for triple in triples]
    copy_block(b, ends, axes, element_bytes(result), starts)

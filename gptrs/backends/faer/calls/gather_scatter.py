"""Gather and scatter calls: rows of weights by index (take), blocks at places known at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from gptrs.backends.faer.calls.axes import Axis
from gptrs.backends.faer.calls.base import Address, Binder, Call, Word, is_stable, kernel
from gptrs.backends.faer.calls.blocks import (
    compile_copies,
    compile_copies_at,
    copy_block,
    copy_whole,
    element_bytes,
)
from gptrs.backends.faer.calls.product import product_panels
from gptrs.backends.faer.graph import Graph, Matrix, Members, Source, rows_of, starts_contiguous
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, product
from gptrs.ir.ops import elementwise
from gptrs.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from gptrs.ir.ops.index import take
from gptrs.ir.program import Instruction, Operand, Value
from gptrs.ir.types import f32
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.kernels.rowwise.gather_scatter import TAKE_ARGUMENTS, take_kernel, take_panels_kernel

_INDICES = {"si32": 4, "si64": 8}
_WEIGHTS: dict[str, WeightType] = {"f32": "f32", "f16": "f16", "bf16": "bf16"}
_OUTSIDE = 1  # the code of an index that is not in the table


@dataclass(frozen=True, eq=False)
class Take(Call):
    """take: rows of a weight by index, or of a narrow table, widened to f32 (embedding lookup)."""

    target = "gpt_rs.faer.take.f32.v1"

    table: Value
    matrix: Matrix
    width: DimLike
    weights: WeightType
    indices: Source
    stable: bool

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Take | None:
        if core.op is not take:
            return None
        table, indices = core.operands
        if not isinstance(table, Value) or not isinstance(indices, Value):
            return None
        weights = _WEIGHTS.get(table.type.dtype.name)
        if weights is None or indices.type.dtype.name not in _INDICES:
            return None
        members = Members()
        inner = len(table.type.shape) - 1
        rows = members.read(graph.source(table, lambda view: rows_of(view, inner) is not None))
        places = members.read(graph.source(indices, starts_contiguous))
        if rows is None or places is None:
            return None
        members.add(core)
        result = core.result
        if weights != "f32":  # a kernel gives f32
            cast_to = graph.only_reader(result)
            if (
                cast_to is None
                or cast_to.op is not elementwise.cast
                or cast_to.attrs["dtype"] is not f32
            ):
                return None
            members.add(cast_to)
            result = cast_to.result
        matrix = rows_of(rows.view, inner)
        assert matrix is not None
        width = product(table.type.shape[1:])
        stable = is_stable(rows.value, graph) and not rows.through
        if result is core.result and not stable:
            return None  # `Gather` has more lines in flight
        found = tuple(members.found)
        return cls(result, found, rows.value, matrix, width, weights, places, stable)

    def compile(self, isa: Isa) -> None:
        pass  # the plan decides between two small kernels: compiled when bound

    def bind(self, b: Binder) -> bool:
        builder = take_panels_kernel
        rows, width = b.size(self.matrix.rows), b.size(self.width)
        form = product_panels(False, self.weights, width, rows)
        table = b.panels(self.table, form) if self.stable else None
        if table is None:
            builder, table = take_kernel, b.address(self.table, self.matrix.offset)
        type = self.indices.value.type
        count = b.size(product(self.indices.view.shape))
        words: dict[str, int | Address] = dict.fromkeys(TAKE_ARGUMENTS, 0)
        words.update(table=table, indices=b.address(self.indices.value))
        words.update(result=b.address(self.result), status=b.status, code=_OUTSIDE)
        words.update(rows=rows, width=width, result_row=width)
        words.update(ld=b.size(self.matrix.stride), index_bytes=_INDICES[type.dtype.name])
        given = (
            (self.weights, form.compressed) if builder is take_panels_kernel else (self.weights,)
        )
        b.step(kernel(builder, b.isa, *given), [*words.values()], count, count * width)
        return True


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
        compile_copies(isa, self.result)
        compile_copies_at(isa, self.result)

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

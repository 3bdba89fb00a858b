"""Calls that read and write where an array of indices says: take, gather, scatter, segments.

Operands are read with any strides. A scatter copies the array that it updates, or overwrites it:
then all indices are checked before the first element is written, as a failing call leaves its
arguments unchanged.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from gptrs.backends.faer.calls.base import Binder, Call
from gptrs.backends.faer.calls.blocks import (
    compile_copies,
    compile_fills,
    copy_whole,
    fill_whole,
)
from gptrs.backends.faer.calls.nests import Axis, Nest, axes_of, merged_axes, nest_of
from gptrs.backends.faer.element_types import HALVES, POINTERS, loaded, stored
from gptrs.backends.index_expansions import is_wide
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.index import scatter_add
from gptrs.ir.ops.segment import empty_segment
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import DType
from gptrs.kernels.compiler import isa as levels
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.indexing.gather import gather_kernel, index_check_kernel
from gptrs.kernels.indexing.loop_nest import Elements
from gptrs.kernels.indexing.scatter import Combine, scatter_kernel
from gptrs.kernels.rowwise.block_copy import BITS
from gptrs.lazy_dataclass import dataclass

_ELEMENT_NS = 0.7


def _elements(dtype: DType) -> Elements:
    name = dtype.name
    return Elements(name, POINTERS[name], loaded(dtype, "X"), stored(dtype, "X"))


def _gather_kernel(dtype: DType, index: DType) -> Kernel:
    return gather_kernel(dtype.numpy.itemsize, _elements(index))


def _scatter_kernel(combine: Combine, dtype: DType, index: DType) -> Kernel:
    if combine == "replace":
        size = dtype.numpy.itemsize
        return scatter_kernel(combine, Elements(str(size), BITS[size]), "", _elements(index))
    number = "int8" if dtype.bits == 4 else dtype.compute.numpy.name
    return scatter_kernel(combine, _elements(dtype), number, _elements(index))


def _has_kernel(core: Instruction, combine: str) -> bool:
    """Whether a kernel combines elements as the op says, at this vector level. Of what is computed
    in a wider dtype, `gptrs.backends.faer.expansions` makes ops that have one."""
    converts = combine in ("max", "min") and core.result.type.dtype.name in HALVES
    return not is_wide(core) and (not converts or levels.current().half)


@dataclass(frozen=True, eq=False)
class Gather(Call):
    """take and gather: elements of a table at indices along an axis."""

    target = "gpt_rs.faer.gather.v1"

    table: Source
    index: Source
    axis: int | None
    """Of gather; None for take."""

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Gather | None:
        table, index = core.operands
        if not isinstance(table, Value) or not isinstance(index, Value):
            return None
        members = Members()
        sources = members.read_strided(graph, table), members.read_strided(graph, index)
        members.add(core)
        return cls(core.result, tuple(members.found), *sources, core.attrs.get("axis"))

    def _kernel(self) -> Kernel:
        return _gather_kernel(self.result.type.dtype, self.index.value.type.dtype)

    def compile(self, isa: Isa) -> None:
        self._kernel()

    def bind(self, b: Binder) -> bool:
        if self.axis is not None and not _fits(b, self.index.view, self.table.view, self.axis):
            return False  # an error, which the reference words
        nest = self._nest(b)
        _add_gather(b, self._kernel(), nest, self.table, self.index, self.result)
        return True

    def _nest(self, b: Binder) -> Nest:
        table, index = self.table.view, self.index.view
        result = View.contiguous(self.result.type.shape).strides
        if self.axis is not None:
            axes = axes_of(b, index.shape, table.strides, index.strides, result)
            return _along(b, axes, table, self.axis)
        rank = len(index.shape)
        places = axes_of(b, index.shape, 0, index.strides, result[:rank])
        rows = axes_of(b, table.shape[1:], table.strides[1:], 0, result[rank:])
        *before, line = merged_axes(places) or axes_of(b, (1,), 0, 0, 0)
        return nest_of(before, line, rows, b.size(table.shape[0]), b.size(table.strides[0]))


@dataclass(frozen=True, eq=False)
class Scatter(Call):
    """scatter_add and scatter_reduce: an array updated at indices along an axis, in place unless
    the old array has a later use."""

    target = "gpt_rs.faer.scatter.v1"

    x: Value
    index: Source
    source: Source
    axis: int
    combine: Combine

    @property
    def overwrites(self) -> Value:
        return self.x

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Scatter | None:
        x, index, source = core.operands
        combine = "add" if core.op is scatter_add else core.attrs["reduce"]
        values = (x, index, source)
        if not all(isinstance(value, Value) for value in values):
            return None
        x, index, source = cast("tuple[Value, Value, Value]", values)
        if not _has_kernel(core, combine):
            return None
        members = Members()
        sources = members.read_strided(graph, index), members.read_strided(graph, source)
        members.add(core)
        return cls(core.result, tuple(members.found), x, *sources, core.attrs["axis"], combine)

    def _kernel(self) -> Kernel:
        return _scatter_kernel(self.combine, self.x.type.dtype, self.index.value.type.dtype)

    def compile(self, isa: Isa) -> None:
        self._kernel()
        compile_copies(isa, self.result)

    def bind(self, b: Binder) -> bool:
        table, index, source = (
            View.contiguous(self.x.type.shape),
            self.index.view,
            self.source.view,
        )
        if not _fits(b, index, table, self.axis) or not _fits(b, index, source):
            return False  # an error, which the reference words
        axes = axes_of(b, index.shape, table.strides, index.strides, source.strides)
        nest = _along(b, axes, table, self.axis)
        if b.in_place:
            _add_checks(b, nest, self.index)
        else:
            copy_whole(b, self.x, self.result)
        _add_scatter(b, self._kernel(), nest, self.index, self.source, self.result)
        return True


@dataclass(frozen=True, eq=False)
class Segments(Call):
    """segment_reduce: rows combined by the segment that each belongs to."""

    target = "gpt_rs.faer.segment_reduce.v1"

    x: Source
    segments: Source
    count: DimLike
    combine: Combine

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Segments | None:
        x, segments = core.operands
        combine = core.attrs["reduce"]
        if not isinstance(x, Value) or not isinstance(segments, Value):
            return None
        if not _has_kernel(core, combine):
            return None
        members = Members()
        sources = members.read_strided(graph, x), members.read_strided(graph, segments)
        members.add(core)
        return cls(core.result, tuple(members.found), *sources, core.attrs["count"], combine)

    def _kernel(self) -> Kernel:
        dtype, index = self.result.type.dtype, self.segments.value.type.dtype
        return _scatter_kernel(self.combine, dtype, index)

    def compile(self, isa: Isa) -> None:
        self._kernel()
        compile_fills(isa, self.result)

    def bind(self, b: Binder) -> bool:
        x, segments = self.x.view, self.segments.view
        result = View.contiguous(self.result.type.shape).strides
        (line,) = axes_of(b, x.shape[:1], 0, segments.strides, x.strides[:1])
        rows = axes_of(b, x.shape[1:], result[1:], 0, x.strides[1:])
        nest = nest_of([], line, rows, b.size(self.count), b.size(result[0]))
        dtype = self.result.type.dtype
        empty = np.full((), empty_segment(dtype, self.combine), dtype.numpy)
        fill_whole(b, empty.tobytes(), self.result)
        if not nest.size:
            _add_checks(b, nest, self.segments)
        _add_scatter(b, self._kernel(), nest, self.segments, self.x, self.result)
        return True


def _fits(b: Binder, inner: View, outer: View, but: int | None = None) -> bool:
    """Whether the extents of ``inner`` are at most those of ``outer``, along all axes ``but``
    one."""
    pairs = zip(inner.shape, outer.shape, strict=True)
    return all(axis == but or b.size(n) <= b.size(m) for axis, (n, m) in enumerate(pairs))


def _along(b: Binder, axes: list[Axis], table: View, axis: int) -> Nest:
    """The nest of these axes, of which indices replace one in the table."""
    line = axes[axis]._replace(table=0)
    extent, step = b.size(table.shape[axis]), b.size(table.strides[axis])
    return nest_of(axes[:axis], line, axes[axis + 1 :], extent, step)


def _add_gather(
    b: Binder, kernel: Kernel, nest: Nest, table: Source, index: Source, result: Value
) -> None:
    if not nest.size:
        nest = nest.checks()
    words, extent = nest.reading()
    addresses = {
        "table": b.address(table.value, table.view.offset),
        "index": b.address(index.value, index.view.offset),
        "elements": b.address(result),
    }
    time = _ELEMENT_NS * max(nest.size, nest.rows.extent * nest.line.extent)
    b.step(kernel, nest.block(words, **addresses, status=b.status), extent, time)


def _add_checks(b: Binder, nest: Nest, index: Source) -> None:
    """Add the step that fails where an index is out of range, and moves nothing."""
    kernel = index_check_kernel(_elements(index.value.type.dtype))
    nest = nest.checks()
    words, extent = nest.reading()
    address = b.address(index.value, index.view.offset)
    time = _ELEMENT_NS * nest.rows.extent * nest.line.extent
    b.step(kernel, nest.block(words, index=address, status=b.status), extent, time)


def _add_scatter(
    b: Binder, kernel: Kernel, nest: Nest, index: Source, source: Source, result: Value
) -> None:
    if not nest.size:
        return
    words, extent = nest.writing(b.threads)
    addresses = {
        "table": b.address(result),
        "index": b.address(index.value, index.view.offset),
        "elements": b.address(source.value, source.view.offset),
    }
    words = nest.block(words, **addresses, status=b.status)
    b.step(kernel, words, extent, _ELEMENT_NS * nest.size)

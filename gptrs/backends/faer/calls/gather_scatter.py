"""Gather and scatter calls: rows of a table by index (take), in-place update of a block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast

from gptrs.backends.faer.calls.base import Address, Binder, Call, is_stable, kernel
from gptrs.backends.faer.calls.product import product_panels
from gptrs.backends.faer.graph import Graph, Matrix, Members, Source, rows_of, starts_contiguous
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, product
from gptrs.ir.ops import elementwise
from gptrs.ir.ops.dynamic import dynamic_update_slice
from gptrs.ir.ops.index import take
from gptrs.ir.program import Instruction, Operand, Value
from gptrs.ir.types import f32
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.kernels.rowwise.gather_scatter import (
    TAKE_ARGUMENTS,
    UPDATE_ARGUMENTS,
    UPDATE_AXES,
    take_kernel,
    take_panels_kernel,
    update_extent,
    update_kernel,
)

_INDICES = {"si32": 4, "si64": 8}
_WEIGHTS: dict[str, WeightType] = {"f32": "f32", "f16": "f16", "bf16": "bf16"}
_OUTSIDE = 1  # the code of an index that is not in the table


@dataclass(frozen=True, eq=False)
class Take(Call):
    """take: rows of a table by index, widened to f32 (embedding lookup)."""

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
        if core.op is not dynamic_update_slice:
            return None
        x, update, start = core.operands
        assert isinstance(x, Value)
        assert isinstance(update, Value)
        entries = cast("tuple[Operand, ...]", start)
        values = [e for e in entries if isinstance(e, Value)]
        if x.type.rank > UPDATE_AXES or x.type.dtype.numpy.itemsize not in (1, 2, 4, 8):
            return None
        if any(v.type.dtype.name not in _INDICES for v in values) or not x.type.rank:
            return None
        if x.type.dtype.bits == 4:
            return None
        members = Members()
        source = members.read(
            graph.source(update, lambda view: rows_of(_last(view), 1) is not None)
        )
        members.add(core)
        if source is None:
            return None
        return cls(core.result, tuple(members.found), x, source, entries)

    def _kernel(self, isa: Isa) -> Kernel:
        size = self.x.type.dtype.numpy.itemsize
        return kernel(update_kernel, isa, cast("Literal[1, 2, 4, 8]", size))

    def compile(self, isa: Isa) -> None:
        self._kernel(isa)

    def bind(self, b: Binder) -> bool:
        missing = UPDATE_AXES - self.x.type.rank
        sizes = [1] * missing + [b.size(n) for n in self.update.view.shape]
        extents = [1] * missing + [b.size(n) for n in self.x.type.shape]
        if any(size > extent for size, extent in zip(sizes, extents, strict=True)):
            return False  # an error, which the reference words
        if not b.in_place:
            self.copy(b)
        words: dict[str, int | Address] = dict.fromkeys(UPDATE_ARGUMENTS, 0)
        words["source"] = b.address(self.update.value, self.update.view.offset)
        words["destination"] = b.address(self.result)
        for axis, entry in enumerate(self.start, missing):
            if isinstance(entry, Value):
                words[f"start{axis}"] = b.address(entry)
                words[f"start_bytes{axis}"] = _INDICES[entry.type.dtype.name]
            else:
                words[f"start{axis}"] = b.size(cast("int", entry))
        strides = [0] * missing + [b.size(s) for s in self.update.view.strides]
        self._step(b, words, sizes, extents, strides)
        return True

    def copy(self, b: Binder) -> None:
        """Add a copy of the whole old array."""
        missing = UPDATE_AXES - self.x.type.rank
        extents = [1] * missing + [b.size(n) for n in self.x.type.shape]
        words: dict[str, int | Address] = dict.fromkeys(UPDATE_ARGUMENTS, 0)
        words.update(source=b.address(self.x), destination=b.address(self.result))
        self._step(b, words, extents, extents, _row_major(extents))

    def _step(
        self,
        b: Binder,
        words: dict[str, int | Address],
        sizes: list[int],
        extents: list[int],
        strides: list[int],
    ) -> None:
        for axis, (size, extent) in enumerate(zip(sizes, extents, strict=True)):
            words[f"size{axis}"], words[f"extent{axis}"] = size, extent
        places = zip(strides[:-1], _row_major(extents)[:-1], strict=True)
        for axis, (source, destination) in enumerate(places):
            words[f"source_stride{axis}"] = source
            words[f"destination_stride{axis}"] = destination
        extent = update_extent(sizes)
        if sizes[3]:
            b.step(self._kernel(b.isa), [*words.values()], extent, 0.3 * extent * sizes[3])


def _last(view: View) -> View:
    return replace(view, shape=view.shape[-1:], strides=view.strides[-1:])


def _row_major(shape: list[int]) -> list[int]:
    strides, total = list[int](), 1
    for extent in reversed(shape):
        strides.insert(0, total)
        total *= extent
    return strides

"""Grouped matrix product call: tokens times the matrices of their experts.

A weight that is a parameter is packed once, as one matrix whose columns are those of all experts;
of another one, each call packs the matrices that it needs. Pairs of a token and one of its experts
are sorted by expert when they are known, at run time.
"""

from __future__ import annotations

from gptrs.backends.faer.calls.base import Address, Binder, Call, is_stable, kernel
from gptrs.backends.faer.calls.contraction import widened_weight
from gptrs.backends.faer.calls.dot_steps import BYTES_PER_NS
from gptrs.backends.faer.calls.forms import Panels
from gptrs.backends.faer.calls.packing import packing_kernel, panel_bytes, product_panels
from gptrs.backends.faer.calls.product import FLOPS_PER_NS
from gptrs.backends.memory_operands import Graph, Members, Source, rows_of, starts_contiguous
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, product, same, same_shape
from gptrs.ir.ops.experts import grouped_linear
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import f32
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.blocked import blocked_gemm_kernel, blocking
from gptrs.kernels.gemm.grouped import (
    GATHER_ARGUMENTS,
    GROUP_ARGUMENTS,
    GROUPED_GEMM_ARGUMENTS,
    PACK_CHOSEN_ARGUMENTS,
    PACK_GROUPS_ARGUMENTS,
    gather_rows_kernel,
    group_rows_kernel,
    grouped_extent,
    grouped_gemm_kernel,
    pack_chosen_kernel,
    pack_groups_kernel,
    slack,
)
from gptrs.kernels.gemm.packed_gemv import packed_gemv_kernel, packed_gemv_limit
from gptrs.kernels.gemm.packing import pack_rows_kernel
from gptrs.kernels.gemm.product import FIRST_BLOCK, Product
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.kernels.weight_compression.decoder import decoder_rows
from gptrs.lazy_dataclass import dataclass

_ID_BYTES = {"si32": 4, "si64": 8}
_OUTSIDE = 1  # the code of an id that no expert has


@dataclass(frozen=True, eq=False)
class GroupedProduct(Call):
    """x · weight[ids]ᵀ."""

    target = "gpt_rs.faer.grouped_matmul.f32.v1"

    x: Source
    ids: Source
    weight: Value
    start: DimLike
    """The number of its first element in the value."""
    stable: bool
    """Whether it is a parameter or a constant as a whole, so that it is packed once."""
    panels: Panels
    experts: int
    columns: int
    share: DimLike
    """How many ids read the same row of x."""

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> GroupedProduct | None:
        if core.op is not grouped_linear:
            return None
        x, ids, weight = core.operands
        if not (isinstance(x, Value) and isinstance(ids, Value) and isinstance(weight, Value)):
            return None
        experts, columns, depth = weight.type.shape
        if x.type.dtype is not f32 or ids.type.dtype.name not in _ID_BYTES:
            return None
        if not isinstance(experts, int) or not isinstance(columns, int):
            return None
        if not isinstance(depth, int) or not experts * columns * depth:
            return None
        members = Members()
        rows = members.read(graph.source(x, lambda view: rows_of(view) is not None))
        places = members.read(graph.source(ids, starts_contiguous))
        matrices = members.read(graph.source(weight, _has_no_gaps))
        if rows is None or places is None or matrices is None:
            return None
        stored, kind, stable = matrices.value, "f32", False
        if same(matrices.view.offset, 0) and same(stored.type.size, weight.type.size):
            stored, kind = widened_weight(matrices, graph, members)
            stable = is_stable(stored, graph)
        members.add(core)
        share = ids.type.shape[-1] if x.type.rank == ids.type.rank else 1
        panels = product_panels(False, kind, depth, experts * columns)
        panels = panels if stable else panels._replace(compressed=False)
        weights = stored, matrices.view.offset, stable, panels
        found = tuple(members.found)
        return cls(core.result, found, rows, places, *weights, experts, columns, share)

    @property
    def _weights(self) -> WeightType:
        return self.panels.weights

    def _product(self, *, compressed: bool) -> Product:
        return Product(self._weights, compressed)

    def compile(self, isa: Isa) -> None:
        code = self._product(compressed=self.panels.compressed)
        for build in (group_rows_kernel, gather_rows_kernel, pack_groups_kernel):
            kernel(build, isa)
        kernel(grouped_gemm_kernel, isa)
        kernel(packed_gemv_kernel, isa, code)
        kernel(blocked_gemm_kernel, isa, code)
        kernel(pack_rows_kernel, isa, isa.tile_rows)
        if not self.stable:
            kernel(pack_chosen_kernel, isa)
        packing_kernel(isa, transposed=False, weights=self._weights)

    def packed(self) -> dict[Value, Panels]:
        return {self.weight: self.panels} if self.stable else {}

    def bind(self, b: Binder) -> bool:
        pairs = b.size(product(self.ids.view.shape))
        if not pairs:
            return True
        starts, order = b.scratch(8 * (self.experts + 2)), b.scratch(8 * pairs)
        a = b.scratch(4 * pairs * self.panels.depth)
        self._sort(b, pairs, starts, order)
        self._gather(b, pairs, order, a)
        panels = b.panels(self.weight, self.panels) if self.stable else None
        packed = panels or self._pack_chosen(b, starts)
        code = self._product(compressed=panels is not None and self.panels.compressed)
        self._multiply(b, pairs, (code, packed), (starts, order, a))
        return True

    def _sort(self, b: Binder, pairs: int, starts: Address, order: Address) -> None:
        ids = self.ids.value
        words: dict[str, int | Address] = dict.fromkeys(GROUP_ARGUMENTS, 0)
        words.update(ids=b.address(ids), starts=starts, order=order, pairs=pairs)
        words.update(groups=self.experts, id_bytes=_ID_BYTES[ids.type.dtype.name])
        words.update(status=b.status, code=_OUTSIDE)
        b.step(kernel(group_rows_kernel, b.isa), [*words.values()], 1, 4.0 * pairs)

    def _gather(self, b: Binder, pairs: int, order: Address, a: Address) -> None:
        matrix, depth = rows_of(self.x.view), self.panels.depth
        assert matrix is not None
        words: dict[str, int | Address] = dict.fromkeys(GATHER_ARGUMENTS, 0)
        words.update(source=b.address(self.x.value, matrix.offset), order=order, a=a)
        words.update(depth=depth, stride=b.size(matrix.stride), share=b.size(self.share))
        time = 8 * pairs * depth / BYTES_PER_NS
        b.step(kernel(gather_rows_kernel, b.isa), [*words.values()], pairs, time)

    def _pack_chosen(self, b: Binder, starts: Address) -> Address:
        """Add the step that packs the matrices of the experts that are used; gives the panels."""
        depth, columns = self.panels.depth, self.columns
        size = panel_bytes(b.isa, self.panels.weights, depth, self.panels.columns)
        panels = b.scratch(size)
        words: dict[str, int | Address] = dict.fromkeys(PACK_CHOSEN_ARGUMENTS, 0)
        words.update(weight=b.address(self.weight, self.start), panels=panels, starts=starts)
        words["pack"] = packing_kernel(b.isa, False, self.panels.weights).address
        words.update(depth=depth, columns=columns, groups=self.experts)
        extent = grouped_extent(b.isa, columns)
        time = 2 * size / BYTES_PER_NS
        b.step(kernel(pack_chosen_kernel, b.isa), [*words.values()], extent, time)
        return panels

    def _multiply(
        self,
        b: Binder,
        pairs: int,
        weights: tuple[Product, Address],
        rows: tuple[Address, Address, Address],
    ) -> None:
        """The products of the rows A in the order of experts."""
        isa, depth, columns = b.isa, self.panels.depth, self.columns
        code, panels = weights
        few = packed_gemv_limit(isa, code)
        most_height = decoder_rows(isa) if code.compressed else isa.tile_rows
        starts, order, a = rows
        tiles: Address | int = 0
        if pairs > few:
            tiles = self._pack(b, pairs, (few, most_height), rows)
        blocks = blocking(isa, pairs, depth, compressed=code.compressed)
        block_rows = -(-pairs // blocks.row_blocks)
        ldc = columns + slack(isa, columns)
        words: dict[str, int | Address] = dict.fromkeys(GROUPED_GEMM_ARGUMENTS, 0)
        words.update(a=a, tiles=tiles, panels=panels, c=b.scratch(4 * pairs * ldc))
        words["totals"] = b.scratch(8 * pairs * ldc) if depth > FIRST_BLOCK else 0
        words.update(result=b.address(self.result), starts=starts, order=order)
        words["gemv"] = kernel(packed_gemv_kernel, isa, code).address
        words["gemm"] = kernel(blocked_gemm_kernel, isa, code).address
        words.update(depth=depth, columns=columns, ldc=ldc, groups=self.experts, few=few)
        words.update(most_height=most_height, depth_block=blocks.depth_block)
        words["block_tiles"] = -(-block_rows // most_height)
        read = min(pairs, self.experts) * 4 / BYTES_PER_NS
        time = max(2 * pairs / FLOPS_PER_NS, read) * depth * columns
        extent = grouped_extent(isa, columns)
        b.step(kernel(grouped_gemm_kernel, isa), [*words.values()], extent, time)

    def _pack(
        self,
        b: Binder,
        pairs: int,
        heights: tuple[int, int],
        rows: tuple[Address, Address, Address],
    ) -> Address:
        """Add the step that packs the rows of experts with many; gives the tiles."""
        depth, (few, most_height), (starts, _, a) = self.panels.depth, heights, rows
        # Each expert with tiles has more than `few` rows, and at most one tile that is not full.
        most = pairs // most_height + min(self.experts, pairs // (few + 1))
        tiles = b.scratch(4 * most * b.isa.tile_rows * depth)
        words: dict[str, int | Address] = dict.fromkeys(PACK_GROUPS_ARGUMENTS, 0)
        words.update(a=a, tiles=tiles, starts=starts, depth=depth, groups=self.experts)
        words["pack"] = kernel(pack_rows_kernel, b.isa, b.isa.tile_rows).address
        words.update(few=few, most_height=most_height)
        time = 8 * pairs * depth / BYTES_PER_NS
        b.step(kernel(pack_groups_kernel, b.isa), [*words.values()], most, time)
        return tiles


def _has_no_gaps(view: View) -> bool:
    """Whether the elements of a view follow each other."""
    return same_shape(view.strides, View.contiguous(view.shape).strides)

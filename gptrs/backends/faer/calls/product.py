"""Matrix product call: packed GEMM and GEMV with bias, activation, factor and residual as epilogue.

A weight that is a parameter is packed into panels once. Few rows are computed by the packed GEMV
(`packed_gemv_kernel`), many by the blocked GEMM (`blocked_gemm_kernel`) over packed rows. Products
with one column, and those of arguments with few rows or columns, are in `unpacked_product`, other
products of arguments in `tiled_steps`.
"""

from __future__ import annotations

from dataclasses import replace

from gptrs.backends.faer.calls.arguments import as_arguments
from gptrs.backends.faer.calls.base import PIECES, Address, Binder, Call, kernel
from gptrs.backends.faer.calls.contraction import (
    Contraction,
    ProductEpilogue,
    contraction,
    match_epilogue,
    widened,
)
from gptrs.backends.faer.calls.dot_steps import BYTES_PER_NS
from gptrs.backends.faer.calls.forms import Panels
from gptrs.backends.faer.calls.packing import packing_kernel, panel_bytes, product_panels
from gptrs.backends.faer.calls.tiled_steps import bind_tiled, compile_tiled
from gptrs.backends.faer.calls.unpacked_product import (
    are_many,
    bind_column,
    bind_few,
    compile_column,
    compile_few,
)
from gptrs.backends.machine import MACHINE
from gptrs.backends.memory_operands import Graph, Members
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import bf16, f32
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.bf16_pairs import TAIL, multiplies_bf16
from gptrs.kernels.gemm.blocked import Blocking, blocked_gemm_extent, blocked_gemm_kernel, blocking
from gptrs.kernels.gemm.packed_gemv import MOST_ROWS, packed_gemv_kernel, packed_gemv_limit
from gptrs.kernels.gemm.packing import (
    pack_pairs_kernel,
    pack_rows_kernel,
    panel_count,
    widen_rows_kernel,
)
from gptrs.kernels.gemm.product import FIRST_BLOCK, GEMM_ARGUMENTS, Product
from gptrs.kernels.gemm.weight_elements import weight_bytes
from gptrs.lazy_dataclass import dataclass

FLOPS_PER_NS = 60.0


@dataclass(frozen=True, eq=False)
class MatrixProduct(Call):
    """act(A·B + bias) · factor + residual, for each position of batch axes.

    A factor, such as the other half of a gated MLP, is fused where B is packed once.
    """

    target = "gpt_rs.faer.matmul.f32.v1"
    joins = True

    core: Contraction
    epilogue: ProductEpilogue
    rounded: bool = False
    """Whether A is stored in bf16, as the weights are."""

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> MatrixProduct | None:
        if core.op is not dot_general or core.result.type.dtype is not f32:
            return None
        members = Members()
        found = contraction(core, graph, members)
        members.add(core)
        if found is None:
            return None
        packs = _packed_form(found) is not None and not found.is_column
        result, epilogue = match_epilogue(core, found.columns, graph, members, multiplies=packs)
        # Of few rows A is read in f32, by several products as one step (`joint_steps`).
        few = isinstance(found.rows, int) and found.rows <= MOST_ROWS
        pairs = packs and found.weights == "bf16" and not few
        narrow = widened(found.a.value, graph) if pairs else None
        if narrow is None or narrow.type.dtype is not bf16:
            return cls(result, tuple(members.found), found, epilogue)
        members.add(graph.maker[found.a.value])
        found = replace(found, a=replace(found.a, value=narrow))
        return cls(result, tuple(members.found), found, epilogue, rounded=True)

    @classmethod
    def reads(cls, core: Instruction, graph: Graph) -> bool:
        """Whether kernels can read the operands of a product in their layout."""
        return contraction(core, graph, Members()) is not None

    def _product(self, compressed: bool) -> Product:
        return Product(self.core.weights, compressed, self.epilogue.activation)

    def _pairs(self, isa: Isa) -> bool:
        """Whether the blocked product multiplies pairs of bf16."""
        depth = self.core.depth
        whole = isinstance(depth, int) and not depth % isa.lanes
        return self.rounded and whole and multiplies_bf16(isa)

    def _blocked(self, isa: Isa, product: Product) -> tuple[Product, Kernel]:
        """The blocked product of many rows, and what packs them."""
        if self._pairs(isa):
            return replace(product, pairs=True), kernel(pack_pairs_kernel, isa)
        return product, kernel(pack_rows_kernel, isa, isa.tile_rows)

    @property
    def _panels(self) -> Panels | None:
        return _packed_form(self.core)

    def compile(self, isa: Isa) -> None:
        core, panels = self.core, self._panels
        product = self._product(panels is not None and panels.compressed)
        if core.is_column:
            compile_column(core, isa, product)
            return
        # All variants, so that another number of rows compiles nothing.
        if panels is None:
            compile_few(core, isa, product)
            if core.batch or are_many(core):
                compile_tiled(isa, as_arguments(core), self.epilogue)
            return
        limit = packed_gemv_limit(isa, product)
        if not isinstance(core.rows, int) or core.rows <= limit:
            kernel(packed_gemv_kernel, isa, product)
        if not isinstance(core.rows, int) or core.rows > limit:
            blocked, _ = self._blocked(isa, product)
            kernel(blocked_gemm_kernel, isa, blocked)
        # Rows that are known are many: fewer are read in f32 (`match`).
        if self.rounded and not (isinstance(core.rows, int) and self._pairs(isa)):
            kernel(widen_rows_kernel, isa)
        packing_kernel(isa, core.b.transposed, core.weights)

    def packed(self) -> dict[Value, Panels]:
        return {} if self._panels is None else {self.core.b.value: self._panels}

    def bind(self, b: Binder) -> bool:
        core, form = self.core, self._panels
        rows, columns = b.size(core.rows), b.size(core.columns)
        if not rows or not columns or not all(b.size(n) for n in core.batch):
            return True
        packed = None if form is None else b.panels(core.b.value, form)
        product = self._product(packed is not None and form is not None and form.compressed)
        operands = core, product, self.epilogue, self.result
        if core.is_column:
            bind_column(b, *operands)
            return True
        if form is None:
            if not bind_few(b, *operands):
                bind_tiled(b, as_arguments(core), self.epilogue, self.result)
            return True
        if packed is None:
            packed = b.scratch(self._panel_bytes(b))
            self._pack_panels(b, packed)
        self._multiply(b, product, packed, self._tiles(b, product))
        return True

    def _tiles(self, b: Binder, product: Product) -> tuple[Address, Address | int, Blocking] | None:
        """Scratch memory for packed rows and for totals, and the blocking; None where rows are
        few."""
        rows, depth, columns = map(b.size, (self.core.rows, self.core.depth, self.core.columns))
        if rows <= packed_gemv_limit(b.isa, product):
            return None
        fair = -(-(b.threads * PIECES if b.threads > 1 else 1) // panel_count(b.isa, columns))
        product, _ = self._blocked(b.isa, product)
        decodes = product.compressed and not product.pairs
        blocks = blocking(b.isa, rows, depth, row_blocks=fair, compressed=decodes)
        count = -(-rows // blocks.height) * b.isa.tile_rows
        totals = b.scratch(8 * rows * columns) if depth > FIRST_BLOCK else 0
        tails = -(-rows // blocks.height) * TAIL if product.pairs else 0
        return b.scratch((count * depth + tails) * 4), totals, blocks

    def _panel_bytes(self, b: Binder) -> int:
        core = self.core
        return panel_bytes(b.isa, core.weights, b.size(core.depth), b.size(core.columns))

    def _pack_panels(self, b: Binder, panels: Address) -> None:
        core = self.core
        depth, columns, matrix = b.size(core.depth), b.size(core.columns), core.b.matrix
        sizes = (depth, columns) if core.b.transposed else (columns, depth)
        words = [b.address(core.b.value), panels, *sizes, b.size(matrix.stride)]
        words.append(depth if core.b.transposed else b.isa.tile_columns)
        pack = packing_kernel(b.isa, core.b.transposed, core.weights)
        b.step(pack, words, panel_count(b.isa, columns), 8 * depth * columns / BYTES_PER_NS)

    def _multiply(
        self,
        b: Binder,
        product: Product,
        panels: Address,
        tiles: tuple[Address, Address | int, Blocking] | None,
    ) -> None:
        """Add a product with packed weights."""
        core, matrix = self.core, self.core.a.matrix
        isa, rows, depth, columns = b.isa, *map(b.size, (core.rows, core.depth, core.columns))
        a, stride = b.address(core.a.value, matrix.offset), b.size(matrix.stride)
        if self.rounded and (tiles is None or not self._pairs(isa)):
            narrow, a = a, b.scratch(4 * rows * depth)
            time = 6 * rows * depth / BYTES_PER_NS
            widen = kernel(widen_rows_kernel, isa)
            b.step(widen, [narrow, a, depth, stride], rows, time, prepares=a)
            stride = depth
        words: dict[str, int | Address] = dict.fromkeys(GEMM_ARGUMENTS, 0)
        words.update(a=a, panels=panels, rows=rows, depth=depth, columns=columns, lda=stride)
        words.update(c=b.address(self.result), ldc=columns)
        words.update(self.epilogue.words(b, 0))
        time = max(2 * rows / FLOPS_PER_NS, weight_bytes(core.weights) / BYTES_PER_NS)
        time *= depth * columns
        if tiles is None:
            extent = panel_count(isa, columns)
            gemv = kernel(packed_gemv_kernel, isa, product)
            b.step(gemv, [*words.values()], extent, time, least=MACHINE.streamed_piece)
            return
        packed, totals, blocks = tiles
        words.update(a=packed, totals=totals, **blocks._asdict())
        product, pack = self._blocked(isa, product)
        pack_words = [a, packed, rows, depth, stride, blocks.height]
        pack_time = 8 * rows * depth / BYTES_PER_NS
        b.step(pack, pack_words, -(-rows // blocks.height), pack_time, prepares=packed)
        extent = blocked_gemm_extent(isa, columns, blocks)
        b.step(kernel(blocked_gemm_kernel, isa, product), [*words.values()], extent, time)


def _packed_form(core: Contraction) -> Panels | None:
    """The form in which B is packed once; None where it is not."""
    if not core.stable or not isinstance(core.depth, int) or not isinstance(core.columns, int):
        return None
    return product_panels(core.b.transposed, core.weights, core.depth, core.columns)

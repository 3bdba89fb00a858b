"""Small products in the kernel of a loop: which are written there, and how their operands lie.

A custom call with a product is opened: its epilogue becomes a part of the body's regions, and the
product, if its sizes are known and it is small, a call of `gptrs.kernels.gemm.inline_product`. A
product with one column is that of a row with the transposed matrix. A matrix whose rows run along
the depth is packed: before the iterations, if the loop only reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from gptrs.backends.faer.calls.contraction import OperandAxes
from gptrs.backends.views import View
from gptrs.ir.dims import same
from gptrs.ir.implementations.kernels import kernel_for
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.custom import custom_call
from gptrs.ir.ops.elementwise import cast
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.types import f32, f64
from gptrs.kernels.gemm.inline_product import ProductSizes
from gptrs.kernels.gemm.product import FIRST_BLOCK
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.legalize import inlined

MOST_OPERATIONS = 1 << 17
"""Multiply-adds of a product in a loop's kernel: beyond, threads and packing are worth a step."""
_MOST_CHAIN = 64  # multiply-adds of a product of two vectors: each waits for the one before


@dataclass(frozen=True)
class LoopProduct:
    """A product of two stored values."""

    a: Value
    b: Value
    sizes: ProductSizes
    packed_from: int | None = None
    """The stride of B where it is stored as [columns, depth]: it is packed then."""

    @property
    def operations(self) -> int:
        """Its multiply-adds."""
        return self.sizes.rows * self.sizes.depth * self.sizes.columns


def open_products(program: Program) -> Program | None:
    """``program`` with the custom calls that contain products opened; None where one of them is no
    product for a loop's kernel."""
    if not any(_has_product(instruction) for instruction in program.body):
        return program
    opened = inlined(program, lambda i: i.op is custom_call and not _has_product(i))
    makers = {i.results[0]: i for i in opened.body}
    for core in opened.body:
        if core.op is dot_general and (loop_product(core) is None or _widens(core, makers)):
            return None
    return opened


def _has_product(instruction: Instruction) -> bool:
    definition: Program | None = instruction.attrs.get("definition")
    return definition is not None and any(i.op is dot_general for i in definition.body)


def _widens(core: Instruction, makers: Mapping[Value, Instruction]) -> bool:
    """Whether an operand is a narrow array from outside: its conversion is no work for each
    iteration."""
    made = [makers[value] for value in core.values() if value in makers]
    return any(i.op is cast and not any(v in makers for v in i.values()) for i in made)


def loop_product(core: Instruction, vector_bits: int = 512) -> LoopProduct | None:
    """A `dot_general` as a product in the kernel of a loop; None if its sizes are not known, or
    large."""
    lhs, rhs = core.values()
    dtype, attrs = core.result.type.dtype, core.attrs
    plain = all(attrs[name] in (None, dtype) for name in ("accum_dtype", "out_dtype"))
    if dtype not in (f32, f64) or lhs.type.dtype is not dtype or not plain:
        return None
    if attrs["batch_lhs"] or kernel_for(core) is not None:
        return None
    sides = [
        (value, OperandAxes.of(core, name, value.type.rank))
        for name, value in (("lhs", lhs), ("rhs", rhs))
    ]
    counts = [axes.count(value.type.shape, axes.rest) for value, axes in sides]
    if same(counts[1], 1):
        sides, counts = sides[::-1], counts[::-1]
    (a, left), (b, right) = sides
    rows, columns = counts
    depth = left.count(a.type.shape, left.contracted)
    if not (isinstance(rows, int) and isinstance(depth, int) and isinstance(columns, int)):
        return None
    if not 0 < rows * depth * columns <= MOST_OPERATIONS or depth > FIRST_BLOCK:
        return None
    if columns == 1 and depth > _MOST_CHAIN:
        return None
    a_strides, b_strides = _strides(a, left), _strides(b, right)
    if a_strides is None or b_strides is None:
        return None
    (a_row, a_depth), (b_column, b_depth) = a_strides, b_strides
    packed_from = None
    if b_column != 1 and columns > 1:
        packed_from, b_depth = b_column, columns
        if b_strides[1] != 1 and depth > 1:
            return None
    sizes = ProductSizes(rows, depth, columns, a_row, a_depth, b_depth, vector_bits)
    return LoopProduct(a, b, sizes, packed_from)


def _strides(value: Value, axes: OperandAxes) -> tuple[int, int] | None:
    """The strides of an operand along its rows or columns, and along the depth."""
    view = View.contiguous(value.type.shape)
    for inner in (axes.contracted, axes.rest):
        matrix = axes.matrix(view, inner)
        if matrix is not None and isinstance(matrix.stride, int):
            return (matrix.stride, 1) if inner is axes.contracted else (1, matrix.stride)
    return None

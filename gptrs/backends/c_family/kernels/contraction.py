"""Matrix products: ``dot_general`` with operands at any strides.

    out[b, m, n] = Σ_k A[b, m, k] · B[b, k, n]

Floats go in blocks (`gptrs.backends.c_family.kernels.product_blocks`) where their rows are
contiguous; other products, and those of integers, result by result.
"""

from __future__ import annotations

from gptrs.backends.c_family import scalars
from gptrs.backends.c_family.element_types import arithmetic, loaded, stored
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.operands import Operand, terms
from gptrs.backends.c_family.kernels.product import Product
from gptrs.backends.c_family.kernels.product_blocks import BlockWriter, dots, panels
from gptrs.backends.memory_operands import Graph
from gptrs.ir.dims import product
from gptrs.ir.ops.elementwise import mul
from gptrs.ir.ops.reduce import reduce_sum
from gptrs.ir.program import Instruction


def dot_general_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """The kernel of a ``dot_general``."""
    made = Product.of(instruction, graph)
    few = isinstance(made.columns.size, int) and made.columns.size < 8
    if made.is_float and made.has_panels and not (few and made.is_dot):
        return [BlockWriter(made, instruction, panels).call("matmul")]
    if made.is_float and made.is_dot:
        return [BlockWriter(made, instruction, dots).call("matmul_dot")]
    return [each_result(made, instruction)]


def each_result(made: Product, instruction: Instruction) -> KernelCall:
    """A work item for each result."""
    builder = KernelBuilder()
    a, b = builder.read(made.a.value), builder.read(made.b.value)
    m, n = builder.dim(made.rows.size), builder.dim(made.columns.size)
    accumulator, dtype = made.accumulator, made.result.type.dtype
    kind = arithmetic(accumulator)
    split, (a_batch, b_batch) = made.batch.place(builder, "batch", "b")
    rows, (a_row,) = made.rows.place(builder, "row", "m")
    columns, (b_column,) = made.columns.place(builder, "column", "n")
    out = builder.write(made.result)
    depth, (a_depth, b_depth) = made.depth.place(builder, "k", "k")

    def factor(operand: Operand, text: str) -> str:
        x = loaded(operand.dtype, text)
        if operand.dtype.compute is accumulator:
            return x
        return scalars.cast(operand.dtype.compute, accumulator, x)

    left = factor(made.a, f"{a}[{terms('a_at', a_depth)}]")
    right = factor(made.b, f"{b}[{terms('b_at', b_depth)}]")
    multiplied = scalars.RULES[mul](scalars.Scalars((left, right), accumulator, accumulator))
    total = "total"
    if dtype.compute is not accumulator:
        total = scalars.cast(accumulator, dtype, total)
    lines = [
        f"const isize column = item % {n}, outer = item / {n};",
        f"const isize row = outer % {m}, batch = outer / {m};",
        *split,
        *rows,
        *columns,
        f"const isize a_at = {terms(made.a.offset(builder), a_batch, a_row)};",
        f"const isize b_at = {terms(made.b.offset(builder), b_batch, b_column)};",
        f"{kind} total = 0;",
        f"for (isize k = 0; k < {builder.dim(made.depth.size)}; k++) {{",
        *(f"  {line}" for line in depth),
        f"  const {kind} product = {multiplied};",
        f"  total = {scalars.joined(reduce_sum, accumulator, 'total', 'product')};",
        "}",
        f"{out}[item] = {stored(dtype, total)};",
    ]
    size = product((made.batch.size, made.rows.size, made.columns.size))
    return builder.call("product", "item", size, lines, [instruction], work=made.depth.size)

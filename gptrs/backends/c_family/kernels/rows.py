"""Along one axis: argmax, argmin, cumulative sums, products and extremes.

A work item takes one line of elements along the axis.
"""

from __future__ import annotations

from gptrs.backends.c_family import scalars
from gptrs.backends.c_family.element_types import arithmetic, loaded, stored
from gptrs.backends.c_family.index_text import position
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.operands import Operand, flat
from gptrs.backends.memory_operands import Graph
from gptrs.backends.views import View
from gptrs.ir.dims import product
from gptrs.ir.ops.reduce import (
    argmax,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from gptrs.ir.program import Instruction, Operation

_JOINS: dict[Operation, Operation] = {
    cumsum: reduce_sum,
    cumprod: reduce_prod,
    cummax: reduce_max,
    cummin: reduce_min,
}


def arg_extreme_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """The position of the greatest or least element; NaN wins, and the first of equals."""
    (x,) = instruction.values()
    axis: int = instruction.attrs["axis"]
    builder = KernelBuilder()
    operand, dtype = Operand.of(graph, x), x.type.dtype
    outer = tuple(1 if a == axis else n for a, n in enumerate(x.type.shape))
    lines, names = flat(outer, "item", builder)
    here = [("along" if a == axis else name) for a, name in enumerate(names)]
    first = [("0" if a == axis else name) for a, name in enumerate(names)]
    symbol, kind = ">" if instruction.op is argmax else "<", arithmetic(dtype)
    nan = f" || ({kind}_is_nan(e) && !{kind}_is_nan(best))" if dtype.is_float else ""
    element = loaded(dtype, operand.element(builder, here))
    start = loaded(dtype, operand.element(builder, first))
    out = builder.write(instruction.result)
    lines += [
        f"{kind} best = {start};",
        "isize place = 0;",
        f"for (isize along = 1; along < {builder.dim(x.type.shape[axis])}; along++) {{",
        f"  const {kind} e = {element};",
        f"  if (e {symbol} best{nan}) {{ best = e; place = along; }}",
        "}",
        f"{out}[item] = place;",
    ]
    work, size = x.type.shape[axis], product(outer)
    return [builder.call(instruction.op.name, "item", size, lines, [instruction], work=work)]


def cumulative_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """The reduction of the elements up to each."""
    (x,) = instruction.values()
    axis: int = instruction.attrs["axis"]
    builder = KernelBuilder()
    operand, dtype = Operand.of(graph, x), x.type.dtype
    wide, join = dtype.compute, _JOINS[instruction.op]
    outer = tuple(1 if a == axis else n for a, n in enumerate(x.type.shape))
    lines, names = flat(outer, "item", builder)
    here = [("along" if a == axis else name) for a, name in enumerate(names)]
    strides = View.contiguous(x.type.shape).strides
    builder.uses(strides)
    element = loaded(dtype, operand.element(builder, here))
    out = builder.write(instruction.result)
    joined = scalars.joined(join, wide, "total", "e")
    kind = arithmetic(dtype)
    lines += [
        f"{kind} total = 0;",
        f"for (isize along = 0; along < {builder.dim(x.type.shape[axis])}; along++) {{",
        f"  const {kind} e = {element};",
        f"  total = along ? {joined} : e;",
        f"  {out}[{position(here, strides)}] = {stored(dtype, 'total')};",
        "}",
    ]
    work, size = x.type.shape[axis], product(outer)
    return [builder.call(instruction.op.name, "item", size, lines, [instruction], work=work)]

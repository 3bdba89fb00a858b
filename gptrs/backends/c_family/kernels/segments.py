"""Segment reduction: rows combined by the segment that each belongs to, in order.

    columns   a work item takes COLUMNS columns of all rows, whose segments it combines in memory:
              each element is read once
    results   a work item makes one element of the result from the rows of its segment: for devices
              that run thousands, where a work item that writes what it reads next is slow

Narrow sums and means are expanded before (`gptrs.backends.index_expansions`).
"""

from __future__ import annotations

from gptrs.backends.c_family import scalars
from gptrs.backends.c_family.element_types import arithmetic, literal, loaded, stored
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.indexing import outside
from gptrs.backends.c_family.kernels.operands import Axes, Operand, flat, terms
from gptrs.backends.memory_operands import Graph
from gptrs.ir.dims import DimLike, product
from gptrs.ir.ops.reduce import reduce_max, reduce_min, reduce_prod, reduce_sum
from gptrs.ir.ops.segment import empty_segment
from gptrs.ir.program import Instruction

COLUMNS = 64
_JOINS = {"add": reduce_sum, "mul": reduce_prod, "max": reduce_max, "min": reduce_min}


def segment_columns_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """Segments combined in the memory of the result."""
    x, segments = instruction.values()
    result, dtype = instruction.result, x.type.dtype
    columns = product(x.type.shape[1:])
    builder = KernelBuilder()
    width, rows = builder.dim(columns), builder.dim(x.type.shape[0])
    of, at = Operand.of(graph, x), Operand.of(graph, segments)
    axes = Axes(of.view.shape[1:], (of.view.strides[1:],)).merged()
    split, (inside,) = axes.place(builder, "column", "c")
    builder.uses(of.view.strides)
    row = terms(of.offset(builder), f"row * {builder.dim(of.view.strides[0])}")
    element = loaded(dtype, f"{builder.read(of.value)}[{terms(row, inside)}]")
    out = f"{builder.write(result)}[at * {width} + column]"
    joined = scalars.joined(_JOINS[_kind(instruction)], dtype.compute, loaded(dtype, out), "e")
    lines = [
        f"const isize first = item * {COLUMNS}, last = least(first + {COLUMNS}, {width});",
        f"for (isize row = 0; row < {rows}; row++) {{",
        f"  const isize at = (isize){at.element(builder, ['row'])};",
        f"  const int outside = {outside('at', builder, instruction.attrs['count'])};",
        "  for (isize column = first; column < last && !outside; column++) {",
        *(f"    {line}" for line in split),
        f"    const {arithmetic(dtype)} e = {element};",
        f"    {out} = {stored(dtype, joined)};",
        "  }",
        "}",
    ]
    extent, work = (columns + COLUMNS - 1) // COLUMNS, x.type.shape[0] * COLUMNS
    combine = builder.call("segments", "item", extent, lines, [instruction], work=work)
    return [_check(instruction, graph), _fill(instruction), combine]


def segment_results_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """Each element of the result by itself."""
    x, segments = instruction.values()
    result, dtype = instruction.result, x.type.dtype
    builder = KernelBuilder()
    of, at = Operand.of(graph, x), Operand.of(graph, segments)
    lines, names = flat(result.type.shape, "item", builder)
    joined = scalars.joined(_JOINS[_kind(instruction)], dtype.compute, "total", "e")
    kind, rows = arithmetic(dtype), builder.dim(x.type.shape[0])
    lines += [
        f"{kind} total = {_empty(instruction)};",
        f"for (isize row = 0; row < {rows}; row++) {{",
        f"  const isize at = (isize){at.element(builder, ['row'])};",
        f"  if (at == {names[0]}) {{",
        f"    const {kind} e = {loaded(dtype, of.element(builder, ('row', *names[1:])))};",
        f"    total = {joined};",
        "  }",
        "}",
        f"{builder.write(result)}[item] = {stored(dtype, 'total')};",
    ]
    work: DimLike = x.type.shape[0]
    combine = builder.call("segments", "item", result.type.size, lines, [instruction], work=work)
    return [_check(instruction, graph), combine]


def _check(instruction: Instruction, graph: Graph) -> KernelCall:
    """The report of entries that are no segments, also where the result has no elements."""
    _, segments = instruction.values()
    builder = KernelBuilder()
    element = Operand.of(graph, segments).element(builder, ["item"])
    lines = [
        f"const isize at = (isize){element};",
        builder.fail(outside("at", builder, instruction.attrs["count"])),
    ]
    return builder.call("segments_check", "item", segments.type.size, lines, [instruction])


def _fill(instruction: Instruction) -> KernelCall:
    """The result of segments without rows."""
    builder, result = KernelBuilder(), instruction.result
    value = stored(result.type.dtype, _empty(instruction))
    line = f"{builder.write(result)}[j] = {value};"
    return builder.call("fill", "j", result.type.size, [line], [instruction])


def _empty(instruction: Instruction) -> str:
    dtype = instruction.result.type.dtype
    return literal(dtype, empty_segment(dtype, _kind(instruction)))


def _kind(instruction: Instruction) -> str:
    return instruction.attrs["reduce"]

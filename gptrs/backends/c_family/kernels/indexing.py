"""Elements at integer positions: take, gather, dynamic slices and updates, scatter.

An index out of range is reported, and nothing is read or written there.
"""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.backends.c_family import scalars
from gptrs.backends.c_family.element_types import loaded, stored
from gptrs.backends.c_family.index_text import position
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.moving import copy_call
from gptrs.backends.c_family.kernels.operands import Operand, flat
from gptrs.backends.memory_operands import Graph
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, Shape, product, surely_greater
from gptrs.ir.ops.index import scatter_add
from gptrs.ir.ops.reduce import reduce_max, reduce_min, reduce_sum
from gptrs.ir.program import Instruction, Operation, Value


def take_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """Rows of x at indices."""
    x, indices = instruction.values()
    builder = KernelBuilder()
    of, at = Operand.of(graph, x), Operand.of(graph, indices)
    lines, names = flat(instruction.result.type.shape, "item", builder)
    lines.append(f"const isize at = (isize){at.element(builder, names[: indices.type.rank])};")
    lines.append(f"const int outside = {outside('at', builder, x.type.shape[0])};")
    lines.append(builder.fail("outside"))
    element = of.element(builder, ("at", *names[indices.type.rank :]))
    out = builder.write(instruction.result)
    lines.append(f"{out}[item] = outside ? 0 : {element};")
    return [builder.call("take", "item", instruction.result.type.size, lines, [instruction])]


def gather_calls(instruction: Instruction, graph: Graph) -> list[KernelCall] | None:
    """Elements of x at indices along an axis."""
    x, index = instruction.values()
    axis: int = instruction.attrs["axis"]
    if not _lies_inside(index.type.shape, x.type.shape, axis):
        return None
    builder = KernelBuilder()
    of, at = Operand.of(graph, x), Operand.of(graph, index)
    lines, names = flat(instruction.result.type.shape, "item", builder)
    lines.append(f"const isize at = (isize){at.element(builder, names)};")
    lines.append(f"const int outside = {outside('at', builder, x.type.shape[axis])};")
    lines.append(builder.fail("outside"))
    element = of.element(builder, [("at" if a == axis else name) for a, name in enumerate(names)])
    out = builder.write(instruction.result)
    lines.append(f"{out}[item] = outside ? 0 : {element};")
    return [builder.call("gather", "item", instruction.result.type.size, lines, [instruction])]


def dynamic_slice_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """A box of x from a start that is known at run time."""
    x, start = instruction.operands
    assert isinstance(x, Value)
    builder = KernelBuilder()
    of, sizes = Operand.of(graph, x), instruction.result.type.shape
    head, starts = _starts(start, x.type.shape, sizes, builder, graph)
    lines, names = flat(sizes, "item", builder)
    inside = [f"({s} + {n})" for s, n in zip(starts, names, strict=True)]
    element = of.element(builder, inside)
    out = builder.write(instruction.result)
    lines.append(f"{out}[item] = {element};")
    size = product(sizes)
    return [builder.call("dynamic_slice", "item", size, lines, [instruction], head=head)]


def dynamic_update_slice_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """A copy of x, which is left out where the result takes its memory; then the update."""
    x, update, start = instruction.operands
    assert isinstance(x, Value)
    assert isinstance(update, Value)
    result, builder = instruction.result, KernelBuilder()
    part = Operand.of(graph, update)
    head, starts = _starts(start, x.type.shape, update.type.shape, builder, graph)
    lines, names = flat(update.type.shape, "item", builder)
    element = part.element(builder, names)
    strides = View.contiguous(x.type.shape).strides
    builder.uses(strides)
    inside = [f"({s} + {n})" for s, n in zip(starts, names, strict=True)]
    out = builder.write(result)
    lines.append(f"{out}[{position(inside, strides)}] = {element};")
    size = update.type.size
    call = builder.call("update", "item", size, lines, [instruction], head=head)
    return [copy_call(x, result, [instruction]), call]


def scatter_calls(instruction: Instruction, graph: Graph) -> list[KernelCall] | None:
    """A copy of x; then, for each position along the other axes, the sources in order."""
    x, index, source = instruction.values()
    axis: int = instruction.attrs["axis"]
    op = _join_of(instruction)
    dtype = x.type.dtype
    inside = _lies_inside(index.type.shape, x.type.shape, axis)
    if not inside or not _lies_inside(index.type.shape, source.type.shape, -1):
        return None
    result, builder = instruction.result, KernelBuilder()
    at, of = Operand.of(graph, index), Operand.of(graph, source)
    outer = tuple(1 if a == axis else n for a, n in enumerate(index.type.shape))
    lines, names = flat(outer, "item", builder)
    here = [("along" if a == axis else name) for a, name in enumerate(names)]
    there = [("at" if a == axis else name) for a, name in enumerate(names)]
    strides = View.contiguous(x.type.shape).strides
    builder.uses(strides)
    element = of.element(builder, here)
    place = at.element(builder, here)
    out = f"{builder.write(result)}[{position(there, strides)}]"
    new = element
    if op is not None:
        total = scalars.joined(op, dtype.compute, loaded(dtype, out), loaded(dtype, element))
        new = stored(dtype, total)
    lines += [
        f"for (isize along = 0; along < {builder.dim(index.type.shape[axis])}; along++) {{",
        f"  const isize at = (isize){place};",
        f"  const int outside = {outside('at', builder, x.type.shape[axis])};",
        f"  {builder.fail('outside')}",
        f"  if (!outside) {out} = {new};",
        "}",
    ]
    size = product(outer)
    work = index.type.shape[axis]
    call = builder.call("scatter", "item", size, lines, [instruction], work=work)
    return [copy_call(x, result, [instruction]), call]


def _join_of(instruction: Instruction) -> Operation | None:
    """The reduction that combines an element with a source; None where the source replaces it."""
    kind = "add" if instruction.op is scatter_add else instruction.attrs["reduce"]
    return {"add": reduce_sum, "max": reduce_max, "min": reduce_min}.get(kind)


def outside(at: str, builder: KernelBuilder, extent: DimLike) -> str:
    """The condition of an index that is out of range."""
    return f"{at} < 0 || {at} >= {builder.dim(extent)}"


def _lies_inside(index: Shape, shape: Shape, axis: int) -> bool:
    """Whether an index surely lies in an array along all axes but ``axis``."""
    pairs = enumerate(zip(index, shape, strict=True))
    return all(a == axis or surely_greater(n + 1, i) for a, (i, n) in pairs)


def _starts(
    start: object, shape: Shape, sizes: Shape, builder: KernelBuilder, graph: Graph
) -> tuple[list[str], Sequence[str]]:
    """Lines that read where a box starts, moved so that it lies in the array, and their names."""
    assert isinstance(start, tuple)
    lines: list[str] = []
    names: list[str] = []
    for axis, entry in enumerate(start):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if isinstance(entry, Value):
            text = f"(isize){Operand.of(graph, entry).element(builder, ())}"
        else:
            text = builder.number(entry, "start")  # pyright: ignore[reportUnknownArgumentType]
        room = builder.dim(shape[axis] - sizes[axis])
        lines.append(f"const isize start_{axis} = greatest(0, least({text}, {room}));")
        names.append(f"start_{axis}")
    return lines, names

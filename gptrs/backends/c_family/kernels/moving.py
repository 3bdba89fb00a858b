"""Data movement: concat, pad, tile, and updates of a part of an array."""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.backends.c_family.element_types import literal, stored
from gptrs.backends.c_family.index_text import position
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.operands import Operand, flat
from gptrs.backends.memory_operands import Graph
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, product, same
from gptrs.ir.program import Instruction, Value


def copy_call(source: Value, target: Value, members: Sequence[Instruction]) -> KernelCall:
    """The elements of ``source`` in ``target``, which has as many."""
    builder = KernelBuilder()
    x, out = builder.read(source), builder.write(target)
    return builder.call("copy", "j", source.type.size, [f"{out}[j] = {x}[j];"], members)


def place_call(operand: Operand, target: Value, view: View, instruction: Instruction) -> KernelCall:
    """The elements of ``operand`` at the places of ``view`` in ``target``."""
    builder = KernelBuilder()
    shape = operand.view.shape
    lines, indices = flat(shape, "item", builder)
    element = operand.element(builder, indices)
    out = builder.write(target)
    builder.uses(view.strides)
    offset = "" if same(view.offset, 0) else builder.number(view.offset)
    at = position(indices, view.strides, offset)
    size = product(shape)
    return builder.call(
        instruction.op.name, "item", size, [*lines, f"{out}[{at}] = {element};"], [instruction]
    )


def concat_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """Each operand at its place."""
    result = instruction.result
    axis: int = instruction.attrs["axis"]
    whole = View.contiguous(result.type.shape)
    strides = _strides(result)
    calls: list[KernelCall] = []
    start: DimLike = 0
    for value in instruction.values():
        operand = Operand.of(graph, value)
        part = View(value.type.shape, strides, whole.offset + start * strides[axis])
        calls.append(place_call(operand, result, part, instruction))
        start = start + value.type.shape[axis]
    return calls


def pad_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """The padding everywhere, then the elements."""
    (x,) = instruction.values()
    attrs, result = instruction.attrs, instruction.result
    builder = KernelBuilder()
    out, dtype = builder.write(result), result.type.dtype
    value = stored(dtype, literal(dtype, attrs["value"]))
    fill = builder.call("fill", "j", result.type.size, [f"{out}[j] = {value};"], [instruction])
    offset: DimLike = 0
    strides: list[DimLike] = []
    for stride, low, gap in zip(_strides(result), attrs["low"], attrs["interior"], strict=True):
        offset = offset + stride * low
        strides.append(stride * (gap + 1))
    view = View(x.type.shape, tuple(strides), offset)
    return [fill, place_call(Operand.of(graph, x), result, view, instruction)]


def tile_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """Each element of the result from its place in the operand."""
    (x,) = instruction.values()
    builder, operand = KernelBuilder(), Operand.of(graph, x)
    lines, indices = flat(instruction.result.type.shape, "item", builder)
    inside = [f"({i} % {builder.dim(n)})" for i, n in zip(indices, x.type.shape, strict=True)]
    element = operand.element(builder, inside)
    out = builder.write(instruction.result)
    size = instruction.result.type.size
    body = [*lines, f"{out}[item] = {element};"]
    return [builder.call("tile", "item", size, body, [instruction])]


def _strides(value: Value) -> tuple[DimLike, ...]:
    """The row-major strides of an array, of axes of extent 1 too."""
    strides: list[DimLike] = []
    total: DimLike = 1
    for extent in reversed(value.type.shape):
        strides.append(total)
        total = total * extent
    return tuple(reversed(strides))

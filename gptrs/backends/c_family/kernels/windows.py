"""Sliding windows over spatial axes: reduce_window, extract_patches.

A work item makes one element of the result; elements in the padding are not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.backends.c_family import scalars
from gptrs.backends.c_family.element_types import arithmetic, literal, loaded, stored
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.operands import Operand, flat
from gptrs.backends.memory_operands import Graph
from gptrs.ir.ops.reduce import reduce_max, reduce_min, reduce_prod, reduce_sum
from gptrs.ir.ops.window import neutral_of
from gptrs.ir.program import Instruction
from gptrs.ir.types import DType

_JOINS = {"add": reduce_sum, "mul": reduce_prod, "max": reduce_max, "min": reduce_min}


def reduce_window_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """The reduction of each window, position by position."""
    (x,) = instruction.values()
    attrs, builder = instruction.attrs, KernelBuilder()
    operand, result = Operand.of(graph, x), instruction.result
    lines, names = flat(result.type.shape, "item", builder)
    spatial = range(len(attrs["window"]))
    wide = (attrs["accum_dtype"] or x.type.dtype).compute
    kind = arithmetic(wide)
    inside, places = _places(instruction, names, [f"w{a}" for a in spatial], builder)
    element = _widened(x.type.dtype, wide, operand.element(builder, (names[0], *places, names[-1])))
    out = builder.write(result)
    join = _JOINS[attrs["reduce"]]
    neutral = literal(wide, neutral_of(attrs["reduce"], x.type.dtype))
    total = "total"
    if result.type.dtype.compute is not wide:
        total = scalars.cast(wide, result.type.dtype, total)
    body = [
        *inside,
        f"const {kind} e = inside ? {element} : {neutral};",
        f"total = first ? e : {scalars.joined(join, wide, 'total', 'e')};",
        "first = 0;",
    ]
    for axis in reversed(spatial):
        head = f"for (isize w{axis} = 0; w{axis} < {attrs['window'][axis]}; w{axis}++) {{"
        body = [head, *(f"  {line}" for line in body), "}"]
    lines += [f"{kind} total = 0;", "int first = 1;", *body]
    lines.append(f"{out}[item] = {stored(result.type.dtype, total)};")
    return [builder.call("window", "item", result.type.size, lines, [instruction], work=9)]


def extract_patches_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """The elements of each window as a row."""
    (x,) = instruction.values()
    attrs, builder = instruction.attrs, KernelBuilder()
    operand, result = Operand.of(graph, x), instruction.result
    channels = x.type.shape[-1]
    shape = (*result.type.shape[:-1], *attrs["window"], channels)
    lines, names = flat(shape, "item", builder)
    count = len(attrs["window"])
    around = names[1 + count : 1 + 2 * count]
    inside, places = _places(instruction, names, around, builder)
    element = operand.element(builder, (names[0], *places, names[-1]))
    out, dtype = builder.write(result), result.type.dtype
    value = stored(dtype, literal(dtype, attrs["value"]))
    lines += [*inside, f"{out}[item] = inside ? {element} : {value};"]
    return [builder.call("patches", "item", result.type.size, lines, [instruction])]


def _places(
    instruction: Instruction, names: Sequence[str], around: Sequence[str], builder: KernelBuilder
) -> tuple[list[str], list[str]]:
    """Lines that find the element at a position of a window, and whether it is inside of x."""
    (x,) = instruction.values()
    attrs = instruction.attrs
    lines: list[str] = []
    tests: list[str] = []
    places: list[str] = []
    for axis, w in enumerate(around):
        stride, dilation = attrs["strides"][axis], attrs["dilation"][axis]
        low, _ = attrs["padding"][axis]
        lines.append(
            f"const isize p{axis} = {names[1 + axis]} * {stride} + {w} * {dilation} - {low};"
        )
        extent = builder.dim(x.type.shape[1 + axis])
        tests.append(f"p{axis} >= 0 && p{axis} < {extent}")
        places.append(f"p{axis}")
    lines.append(f"const int inside = {' && '.join(tests) or '1'};")
    return lines, places


def _widened(dtype: DType, wide: DType, text: str) -> str:
    x = loaded(dtype, text)
    return x if dtype.compute is wide else scalars.cast(dtype.compute, wide, x)

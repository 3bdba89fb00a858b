"""Order along an axis: sort and top_k, of positions, by their elements and then by themselves;
searchsorted, a binary search by each value.

No two positions are equal in that order, so that what sorts them need not be stable.

    a row by one work item            the heap of the k best so far, then heap sort
    a row by many, of a known extent  Batcher's network, a launch a stage

Then the elements are gathered. Source of the network: Knuth, The Art of Computer Programming 3,
5.2.2, algorithm M.
"""

from __future__ import annotations

from gptrs.backends.c_family.element_types import arithmetic, loaded
from gptrs.backends.c_family.index_text import position
from gptrs.backends.c_family.kernel import KernelBuilder, KernelCall
from gptrs.backends.c_family.kernels.operands import Operand, flat
from gptrs.backends.memory_operands import Graph
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, product
from gptrs.ir.ops.sort import sort
from gptrs.ir.program import Instruction
from gptrs.lazy_dataclass import dataclass


@dataclass
class _Rows:
    """The rows of an instruction, in a kernel."""

    instruction: Instruction
    graph: Graph
    builder: KernelBuilder
    names: tuple[str, ...] = ()

    @property
    def axis(self) -> int:
        return self.instruction.attrs["axis"]

    @property
    def extent(self) -> DimLike:
        (x,) = self.instruction.values()
        return x.type.shape[self.axis]

    @property
    def outer(self) -> tuple[DimLike, ...]:
        """The shape of the rows."""
        shape = self.instruction.results[1].type.shape
        return tuple(1 if a == self.axis else n for a, n in enumerate(shape))

    @property
    def is_descending(self) -> bool:
        attrs = self.instruction.attrs
        return attrs["descending"] if self.instruction.op is sort else attrs["largest"]

    def at(self, place: str) -> str:
        """The entry of the positions at a place of the row."""
        order = self.instruction.results[1]
        strides = View.contiguous(order.type.shape).strides
        self.builder.uses(strides)
        here = [place if a == self.axis else name for a, name in enumerate(self.names)]
        return f"{self.builder.write(order)}[{position(here, strides)}]"

    def element(self, place: str) -> str:
        """The element at a position of the row, as it is in memory."""
        (x,) = self.instruction.values()
        here = [place if a == self.axis else name for a, name in enumerate(self.names)]
        return Operand.of(self.graph, x).element(self.builder, here)

    def comes_before(self, name: str, p: str, q: str) -> list[str]:
        """Lines in which ``name`` becomes whether position p comes before q."""
        (x,) = self.instruction.values()
        dtype = x.type.dtype
        kind = arithmetic(dtype)
        pairs = ((f"{name}_x", p), (f"{name}_y", q))
        lines = [f"const {kind} {e} = {loaded(dtype, self.element(at))};" for e, at in pairs]
        first, second = (e for e, _ in (reversed(pairs) if self.is_descending else pairs))
        return [
            *lines,
            f"const int {name}_less = {_less(kind, first, second, dtype.is_float)};",
            f"const int {name}_more = {_less(kind, second, first, dtype.is_float)};",
            f"const int {name} = {name}_less || (!{name}_more && {p} < {q});",
        ]


def _less(kind: str, x: str, y: str, is_float: bool) -> str:
    """Whether x < y; NaN is the greatest."""
    nan = f" || ({kind}_is_nan({y}) && !{kind}_is_nan({x}))" if is_float else ""
    return f"{x} < {y}{nan}"


def heap_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """A row by one work item."""
    rows = _Rows(instruction, graph, builder := KernelBuilder())
    lines, rows.names = flat(rows.outer, "item", builder)
    count = builder.dim(instruction.results[1].type.shape[rows.axis])
    extent = builder.dim(rows.extent)
    lines += [
        f"for (isize j = 0; j < {count}; j++) {rows.at('j')} = j;",
        f"for (isize root = {count} / 2 - 1; root >= 0; root--) {{",
        *_sift(rows, "root", count),
        "}",
        f"for (isize p = {count}; p < {extent} && {count} > 0; p++) {{",
        f"  const isize worst = (isize){rows.at('0')};",
        *rows.comes_before("better", "p", "worst"),
        "  if (better) {",
        f"    {rows.at('0')} = p;",
        *_sift(rows, "0", count),
        "  }",
        "}",
        f"for (isize end = {count} - 1; end > 0; end--) {{",
        f"  const isize last = (isize){rows.at('0')};",
        f"  {rows.at('0')} = {rows.at('end')};",
        f"  {rows.at('end')} = last;",
        *_sift(rows, "0", "end"),
        "}",
    ]
    work, size = rows.extent * 16, product(rows.outer)
    title = instruction.op.name
    call = builder.call(title, "item", size, lines, [instruction], work=work)
    return [call, _gather(instruction, graph)]


def _sift(rows: _Rows, start: str, count: str) -> list[str]:
    """Lines that move an entry of a heap down, past those that come after it."""
    return [
        f"isize hole = {start};",
        f"for (isize child = 2 * hole + 1; child < {count}; child = 2 * hole + 1) {{",
        "  isize later = child;",
        f"  if (child + 1 < {count}) {{",
        f"    const isize left = (isize){rows.at('child')};",
        f"    const isize right = (isize){rows.at('(child + 1)')};",
        *rows.comes_before("turns", "left", "right"),
        "    if (turns) later = child + 1;",
        "  }",
        f"  const isize upper = (isize){rows.at('hole')};",
        f"  const isize lower = (isize){rows.at('later')};",
        *rows.comes_before("moves", "upper", "lower"),
        "  if (moves) {",
        f"    {rows.at('hole')} = lower;",
        f"    {rows.at('later')} = upper;",
        "  }",
        f"  hole = moves ? later : {count};",
        "}",
    ]


def network_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """A row by as many work items as it has elements, if its extent is known."""
    rows = _Rows(instruction, graph, builder := KernelBuilder())
    extent = rows.extent
    if not isinstance(extent, int) or instruction.op is not sort:
        return heap_calls(instruction, graph)
    shape = instruction.results[1].type.shape
    size = product(shape)
    lines, rows.names = flat(shape, "item", builder)
    place = rows.names[rows.axis]
    body = [*lines, f"{rows.at(place)} = {place};"]
    calls = [builder.call("positions", "item", size, body, [instruction])]
    calls += [_stage(instruction, graph, stage) for stage in _stages(extent)]
    return [*calls, _gather(instruction, graph)]


def _stages(extent: int) -> list[tuple[int, int, int]]:
    """The stages of the network: a bit, its value, and the gap between entries that are compared
    where the place of the first has that bit."""
    top = 1 << max((extent - 1).bit_length() - 1, 0)
    found: list[tuple[int, int, int]] = []
    bit = top
    while bit:
        width, value, gap = top, 0, bit
        found.append((bit, value, gap))
        while width != bit:
            gap, width, value = width - bit, width // 2, bit
            found.append((bit, value, gap))
        bit //= 2
    return found if extent > 1 else []


def _stage(instruction: Instruction, graph: Graph, stage: tuple[int, int, int]) -> KernelCall:
    rows = _Rows(instruction, graph, builder := KernelBuilder())
    shape = instruction.results[1].type.shape
    lines, rows.names = flat(shape, "item", builder)
    place = rows.names[rows.axis]
    bit, value, gap = (builder.number(n, w) for n, w in zip(stage, _WORDS, strict=True))
    body = [
        *lines,
        f"if (({place} & {bit}) == {value} && {place} + {gap} < {builder.dim(rows.extent)}) {{",
        f"  const isize p = (isize){rows.at(place)};",
        f"  const isize q = (isize){rows.at(f'({place} + {gap})')};",
        *rows.comes_before("sorted", "p", "q"),
        "  if (!sorted) {",
        f"    {rows.at(place)} = q;",
        f"    {rows.at(f'({place} + {gap})')} = p;",
        "  }",
        "}",
    ]
    return builder.call("sort_stage", "item", product(shape), body, [instruction])


_WORDS = ("bit", "value", "gap")


def _gather(instruction: Instruction, graph: Graph) -> KernelCall:
    """The elements at the positions."""
    values, order = instruction.results
    rows = _Rows(instruction, graph, builder := KernelBuilder())
    lines, rows.names = flat(values.type.shape, "item", builder)
    lines.append(f"const isize at = (isize){builder.read(order)}[item];")
    element = rows.element("at")
    lines.append(f"{builder.write(values)}[item] = {element};")
    return builder.call("gather", "item", values.type.size, lines, [instruction])


def searchsorted_calls(instruction: Instruction, graph: Graph) -> list[KernelCall]:
    """The position at which each value keeps its row in order."""
    rows, values = instruction.values()
    dtype, builder = rows.type.dtype, KernelBuilder()
    kind = arithmetic(dtype)
    lines, names = flat(values.type.shape, "item", builder)
    value = loaded(dtype, Operand.of(graph, values).element(builder, names))
    here = (*names[:-1], "middle")
    element = loaded(dtype, Operand.of(graph, rows).element(builder, here))
    if instruction.attrs["right"]:
        before = f"!({_less(kind, 'value', 'e', dtype.is_float)})"
    else:
        before = _less(kind, "e", "value", dtype.is_float)
    lines += [
        f"const {kind} value = {value};",
        f"isize low = 0, high = {builder.dim(rows.type.shape[-1])};",
        "for (isize middle = high / 2; low < high; middle = low + (high - low) / 2) {",
        f"  const {kind} e = {element};",
        f"  const int is_before = {before};",
        "  if (is_before) low = middle + 1;",
        "  if (!is_before) high = middle;",
        "}",
        f"{builder.write(instruction.result)}[item] = low;",
    ]
    size = values.type.size
    return [builder.call("searchsorted", "item", size, lines, [instruction], work=32)]

"""Calls that keep an axis and combine what is before each element: cumulative sums, products,
maxima and minima."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gptrs.backends.faer.calls.axes import Axis
from gptrs.backends.faer.calls.base import Binder, Call
from gptrs.backends.faer.calls.lines import lines_of, tiles_of
from gptrs.backends.faer.element_types import (
    HALVES,
    POINTERS,
    convert,
    loaded,
    local_pointer,
    stored,
)
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.backends.views import View
from gptrs.ir.ops.elementwise import cast
from gptrs.ir.ops.reduce import cummax, cummin, cumprod, cumsum
from gptrs.ir.program import Instruction, Operation, Value
from gptrs.ir.types import DType, cf32, cf64, f32, f64
from gptrs.kernels.compiler import isa as levels
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.ordering import cumulative
from gptrs.kernels.ordering.cumulative import LINES, Element, cumulative_kernel
from gptrs.lazy_dataclass import dataclass

_PARTS = {cf32: f32, cf64: f64}  # a complex number is added as two real ones
_OPERATIONS: dict[Operation, cumulative.Operation] = {
    cumsum: "sum",
    cumprod: "product",
    cummax: "maximum",
    cummin: "minimum",
}
_ELEMENT_NS = 0.5


def _element(source: DType, dtype: DType) -> Element:
    """Elements of ``dtype``, read as those of ``source``."""
    number = "int8" if dtype.bits == 4 else dtype.compute.numpy.name
    name = "_".join(dict.fromkeys([source.name, dtype.name]))
    pointers = POINTERS[source.name], POINTERS[dtype.name], local_pointer(dtype)
    plain = not dtype.is_complex and stored(dtype, "x") == "x" and source.bits != 4
    return Element(
        name,
        *pointers,
        number,
        partial(_read, source, dtype),
        partial(stored, dtype),
        plain and (source is dtype or source.is_integer or source.is_bool),
        source.is_bool,
    )


def _read(source: DType, dtype: DType, text: str) -> str:
    text = loaded(source, text)
    return text if source is dtype else convert(dtype.compute, text)


def _narrow(source: Source, graph: Graph, members: Members) -> Source:
    """The integers or truth values that are converted to the wider ones of ``source``: a kernel
    does that as it reads."""
    maker = graph.maker.get(source.value)
    if maker is None or maker.op is not cast or maker in graph.taken:
        return source
    (narrow,) = maker.values()
    dtype, wide = narrow.type.dtype, source.value.type.dtype
    is_integer = dtype.is_bool or (dtype.is_integer and dtype.bits >= 8)
    if not is_integer or not wide.is_integer or dtype.bits >= wide.bits:
        return source
    members.add(maker)
    return Source(narrow, source.view) if source.through else members.read_strided(graph, narrow)


@dataclass(frozen=True, eq=False)
class Cumulative(Call):
    """cumsum, cumprod, cummax and cummin: elements along an axis combined up to each of them."""

    target = "gpt_rs.faer.cumulative.v1"

    x: Source
    axis: int
    operation: cumulative.Operation

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Cumulative | None:
        x = core.operands[0]
        if not isinstance(x, Value):
            return None
        if x.type.dtype.name in HALVES and not levels.current().half:
            return None
        members = Members()
        source = _narrow(members.read_strided(graph, x), graph, members)
        members.add(core)
        operation = _OPERATIONS[core.op]
        return cls(core.result, tuple(members.found), source, core.attrs["axis"], operation)

    @property
    def _in_parts(self) -> bool:
        """Whether complex numbers are read as their parts."""
        return self.operation == "sum" and self.result.type.dtype in _PARTS

    def _kernel(self, isa: Isa) -> Kernel:
        types = [value.type.dtype for value in (self.x.value, self.result)]
        types = [_PARTS[dtype] for dtype in types] if self._in_parts else types
        return cumulative_kernel(isa, self.operation, _element(*types))

    def compile(self, isa: Isa) -> None:
        self._kernel(isa)

    def bind(self, b: Binder) -> bool:
        result = View.contiguous(self.result.type.shape)
        lines = lines_of(b, self.x, self.axis, result)
        if not lines.count * lines.number:
            return True
        if self._in_parts:
            axes = (
                *(Axis(a.extent, 2 * a.source, 2 * a.result) for a in lines.axes),
                Axis(2, 1, 1),
            )
            lines = replace(lines, steps=(2 * lines.steps[0], 2 * lines.steps[1]), axes=axes)
        beside = bool(lines.axes) and lines.axes[-1][1:] == (1, 1)
        words, triples, items = tiles_of(lines, *(() if beside else (4 * LINES,)))
        words.update(x=b.address(self.x.value, self.x.view.offset), result=b.address(self.result))
        time = _ELEMENT_NS * lines.count * lines.number
        b.step(self._kernel(b.isa), [*words.values(), *triples], items, time)
        return True

"""Calls that reduce an axis to a position: argmax and argmin."""

from __future__ import annotations

from gptrs.backends.faer.calls.base import Address, Binder, Call
from gptrs.backends.faer.calls.lines import lines_of, tiles_of
from gptrs.backends.faer.element_types import KEYS
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.backends.views import View
from gptrs.ir.ops.reduce import argmin
from gptrs.ir.program import Instruction, Value
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.ordering.arg_extreme import COLUMNS, arg_extreme_kernel
from gptrs.lazy_dataclass import dataclass

_ELEMENT_NS = 0.15
_LINES = 8  # of a tile, where the elements of each are contiguous
MOST_ELEMENTS = 32
"""Shorter lines are expanded (`gptrs.backends.faer.expansions`): this kernel begins each anew."""


def is_short(instruction: Instruction) -> bool:
    """Whether argmax or argmin looks at few elements along a last axis, where they are usually
    adjacent."""
    (x,) = instruction.values()
    axis: int = instruction.attrs["axis"]
    count = x.type.shape[axis]
    return axis == len(x.type.shape) - 1 and isinstance(count, int) and 1 < count <= MOST_ELEMENTS


@dataclass(frozen=True, eq=False)
class ArgExtreme(Call):
    """argmax and argmin: the position of the greatest or least element along an axis."""

    target = "gpt_rs.faer.arg_extreme.v1"

    x: Source
    axis: int
    least: bool

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> ArgExtreme | None:
        x = core.operands[0]
        if not isinstance(x, Value) or is_short(core):
            return None
        members = Members()
        source = members.read_strided(graph, x)
        members.add(core)
        found = tuple(members.found)
        return cls(core.result, found, source, core.attrs["axis"], core.op is argmin)

    def _kernel(self, isa: Isa) -> Kernel:
        return arg_extreme_kernel(isa, KEYS[self.x.value.type.dtype.name])

    def compile(self, isa: Isa) -> None:
        self._kernel(isa)

    def bind(self, b: Binder) -> bool:
        shape = [1 if i == self.axis else n for i, n in enumerate(self.x.view.shape)]
        lines = lines_of(b, self.x, self.axis, View.contiguous(tuple(shape)))
        if not 0 < lines.count < 2**31:
            return False  # of no elements it is an error, which the reference words
        if not lines.number:
            return True
        beside = bool(lines.axes) and lines.axes[-1].source == 1
        words, triples, items = tiles_of(lines, COLUMNS if beside else _LINES)
        words.update(x=b.address(self.x.value, self.x.view.offset), result=b.address(self.result))
        block: list[int | Address] = [-int(self.least), *words.values(), *triples]
        b.step(self._kernel(b.isa), block, items, _ELEMENT_NS * lines.count * lines.number)
        return True

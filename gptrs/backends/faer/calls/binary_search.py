"""Calls that search sorted rows: searchsorted."""

from __future__ import annotations

from typing import cast

from gptrs.backends.faer.calls.base import Binder, Call
from gptrs.backends.faer.calls.lapack import step_of
from gptrs.backends.faer.element_types import KEYS
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.backends.views import View, evenly_spaced
from gptrs.ir.dims import same
from gptrs.ir.program import Instruction, Value
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.ordering.binary_search import BLOCK, binary_search_kernel
from gptrs.lazy_dataclass import dataclass

_STEP_NS = 1.0


@dataclass(frozen=True, eq=False)
class BinarySearch(Call):
    """searchsorted: rows and values with any step between their elements."""

    target = "gpt_rs.faer.binary_search.v1"

    rows: Source
    values: Source
    right: bool

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> BinarySearch | None:
        members = Members()
        read = [members.read(graph.source(cast("Value", x), _has_one_batch)) for x in core.operands]
        rows, values = cast("list[Source]", read)  # the values themselves at least
        members.add(core)
        return cls(core.result, tuple(members.found), rows, values, core.attrs["right"])

    def _kernel(self) -> Kernel:
        return binary_search_kernel(KEYS[self.rows.value.type.dtype.name])

    def compile(self, isa: Isa) -> None:
        self._kernel()

    def bind(self, b: Binder) -> bool:
        total = b.size(self.result.type.size)
        length, columns = b.size(self.rows.view.shape[-1]), b.size(self.values.view.shape[-1])
        if not total:
            return True
        steps: list[int] = []
        for source in (self.rows, self.values):
            view = source.view
            steps += [step_of(b, view.shape[:-1], view.strides[:-1]), b.size(view.strides[-1])]
        addresses = [b.address(x.value, x.view.offset) for x in (self.rows, self.values)]
        blocks = -(-columns // BLOCK)
        sizes = [int(self.right), length, columns, blocks, *steps]
        words = [*addresses, b.address(self.result), *sizes]
        time = _STEP_NS * total * length.bit_length()
        b.step(self._kernel(), words, total // columns * blocks, time)
        return True


def _has_one_batch(view: View) -> bool:
    """Whether the axes before the last one are one axis with a step."""
    axes = zip(view.shape[:-1], view.strides[:-1], strict=True)
    return evenly_spaced([axis for axis in axes if not same(axis[0], 1)])

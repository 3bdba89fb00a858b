"""Rotary call: heads turned by tables of cosines and sines, read where they lie."""

from __future__ import annotations

from gptrs.backends.faer.calls.base import Address, Binder, Call, kernel
from gptrs.backends.memory_operands import Graph, Members, Source, has_whole_rows
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, same
from gptrs.ir.ops.language import rotary
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import f32
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.rotary import ROTARY_ARGUMENTS, Pairs, rotary_kernel
from gptrs.lazy_dataclass import dataclass

_AXES = ("outer", "head", "token")


@dataclass(frozen=True, eq=False)
class Rotary(Call):
    """(a·cos − b·sin, b·cos + a·sin) of pairs along the last axis."""

    target = "gpt_rs.faer.rotary.f32.v1"

    x: Source
    cos: Source
    sin: Source
    pairs: Pairs

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Rotary | None:
        kind = core.results[0].type  # others may have several
        width = kind.shape[-1] if kind.shape else None
        if core.op is not rotary or len(kind.shape) > 4 or not isinstance(width, int):
            return None
        members = Members()
        found: list[Source] = []
        for value in core.operands:
            assert isinstance(value, Value)
            source = graph.source(value, has_whole_rows) if value.type.dtype is f32 else None
            if source is None:
                return None
            members.read(source)
            found.append(source)
        members.add(core)
        each = (same(source.view.shape[-1], width) for source in found[1:])
        pairs = Pairs(core.attrs["interleaved"], *each)
        x, cos, sin = found
        return cls(core.result, tuple(members.found), x, cos, sin, pairs)

    def compile(self, isa: Isa) -> None:
        kernel(rotary_kernel, isa, self.pairs)

    def bind(self, b: Binder) -> bool:
        *outer, width = map(b.size, self.result.type.shape)
        extents = (1,) * (3 - len(outer)) + tuple(outer)
        words: dict[str, int | Address] = dict.fromkeys(ROTARY_ARGUMENTS, 0)
        words.update(pairs=width // 2, heads=max(1, extents[1]), tokens=max(1, extents[2]))
        words["result"] = b.address(self.result)
        for name, source in (("x", self.x), ("cos", self.cos), ("sin", self.sin)):
            words[name] = b.address(source.value, source.view.offset)
            for axis, stride in zip(_AXES, _strides(source.view), strict=True):
                words[f"{name}_{axis}"] = b.size(stride)
        rows = extents[0] * extents[1] * extents[2]
        b.step(
            kernel(rotary_kernel, b.isa, self.pairs), [*words.values()], rows, 0.4 * rows * width
        )
        return True


def _strides(view: View) -> tuple[DimLike, ...]:
    """The strides of the three axes before the last, 0 where an operand has none or repeats."""
    axes = zip(view.shape[:-1], view.strides[:-1], strict=True)
    known = [0 if same(extent, 1) else stride for extent, stride in axes]
    return (0,) * (3 - len(known)) + tuple(known)

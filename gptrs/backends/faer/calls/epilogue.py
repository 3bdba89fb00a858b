"""Epilogue of convolutions: the bias, activation and residual after one, fused into its kernel."""

from __future__ import annotations

from gptrs.backends.faer.calls.base import Address, Binder, activation_of
from gptrs.backends.memory_operands import Graph, Members, Source, rows_of
from gptrs.backends.views import View
from gptrs.ir.dims import same, same_shape
from gptrs.ir.ops.elementwise import add
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import f32
from gptrs.kernels.conv.indirect_gemm import Epilogue
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class ConvEpilogue:
    """act(y + bias) + residual, or act(y + bias + residual), each part optional."""

    bias: Source | None = None
    residual: Source | None = None
    activation: str | None = None
    last: bool = False

    @property
    def kernel_epilogue(self) -> Epilogue:
        """The part that the kernel's code depends on."""
        return Epilogue(self.activation, self.last)

    def addresses(self, b: Binder) -> dict[str, int | Address]:
        """The argument words of bias and residual."""
        words: dict[str, int | Address] = {"bias": 0, "residual": 0}
        for name, source in (("bias", self.bias), ("residual", self.residual)):
            if source is not None:
                words[name] = b.address(source.value, source.view.offset)
        return words


def is_whole(view: View) -> bool:
    """Whether a view is contiguous."""
    return rows_of(view, len(view.shape)) is not None


def is_along_channels(view: View) -> bool:
    """Whether a view is one contiguous row, repeated along all axes but the last."""
    still = all(same(stride, 0) for stride in view.strides[:-1])
    return still and (same(view.shape[-1], 1) or same(view.strides[-1], 1))


def match_epilogue(core: Instruction, graph: Graph, members: Members) -> tuple[Value, ConvEpilogue]:
    """The epilogue of ``core``: following instructions that are the only use of the value before
    them; and the value of the last one.

    ``core`` and these instructions become members.
    """
    result, found = core.result, ConvEpilogue()
    members.add(core)
    bias = core.operands[2]
    if isinstance(bias, Value):
        source = graph.source(bias, is_along_channels)
        found = ConvEpilogue(members.read(source))
    while (reader := graph.only_reader(result)) is not None:
        more = _extended(found, result, reader, graph)
        if more is None:
            break
        for source in (more.bias, more.residual):
            if source is not None:
                members.read(source)
        members.add(reader)
        result, found = reader.result, more
    return result, found


def _extended(
    found: ConvEpilogue, result: Value, reader: Instruction, graph: Graph
) -> ConvEpilogue | None:
    activation = activation_of(reader)
    if activation and found.activation is None:
        last = found.residual is not None
        return ConvEpilogue(found.bias, found.residual, activation, last)
    others = [o for o in reader.operands if o is not result]
    if reader.op is not add or found.residual is not None or len(others) != 1:
        return None
    (other,) = others
    if not isinstance(other, Value) or other.type.dtype is not f32 or not other.type.shape:
        return None
    if found == ConvEpilogue() and same(other.type.shape[-1], result.type.shape[-1]):
        bias = graph.source(other, is_along_channels)
        if bias is not None and same(bias.view.shape[-1], result.type.shape[-1]):
            return ConvEpilogue(bias)
    if not same_shape(other.type.shape, result.type.shape):
        return None
    residual = graph.source(other, is_whole)
    return None if residual is None else ConvEpilogue(found.bias, residual, found.activation)

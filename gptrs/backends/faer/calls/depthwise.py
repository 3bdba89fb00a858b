"""Depthwise convolution call, with bias and activation as epilogue."""

from __future__ import annotations

from dataclasses import replace

from gptrs.backends.faer.calls.base import Binder, activation_of, kernel
from gptrs.backends.faer.calls.epilogue import is_along_channels
from gptrs.backends.faer.calls.windows import Windowed, read_whole, window_of
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.ir.dims import same
from gptrs.ir.ops.elementwise import add
from gptrs.ir.ops.vision import conv2d, depthwise_conv2d
from gptrs.ir.program import Instruction, Value
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.conv.depthwise import Depthwise, depthwise_kernel
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class DepthwiseConv(Windowed):
    """act(Σ x·weight + bias), one kernel per channel."""

    target = "gpt_rs.faer.depthwise_conv2d.nhwc.f32.v1"

    weight: Source
    bias: Source | None
    activation: str | None = None

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> DepthwiseConv | None:
        size = _window_size(core)
        if size is None:
            return None
        members = Members()
        x, weight = (read_whole(o, graph, members) for o in core.operands[:2])
        bias = read_whole(core.operands[2], graph, members)
        if x is None or weight is None or (bias is None and core.operands[2] is not None):
            return None
        members.add(core)
        window = window_of(core, size)
        plain = cls(core.result, (), x, window, core.attrs["padding"], weight, bias)
        return _with_epilogue(plain, graph, members)

    def _kernel(self, isa: Isa) -> Kernel:
        epilogue = Depthwise(bias=self.bias is not None, activation=self.activation)
        return kernel(depthwise_kernel, isa, self.window, epilogue)

    def compile(self, isa: Isa) -> None:
        self._kernel(isa)

    def bind(self, b: Binder) -> bool:
        words = self.words(b)
        for name, source in (("weight", self.weight), ("bias", self.bias)):
            if source is not None:
                words[name] = b.address(source.value, source.view.offset)
        return self.step(b, self._kernel(b.isa), words)


def _window_size(core: Instruction) -> tuple[int, int] | None:
    """The extents [KH, KW] of the weight if ``core`` has one kernel for each channel."""
    if core.op not in (depthwise_conv2d, conv2d):
        return None
    x, weight = core.operands[:2]
    assert isinstance(x, Value)
    assert isinstance(weight, Value)
    height, width, depth, outputs = weight.type.shape
    channels = x.type.shape[-1]
    single = same(outputs, 1)
    if core.op is conv2d:  # [KH, KW, 1, C] lies as [KH, KW, C, 1] does
        single = same(depth, 1) and same(outputs, channels) and same(core.attrs["groups"], channels)
    if not single or not isinstance(height, int) or not isinstance(width, int):
        return None
    return height, width


def _with_epilogue(call: DepthwiseConv, graph: Graph, members: Members) -> DepthwiseConv:
    """The call with the following bias and activation, where each is the only use of the value
    before it."""
    for extend in (_with_bias, _with_activation):
        reader = graph.only_reader(call.result)
        if reader is not None and (found := extend(call, reader, graph, members)) is not None:
            members.add(reader)
            call = replace(found, result=reader.result)
    return replace(call, members=tuple(members.found))


def _with_bias(
    call: DepthwiseConv, reader: Instruction, graph: Graph, members: Members
) -> DepthwiseConv | None:
    others = [o for o in reader.operands if o is not call.result]
    if reader.op is not add or call.bias is not None or len(others) != 1:
        return None
    (other,) = others
    channels = call.result.type.shape[-1]
    if not isinstance(other, Value) or not other.type.shape:
        return None
    if not same(other.type.shape[-1], channels):
        return None
    bias = graph.source(other, is_along_channels)
    if bias is None:
        return None
    members.read(bias)
    return replace(call, bias=bias)


def _with_activation(
    call: DepthwiseConv, reader: Instruction, graph: Graph, members: Members
) -> DepthwiseConv | None:
    activation = activation_of(reader)
    return replace(call, activation=activation) if activation else None

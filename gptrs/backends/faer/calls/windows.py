"""Shared by calls over windows of images [N, H, W, C]: operands, window parameters, argument
words."""

from __future__ import annotations

from gptrs.backends.faer.calls.base import Address, Binder, Call
from gptrs.backends.faer.calls.epilogue import is_whole
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.ir.ops.vision import Padding2d
from gptrs.ir.program import Instruction, Operand, Operation, Value
from gptrs.ir.types import f32
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.conv.window_loops import WINDOW_ARGUMENTS
from gptrs.kernels.conv.window_tiles import Window
from gptrs.lazy_dataclass import dataclass

_FLOPS_PER_NS, _BYTES_PER_NS = 40.0, 20.0


def read_whole(operand: Operand, graph: Graph, members: Members) -> Source | None:
    """The source of an f32 operand that a kernel reads as one contiguous array."""
    if not isinstance(operand, Value) or operand.type.dtype is not f32:
        return None
    return members.read(graph.source(operand, is_whole))


def read_alone(
    core: Instruction, op: Operation, graph: Graph
) -> tuple[tuple[Instruction, ...], Source] | None:
    """The members of a call for ``core`` without an epilogue, and the source of x; None if ``core``
    is no ``name``, or x cannot be read."""
    if core.op is not op:
        return None
    members = Members()
    x = read_whole(core.operands[0], graph, members)
    members.add(core)
    return (tuple(members.found), x) if x is not None else None


def window_of(core: Instruction, size: tuple[int, int]) -> Window:
    """The window of ``size`` with the strides and the dilation of the attributes."""
    strides: tuple[int, int] | None = core.attrs.get("strides")
    return Window(size, size if strides is None else strides, core.attrs.get("dilation", (1, 1)))


@dataclass(frozen=True, eq=False)
class Windowed(Call):
    """A call whose result [N, H', W', C] has an element for each window and channel of x."""

    x: Source
    window: Window
    padding: Padding2d

    def words(self, b: Binder) -> dict[str, int | Address]:
        """The argument words of the kernel, except weight and bias."""
        words: dict[str, int | Address] = dict.fromkeys(WINDOW_ARGUMENTS, 0)
        _, height, width, channels = map(b.size, self.x.view.shape)
        _, out_height, out_width, _ = map(b.size, self.result.type.shape)
        words.update(x=b.address(self.x.value, self.x.view.offset), result=b.address(self.result))
        words.update(height=height, width=width, channels=channels)
        words.update(out_height=out_height, out_width=out_width)
        words.update(top=self.padding[0][0], left=self.padding[1][0])
        return words

    def step(self, b: Binder, kernel: Kernel, words: dict[str, int | Address]) -> bool:
        """Run ``kernel`` over the rows of all images; False where no window fits into them."""
        images, height, width, channels = map(b.size, self.x.view.shape)
        _, rows, columns, _ = map(b.size, self.result.type.shape)
        if rows <= 0 or columns <= 0:
            return False
        taps = self.window.size[0] * self.window.size[1]
        work = 2 * taps * rows * columns / _FLOPS_PER_NS
        traffic = 4 * (height * width + rows * columns) / _BYTES_PER_NS
        time = images * channels * max(work, traffic)
        b.step(kernel, [*words.values()], images * rows, time)
        return True

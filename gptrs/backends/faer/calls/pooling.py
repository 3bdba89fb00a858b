"""Pooling calls: max and average over windows, global average over images."""

from __future__ import annotations

from gptrs.backends.faer.calls.base import Address, Binder, Call, kernel
from gptrs.backends.faer.calls.windows import Windowed, read_alone, window_of
from gptrs.backends.memory_operands import Graph, Source
from gptrs.ir.ops.vision import avg_pool2d, global_avg_pool2d, max_pool2d
from gptrs.ir.program import Instruction
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.conv.pooling import (
    GLOBAL_POOL_ARGUMENTS,
    avg_pool_kernel,
    global_avg_pool_kernel,
    global_pool_extent,
    max_pool_kernel,
)
from gptrs.lazy_dataclass import dataclass

_NS_PER_ELEMENT = 0.2


@dataclass(frozen=True, eq=False)
class MaxPool(Windowed):
    """max_pool2d: the greatest element of each window."""

    target = "gpt_rs.faer.max_pool2d.nhwc.f32.v1"

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> MaxPool | None:
        found = read_alone(core, max_pool2d, graph)
        if found is None:
            return None
        window = window_of(core, core.attrs["window"])
        return cls(core.result, *found, window, core.attrs["padding"])

    def compile(self, isa: Isa) -> None:
        kernel(max_pool_kernel, isa, self.window)

    def bind(self, b: Binder) -> bool:
        return self.step(b, kernel(max_pool_kernel, b.isa, self.window), self.words(b))


@dataclass(frozen=True, eq=False)
class AvgPool(Windowed):
    """avg_pool2d: the mean of each window."""

    target = "gpt_rs.faer.avg_pool2d.nhwc.f32.v1"

    count_padding: bool

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> AvgPool | None:
        found = read_alone(core, avg_pool2d, graph)
        if found is None:
            return None
        window = window_of(core, core.attrs["window"])
        count: bool = core.attrs["count_include_pad"]
        return cls(core.result, *found, window, core.attrs["padding"], count)

    def _kernel(self, isa: Isa) -> Kernel:
        return kernel(avg_pool_kernel, isa, self.window, count_padding=self.count_padding)

    def compile(self, isa: Isa) -> None:
        self._kernel(isa)

    def bind(self, b: Binder) -> bool:
        return self.step(b, self._kernel(b.isa), self.words(b))


@dataclass(frozen=True, eq=False)
class GlobalAvgPool(Call):
    """global_avg_pool2d: the mean of each channel of an image."""

    target = "gpt_rs.faer.global_avg_pool2d.nhwc.f32.v1"

    x: Source

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> GlobalAvgPool | None:
        found = read_alone(core, global_avg_pool2d, graph)
        return cls(core.result, *found) if found is not None else None

    def compile(self, isa: Isa) -> None:
        kernel(global_avg_pool_kernel, isa)

    def bind(self, b: Binder) -> bool:
        images, height, width, channels = map(b.size, self.x.view.shape)
        words: dict[str, int | Address] = dict.fromkeys(GLOBAL_POOL_ARGUMENTS, 0)
        words.update(x=b.address(self.x.value, self.x.view.offset), result=b.address(self.result))
        words.update(height=height, width=width, channels=channels)
        time = _NS_PER_ELEMENT * images * height * width * channels
        extent = global_pool_extent(images, channels)
        b.step(kernel(global_avg_pool_kernel, b.isa), [*words.values()], extent, time)
        return True

"""Inverted bottleneck call: 1 × 1 convolution, depthwise convolution, 1 × 1 convolution, fused.

Each image is split into parts (work items); the kernel computes a part some rows at a time, whose
intermediate channels stay in cache. Parts compute the rows at their edges twice. The bits are those
of the separate convolutions.
"""

from __future__ import annotations

from math import gcd

from gptrs.backends.faer.calls.base import Address, Binder, Call, kernel
from gptrs.backends.faer.calls.conv import DirectConv, Rows
from gptrs.backends.faer.calls.depthwise import DepthwiseConv
from gptrs.backends.faer.calls.epilogue import ConvEpilogue
from gptrs.backends.faer.calls.forms import Form
from gptrs.backends.faer.calls.packing import packing_kernel
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.ir.dims import product
from gptrs.ir.ops.vision import Padding2d
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import Shape
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.conv.depthwise import Depthwise, depthwise_kernel
from gptrs.kernels.conv.direct import conv_kernel
from gptrs.kernels.conv.inverted_bottleneck import (
    BOTTLENECK_ARGUMENTS,
    bottleneck_kernel,
    cut_of,
    reach_of,
)
from gptrs.kernels.conv.window_tiles import Window
from gptrs.lazy_dataclass import dataclass

_FLOPS_PER_NS = 60.0
_FEWEST_ROWS = 8
"""The least rows of a part, unless threads would idle: parts compute their edge rows twice."""
_PIECES = 2
"""Parts for each thread: with more parts, more rows are computed twice."""
_FEWEST_BYTES = 512 * KB
"""The size of an intermediate image from which fusion pays: a smaller one stays in cache anyway."""


@dataclass(frozen=True)
class Pixelwise:
    """A 1 × 1 convolution (pointwise), with its epilogue."""

    taps: Rows
    epilogue: ConvEpilogue

    @classmethod
    def of(cls, conv: DirectConv | None) -> Pixelwise | None:
        """``conv`` as a pointwise convolution; None if it is none."""
        if conv is None or conv.window != Window((1, 1)):
            return None
        if any(n for pair in conv.padding for n in pair):
            return None
        return cls(conv.rows, conv.epilogue)


@dataclass(frozen=True, eq=False)
class Bottleneck(Call):
    """last(depthwise(first(x))), with the same bits as three separate convolutions."""

    target = "gpt_rs.faer.inverted_bottleneck.nhwc.f32.v1"

    x: Source
    first: Pixelwise | None
    window: Window
    padding: Padding2d
    weight: Source
    bias: Source | None
    activation: str | None
    last: Pixelwise

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Bottleneck | None:
        before = DirectConv.match(core, graph)
        first, middle = Pixelwise.of(before), core
        if before is not None and first is not None and first.epilogue.residual is None:
            reader = graph.only_reader(before.result)
            if reader is None:
                return None
            middle = reader
        found = DepthwiseConv.match(middle, graph)
        reader = None if found is None else graph.only_reader(found.result)
        if found is None or reader is None:
            return None
        behind = DirectConv.match(reader, graph)
        last = Pixelwise.of(behind)
        if behind is None or last is None or not _reads(behind.x, found.result):
            return None
        if before is not None and not _reads(found.x, before.result):
            return None
        if not _is_large(found.x.view.shape[1:]) and not _is_large(found.result.type.shape[1:]):
            return None
        members = Members()
        for call in (before, found, behind):
            members.add(*(call.members if call is not None else ()))
        x = found.x if before is None else before.x
        parts = (found.window, found.padding, found.weight, found.bias, found.activation)
        return cls(behind.result, tuple(members.found), x, first, *parts, last)

    @property
    def _pixelwise(self) -> tuple[Pixelwise, ...]:
        return (self.last,) if self.first is None else (self.first, self.last)

    def _kernels(self, isa: Isa) -> dict[str, Kernel]:
        """The kernels of the three convolutions."""
        epilogue = Depthwise(bias=self.bias is not None, activation=self.activation)
        parts = (("first", self.first), ("last", self.last))
        found = {n: kernel(conv_kernel, isa, p.epilogue.kernel_epilogue) for n, p in parts if p}
        found["depthwise"] = kernel(depthwise_kernel, isa, self.window, epilogue)
        return found

    def compile(self, isa: Isa) -> None:
        self._kernels(isa)
        kernel(bottleneck_kernel, isa)
        packing_kernel(isa, True, "f32")

    def packed(self) -> dict[Value, Form]:
        found: dict[Value, Form] = {}
        for part in self._pixelwise:
            found.update(part.taps.packed())
        return found

    def bind(self, b: Binder) -> bool:
        images, rows, columns, outputs = map(b.size, self.result.type.shape)
        _, height, width, channels = map(b.size, self.x.view.shape)
        if rows <= 0 or columns <= 0:
            return False
        if not images or not outputs:
            return True
        hidden = self.last.taps.form.depth
        parts = _parts(b.threads, images, rows)
        cut = cut_of(
            self.window,
            (height, width, rows, columns),
            hidden,
            first=self.first is not None,
            parts=parts,
        )
        extent = images * cut.parts
        words: dict[str, int | Address] = {
            **dict.fromkeys(BOTTLENECK_ARGUMENTS, 0),
            **cut._asdict(),
        }
        for prefix, part in (("", self.first), ("last_", self.last)):
            if part is not None:
                words[f"{prefix}panels"] = part.taps.panels(b)
                words[f"{prefix}bias"] = part.epilogue.addresses(b)["bias"]
        words["residual"] = self.last.epilogue.addresses(b)["residual"]
        for name, source in (("x", self.x), ("weight", self.weight), ("weight_bias", self.bias)):
            if source is not None:
                words[name] = b.address(source.value, source.view.offset)
        words.update(
            result=b.address(self.result), workspace=b.scratch(4 * extent * cut.workspace_step)
        )
        words.update(height=height, width=width, channels=channels, hidden=hidden)
        words.update(out_height=rows, out_width=columns, columns=outputs)
        words.update(top=self.padding[0][0], left=self.padding[1][0])
        words.update({name: code.address for name, code in self._kernels(b.isa).items()})
        words.update(reach=reach_of(self.window), stride=self.window.strides[0])
        taps = self.window.size[0] * self.window.size[1]
        work = rows * columns * hidden * (taps + outputs)
        work += height * width * hidden * channels if self.first is not None else 0
        b.step(
            kernel(bottleneck_kernel, b.isa),
            [*words.values()],
            extent,
            2 * images * work / _FLOPS_PER_NS,
        )
        return True


def _parts(threads: int, images: int, rows: int) -> int:
    """The number of parts per image: all images together give each thread equally many."""
    if threads == 1:
        return 1
    parts = min(max(1, rows // _FEWEST_ROWS), -(-threads * _PIECES // images))
    even = threads // gcd(threads, images)
    return -(-parts // even) * even


def _reads(source: Source, value: Value) -> bool:
    """Whether a kernel reads ``value`` itself, not moved."""
    return source.value is value and not source.through


def _is_large(shape: Shape) -> bool:
    """Whether an image [H, W, C] does not fit into a cache."""
    size = product(shape)
    return isinstance(size, int) and 4 * size > _FEWEST_BYTES

"""Convolution calls with one group: direct, and 3 × 3 of stride 1 by Winograd."""

from __future__ import annotations

from typing import TypeVar

from gptrs.backends.faer.calls.base import Address, Binder, Call, is_stable, kernel
from gptrs.backends.faer.calls.epilogue import ConvEpilogue, is_whole, match_epilogue
from gptrs.backends.faer.calls.forms import Form, Panels, WinogradPanels
from gptrs.backends.faer.calls.packing import packing_kernel, panel_bytes
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.ir.ops.vision import Padding2d, conv2d
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import f32
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.conv.direct import CONV_ARGUMENTS, bands_of, conv_extent, conv_kernel
from gptrs.kernels.conv.window_tiles import Window
from gptrs.kernels.conv.winograd import (
    MOST_CHANNELS,
    WINOGRAD_INPUT_ARGUMENTS,
    WINOGRAD_OUTPUT_ARGUMENTS,
    Outputs,
    planes,
    winograd_filter_kernel,
    winograd_input_kernel,
    winograd_output_kernel,
)
from gptrs.kernels.conv.winograd_product import WINOGRAD_PRODUCT_ARGUMENTS, winograd_product_kernel
from gptrs.kernels.gemm.packing import panel_count
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property

_FLOPS_PER_NS, _BYTES_PER_NS = 80.0, 20.0
_HELD_BYTES = 896 * KB
_APART = 16  # elements between planes, against conflict misses
C = TypeVar("C", bound="_Convolution")


@dataclass(frozen=True, eq=False)
class _Convolution(Call):
    """conv2d with epilogue: act(conv2d(x, taps) + bias) + residual, or the activation last."""

    x: Source
    taps: Value
    stable: bool
    """Whether taps are a parameter or a constant, so that they are packed once."""
    window: Window
    padding: Padding2d
    channels: int
    outputs: int
    epilogue: ConvEpilogue

    @classmethod
    def read(cls: type[C], core: Instruction, graph: Graph) -> C | None:
        """The convolution of ``core``, if kernels can read its operands."""
        if core.op is not conv2d or core.attrs["groups"] != 1:
            return None
        x, taps = core.operands[:2]
        assert isinstance(x, Value)
        assert isinstance(taps, Value)
        down, across, channels, outputs = taps.type.shape
        if x.type.dtype is not f32:
            return None
        if not isinstance(down, int) or not isinstance(across, int):
            return None
        if not isinstance(channels, int) or not isinstance(outputs, int):
            return None
        members = Members()
        source = members.read(graph.source(x, is_whole))
        assert source is not None
        result, rest = match_epilogue(core, graph, members)
        window = Window((down, across), core.attrs["strides"], core.attrs["dilation"])
        padding: Padding2d = core.attrs["padding"]
        found = tuple(members.found)
        stable = is_stable(taps, graph)
        return cls(result, found, source, taps, stable, window, padding, channels, outputs, rest)

    def sizes(self, b: Binder) -> dict[str, int]:
        """The argument words of sizes, by the names that the kernels share."""
        _, height, width, _ = map(b.size, self.x.view.shape)
        (top, _), (left, _) = self.padding
        return {"height": height, "width": width, "top": top, "left": left}


@dataclass(frozen=True)
class Rows:
    """Taps as a matrix [KH·KW·C, O], which is packed into panels."""

    value: Value
    stable: bool
    form: Panels

    def packed(self) -> dict[Value, Form]:
        """The taps to be packed once, with their form."""
        return {self.value: self.form} if self.stable else {}

    def panels(self, b: Binder) -> Address:
        """The packed panels; adds a packing step if the plan does not keep them."""
        if (kept := b.panels(self.value, self.form)) is not None:
            return kept
        _, weights, depth, columns, _ = self.form
        room = b.scratch(panel_bytes(b.isa, weights, depth, columns))
        words = [b.address(self.value), room, depth, columns, columns, depth]
        time = 8 * depth * columns / _BYTES_PER_NS
        b.step(packing_kernel(b.isa, True, weights), words, panel_count(b.isa, columns), time)
        return room


class DirectConv(_Convolution):
    """Direct convolution: each output as a sum over all taps (an indirect GEMM)."""

    target = "gpt_rs.faer.conv2d.nhwc.f32.v1"

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> DirectConv | None:
        return cls.read(core, graph)

    @property
    def rows(self) -> Rows:
        """The taps as a matrix."""
        down, across = self.window.size
        form = Panels(True, "f32", down * across * self.channels, self.outputs)
        return Rows(self.taps, self.stable, form)

    def packed(self) -> dict[Value, Form]:
        return self.rows.packed()

    def compile(self, isa: Isa) -> None:
        kernel(conv_kernel, isa, self.epilogue.kernel_epilogue)
        packing_kernel(isa, True, "f32")

    def bind(self, b: Binder) -> bool:
        images, rows, columns, _ = map(b.size, self.result.type.shape)
        if rows <= 0 or columns <= 0:
            return False
        if not images or not self.outputs:
            return True
        panels = self.rows.panels(b)
        given = self.sizes(b)
        sizes = (rows, columns, self.channels, self.outputs)
        bands = bands_of(b.isa, self.window, sizes, images=images, threads=b.threads)
        extent = conv_extent(images, bands)
        padded = any(n for pair in self.padding for n in pair)
        room = b.scratch(4 * extent * bands.workspace_step) if padded else 0
        words: dict[str, int | Address] = dict.fromkeys(CONV_ARGUMENTS, 0)
        words.update(given, **self.epilogue.addresses(b), **bands._asdict())
        words.update(x=b.address(self.x.value, self.x.view.offset), panels=panels, workspace=room)
        words.update(result=b.address(self.result), out_height=rows, out_width=columns)
        words.update(channels=self.channels, columns=self.outputs, padded=int(padded))
        (down, across), (far_down, far_across) = self.window.size, self.window.dilation
        stride_down, stride_across = self.window.strides
        words.update(taps_down=down, taps_across=across)
        words.update(stride_down=stride_down, stride_across=stride_across)
        words.update(far_down=far_down, far_across=far_across)
        work = images * rows * columns * self.rows.form.depth * self.outputs
        code = kernel(conv_kernel, b.isa, self.epilogue.kernel_epilogue)
        b.step(code, [*words.values()], extent, 2 * work / _FLOPS_PER_NS)
        return True


class WinogradConv(_Convolution):
    """A 3 × 3 convolution of stride 1 by Winograd: fewer multiplications, more rounding. An
    infinite pixel or tap gives NaN in the whole tile."""

    target = "gpt_rs.faer.winograd_conv2d.nhwc.f32.v1"
    rounds = True

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> WinogradConv | None:
        found = cls.read(core, graph)
        return found if found is not None and found._form is not None else None

    @cached_property
    def _form(self) -> WinogradPanels | None:
        """The tile size that is fastest, None where the direct convolution is.

        Depends on the sizes of one image, so that an image gives the same bits in every batch.
        """
        _, rows, columns, _ = self.result.type.shape
        sizes, most = (self.channels, self.outputs), MOST_CHANNELS
        if self.window != Window((3, 3)) or any(n % 16 or not 16 <= n <= most for n in sizes):
            return None
        if not isinstance(rows, int) or not isinstance(columns, int):
            return None

        def time(outputs: int) -> float:
            """Of tiles with so many outputs a side, for each channel and output."""
            tiles = -(-rows // outputs) * -(-columns // outputs)
            return planes(outputs) * (2 * tiles / _FLOPS_PER_NS + 4 / _BYTES_PER_NS)

        sides: tuple[Outputs, ...] = (2, 4)
        best = min(sides, key=time)
        return WinogradPanels(best, *sizes) if time(best) < time(1) else None

    def packed(self) -> dict[Value, Form]:
        return {self.taps: self._form} if self.stable and self._form is not None else {}

    def compile(self, isa: Isa) -> None:
        assert self._form is not None
        kernel(winograd_input_kernel, isa, self._form.tile)
        kernel(winograd_product_kernel, isa)
        kernel(winograd_output_kernel, isa, self._form.tile, self.epilogue.kernel_epilogue)
        kernel(winograd_filter_kernel, isa, self._form.tile)

    def bind(self, b: Binder) -> bool:
        assert self._form is not None
        m, count = self._form.tile, planes(self._form.tile)
        images, rows, columns, _ = map(b.size, self.result.type.shape)
        if not images:
            return True
        panels = panel_count(b.isa, self.outputs)
        row = panels * b.isa.tile_columns
        taps = self._taps(b, 4 * count * self.channels * row)
        down, across = -(-rows // m), -(-columns // m)
        # Transformed tiles stay in a cache, but taps are not read too often for that.
        held = max(_HELD_BYTES, 4 * count * self.channels * row // 2)
        most = max(b.isa.tile_rows, held // (4 * count * (self.channels + row)))
        blocks = -(-images * down * across // most)
        tiles = -(-images * down * across // max(1, blocks))
        v_step, step = tiles * self.channels + _APART, tiles * row + _APART
        v, sums = b.scratch(4 * count * v_step), b.scratch(4 * count * step)
        given: dict[str, int | Address] = {**self.sizes(b), **self.epilogue.addresses(b)}
        given.update(x=b.address(self.x.value, self.x.view.offset), result=b.address(self.result))
        given.update(v=v, u=taps, sums=sums, channels=self.channels, columns=self.outputs)
        given.update(down=down, across=across, panels=panels, row_step=row)
        given.update(v_step=v_step, step=step, sums_step=step)
        for first in range(0, images * down * across, tiles):
            some = min(tiles, images * down * across - first)
            given.update(first=first, tiles=some)
            self._block(b, given, some)
        return True

    def _taps(self, b: Binder, size: int) -> Address:
        """The transformed taps; adds a step for them if they are no parameter."""
        assert self._form is not None
        if (kept := b.panels(self.taps, self._form)) is not None:
            return kept
        room = b.scratch(size)
        words = [b.address(self.taps), room, self.channels, self.outputs]
        code = kernel(winograd_filter_kernel, b.isa, self._form.tile)
        b.step(code, words, panel_count(b.isa, self.outputs), 2 * size / _BYTES_PER_NS)
        return room

    def _block(self, b: Binder, given: dict[str, int | Address], tiles: int) -> None:
        """The steps for this number of tiles."""
        assert self._form is not None
        m, count = self._form.tile, planes(self._form.tile)
        moved = 4 * count * tiles / _BYTES_PER_NS
        b.step(
            kernel(winograd_input_kernel, b.isa, m),
            [given[name] for name in WINOGRAD_INPUT_ARGUMENTS],
            tiles,
            2 * moved * self.channels,
        )
        b.step(
            kernel(winograd_product_kernel, b.isa),
            [given[name] for name in WINOGRAD_PRODUCT_ARGUMENTS],
            count * panel_count(b.isa, self.outputs),
            2 * count * tiles * self.channels * self.outputs / _FLOPS_PER_NS,
        )
        _, rows, columns, _ = map(b.size, self.result.type.shape)
        b.step(
            kernel(winograd_output_kernel, b.isa, m, self.epilogue.kernel_epilogue),
            [
                {**given, "height": rows, "width": columns}[name]
                for name in WINOGRAD_OUTPUT_ARGUMENTS
            ],
            tiles,
            2 * moved * self.outputs,
        )

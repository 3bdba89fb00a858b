"""Direct convolution of images [N, H, W, C] with taps [KH, KW, C, O], f32, as an indirect GEMM.

    for band of rows of an image, for part of the panels:   # extent
        copy the input rows of the band, zeros around them, to the workspace (if padded)
        for panel of outputs in the part:
            for group of output rows that read the same rows of taps:
                for row block of neighbouring output pixels:
                    C[h, w] = Σ over runs, over elements of a run: pixel element · panel row
                    epilogue (bias, activation, residual), in registers

    image row:   | p0: C | p1: C | p2: C | p3: C | ...
                 └─ run of pixel 0: KW·C ─┘             one run per row of taps:
                         └─ run of pixel 1: KW·C ─┘     contiguous for dilation 1
    panels:      [⌈O/w⌉, KH·KW·C, w], as `gptrs.kernels.gemm.packing` packs taps as [KH·KW·C, O]

A row block of neighbouring output pixels times a panel of outputs is a tile of a matrix product
(`gptrs.kernels.conv.indirect_gemm`): the taps of one row of the filter read KW·C contiguous
elements of the input for each pixel. With dilation along a row, each tap is a run. Images with
padding are copied, a band at a time, to a workspace with zeros around them, which stays in L2. Row
blocks prefetch the next panel. All sizes are arguments: the code depends on the epilogue alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I8, I64, POINTER, Function, KernelText, i64
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.conv.edges import Edges
from gptrs.kernels.conv.indirect_gemm import (
    Epilogue,
    IndirectGemm,
    behind,
    copy_function,
    each_row_block,
    fill_function,
    strided_rows,
)
from gptrs.kernels.conv.window_tiles import Window
from gptrs.kernels.gemm.packing import panel_count

_POINTERS = ("x", "panels", "result", "bias", "residual", "workspace")
_SIZES = (
    *("height", "width", "out_height", "out_width", "channels", "columns", "top", "left"),
    *("taps_down", "taps_across", "stride_down", "stride_across", "far_down", "far_across"),
    *("padded", "bands", "parts", "workspace_step"),
)
CONV_ARGUMENTS = _POINTERS + _SIZES
"""The argument block of `conv_kernel`, in order.

``taps`` count, and lie ``far`` apart; ``columns`` are the outputs of a pixel. ``bias`` and
``residual`` (which lies as the result does) may be 0. An item of the extent is a band of rows of an
image, times a part of the panels; with ``padded`` it copies its input to ``workspace``, where item
i has ``workspace_step`` elements from i·workspace_step on.
"""


def reach(window: Window, rows: int, columns: int) -> tuple[int, int]:
    """How many rows and columns of the padded image so many outputs read."""
    sizes = zip((rows, columns), window.strides, window.size, window.dilation, strict=True)
    down, across = ((n - 1) * stride + (k - 1) * far + 1 for n, stride, k, far in sizes)
    return down, across


class Bands(NamedTuple):
    """How the work is partitioned; the fields are arguments of the kernel."""

    bands: int
    """Of rows of outputs in an image, as high as each other or one row higher."""
    parts: int
    """Of the panels."""
    workspace_step: int
    """Elements of a band with zeros around it."""


_BAND_BYTES = 192 * KB  # stays in L2 beside a panel
_MOST_ITEMS = 8  # of the bands of an image and the parts of panels, for each thread
# Times in units of a row block's multiply-adds with a row of a panel: of reading that row, of an
# element of the workspace, and the share of its last item that a thread waits for others.
_ROW_TIME, _WORKSPACE_TIME, _WAITING = 0.5, 0.15, 0.3


def bands_of(
    isa: Isa,
    window: Window,
    sizes: tuple[int, int, int, int],
    *,
    images: int = 1,
    threads: int = 1,
) -> Bands:
    """Cut images with ``sizes`` (rows and columns of outputs, channels, outputs of a pixel) so that
    all threads end soon."""
    height, width, channels, columns = sizes
    panels, depth = panel_count(isa, columns), window.size[0] * window.size[1] * channels

    def workspace(rows: int) -> int:
        down, across = reach(window, rows, width)
        return down * across * channels

    fitting = max(1, 1 + (_BAND_BYTES // 4 - workspace(1)) // max(1, workspace(2) - workspace(1)))
    least = -(-height // min(height, fitting))
    if threads == 1:
        return Bands(least, 1, workspace(-(-height // least)))

    def time(cut: tuple[int, int]) -> float:
        """Until the last thread has ended."""
        bands, parts = cut
        rows = -(-height // bands)
        blocks = -(-rows * width // isa.tile_rows)
        item = -(-panels // parts) * depth * (blocks + _ROW_TIME) + _WORKSPACE_TIME * workspace(
            rows
        )
        return item * (-(-images * bands * parts // threads) + _WAITING)

    most = _MOST_ITEMS * threads
    cuts = ((b, p) for b in range(least, height + 1) for p in range(1, max(1, panels) + 1))
    bands, parts = min((cut for cut in cuts if cut[0] * cut[1] <= max(most, least)), key=time)
    return Bands(bands, parts, workspace(-(-height // bands)))


def conv_extent(images: int, bands: Bands) -> int:
    """The extent of `conv_kernel`."""
    return images * bands.bands * bands.parts


def conv_kernel(isa: Isa, epilogue: Epilogue) -> KernelText:
    """The convolution. Arguments: `CONV_ARGUMENTS`; extent: `conv_extent`."""
    name = f"conv_{epilogue.label}"
    module = ir.Module(f"{name} {isa.name}")
    igemm, pad = IndirectGemm(module, isa, epilogue), _pad(module, isa)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _POINTERS, _SIZES)
    panels = f.ceiling(w["columns"], i64(isa.tile_columns))
    per_part = f.ceiling(panels, w["parts"])
    span = f.mul(f.sub(w["out_width"], i64(1)), w["stride_across"])
    span = f.add(span, f.mul(f.sub(w["taps_across"], i64(1)), w["far_across"]))
    span = f.add(span, i64(1))
    padded = f.icmp_signed("!=", w["padded"], i64(0))
    line = f.mul(f.select(padded, span, w["width"]), w["channels"])
    source = _Source(f, w, line)
    # Of all items of this call, one at a time is in the first one's workspace.
    workspace = f.at(w["workspace"], f.mul(first, w["workspace_step"]))
    with f.loop(first, last) as item:
        part, rest = f.srem(item.index, w["parts"]), f.sdiv(item.index, w["parts"])
        image, band = f.sdiv(rest, w["bands"]), f.srem(rest, w["bands"])
        top = f.sdiv(f.mul(band, w["out_height"]), w["bands"])
        bottom = f.sdiv(f.mul(f.add(band, i64(1)), w["out_height"]), w["bands"])
        pixels = f.mul(w["height"], w["width"])
        whole = f.at(w["x"], f.mul(f.mul(image, pixels), w["channels"]))
        from_row = f.mul(top, w["stride_down"])
        with f.if_then(padded):
            tall = f.mul(f.sub(f.sub(bottom, top), i64(1)), w["stride_down"])
            tall = f.add(tall, f.mul(f.sub(w["taps_down"], i64(1)), w["far_down"]))
            above, tall = f.sub(from_row, w["top"]), f.add(tall, i64(1))
            sizes = [w["left"], span, w["height"], w["width"], w["channels"]]
            f.call(pad, [whole, workspace, above, tall, *sizes])
        source.begin = f.select(padded, workspace, f.at(whole, f.mul(from_row, line)))
        start = f.mul(part, per_part)
        end = f.least(f.add(start, per_part), panels)
        above = f.mul(image, w["out_height"])
        _band(f, igemm, w, source, (start, end), (above, top, bottom))
    f.ret_void()
    return KernelText(str(module), name)


class _Source:
    """Addresses of input pixels: rows ``line`` elements apart, a pixel's taps in contiguous runs.

    With dilation along a row, each tap is a run.
    """

    def __init__(self, f: Function, w: dict[str, Any], line: Any) -> None:
        self.step = f.mul(w["stride_across"], w["channels"])
        self.row = f.mul(w["stride_down"], line)
        self.across = w["out_width"]
        self._apart = f.icmp_signed("!=", self.row, f.mul(self.across, self.step))
        self.places = strided_rows(f, self.step)  # of a block, as long as rows are not apart
        self.begin: Any = None  # the first pixel, item by item
        together = f.icmp_signed("==", w["far_across"], i64(1))
        across = f.select(together, i64(1), w["taps_across"])
        length = f.mul(w["taps_across"], w["channels"])
        self.length = f.select(together, length, w["channels"])
        self.runs = f.mul(w["taps_down"], across)
        self.offsets = f.alloca(I64, self.runs)
        with f.loop(i64(0), self.runs) as run:
            row, column = f.sdiv(run.index, across), f.srem(run.index, across)
            down = f.mul(f.mul(row, w["far_down"]), line)
            offset = f.add(down, f.mul(f.mul(column, w["far_across"]), w["channels"]))
            f.write(offset, f.at(self.offsets, run.index, I64))

    def row_block(self, f: Function, pixel: Any) -> Any:
        """The base address of the `places` of the row block with first output ``pixel``."""
        with f.if_then(self._apart):
            self._write_places(f, pixel)
        return f.at(self.begin, f.select(self._apart, i64(0), f.mul(pixel, self.step)))

    def _write_places(self, f: Function, pixel: Any) -> None:
        """The places of a row block that may cross the end of an image row."""
        row, column = f.udiv(pixel, self.across), f.urem(pixel, self.across)
        place = f.add(f.mul(row, self.row), f.mul(column, self.step))
        around = f.sub(self.row, f.mul(f.sub(self.across, i64(1)), self.step))
        for number in range(f.isa.tile_rows):
            f.write(place, f.at(self.places, i64(number), I64))
            column = f.add(column, i64(1))
            ends = f.icmp_signed("==", column, self.across)
            column = f.select(ends, i64(0), column)
            place = f.add(place, f.select(ends, around, self.step))


def _band(
    f: Function,
    igemm: IndirectGemm,
    w: dict[str, Any],
    source: _Source,
    panels: tuple[Any, Any],
    rows: tuple[Any, Any, Any],
) -> None:
    """The results of some rows of an image, of some panels. Row blocks prefetch the next panel.

    ``rows``: how many there are before the image, and the first and the end of those in it. Zeros
    above and below the image are left out. This changes no sum of finite taps, but for the sign of
    a zero, and where other taps would be left out none are.
    """
    (above, top, bottom), isa, depth = rows, f.isa, f.mul(source.runs, source.length)
    width, edges = i64(isa.tile_columns), Edges(f, w)
    across = f.sdiv(source.runs, w["taps_down"])
    tap_row = f.mul(f.mul(across, source.length), width)
    padded = f.icmp_signed("!=", w["padded"], i64(0))
    with f.loop(*panels) as panel:
        column = f.mul(panel.index, width)
        here = f.at(w["panels"], f.mul(column, depth))
        following = f.at(here, f.mul(depth, width))
        bias = behind(f, w["bias"], column)
        finite = edges.finite(top, bottom, here, tap_row)
        with edges.each_group(top, bottom, f.and_(padded, finite)) as group:
            begin, end = group.taps
            first, count = f.sub(group.first, top), f.sub(group.end, group.first)
            taps = f.at(here, f.mul(begin, tap_row))
            offsets = f.at(source.offsets, f.mul(begin, across), I64)
            runs = f.mul(f.sub(end, begin), across)
            with each_row_block(f, f.mul(count, w["out_width"])) as block:
                pixel = f.add(f.mul(first, w["out_width"]), block.first)
                rows_at = source.row_block(f, pixel)
                ahead = f.at(following, f.mul(block.share, depth), I8)
                place = f.add(f.mul(f.add(above, top), w["out_width"]), pixel)
                place = f.add(f.mul(place, w["columns"]), column)
                arguments = [rows_at, source.places, offsets, runs, source.length, taps]
                arguments += [ahead, f.select(group.prefetches, block.bytes, i64(0))]
                arguments += [f.at(w["result"], place), w["columns"], bias]
                arguments += [behind(f, w["residual"], place), w["columns"]]
                igemm.emit(f, arguments, block.height, f.sub(w["columns"], column))


def _pad(module: Any, isa: Isa) -> Any:
    """pad(image, workspace, above, rows, left, columns, height, width, channels): ``rows`` by
    ``columns`` pixels that begin at row ``above`` and column −``left`` of an image; zeros outside.
    """
    copy, fill = copy_function(module, isa), fill_function(module, isa)
    f = Function.part(module, isa, "pad", POINTER, POINTER, *(I64,) * 7)
    image, workspace, above, rows, left, columns, height, width, channels = f.arguments
    begin = f.least(left, columns)
    inside = f.least(width, f.sub(columns, begin))
    line = f.mul(columns, channels)
    with f.loop(i64(0), rows) as row:
        out = f.at(workspace, f.mul(row.index, line))
        y = f.add(above, row.index)
        there = f.and_(f.icmp_signed(">=", y, i64(0)), f.icmp_signed("<", y, height))
        with f.if_else(there, likely=True) as (within, beyond):
            with within:
                source = f.at(image, f.mul(f.mul(y, width), channels))
                edge, count = f.mul(begin, channels), f.mul(inside, channels)
                f.call(fill, [out, edge])
                f.call(copy, [source, count, f.at(out, edge), count, i64(1), count])
                after = f.add(edge, count)
                f.call(fill, [f.at(out, after), f.sub(line, after)])
            with beyond:
                f.call(fill, [out, line])
    f.ret_void()
    return f.made

"""Loops over the windows of images x [N, H, W, C], for depthwise convolution and pooling.

    for block of eight rows of the result:      # extent: rows, through all images
        for piece of the channels:              # 256 to 511: what windows share stays in cache
            for row of the block:
                outputs at the left edge:  one at a time, four vectors of channels (`edge_part`)
                outputs between:           tiles of 8, 4, 2, 1 outputs (`tile_part`)
                outputs at the right edge: one at a time

    result row:  | e | tile of 8 | tile of 8 | tile of 4 | e |      e: window cut left or right

An output combines the elements of its window that are inside the image, in row-major order, in one
chain; where there are weights, the chain begins with zeros times the weights of the elements
outside. No bits depend on which outputs are computed together, nor on how the extent is split.
Vectors run over channels; if their number is not a multiple of the lanes, the last vector overlaps
the one before. Windows that are cut above or below have fewer rows, which needs no other tiles.

The parameters of the code are a `Window` and a `Body`, which defines how elements are combined. The
sizes of images and the padding are arguments.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.conv.window_tiles import (
    Body,
    Given,
    Window,
    edge_part,
    inside,
    tile_part,
    tile_sizes,
)

POINTERS = ("x", "result", "weight", "bias")
WINDOW_ARGUMENTS = (
    *POINTERS,
    *("height", "width", "channels", "out_height", "out_width", "top", "left"),
)
"""The argument block of all window kernels, in order.

x [N, height, width, channels] and the result [N, out_height, out_width, channels] are contiguous
and do not overlap; ``top`` and ``left`` are how many rows and columns of padding stand before x.
Weight [KH, KW, channels] and bias [channels] may be anything where they are not used. The extent
is N · out_height: the rows of the result.
"""

# So many channels of a block of rows, or up to twice as many, are computed before the next ones:
# few enough for the rows that windows share to stay in cache, enough for memory to be read in long
# runs (measured with AVX2).
_ROWS, CHANNELS = 8, 256


def window_kernel(isa: Isa, window: Window, body: Body) -> KernelText:
    """The kernel that combines the elements of windows by ``body``. Arguments:
    `WINDOW_ARGUMENTS`."""
    name = f"{body.label}_{window.label}"
    module = ir.Module(f"{name} {isa.name}")
    sizes = tile_sizes(isa, window, body)
    tiles = {size: tile_part(module, isa, window, body, size) for size in sizes}
    edge = edge_part(module, isa, window, body)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    arguments = f.argument_block(address, POINTERS, WINDOW_ARGUMENTS[len(POINTERS) :])
    _WindowLoops(f, window, arguments, tiles, edge, body.reads_weights).rows(first, last)
    f.ret_void()
    return KernelText(str(module), name)


class _WindowLoops:
    """The loops over outputs, which call the functions of `window_tiles`."""

    def __init__(
        self,
        f: Function,
        window: Window,
        arguments: dict[str, Any],
        tiles: dict[int, Any],
        edge: Any,
        reads_weights: bool,
    ) -> None:
        self.f, self.window, self.arguments, self.tiles, self.edge = (
            f,
            window,
            arguments,
            tiles,
            edge,
        )
        self.stride = arguments["channels"]
        self.line = f.mul(arguments["width"], self.stride)
        self.row_step = f.mul(self.line, i64(window.dilation[0]))
        self.whole = self._whole_columns()
        self.zeros = i64(0)
        if reads_weights:
            height, width = window.size
            count = f.mul(self.stride, i64(height * width))
            finite = f.all_finite(arguments["weight"], count)
            self.zeros = f.select(finite, i64(0), i64(height))

    def _whole_columns(self) -> tuple[Any, Any]:
        """The first output whose window lacks no column on the left, and the first after it that
        lacks some on the right. No output for fewer channels than a vector has lanes."""
        f, arguments, window = self.f, self.arguments, self.window
        outputs = arguments["out_width"]
        if not self.tiles:
            return outputs, outputs
        step, reach = i64(window.strides[1]), (window.size[1] - 1) * window.dilation[1]
        first = f.least(f.ceiling(arguments["left"], step), outputs)
        room = f.sub(f.add(arguments["width"], arguments["left"]), i64(reach))
        last = f.ceiling(f.positive(room), step)
        last = f.least(last, outputs)
        last = f.select(f.icmp_signed("<", last, first), first, last)
        few = f.icmp_signed("<", self.stride, i64(f.isa.lanes))
        return f.select(few, outputs, first), f.select(few, outputs, last)

    def rows(self, first: Any, last: Any) -> None:
        """The rows ``first`` to ``last`` of the result, counted through all images."""
        f, channels = self.f, self.stride
        with f.loop(first, last, i64(_ROWS)) as block:
            end = f.least(f.add(block.index, i64(_ROWS)), last)
            with f.loop(i64(0), channel_pieces(f, channels)) as piece:
                channel, count = channels_of(f, piece.index, channels)
                with f.loop(block.index, end) as row:
                    self._row(row.index, channel, count)

    def _row(self, number: Any, channel: Any, count: Any) -> None:
        f, arguments, window = self.f, self.arguments, self.window
        image, y = f.udiv(number, arguments["out_height"]), f.urem(number, arguments["out_height"])
        top = f.sub(f.mul(y, i64(window.strides[0])), arguments["top"])
        begin, end = self._inside(top, 0, arguments["height"])
        within = f.add(top, f.mul(begin, i64(window.dilation[0])))
        source = f.add(f.mul(image, arguments["height"]), within)
        x = f.at(arguments["x"], f.add(f.mul(source, self.line), channel))
        line = f.mul(arguments["out_width"], self.stride)
        result = f.at(arguments["result"], f.add(f.mul(number, line), channel))
        tap = f.mul(begin, i64(window.size[1]))
        weight = f.at(arguments["weight"], f.add(f.mul(tap, self.stride), channel))
        bias = f.at(arguments["bias"], channel)
        rows, taps = f.sub(end, begin), i64(window.size[1])
        met = (begin, rows, i64(0), taps)
        sizes = (self.zeros, *met, self.row_step, self.stride, count)
        given = Given(x, result, weight, bias, *sizes)
        first, last = self.whole
        self._edges(given, i64(0), first)
        self._tiles(given, first, last)
        self._edges(given, last, arguments["out_width"])

    def _inside(self, start: Any, axis: int, extent: Any) -> tuple[Any, Any]:
        """The range of elements inside the image, of a window that begins at ``start``: from,
        to."""
        size, dilation = i64(self.window.size[axis]), i64(self.window.dilation[axis])
        return inside(self.f, start, extent, size, dilation)

    def _edges(self, given: Given, first: Any, last: Any) -> None:
        """The outputs ``first`` to ``last`` of a row, one by one."""
        f, window = self.f, self.window
        with f.loop(first, last) as output:
            left = f.sub(f.mul(output.index, i64(window.strides[1])), self.arguments["left"])
            begin, end = self._inside(left, 1, self.arguments["width"])
            column = f.add(left, f.mul(begin, i64(window.dilation[1])))
            f.call(
                self.edge,
                given._replace(
                    x=f.at(given.x, f.mul(column, self.stride)),
                    result=f.at(given.result, f.mul(output.index, self.stride)),
                    weight=f.at(given.weight, f.mul(begin, self.stride)),
                    before=begin,
                    taps=f.sub(end, begin),
                ),
            )

    def _tiles(self, given: Given, first: Any, last: Any) -> None:
        """The outputs ``first`` to ``last`` of a row in tiles, the largest first."""
        f, step = self.f, i64(self.window.strides[1])
        for size, tile in self.tiles.items():
            with f.loop(first, f.sub(last, i64(size - 1)), i64(size), carried=[first]) as output:
                column = f.sub(f.mul(output.index, step), self.arguments["left"])
                part = given._replace(
                    x=f.at(given.x, f.mul(column, self.stride)),
                    result=f.at(given.result, f.mul(output.index, self.stride)),
                )
                f.call(tile, part)
                output.values = [f.add(output.index, i64(size))]
            (first,) = output.values


def channel_pieces(f: Function, channels: Any) -> Any:
    """The number of pieces that the channels are cut into."""
    whole = f.udiv(channels, i64(CHANNELS))
    return f.select(f.icmp_signed(">", whole, i64(1)), whole, i64(1))


def channels_of(f: Function, piece: Any, channels: Any) -> tuple[Any, Any]:
    """The first channel of a piece, and its number of channels: the last one has the rest."""
    first = f.mul(piece, i64(CHANNELS))
    left = f.sub(channels, first)
    return first, f.select(f.icmp_signed("<", left, i64(2 * CHANNELS)), left, i64(CHANNELS))

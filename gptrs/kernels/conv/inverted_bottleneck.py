"""Inverted bottleneck (MobileNetV2): 1 × 1, depthwise, 1 × 1 convolution, fused by bands of rows.

    for part of an image:                       # extent
        for band of output rows:
            hidden = first 1 × 1 convolution of the input rows of the band
                     (rows shared with the band before are moved, not computed again)
            for some output rows of the band:
                between = depthwise convolution of hidden
                result  = last 1 × 1 convolution of between (+ residual)

    workspace of an item:  | hidden: input rows of a band, W·H elements each | between: some rows |
    x [N, H, W, C]   ──▶   hidden [rows, W, hidden]   ──▶   between   ──▶   result [N, H', W', O]

The hidden tensor is several times as large as input and output. It is computed some rows at a time,
in a workspace that stays in L2, by the kernels of the three convolutions
(`gptrs.kernels.conv.direct`, `depthwise`), which this kernel calls through their addresses: results
have the same bits, and only the outer loops are compiled.
Source: Sandler et al., MobileNetV2, arXiv:1801.04381, §3.3 and §5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I64, POINTER, VOID, Function, KernelText, i64
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.conv.direct import CONV_ARGUMENTS
from gptrs.kernels.conv.indirect_gemm import behind, copy_function, given
from gptrs.kernels.conv.window_loops import WINDOW_ARGUMENTS
from gptrs.kernels.conv.window_tiles import Window

_KERNELS = ("first", "depthwise", "last")
_POINTERS = (
    *_KERNELS,
    *("x", "panels", "bias", "weight", "weight_bias", "last_panels", "last_bias"),
    *("residual", "result", "workspace"),
)
_SIZES = (
    *("height", "width", "channels", "hidden", "out_height", "out_width", "columns"),
    *("top", "left", "reach", "stride", "part", "parts", "band", "lines", "held", "workspace_step"),
)
BOTTLENECK_ARGUMENTS = _POINTERS + _SIZES
"""The argument block of `bottleneck_kernel`, in order.

``first`` and ``last`` are addresses of kernels that `conv_kernel` wrote, ``depthwise`` of one of
`depthwise_kernel`, whose windows have ``reach`` rows from the first to the last one and lie
``stride`` rows apart. Without ``first`` (0) x has ``hidden`` channels. x is [N, height, width,
channels], the result and the residual [N, out_height, out_width, columns]; a bias or residual of 0
is none. An item of the extent is a part of an image, so many rows of the result, done ``band`` rows
after the other. The workspace of item i begins at element i·workspace_step with ``held`` elements
for the result of the first product for a band; the depthwise convolution follows ``lines`` rows at
a time.
"""


class Cut(NamedTuple):
    """How the work is partitioned; the fields are arguments of the kernel."""

    part: int
    """Rows of outputs that an item has."""
    parts: int
    """In an image."""
    band: int
    """Rows of outputs for which the first product is computed at once."""
    lines: int
    """Rows of outputs for which the depthwise convolution is."""
    held: int
    """Elements of the first product's result for a band."""
    workspace_step: int
    """Elements of an item's workspace."""


_HELD_BYTES = 256 * KB
"""Of the result of the first product: with the panels it stays in L2."""
_PIXELS = 48
"""Fewest outputs at a time, so that the last product does not wait for its panels."""


def reach_of(window: Window) -> int:
    """How many rows of an image a window spans."""
    return (window.size[0] - 1) * window.dilation[0] + 1


def cut_of(
    window: Window,
    sizes: tuple[int, int, int, int],
    hidden: int,
    *,
    first: bool = True,
    parts: int = 1,
) -> Cut:
    """Cut images with ``sizes`` (height, width, rows and columns of outputs), each into ``parts``
    if it can be. ``first``: whether there is a first product."""
    height, width, rows, columns = sizes
    reach, step = reach_of(window), window.strides[0]
    part = -(-rows // parts)
    fitting = (_HELD_BYTES // (4 * width * hidden) - reach) // step + 1
    # Rows that bands share are moved: at most one for each that is computed.
    band = min(part, max(fitting, -(-reach // step), 1))
    lines = min(band, -(-_PIXELS // columns))
    held = min(height, (band - 1) * step + reach) * width * hidden if first else 0
    return Cut(part, -(-rows // part), band, lines, held, held + lines * columns * hidden)


def bottleneck_kernel(isa: Isa) -> KernelText:
    """The bottleneck. Arguments: `BOTTLENECK_ARGUMENTS`; extent: images times parts."""
    name = "bottleneck"
    module = ir.Module(f"{name} {isa.name}")
    copy = copy_function(module, isa)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _POINTERS, _SIZES)
    stages = _Stages(f, w, copy, first)
    with f.loop(first, last) as item:
        image = f.sdiv(item.index, w["parts"])
        top = f.mul(f.srem(item.index, w["parts"]), w["part"])
        bottom = f.least(f.add(top, w["part"]), w["out_height"])
        pixels = f.mul(image, f.mul(w["height"], w["width"]))
        x = f.at(w["x"], f.mul(pixels, w["channels"]))
        grows = given(f, w["first"])
        with f.loop(top, bottom, w["band"], carried=[i64(0), i64(0)]) as loop:
            band = _Band(image, loop.index, f.least(f.add(loop.index, w["band"]), bottom))
            begin, end = stages.rows_read(band)
            with f.if_then(grows):
                stages.grow(x, (begin, end), loop.values)
            above = f.sub(f.add(begin, w["top"]), f.mul(band.begin, w["stride"]))
            source = _Source(
                f.select(grows, stages.held, x),
                f.select(grows, f.sub(end, begin), w["height"]),
                f.select(grows, above, w["top"]),
                f.select(grows, i64(0), band.begin),
            )
            stages.shrink(source, band)
            loop.values = [begin, end]
    f.ret_void()
    return KernelText(str(module), name)


class _Band(NamedTuple):
    """Rows of outputs of an image."""

    image: Any
    begin: Any
    end: Any


class _Source(NamedTuple):
    """The input of the depthwise convolution: an image of some rows, ``top`` rows of padding above.

    ``first`` is the number of the band's first row of outputs in it.
    """

    x: Any
    height: Any
    top: Any
    first: Any


class _Call:
    """A call of a kernel: its argument block, of which some arguments change from call to call."""

    def __init__(
        self, f: Function, kernel: Any, names: Sequence[str], arguments: dict[str, Any]
    ) -> None:
        self._f, self._kernel, self._names = f, kernel, names
        self._block = f.alloca(I64, i64(len(names)))
        for name in names:
            self._put(name, arguments.get(name, i64(0)))

    def _put(self, name: str, value: Any) -> None:
        f = self._f
        word = f.ptrtoint(value, I64) if value.type == POINTER else value
        f.write(word, f.at(self._block, i64(self._names.index(name)), I64))

    def emit(self, first: Any, last: Any, **arguments: Any) -> None:
        """Call it over a range of its extent."""
        for name, value in arguments.items():
            self._put(name, value)
        block = self._f.ptrtoint(self._block, I64)
        kind = ir.FunctionType(VOID, [I64] * 3)
        code = self._f.inttoptr(self._f.ptrtoint(self._kernel, I64), kind.as_pointer())
        self._f.call(code, [block, first, last])


class _Stages:
    """The three kernels of the block, and the buffers between them."""

    def __init__(self, f: Function, w: dict[str, Any], copy: Any, item: Any) -> None:
        self._f, self._w, self._copy = f, w, copy
        # Of all items of this call, one at a time is in the first one's workspace.
        self.held = f.at(w["workspace"], f.mul(item, w["workspace_step"]))
        self._between = f.at(self.held, w["held"])
        ones = ("height", "out_height", "taps_down", "taps_across", "stride_down", "stride_across")
        ones += ("far_down", "far_across", "band", "bands", "parts")
        plain = dict.fromkeys(ones, i64(1))
        grown = {"panels": w["panels"], "bias": w["bias"], "channels": w["channels"]}
        self._first = _Call(
            f, w["first"], CONV_ARGUMENTS, {**plain, **grown, "columns": w["hidden"]}
        )
        shrunk = {"panels": w["last_panels"], "bias": w["last_bias"], "channels": w["hidden"]}
        shrunk |= {"x": self._between, "columns": w["columns"]}
        self._last = _Call(f, w["last"], CONV_ARGUMENTS, {**plain, **shrunk})
        windows = {"weight": w["weight"], "bias": w["weight_bias"], "channels": w["hidden"]}
        windows |= {name: w[name] for name in ("width", "out_width", "left")}
        self._depthwise = _Call(f, w["depthwise"], WINDOW_ARGUMENTS, windows)

    def rows_read(self, band: _Band) -> tuple[Any, Any]:
        """The rows of the image that the windows of a band meet: from, to."""
        f, w = self._f, self._w
        begin = f.sub(f.mul(band.begin, w["stride"]), w["top"])
        end = f.sub(f.mul(f.sub(band.end, i64(1)), w["stride"]), w["top"])

        def inside(row: Any) -> Any:
            row = f.select(f.icmp_signed(">", row, i64(0)), row, i64(0))
            return f.least(row, w["height"])

        return inside(begin), inside(f.add(end, w["reach"]))

    def grow(self, x: Any, rows: tuple[Any, Any], computed: Sequence[Any]) -> None:
        """The first product for some rows of the image x, of which those ``computed`` are held."""
        f, w, (begin, end) = self._f, self._w, rows
        line = f.mul(w["width"], w["hidden"])
        some = f.icmp_signed(">", computed[1], begin)
        kept = f.select(some, f.sub(computed[1], begin), i64(0))
        size = f.mul(kept, line)
        with f.if_then(some):
            moved = f.at(self.held, f.mul(f.sub(begin, computed[0]), line))
            f.call(self._copy, [moved, size, self.held, size, i64(1), size])
        start = f.mul(f.add(begin, kept), w["width"])
        pixels = f.sub(f.mul(end, w["width"]), start)
        with f.if_then(f.icmp_signed(">", pixels, i64(0))):
            source, place = f.at(x, f.mul(start, w["channels"])), f.at(self.held, size)
            self._first.emit(i64(0), i64(1), x=source, result=place, width=pixels, out_width=pixels)

    def shrink(self, source: _Source, band: _Band) -> None:
        """The results of a band, some rows at a time."""
        f, w = self._f, self._w
        above, line = f.mul(band.image, w["out_height"]), f.mul(w["out_width"], w["hidden"])
        with f.loop(band.begin, band.end, w["lines"]) as loop:
            count = f.least(w["lines"], f.sub(band.end, loop.index))
            first = f.add(source.first, f.sub(loop.index, band.begin))
            # The depthwise kernel counts rows of its result from 0, but writes these ones alone.
            result, last = f.at(self._between, f.neg(f.mul(first, line))), f.add(first, count)
            sizes = {"height": source.height, "top": source.top, "out_height": last}
            self._depthwise.emit(first, last, x=source.x, result=result, **sizes)
            place = f.mul(f.mul(f.add(above, loop.index), w["out_width"]), w["columns"])
            pixels = f.mul(count, w["out_width"])
            places = {"result": f.at(w["result"], place), "width": pixels, "out_width": pixels}
            self._last.emit(i64(0), i64(1), residual=behind(f, w["residual"], place), **places)

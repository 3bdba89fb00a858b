"""An inverted bottleneck of images [N, H, W, C], f32: a 1 × 1 convolution to more channels, a
depthwise one, a 1 × 1 convolution to few channels.

What is between them is several times as large as what goes in and out. It is computed some rows at
a time, in memory that stays in a cache. Each output is the same chain of operations as in the
kernels of the three (`conv`, `depthwise`), and has the same bits.
Source: Sandler et al., MobileNetV2, arXiv:1801.04381, §3.3 and §5.
"""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.depthwise import Depthwise
from gptrs.kernels.emit import I64, POINTER, Function, KernelText, i64
from gptrs.kernels.isa import KB, Isa
from gptrs.kernels.strips import (
    Epilogue,
    Places,
    Rows,
    Strips,
    behind,
    copy_function,
    places_apart,
)
from gptrs.kernels.window_parts import Window
from gptrs.kernels.window_rows import rows_part

_POINTERS = (
    *("x", "panels", "bias", "weight", "weight_bias", "last_panels", "last_bias"),
    *("residual", "result", "room"),
)
_SIZES = (
    *("height", "width", "channels", "hidden", "out_height", "out_width", "columns"),
    *("top", "left", "part", "parts", "band", "lines", "held", "room_step"),
)
BOTTLENECK_WORDS = _POINTERS + _SIZES
"""The argument words of `bottleneck_kernel`, in order.

x is [N, height, width, channels], the depthwise weight [KH, KW, hidden], the result and the
residual [N, out_height, out_width, columns]; the first product's panels and bias are not used
where there is none: then x has ``hidden`` channels. A bias or residual of 0 is none. An item of
the extent is a part of an image, so many rows of the result, done ``band`` rows after the other.
The room of item i begins at element i·room_step with ``held`` elements for what the first product
makes for a band; the depthwise convolution follows ``lines`` rows at a time.
"""


class Stages(NamedTuple):
    """What the code of a bottleneck depends on besides the vector level."""

    first: Epilogue | None
    """Of the first product, if there is one."""
    window: Window
    depthwise: Depthwise
    last: Epilogue

    @property
    def label(self) -> str:
        """A part of the name of its kernel."""
        first = "none" if self.first is None else self.first.label
        return f"{first}_{self.depthwise.label}_{self.window.label}_{self.last.label}"


class Cut(NamedTuple):
    """How the work is cut; the fields are words."""

    part: int
    """Rows of outputs that an item has."""
    parts: int
    """In an image."""
    band: int
    """Rows of outputs for which the first product is computed at once."""
    lines: int
    """Rows of outputs for which the depthwise convolution is."""
    held: int
    """Elements that the first product makes for a band."""
    room_step: int
    """Elements of an item's room."""


_HELD_BYTES = 256 * KB
"""Of what the first product makes: with the panels it stays in L2."""
_PIXELS = 48
"""Outputs at a time at least, so that panels are not waited for."""


def cut_of(stages: Stages, sizes: tuple[int, int, int, int], hidden: int, *, parts: int = 1) -> Cut:
    """Cut images with ``sizes`` (height, width, rows and columns of outputs), each into ``parts``
    if it can be."""
    height, width, rows, columns = sizes
    reach, step = (
        (stages.window.size[0] - 1) * stages.window.dilation[0] + 1,
        stages.window.strides[0],
    )
    part = -(-rows // parts)
    fitting = (_HELD_BYTES // (4 * width * hidden) - reach) // step + 1
    # Rows that bands share are moved: at most one for each that is computed.
    band = min(part, max(fitting, -(-reach // step), 1))
    lines = min(band, -(-_PIXELS // columns))
    held = 0
    if stages.first is not None:
        held = min(height, (band - 1) * step + reach) * width * hidden
    return Cut(part, -(-rows // part), band, lines, held, held + lines * columns * hidden)


def bottleneck_kernel(isa: Isa, stages: Stages) -> KernelText:
    """The bottleneck. Words: `BOTTLENECK_WORDS`; extent: images times parts."""
    name = f"bottleneck_{stages.label}"
    module = ir.Module(f"{name} {isa.name}")
    products: dict[Epilogue, Any] = {}
    for epilogue in (stages.first, stages.last):
        if epilogue is not None and epilogue not in products:
            products[epilogue] = _product(module, isa, epilogue)
    rows, copy = rows_part(module, isa, stages.window, stages.depthwise), copy_function(module, isa)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.words(address, _POINTERS, _SIZES)
    # Of all items of this call, one at a time is in the first one's room.
    held = f.at(w["room"], f.mul(first, w["room_step"]))
    between = f.at(held, w["held"])
    with f.loop(first, last) as item:
        image = f.sdiv(item.index, w["parts"])
        top = f.mul(f.srem(item.index, w["parts"]), w["part"])
        bottom = f.least(f.add(top, w["part"]), w["out_height"])
        with f.loop(top, bottom, w["band"], carried=[i64(0), i64(0)]) as loop:
            band = _Band(image, loop.index, f.least(f.add(loop.index, w["band"]), bottom))
            pixels = f.mul(image, f.mul(w["height"], w["width"]))
            x = f.at(w["x"], f.mul(pixels, w["channels"]))
            source = _Source(x, w["height"], w["top"], band.begin)
            if stages.first is not None:
                begin, end = _rows_read(f, stages.window, w, band)
                computed = loop.values
                _grow(f, products[stages.first], copy, w, x, held, (begin, end), computed)
                above = f.mul(band.begin, i64(stages.window.strides[0]))
                above = f.sub(f.add(begin, w["top"]), above)
                source = _Source(held, f.sub(end, begin), above, i64(0))
                loop.values = [begin, end]
            _shrink(f, rows, products[stages.last], w, source, between, band)
    f.ret_void()
    return KernelText(str(module), name)


class _Band(NamedTuple):
    """Rows of outputs of an image."""

    image: Any
    begin: Any
    end: Any


class _Source(NamedTuple):
    """Where a depthwise convolution reads: an image of some rows, ``top`` rows of padding above.

    ``first`` is the number of the band's first row of outputs in it.
    """

    x: Any
    height: Any
    top: Any
    first: Any


def _rows_read(f: Function, window: Window, w: dict[str, Any], band: _Band) -> tuple[Any, Any]:
    """The rows of the image that the windows of a band meet: from, to."""
    step, reach = i64(window.strides[0]), (window.size[0] - 1) * window.dilation[0] + 1
    begin = f.sub(f.mul(band.begin, step), w["top"])
    end = f.sub(f.mul(f.sub(band.end, i64(1)), step), w["top"])

    def inside(row: Any) -> Any:
        row = f.select(f.icmp_signed(">", row, i64(0)), row, i64(0))
        return f.least(row, w["height"])

    return inside(begin), inside(f.add(end, i64(reach)))


def _grow(
    f: Function,
    product: Any,
    copy: Any,
    w: dict[str, Any],
    x: Any,
    held: Any,
    rows: tuple[Any, Any],
    computed: Sequence[Any],
) -> None:
    """The first product for some rows of the image x, of which ``held`` has those ``computed``."""
    line, (begin, end) = f.mul(w["width"], w["hidden"]), rows
    some = f.icmp_signed(">", computed[1], begin)
    kept = f.select(some, f.sub(computed[1], begin), i64(0))
    size = f.mul(kept, line)
    with f.if_then(some):
        moved = f.at(held, f.mul(f.sub(begin, computed[0]), line))
        f.call(copy, [moved, size, held, size, i64(1), size])
    start = f.mul(f.add(begin, kept), w["width"])
    pixels = f.sub(f.mul(end, w["width"]), start)
    x = f.at(x, f.mul(start, w["channels"]))
    operands = [w["panels"], w["bias"], ir.Constant(POINTER, None), f.at(held, size)]
    f.call(product, [x, pixels, w["channels"], w["hidden"], *operands])


def _shrink(
    f: Function,
    rows: Any,
    product: Any,
    w: dict[str, Any],
    source: _Source,
    between: Any,
    band: _Band,
) -> None:
    """The results of a band, some rows at a time."""
    above = f.mul(band.image, w["out_height"])
    line = f.mul(w["out_width"], w["hidden"])
    with f.loop(band.begin, band.end, w["lines"]) as loop:
        count = f.least(w["lines"], f.sub(band.end, loop.index))
        first = f.add(source.first, f.sub(loop.index, band.begin))
        # The walk counts rows of the result from 0, but writes these ones alone.
        result, last = f.at(between, f.neg(f.mul(first, line))), f.add(first, count)
        words = [source.x, result, w["weight"], w["weight_bias"], source.height, w["width"]]
        words += [w["hidden"], last, w["out_width"], source.top, w["left"]]
        f.call(rows, [*words, first, last])
        place = f.mul(f.mul(f.add(above, loop.index), w["out_width"]), w["columns"])
        operands = [w["last_panels"], w["last_bias"], behind(f, w["residual"], place)]
        pixels = f.mul(count, w["out_width"])
        sizes = [pixels, w["hidden"], w["columns"]]
        f.call(product, [between, *sizes, *operands, f.at(w["result"], place)])


def _product(module: Any, isa: Isa, epilogue: Epilogue) -> Any:
    """product(a, rows, depth, columns, panels, bias, residual, c): C = act(A·B + bias) + residual,
    or with the activation last, of matrices without gaps."""
    strips = Strips(module, isa, epilogue)
    kinds = POINTER, I64, I64, I64, POINTER, POINTER, POINTER, POINTER
    f = Function.part(module, isa, f"product_{epilogue.label}", *kinds)
    a, rows, depth, columns, panels, bias, residual, c = f.arguments
    left = Rows(a, rows, depth, places_apart(f, depth))
    some = f.icmp_signed(">", rows, i64(0))
    with f.loop(i64(0), f.select(some, columns, i64(0)), i64(isa.tile_columns)) as column:
        here = f.at(panels, f.mul(column.index, depth))
        places = Places(f.at(c, column.index), columns)
        more, residue = behind(f, bias, column.index), behind(f, residual, column.index)
        strips.emit_panel(f, left, here, places, more, residue, f.sub(columns, column.index))
    f.ret_void()
    return f.made

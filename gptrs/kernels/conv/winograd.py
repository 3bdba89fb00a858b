"""Winograd's minimal filtering: transforms for 3 × 3 convolutions of stride 1.

    V[plane, tile, C] = Bᵀ·d·B          # input transform: tiles of (m + 2)² pixels
    U[plane, C, O]    = G·g·Gᵀ          # filter transform: once for a parameter
    M[plane, tile, O] = V[plane] · U[plane]                 # `winograd_product`
    result tile       = Aᵀ·M·A          # output transform: m × m outputs, then the epilogue

    for tile:                                   # extent of input and output transform
        for lanes of the channels:
            load (m + 2)² vectors, transform columns, then rows, in registers, store

    image   ┌─────┬─────┐    tile: (m + 2)² pixels d, overlapping by 2
            │ m×m │ m×m │    V: [planes = (m + 2)², tiles, C], a plane is a matrix
            ├─────┼─────┤    U: panels [planes, ⌈O/w⌉, C, w]

A tile of m × m outputs is Aᵀ·[(G·g·Gᵀ) ⊙ (Bᵀ·d·B)]·A for taps g and (m + 2) × (m + 2) pixels d: per
channel (m + 2)² products in place of 9·m². Summed over channels, each of the (m + 2)² *planes* is a
matrix product of transformed tiles V [tiles, C] and transformed taps U [C, O].

Source: Lavin and Gray, arXiv:1509.09308; the matrices are those of Toom's points 0, ±1 and, for
m = 4, ±2. In the mean, results of m = 4 are off by four times as much as those of the direct
convolution, two bits, and those of m = 2 by no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, I64, POINTER, Function, KernelText, i64, like
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.conv.indirect_gemm import Epilogue, copy_function, fill_function, given

Outputs = Literal[2, 4]
"""m: a tile has m × m outputs."""
_Vectors = Sequence[Any]
_Transform = Callable[[Function, _Vectors], list[Any]]


def planes(m: int) -> int:
    """How many products a tile takes per channel."""
    return (m + 2) ** 2


# --- the three transforms along one axis; two-dimensional ones are two of them


def _pixels2(f: Function, d: _Vectors) -> list[Any]:
    """Bᵀ·d for m = 2."""
    return [f.fsub(d[0], d[2]), f.fadd(d[1], d[2]), f.fsub(d[2], d[1]), f.fsub(d[1], d[3])]


def _pixels4(f: Function, d: _Vectors) -> list[Any]:
    """Bᵀ·d for m = 4."""

    def times(x: Any, factor: float, y: Any) -> Any:
        return f.multiply_add(x, like(x, factor), y)

    even, odd = times(d[2], -4, d[4]), times(d[1], -4, d[3])
    more, less = f.fsub(d[4], d[2]), f.fsub(d[3], d[1])
    return [
        times(d[0], 4, times(d[2], -5, d[4])),
        f.fadd(even, odd),
        f.fsub(even, odd),
        times(less, 2, more),
        times(less, -2, more),
        times(d[1], 4, times(d[3], -5, d[5])),
    ]


def _sums2(f: Function, p: _Vectors) -> list[Any]:
    """Aᵀ·p for m = 2."""
    return [f.fadd(f.fadd(p[0], p[1]), p[2]), f.fsub(f.fsub(p[1], p[2]), p[3])]


def _sums4(f: Function, p: _Vectors) -> list[Any]:
    """Aᵀ·p for m = 4."""
    near, far = f.fadd(p[1], p[2]), f.fadd(p[3], p[4])
    left, right = f.fsub(p[1], p[2]), f.fsub(p[3], p[4])
    return [
        f.fadd(f.fadd(p[0], near), far),
        f.multiply_add(right, like(right, 2), left),
        f.multiply_add(far, like(far, 4), near),
        f.fadd(f.multiply_add(right, like(right, 8), left), p[5]),
    ]


def _taps2(f: Function, g: _Vectors) -> list[Any]:
    """G·g for m = 2."""
    half = like(g[0], 0.5)
    outer, inner = f.fmul(f.fadd(g[0], g[2]), half), f.fmul(g[1], half)
    return [g[0], f.fadd(outer, inner), f.fsub(outer, inner), g[2]]


def _taps4(f: Function, g: _Vectors) -> list[Any]:
    """G·g for m = 4."""
    sixth, twelfth, last = like(g[0], 1 / 6), like(g[0], 1 / 12), like(g[0], 1 / 24)
    outer, inner = f.fmul(f.fadd(g[0], g[2]), sixth), f.fmul(g[1], sixth)
    far, step = f.multiply_add(g[0], last, f.fmul(g[2], sixth)), f.fmul(g[1], twelfth)
    negative = f.fneg(outer)
    return [
        f.fmul(g[0], like(g[0], 0.25)),
        f.fsub(negative, inner),
        f.fadd(negative, inner),
        f.fadd(far, step),
        f.fsub(far, step),
        g[2],
    ]


_PIXELS: dict[int, _Transform] = {2: _pixels2, 4: _pixels4}
_SUMS: dict[int, _Transform] = {2: _sums2, 4: _sums4}
_TAPS: dict[int, _Transform] = {2: _taps2, 4: _taps4}


def _twice(f: Function, transform: _Transform, square: Sequence[_Vectors]) -> list[Any]:
    """The transform of the columns of a square of vectors, then of its rows, in one list."""
    columns = [transform(f, [row[i] for row in square]) for i in range(len(square[0]))]
    rows = [transform(f, [column[i] for column in columns]) for i in range(len(columns[0]))]
    return [vector for row in rows for vector in row]


# --- taps


def winograd_filter_kernel(isa: Isa, m: Outputs) -> KernelText:
    """Transforms and packs taps [3, 3, C, O] to U, panels [planes, ⌈O/w⌉, C, w].

    Arguments: pointers taps and u, sizes channels, columns; extent: panels. Columns that are
    missing in the last one are zero.
    """
    name = f"winograd{m}_filter"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, ("taps", "u"), ("channels", "columns"))
    width, lanes = i64(isa.tile_columns), isa.lanes
    panel_size = f.mul(w["channels"], width)
    plane = f.mul(f.ceiling(w["columns"], width), panel_size)
    tap = f.mul(w["channels"], w["columns"])
    with f.loop(first, last) as panel, f.loop(i64(0), w["channels"]) as channel:
        row = f.at(w["taps"], f.mul(channel.index, w["columns"]))
        out = f.at(w["u"], f.add(f.mul(panel.index, panel_size), f.mul(channel.index, width)))
        for vector in range(isa.tile_vectors):
            column = f.add(f.mul(panel.index, width), i64(vector * lanes))
            mask = f.mask(f.sub(w["columns"], column))
            place = f.at(row, column)
            square = [
                [f.read(f.at(place, f.mul(tap, i64(3 * y + x))), mask=mask) for x in range(3)]
                for y in range(3)
            ]
            for i, value in enumerate(_twice(f, _TAPS[m], square)):
                f.write(value, f.at(out, f.add(f.mul(plane, i64(i)), i64(vector * lanes))))
    f.ret_void()
    return KernelText(str(module), name)


# --- pixels

WINOGRAD_INPUT_ARGUMENTS = (
    *("x", "v"),
    *("height", "width", "channels", "top", "left"),
    *("down", "across", "first", "v_step"),
)
"""The argument block of `winograd_input_kernel`: pointers x and v, then sizes.

Tiles are counted along rows, ``across`` in a row, ``down`` in an image; item i is tile ``first`` +
i, row i of each plane of V; planes are ``v_step`` elements apart.
"""


def winograd_input_kernel(isa: Isa, m: Outputs) -> KernelText:
    """Transforms tiles of images x [N, H, W, C] with zeros around them to V.

    Arguments: `WINOGRAD_INPUT_ARGUMENTS`; extent: tiles. Channels are a multiple of a vector's
    lanes, 1024 at most.
    """
    name = f"winograd{m}_input"
    module = ir.Module(f"{name} {isa.name}")
    transform, gather = _pixels_of_tile(module, isa, m), _gather(module, isa, m + 2)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, WINOGRAD_INPUT_ARGUMENTS[:2], WINOGRAD_INPUT_ARGUMENTS[2:])
    beside = f.alloca(F32, i64((m + 2) ** 2 * MOST_CHANNELS))
    line = f.mul(w["width"], w["channels"])
    with f.loop(first, last) as item:
        image, y, x = _place(f, w, item.index, m)
        y, x = f.sub(y, w["top"]), f.sub(x, w["left"])
        pixels = f.at(w["x"], f.mul(f.mul(image, w["height"]), line))
        corner = f.at(pixels, f.add(f.mul(y, line), f.mul(x, w["channels"])))
        v = f.at(w["v"], f.mul(item.index, w["channels"]))
        inside = f.and_(
            f.and_(f.icmp_signed(">=", y, i64(0)), f.icmp_signed(">=", x, i64(0))),
            f.and_(
                f.icmp_signed("<=", f.add(y, i64(m + 2)), w["height"]),
                f.icmp_signed("<=", f.add(x, i64(m + 2)), w["width"]),
            ),
        )
        with f.if_then(f.not_(inside)):
            f.call(gather, [pixels, y, x, w["height"], w["width"], w["channels"], beside])
        source = f.select(inside, corner, beside)
        apart = f.select(inside, line, f.mul(i64(m + 2), w["channels"]))
        f.call(transform, [source, apart, v, w["v_step"], w["channels"]])
    f.ret_void()
    return KernelText(str(module), name)


MOST_CHANNELS = 1024


def _place(f: Function, w: dict[str, Any], item: Any, m: int) -> tuple[Any, Any, Any]:
    """The image of a tile, and the row and column of its first output."""
    tile = f.add(w["first"], item)
    rest, across = f.sdiv(tile, w["across"]), f.srem(tile, w["across"])
    image, down = f.sdiv(rest, w["down"]), f.srem(rest, w["down"])
    return image, f.mul(down, i64(m)), f.mul(across, i64(m))


def _pixels_of_tile(module: Any, isa: Isa, m: Outputs) -> Any:
    """transform(pixels, line, v, v_step, channels)."""
    f = Function.part(module, isa, "transform", POINTER, I64, POINTER, I64, I64)
    pixels, line, v, v_step, channels = f.arguments
    size = m + 2
    with f.loop(i64(0), channels, i64(isa.lanes)) as loop:
        rows = [f.at(f.at(pixels, loop.index), f.mul(line, i64(y))) for y in range(size)]
        square = [[f.read(f.at(r, f.mul(channels, i64(x)))) for x in range(size)] for r in rows]
        out = f.at(v, loop.index)
        for i, plane in enumerate(_twice(f, _PIXELS[m], square)):
            f.write(plane, f.at(out, f.mul(v_step, i64(i))))
    f.ret_void()
    return f.made


def _gather(module: Any, isa: Isa, size: int) -> Any:
    """gather(image, y, x, height, width, channels, out): ``size`` × ``size`` pixels from (y, x) on,
    zero outside of the image."""
    copy, fill = copy_function(module, isa), fill_function(module, isa)
    f = Function.part(module, isa, "gather", POINTER, *(I64,) * 5, POINTER)
    image, y, x, height, width, channels, out = f.arguments
    line = f.mul(i64(size), channels)
    f.call(fill, [out, f.mul(line, i64(size))])
    left = f.within(f.sub(i64(0), x), 0, size)
    right = f.within(f.sub(width, x), 0, size)
    count = f.mul(f.sub(right, left), channels)
    with f.loop(i64(0), i64(size)) as row:
        at = f.add(y, row.index)
        there = f.and_(f.icmp_signed(">=", at, i64(0)), f.icmp_signed("<", at, height))
        with f.if_then(there):
            source = f.mul(f.add(f.mul(at, width), f.add(x, left)), channels)
            into = f.add(f.mul(row.index, line), f.mul(left, channels))
            f.call(copy, [f.at(image, source), count, f.at(out, into), count, i64(1), count])
    f.ret_void()
    return f.made


# --- sums

WINOGRAD_OUTPUT_ARGUMENTS = (
    *("sums", "result", "bias", "residual"),
    *("height", "width", "columns"),
    *("down", "across", "first", "step", "row_step"),
)
"""The argument block of `winograd_output_kernel`: four pointers, then sizes.

``height`` and ``width`` are those of the result, ``step`` and ``row_step`` the distances of planes
and tiles in the sums; ``down``, ``across`` and ``first`` as in `WINOGRAD_INPUT_ARGUMENTS`. ``bias``
and ``residual`` (which lies as the result does) may be 0.
"""


def winograd_output_kernel(isa: Isa, m: Outputs, epilogue: Epilogue) -> KernelText:
    """Transforms sums [planes, tiles, O] to the result [N, H, W, O], with bias, activation,
    residual.

    Arguments: `WINOGRAD_OUTPUT_ARGUMENTS`; extent: tiles. Columns are a multiple of a vector's
    lanes, 1024 at most.
    """
    name = f"winograd{m}_output_{epilogue.label}"
    module = ir.Module(f"{name} {isa.name}")
    copy, transform = copy_function(module, isa), _sums_of_tile(module, isa, m, epilogue)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, WINOGRAD_OUTPUT_ARGUMENTS[:4], WINOGRAD_OUTPUT_ARGUMENTS[4:])
    beside = f.alloca(F32, i64(m * m * MOST_CHANNELS))
    more = f.alloca(F32, i64(m * m * MOST_CHANNELS))
    null, columns = ir.Constant(POINTER, None), w["columns"]
    line, short = f.mul(w["width"], columns), f.mul(i64(m), columns)
    with f.loop(first, last) as item:
        image, y, x = _place(f, w, item.index, m)
        rows = f.least(f.sub(w["height"], y), i64(m))
        count = f.mul(f.least(f.sub(w["width"], x), i64(m)), columns)
        pixel = f.add(f.mul(f.add(f.mul(image, w["height"]), y), w["width"]), x)
        place = f.mul(pixel, columns)
        result = f.at(w["result"], place)
        residual = f.select(given(f, w["residual"]), f.at(w["residual"], place), null)
        whole = f.and_(f.icmp_signed("==", rows, i64(m)), f.icmp_signed("==", count, short))
        with f.if_then(f.and_(f.not_(whole), given(f, w["residual"]))):
            f.call(copy, [residual, line, more, short, rows, count])
        sums = f.at(w["sums"], f.mul(item.index, w["row_step"]))
        into = [f.select(whole, result, beside), f.select(whole, line, short)]
        added = f.select(f.or_(whole, f.not_(given(f, residual))), residual, more)
        f.call(transform, [sums, w["step"], *into, added, w["bias"], columns])
        with f.if_then(f.not_(whole)):
            f.call(copy, [beside, short, result, line, rows, count])
    f.ret_void()
    return KernelText(str(module), name)


def _sums_of_tile(module: Any, isa: Isa, m: Outputs, epilogue: Epilogue) -> Any:
    """transform(sums, step, result, line, residual, bias, columns)."""
    f = Function.part(module, isa, "transform", POINTER, I64, POINTER, I64, POINTER, POINTER, I64)
    sums, step, result, line, residual, bias, columns = f.arguments
    size = m + 2
    with f.loop(i64(0), columns, i64(isa.lanes)) as loop:
        here = f.at(sums, loop.index)
        square = [
            [f.read(f.at(here, f.mul(step, i64(size * y + x)))) for x in range(size)]
            for y in range(size)
        ]
        totals = _twice(f, _SUMS[m], square)
        offsets = [
            f.add(loop.index, f.add(f.mul(line, i64(y)), f.mul(columns, i64(x))))
            for y in range(m)
            for x in range(m)
        ]
        row = (bias, [loop.index] * len(totals))
        totals = epilogue.emit(f, totals, row, (residual, offsets))
        for total, offset in zip(totals, offsets, strict=True):
            f.write(total, f.at(result, offset))
    f.ret_void()
    return f.made

"""The matrix product C[M, N] = act(A[M, K]·B[K, N] + bias[N]) + residual[M, N] in f32.

B is packed once into *panels* [⌈N/w⌉, K, w], where w is the width of a tile: what a tile of C needs
of it lies in one piece, in the order of use. Two kernels read the same panels:

- `tile_kernel`, for many rows: tiles of C are kept in registers over a block of the depth; A is
  packed into tiles [⌈M/h⌉, K, h] by a kernel of `pack_rows_kernel`;
- `row_kernel`, for up to `row_kernel_limit` rows: takes A as it is and walks several panels at
  once, as a core reads memory faster in several streams than in one.

Order rule: every element of C is one chain of multiply-adds, depth ascending, from zero. A tile
starts from what C holds after the block of depth before, so that bits depend neither on the
kernel, nor on the blocking, nor on how the extent is split over threads.
"""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.emit import (
    F16,
    F32,
    I1,
    I8,
    I16,
    I32,
    I64,
    POINTER,
    Function,
    KernelText,
    i64,
    like,
)
from gptrs.kernels.isa import Isa
from gptrs.kernels.math import ACTIVATIONS
from gptrs.kernels.packing import WeightType, element_type, panel_count

_BYTES: dict[WeightType, int] = {"f32": 4, "f16": 2, "bf16": 2}
_LINE_BYTES = 64
# How far a panel is read ahead: across the border of a page, where the hardware's prefetch ends.
_AHEAD_BYTES = 4096

_POINTERS = ("a", "panels", "c", "bias", "residual")
_SIZES = ("rows", "depth", "columns", "lda", "ldc", "ldr", "depth_block", "row_block")
MATMUL_WORDS = _POINTERS + _SIZES
"""The argument words of both product kernels, in order.

Leading dimensions (lda of A, ldc of C, ldr of the residual) and sizes count elements. For the tile
kernel ``a`` points to the packed tiles and lda is not read; the two block sizes are read by it
alone. Unused pointers may be anything. C overlaps no operand.
"""


@dataclass(frozen=True)
class Product:
    """What the code of a product depends on besides the vector level."""

    weights: WeightType = "f32"
    bias: bool = False
    activation: str | None = None
    """One of `gptrs.kernels.math.ACTIVATIONS`, applied after the bias."""
    residual: bool = False
    """Whether a matrix is added last."""

    @property
    def label(self) -> str:
        """A part of the names of its kernels."""
        parts = [self.weights, "bias" * self.bias, self.activation, "residual" * self.residual]
        return "_".join(part for part in parts if part)

    @property
    def plain(self) -> bool:
        """Whether nothing follows the product."""
        return not (self.bias or self.activation or self.residual)


class Blocking(NamedTuple):
    """Sizes of the blocks that the tile kernel works on, in elements of the depth and rows."""

    depth_block: int
    row_block: int


# A panel's slice stays in L1 (32 KB and more) as far as tiles of A let it, a row block of A in half
# of L2. Longer slices pay for fewer visits to C.
_L1_BYTES = 32 * 1024
_L2_BYTES = 192 * 1024


def blocking(isa: Isa, rows: int, depth: int, *, most_rows: int | None = None) -> Blocking:
    """Blocks that suit the caches; row blocks of at most ``most_rows``, to have more of them."""
    blocks = -(-4 * isa.tile_columns * depth // _L1_BYTES)
    if rows <= 2 * isa.tile_rows:
        blocks = 1  # memory is the bound, and reads a whole panel faster than pieces of many
    depth_block = max(1, -(-depth // max(1, blocks)))
    fitting = _L2_BYTES // (4 * depth_block)
    fitting = fitting if most_rows is None else min(fitting, most_rows)
    return Blocking(depth_block, max(1, fitting // isa.tile_rows) * isa.tile_rows)


def tile_extent(isa: Isa, rows: int, columns: int, row_block: int) -> int:
    """The extent of `tile_kernel`: panels times row blocks, all panels of a row block in turn."""
    return -(-rows // row_block) * panel_count(isa, columns)


def row_kernel_limit(isa: Isa) -> int:
    """The most rows for which `row_kernel` is the faster one."""
    return 4


def _read_weights(f: Function, weights: WeightType, panel: Any, index: Any) -> Any:
    """One vector of a panel, widened to f32, which is exact."""
    pointer = f.at(panel, index, element_type(weights))
    if weights == "f32":
        return f.read(pointer)
    narrow = f.read(pointer, ir.VectorType(I16, f.isa.lanes))
    if weights == "f16" and f.isa.fma:  # a level that has the one also has the other
        return f.fpext(f.bitcast(narrow, ir.VectorType(F16, f.isa.lanes)), f.vector)
    bits = f.zext(narrow, ir.VectorType(I32, f.isa.lanes))
    if weights == "bf16":
        return f.bitcast(f.shl(bits, like(bits, 16)), f.vector)
    return _widened_half(f, bits)


def _widened_half(f: Function, bits: Any) -> Any:
    """f32 from the 16 bits of float16 without an instruction for it (and LLVM would call one).

    By integers, as multiplying f32 subnormal numbers takes some CPUs a hundred times longer.
    """
    sign = f.shl(f.and_(bits, like(bits, 0x8000)), like(bits, 16))
    size = f.shl(f.and_(bits, like(bits, 0x7FFF)), like(bits, 13))
    bias = like(bits, (127 - 15) << 23)  # between the two formats' exponents
    normal = f.add(size, bias)
    infinite = f.icmp_signed(">=", size, like(bits, 0x7C00 << 13))
    normal = f.select(infinite, f.add(normal, bias), normal)
    # A subnormal one becomes the fraction of 2⁻¹⁴·(1 + fraction).
    raised = f.bitcast(f.or_(size, like(bits, (127 - 14) << 23)), f.vector)
    small = f.fsub(raised, ir.Constant(f.vector, [2.0**-14] * f.isa.lanes))
    subnormal = f.icmp_signed("<", size, like(bits, 0x0400 << 13))
    result = f.select(subnormal, f.bitcast(small, bits.type), normal)
    return f.bitcast(f.or_(result, sign), f.vector)


def _finish(module: Any, isa: Isa, product: Product) -> Any:
    """finish(c, ldc, bias, residual, ldr, rows, columns): what follows the product, in place."""
    parameters = (POINTER, I64, POINTER, POINTER, I64, I64, I64)
    f = Function.part(module, isa, "finish", *parameters)
    c, ldc, bias, residual, ldr, rows, columns = f.arguments
    for row, column, mask in f.pieces(rows, columns):
        place = f.at(c, f.add(f.mul(row, ldc), column))
        value = f.read(place, mask=mask)
        if product.bias:
            value = f.fadd(value, f.read(f.at(bias, column), mask=mask))
        if product.activation is not None:
            value = ACTIVATIONS[product.activation](f, value)
        if product.residual:
            other = f.at(residual, f.add(f.mul(row, ldr), column))
            value = f.fadd(value, f.read(other, mask=mask))
        f.write(value, place, mask)
    f.ret_void()
    return f.made


def _call_finish(
    f: Function, finish: Any, words: dict[str, Any], place: tuple[Any, Any], size: tuple[Any, Any]
) -> None:
    """Call `_finish` for the part of C at ``place`` (row, column) of ``size`` (rows, columns)."""
    row, column = place
    c = f.at(words["c"], f.add(f.mul(row, words["ldc"]), column))
    residual = f.at(words["residual"], f.add(f.mul(row, words["ldr"]), column))
    bias = f.at(words["bias"], column)
    f.call(finish, [c, words["ldc"], bias, residual, words["ldr"], *size])


_TILE = (POINTER, POINTER, POINTER, POINTER, I64, I64, I1)


def _read_ahead(f: Function, weights: WeightType, panel: Any, index: Any) -> None:
    """Ask for one row of a panel, from element ``index`` on."""
    for column in range(0, f.isa.tile_columns, _LINE_BYTES // _BYTES[weights]):
        f.prefetch(f.at(panel, f.add(index, i64(column)), element_type(weights)))


def _tile(module: Any, isa: Isa, weights: WeightType, rows: int) -> Any:
    """tile(a, panel, ahead, c, ldc, depth, fresh): C[rows, w] = (0 if fresh else C) + A·B.

    Meanwhile it asks for as much memory from ``ahead`` on as it reads of the panel.
    """
    f = Function.part(module, isa, f"tile{rows}", *_TILE)
    a, panel, ahead, c, ldc, depth, fresh = f.arguments
    lanes, vectors = isa.lanes, isa.tile_vectors
    places = [
        f.at(f.at(c, f.mul(ldc, i64(row))), i64(vector * lanes))
        for row in range(rows)
        for vector in range(vectors)
    ]
    for place in places[:: max(1, _LINE_BYTES // (4 * lanes))]:
        f.prefetch(place)
    zero = ir.Constant(f.vector, [0.0] * lanes)
    entry, resume, start = f.block, f.append_basic_block("resume"), f.append_basic_block("start")
    f.cbranch(fresh, start, resume)
    f.position_at_end(resume)
    held = [f.read(place) for place in places]
    f.branch(start)
    f.position_at_end(start)
    sums = [f.phi(f.vector) for _ in places]
    for total, value in zip(sums, held, strict=True):
        total.add_incoming(zero, entry)
        total.add_incoming(value, resume)
    with f.loop(i64(0), depth, carried=sums) as loop:
        at = f.mul(loop.index, i64(isa.tile_columns))
        right = [
            _read_weights(f, weights, panel, f.add(at, i64(vector * lanes)))
            for vector in range(vectors)
        ]
        _read_ahead(f, weights, ahead, at)
        at = f.mul(loop.index, i64(isa.tile_rows))
        for row in range(rows):
            left = f.splat(f.read(f.at(a, f.add(at, i64(row))), F32))
            for vector in range(vectors):
                i = row * vectors + vector
                loop.values[i] = f.multiply_add(left, right[vector], loop.values[i])
    for total, place in zip(loop.values, places, strict=True):
        f.write(total, place)
    f.ret_void()
    return f.made


def _copy(module: Any, isa: Isa) -> Any:
    """copy(source, lds, destination, ldd, rows, columns)."""
    f = Function.part(module, isa, "copy", POINTER, I64, POINTER, I64, I64, I64)
    source, lds, destination, ldd, rows, columns = f.arguments
    for row, column, mask in f.pieces(rows, columns):
        value = f.read(f.at(source, f.add(f.mul(row, lds), column)), mask=mask)
        f.write(value, f.at(destination, f.add(f.mul(row, ldd), column)), mask)
    f.ret_void()
    return f.made


def _edge(module: Any, isa: Isa, whole: Any) -> Any:
    """edge(as tile, rows, columns): a tile that C does not cover, computed beside it."""
    f = Function.part(module, isa, "edge", *_TILE, I64, I64)
    a, panel, ahead, c, ldc, depth, fresh, rows, columns = f.arguments
    copy, width = _copy(module, isa), i64(isa.tile_columns)
    beside = f.alloca(ir.ArrayType(F32, isa.tile_rows * isa.tile_columns))
    with f.if_then(f.not_(fresh)):
        f.call(copy, [c, ldc, beside, width, rows, columns])
    f.call(whole, [a, panel, ahead, beside, width, depth, fresh, rows])
    f.call(copy, [beside, width, c, ldc, rows, columns])
    f.ret_void()
    return f.made


def _whole(module: Any, isa: Isa, weights: WeightType) -> Any:
    """whole(as tile, rows): the tile function for so many rows."""
    tiles = [_tile(module, isa, weights, rows) for rows in range(1, isa.tile_rows + 1)]
    f = Function.part(module, isa, "whole", *_TILE, I64)
    *arguments, rows = f.arguments
    f.choose(rows, [(i + 1, tile, arguments) for i, tile in enumerate(tiles)])
    f.ret_void()
    return f.made


def tile_kernel(isa: Isa, product: Product) -> KernelText:
    """The product of packed rows and panels. Words: `MATMUL_WORDS`; extent: `tile_extent`.

    ``row_block`` is a multiple of the tile's rows, ``depth_block`` at least 1.
    """
    name = f"matmul_tiles_{product.label}"
    module = ir.Module(f"{name} {isa.name}")
    whole = _whole(module, isa, product.weights)
    edge = _edge(module, isa, whole)
    finish = None if product.plain else _finish(module, isa, product)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.words(address, _POINTERS, _SIZES)
    width, height = i64(isa.tile_columns), i64(isa.tile_rows)
    panels = f.ceiling(w["columns"], width)
    panels = f.select(f.icmp_signed(">", panels, i64(0)), panels, i64(1))  # it divides

    def tile(row_start: Any, row: Any, row_end: Any, panel: Any, k: Any, depth: Any) -> None:
        rows = f.least(f.sub(row_end, row), height)
        column = f.mul(panel, width)
        columns = f.least(f.sub(w["columns"], column), width)
        a = f.at(w["a"], f.add(f.mul(row, w["depth"]), f.mul(k, height)))
        b = f.mul(f.add(f.mul(panel, w["depth"]), k), width)
        b = f.at(w["panels"], b, element_type(product.weights))
        c = f.at(w["c"], f.add(f.mul(row, w["ldc"]), column))
        # Other tiles of the panel find it in a cache, and fetch the next one.
        further = f.at(b, i64(_AHEAD_BYTES), I8)
        following = f.at(b, f.mul(w["depth"], width), element_type(product.weights))
        ahead = f.select(f.icmp_signed("==", row, row_start), further, following)
        given = [a, b, ahead, c, w["ldc"], depth, f.icmp_signed("==", k, i64(0)), rows]
        with f.if_else(f.icmp_signed("==", columns, width), likely=True) as (covered, cut):
            with covered:
                f.call(whole, given)
            with cut:
                f.call(edge, [*given, columns])
        if finish is not None:
            with f.if_then(f.icmp_signed(">=", f.add(k, depth), w["depth"])):
                _call_finish(f, finish, w, (row, column), (rows, columns))

    with f.loop(f.sdiv(first, panels), f.ceiling(last, panels)) as block:
        before = f.mul(block.index, panels)
        start = f.sub(first, before)
        start = f.select(f.icmp_signed(">", start, i64(0)), start, i64(0))
        stop = f.least(f.sub(last, before), panels)
        top = f.mul(block.index, w["row_block"])
        bottom = f.least(f.add(top, w["row_block"]), w["rows"])
        # Without depth there is one block all the same, which sets C to zero.
        depth = f.select(f.icmp_signed(">", w["depth"], i64(1)), w["depth"], i64(1))
        with f.loop(i64(0), depth, w["depth_block"]) as k:
            length = f.least(f.sub(w["depth"], k.index), w["depth_block"])
            with (
                f.loop(start, stop) as panel,
                f.loop(top, bottom, height) as row,
            ):
                tile(top, row.index, bottom, panel.index, k.index, length)
    f.ret_void()
    return KernelText(str(module), name)


def _streams(isa: Isa, rows: int) -> list[int]:
    """How many panels are walked at once, for the bulk and for what is left."""
    free = isa.registers - 2
    most = 8
    while most > 1 and most * rows * isa.tile_vectors > free:
        most -= 2 if most > 2 else 1
    return sorted({most, max(1, most // 2), 1}, reverse=True)


def _walk(module: Any, isa: Isa, product: Product, rows: int) -> Any:
    """walk(words, row, first, last): ``rows`` rows of C from ``row`` on, panels of the range."""
    f = Function.part(module, isa, f"walk{rows}", I64, I64, I64, I64)
    address, top, first, last = f.arguments
    w = f.words(address, _POINTERS, _SIZES)
    a = [f.at(w["a"], f.mul(f.add(top, i64(row)), w["lda"])) for row in range(rows)]
    for streams in _streams(isa, rows):
        whole = f.sub(last, f.srem(f.sub(last, first), i64(streams)))
        with f.loop(first, whole, i64(streams)) as panel:
            _dots(f, product.weights, w, a, (top, panel.index), streams)
        first = whole
    f.ret_void()
    return f.made


def _dots(
    f: Function,
    weights: WeightType,
    w: dict[str, Any],
    a: list[Any],
    place: tuple[Any, Any],
    streams: int,
) -> None:
    """Rows of C at ``place`` (row, panel) from ``streams`` panels, read side by side."""
    isa, (top, panel) = f.isa, place
    lanes, vectors, width = isa.lanes, isa.tile_vectors, isa.tile_columns
    size = f.mul(w["depth"], i64(width))
    panels = [
        f.at(w["panels"], f.mul(f.add(panel, i64(i)), size), element_type(weights))
        for i in range(streams)
    ]
    zero = ir.Constant(f.vector, [0.0] * lanes)
    # sums[row, stream, vector]
    with f.loop(i64(0), w["depth"], carried=[zero] * (len(a) * streams * vectors)) as loop:
        left = [f.splat(f.read(f.at(row, loop.index), F32)) for row in a]
        at = f.mul(loop.index, i64(width))
        if streams == 1:  # several keep the memory busy, and prefetching disturbs them
            _read_ahead(f, weights, f.at(panels[0], i64(_AHEAD_BYTES), I8), at)
        for i in range(streams * vectors):
            stream, vector = divmod(i, vectors)
            index = f.add(at, i64(vector * lanes))
            right = _read_weights(f, weights, panels[stream], index)
            for row in range(len(a)):
                j = row * streams * vectors + i
                loop.values[j] = f.multiply_add(left[row], right, loop.values[j])
    column = f.mul(panel, i64(width))
    for j, total in enumerate(loop.values):
        row, i = divmod(j, streams * vectors)
        here = f.add(column, i64(i * lanes))
        c = f.at(w["c"], f.add(f.mul(f.add(top, i64(row)), w["ldc"]), here))
        f.write(total, c, f.mask(f.sub(w["columns"], here)))


def row_kernel(isa: Isa, product: Product) -> KernelText:
    """The product for few rows. Words: `MATMUL_WORDS`; extent: `panel_count`."""
    name = f"matmul_rows_{product.label}"
    module = ir.Module(f"{name} {isa.name}")
    most = row_kernel_limit(isa)
    walks = [_walk(module, isa, product, rows) for rows in range(1, most + 1)]
    finish = None if product.plain else _finish(module, isa, product)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.words(address, _POINTERS, _SIZES)
    with f.loop(i64(0), w["rows"], i64(most)) as top:
        rows = f.least(f.sub(w["rows"], top.index), i64(most))
        arguments = [address, top.index, first, last]
        f.choose(rows, [(i + 1, walk, arguments) for i, walk in enumerate(walks)])
    if finish is not None:
        column = f.mul(first, i64(isa.tile_columns))
        end = f.least(f.mul(last, i64(isa.tile_columns)), w["columns"])
        _call_finish(f, finish, w, (i64(0), column), (w["rows"], f.sub(end, column)))
    f.ret_void()
    return KernelText(str(module), name)

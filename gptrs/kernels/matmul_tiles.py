"""The matrix product for many rows: tiles of C in registers, over blocks that suit the caches."""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.emit import F32, I1, I8, I64, POINTER, Function, KernelText, i64
from gptrs.kernels.isa import KB, Isa
from gptrs.kernels.matmul import Finish, Product, matmul_words
from gptrs.kernels.matmul_weights import (
    LINE_BYTES,
    WeightType,
    read_ahead,
    read_weights,
    row_bytes,
)
from gptrs.kernels.packing import panel_count


class Blocking(NamedTuple):
    """Sizes of what the tile kernel works on."""

    depth_block: int
    """Elements of the depth."""
    height: int
    """Rows of C in a tile: at most ``tile_rows``."""
    row_blocks: int
    """Tiles are dealt to so many row blocks as evenly as can be: at most as many as there are."""


_A_BYTES = 384 * KB  # of a row block, which stays in L2 beside a part of a panel


def blocking(isa: Isa, rows: int, depth: int, *, row_blocks: int = 1) -> Blocking:
    """Blocks that suit the caches; at least so many row blocks, if there are tiles for them.

    Each row block reads all panels, so that more of them pay only where panels are too few for all
    threads.
    """
    most = isa.panel_bytes // (4 * isa.tile_columns)
    depth_block = max(1, -(-depth // max(1, -(-depth // most))))
    tiles = -(-rows // isa.tile_rows)
    height = max(1, -(-rows // max(1, tiles)))  # 8 rows are two tiles of 4, and not of 6 and 2
    fitting = max(1, _A_BYTES // (4 * depth_block * isa.tile_rows))
    return Blocking(depth_block, height, max(-(-tiles // fitting), min(row_blocks, tiles)))


def tile_extent(isa: Isa, columns: int, blocks: Blocking) -> int:
    """The extent of `tile_kernel`: panels times row blocks, all panels of a row block in turn."""
    return blocks.row_blocks * panel_count(isa, columns)


_TILE = (POINTER, POINTER, POINTER, I64, POINTER, I64, I64, I1)


def _tile(module: Any, isa: Isa, weights: WeightType, rows: int) -> Any:
    """tile(a, panel, ahead, step, c, ldc, depth, fresh): C[rows, w] = (0 if fresh else C) + A·B.

    Meanwhile it asks for memory from ``ahead`` on, ``step`` bytes for each row of the panel.
    """
    f = Function.part(module, isa, f"tile{rows}", *_TILE)
    a, panel, ahead, step, c, ldc, depth, fresh = f.arguments
    lanes, vectors = isa.lanes, isa.tile_vectors
    places = [
        f.at(f.at(c, f.mul(ldc, i64(row))), i64(vector * lanes))
        for row in range(rows)
        for vector in range(vectors)
    ]
    for place in places[:: max(1, LINE_BYTES // (4 * lanes))]:
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
    with f.loop(i64(0), depth, carried=[*sums, ahead]) as loop:
        *sums, ahead = loop.values
        at = f.mul(loop.index, i64(isa.tile_columns))
        right = [
            read_weights(f, weights, panel, f.add(at, i64(vector * lanes)))
            for vector in range(vectors)
        ]
        read_ahead(f, weights, ahead)
        at = f.mul(loop.index, i64(isa.tile_rows))
        for row in range(rows):
            left = f.splat(f.read(f.at(a, f.add(at, i64(row))), F32))
            for vector in range(vectors):
                i = row * vectors + vector
                sums[i] = f.multiply_add(left, right[vector], sums[i])
        loop.values = [*sums, f.at(ahead, step, I8)]
    for total, place in zip(loop.values[:-1], places, strict=True):
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
    *given, c, ldc, depth, fresh, rows, columns = f.arguments
    copy, width = _copy(module, isa), i64(isa.tile_columns)
    beside = f.alloca(ir.ArrayType(F32, isa.tile_rows * isa.tile_columns))
    with f.if_then(f.not_(fresh)):
        f.call(copy, [c, ldc, beside, width, rows, columns])
    f.call(whole, [*given, beside, width, depth, fresh, rows])
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
    """The product of packed rows and panels.

    Words: `gptrs.kernels.matmul.MATMUL_WORDS`, the last of them a `Blocking`; extent:
    `tile_extent`. Each tile of a panel asks for its share of the next panel.
    """
    name = f"matmul_tiles_{product.label}"
    module = ir.Module(f"{name} {isa.name}")
    whole = _whole(module, isa, product.weights)
    edge = _edge(module, isa, whole)
    finish = Finish(module, isa, product)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = matmul_words(f, address)
    width, height, line = i64(isa.tile_columns), w["height"], i64(row_bytes(isa, product.weights))
    panels = f.ceiling(w["columns"], width)
    panels = f.select(f.icmp_signed(">", panels, i64(0)), panels, i64(1))  # it divides
    tiles, row_blocks = f.ceiling(w["rows"], height), w["row_blocks"]

    def tile(number: Any, panel: Any, share: tuple[Any, Any], k: Any, depth: Any) -> None:
        place, step = share
        row, column = f.mul(number, height), f.mul(panel, width)
        rows = f.least(f.sub(w["rows"], row), height)
        columns = f.least(f.sub(w["columns"], column), width)
        a = f.at(w["a"], f.mul(f.add(f.mul(number, w["depth"]), k), i64(isa.tile_rows)))
        b = f.at(w["panels"], f.mul(f.add(f.mul(panel, w["depth"]), k), line), I8)
        c = f.at(w["c"], f.add(f.mul(row, w["ldc"]), column))
        ahead = f.add(f.mul(w["depth"], line), f.mul(f.mul(place, step), depth))
        fresh = f.icmp_signed("==", k, i64(0))
        given = [a, b, f.at(b, ahead, I8), step, c, w["ldc"], depth, fresh, rows]
        with f.if_else(f.icmp_signed("==", columns, width), likely=True) as (covered, cut):
            with covered:
                f.call(whole, given)
            with cut:
                f.call(edge, [*given, columns])
        with f.if_then(f.icmp_signed(">=", f.add(k, depth), w["depth"])):
            finish.emit(f, w, (row, column), (rows, columns))

    with f.loop(f.sdiv(first, panels), f.ceiling(last, panels)) as block:
        before = f.mul(block.index, panels)
        start = f.sub(first, before)
        start = f.select(f.icmp_signed(">", start, i64(0)), start, i64(0))
        stop = f.least(f.sub(last, before), panels)
        top, bottom = (f.sdiv(f.mul(f.add(block.index, i64(i)), tiles), row_blocks) for i in (0, 1))
        step = f.ceiling(line, f.sub(bottom, top))
        # Without depth there is one block all the same, which sets C to zero.
        depth = f.select(f.icmp_signed(">", w["depth"], i64(1)), w["depth"], i64(1))
        with f.loop(i64(0), depth, w["depth_block"]) as k:
            length = f.least(f.sub(w["depth"], k.index), w["depth_block"])
            with f.loop(start, stop) as panel, f.loop(top, bottom) as number:
                share = f.sub(number.index, top), step
                tile(number.index, panel.index, share, k.index, length)
    f.ret_void()
    return KernelText(str(module), name)

"""The matrix product for many rows: tiles of C in registers, over blocks that suit the caches."""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.coded import DEPTH_STEP, Container, skipped, unpack_part
from gptrs.kernels.emit import I8, Function, KernelText, i64
from gptrs.kernels.isa import KB, Isa
from gptrs.kernels.matmul import Finish, Product, matmul_words
from gptrs.kernels.matmul_tile import TileFunctions, decoding_rows, tile_functions
from gptrs.kernels.matmul_weights import row_bytes
from gptrs.kernels.packing import panel_count

_DECODED_EACH = 3
"""With so many tiles of a row block at most, each of them decodes panels as it reads them; with
more, a block of a panel is decoded once for all."""


class Blocking(NamedTuple):
    """Sizes of what the tile kernel works on."""

    depth_block: int
    """Elements of the depth."""
    height: int
    """Rows of C in a tile: at most ``tile_rows``."""
    row_blocks: int
    """Tiles are dealt to so many row blocks as evenly as can be: at most as many as there are."""


_A_BYTES = 384 * KB  # of a row block, which stays in L2 beside a part of a panel


def blocking(
    isa: Isa, rows: int, depth: int, *, row_blocks: int = 1, coded: bool = False
) -> Blocking:
    """Blocks that suit the caches; at least so many row blocks, if there are tiles for them.

    Each row block reads all panels, so that more of them pay only where panels are too few for all
    threads.
    """
    most = _most_depth(isa)
    steps = -(-depth // max(1, -(-depth // most) * DEPTH_STEP))
    depth_block = max(1, steps) * DEPTH_STEP
    decoding = -(-rows // decoding_rows(isa))
    tiles = decoding if coded and decoding <= _DECODED_EACH else -(-rows // isa.tile_rows)
    height = max(1, -(-rows // max(1, tiles)))  # 8 rows are two tiles of 4, and not of 6 and 2
    fitting = max(1, _A_BYTES // (4 * depth_block * isa.tile_rows))
    return Blocking(depth_block, height, max(-(-tiles // fitting), min(row_blocks, tiles)))


def _most_depth(isa: Isa) -> int:
    """Rows of a panel in a block."""
    return isa.panel_bytes // (4 * isa.tile_columns)


def tile_extent(isa: Isa, columns: int, blocks: Blocking) -> int:
    """The extent of `tile_kernel`: panels times row blocks, all panels of a row block in turn."""
    return blocks.row_blocks * panel_count(isa, columns)


def tile_kernel(isa: Isa, product: Product) -> KernelText:
    """The product of packed rows and panels.

    Words: `gptrs.kernels.matmul.MATMUL_WORDS`, the last of them a `Blocking`; extent:
    `tile_extent`. Each tile of a panel asks for its share of the next panel.
    """
    name = f"matmul_tiles_{product.label}"
    module = ir.Module(f"{name} {isa.name}")
    functions, finish = tile_functions(module, isa, product), Finish(module, isa, product)
    unpack = unpack_part(module, isa, product.weights) if product.coded else None
    decodes = product.coded and isa.lookup
    decoding = tile_functions(module, isa, product, decode=True) if decodes else None
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = matmul_words(f, address)
    start, width, height = w["panels"], i64(isa.tile_columns), w["height"]
    line = i64(row_bytes(isa, product.weights))
    container = Container(f, product.weights, start) if product.coded else None
    if container is not None:
        start, line = container.panels, f.select(container.coded, container.row_bytes, line)
    beside = f.room(_most_depth(isa) * isa.tile_columns) if product.coded else None
    panels = f.ceiling(w["columns"], width)
    panels = f.select(f.icmp_signed(">", panels, i64(0)), panels, i64(1))  # it divides
    tiles, row_blocks = f.ceiling(w["rows"], height), w["row_blocks"]

    with f.loop(f.sdiv(first, panels), f.ceiling(last, panels)) as block:
        before = f.mul(block.index, panels)
        begin = f.positive(f.sub(first, before))
        stop = f.least(f.sub(last, before), panels)
        top, bottom = (f.sdiv(f.mul(f.add(block.index, i64(i)), tiles), row_blocks) for i in (0, 1))
        count = f.sub(bottom, top)
        step = f.ceiling(line, count)
        # Without depth there is one block all the same, which sets C to zero.
        depth = f.select(f.icmp_signed(">", w["depth"], i64(1)), w["depth"], i64(1))
        with (
            f.loop(i64(0), depth, w["depth_block"]) as k,
            f.loop(begin, stop) as panel,
        ):
            length = f.least(f.sub(w["depth"], k.index), w["depth_block"])
            lines = f.add(f.mul(panel.index, w["depth"]), k.index)
            here = f.at(start, f.mul(lines, line), I8)
            following = f.at(here, f.mul(w["depth"], line), I8)
            column = f.mul(panel.index, width)
            columns = f.least(f.sub(w["columns"], column), width)

            def walk(functions: TileFunctions, weights: Any, *coded: Any) -> None:
                with f.loop(top, bottom) as loop:
                    row = f.mul(loop.index, height)
                    rows = f.least(f.sub(w["rows"], row), height)
                    at = f.add(f.mul(loop.index, w["depth"]), k.index)
                    a = f.at(w["a"], f.mul(at, i64(isa.tile_rows)))
                    share = f.mul(f.mul(f.sub(loop.index, top), step), length)
                    ahead = f.at(following, share, I8)
                    c = f.at(w["c"], f.add(f.mul(row, w["ldc"]), column))
                    fresh = f.icmp_signed("==", k.index, i64(0))
                    given = [a, weights, ahead, step, c, w["ldc"], length, fresh, *coded, rows]
                    covered = f.icmp_signed("==", columns, width)
                    with f.if_else(covered, likely=True) as (inside, cut):
                        with inside:
                            f.call(functions.whole, given)
                        with cut:
                            f.call(functions.edge, [*given, columns])
                    ended = f.icmp_signed(">=", f.add(k.index, length), w["depth"])
                    with f.if_then(ended):
                        finish.emit(f, w, (row, column), (rows, columns))

            def once() -> None:
                where = w["panels"], w["depth"], panel.index, k.index, length
                f.call(unpack, [*where, beside])
                walk(functions, beside)

            if container is None:
                walk(functions, here)
            elif decoding is None:
                once()
            else:
                few = f.icmp_signed("<=", count, i64(_DECODED_EACH))
                few = f.and_(few, f.icmp_signed("<=", height, i64(decoding_rows(isa))))
                with f.if_else(f.and_(container.coded, few)) as (each, other):
                    with each:
                        place = f.mul(k.index, width)
                        entry = skipped(f, container.exceptions(panel.index), place)
                        walk(decoding, here, w["panels"], entry, place)
                    with other:
                        once()
    f.ret_void()
    return KernelText(str(module), name)

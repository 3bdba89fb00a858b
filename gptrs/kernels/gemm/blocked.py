"""The matrix product for many rows: tiles of C in registers, over blocks that suit the caches."""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F64, I1, I8, I64, POINTER, Function, KernelText, i64
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.gemm.microkernel import TileFunctions, Tiles
from gptrs.kernels.gemm.packing import panel_count
from gptrs.kernels.gemm.product import (
    FIRST_BLOCK,
    DepthBlock,
    Finish,
    Product,
    depth_blocks,
    is_given,
    matmul_words,
)
from gptrs.kernels.gemm.weight_elements import AHEAD, row_bytes
from gptrs.kernels.weight_compression.decoder import decoding_rows
from gptrs.kernels.weight_compression.format import DEPTH_STEP, Container, skipped, unpack_part


class Blocking(NamedTuple):
    """Sizes of what the tile kernel works on."""

    depth_block: int
    """Elements of the depth."""
    height: int
    """Rows of C in a tile: at most ``tile_rows``."""
    row_blocks: int
    """Tiles are dealt to so many row blocks as evenly as can be: at most as many as there are."""


def _row_block_bytes(isa: Isa) -> int:
    """The size of a row block of A: what stays in L2 beside a part of a panel. Levels with large
    panels need A so seldom that more of it may come from L3, and each row block decodes panels."""
    return max(384 * KB, 7 * isa.panel_bytes)


def blocking(
    isa: Isa, rows: int, depth: int, *, row_blocks: int = 1, coded: bool = False
) -> Blocking:
    """Blocks that suit the caches; at least so many row blocks, if there are tiles for them.

    Each row block reads all panels, so that more of them pay only where panels are too few for all
    threads.
    """
    most, depth = _most_depth(isa), min(depth, FIRST_BLOCK)  # the others are shorter
    steps = -(-depth // max(1, -(-depth // most) * DEPTH_STEP))
    depth_block = max(1, steps) * DEPTH_STEP
    tiles = -(-rows // (decoding_rows(isa) if coded else isa.tile_rows))
    height = max(1, -(-rows // max(1, tiles)))  # 8 rows are two tiles of 4, and not of 6 and 2
    fitting = max(1, _row_block_bytes(isa) // (4 * depth_block * isa.tile_rows))
    return Blocking(depth_block, height, max(-(-tiles // fitting), min(row_blocks, tiles)))


def _most_depth(isa: Isa) -> int:
    """Rows of a panel in a block."""
    return isa.panel_bytes // (4 * isa.tile_columns)


def tile_extent(isa: Isa, columns: int, blocks: Blocking) -> int:
    """The extent of `tile_kernel`: panels times row blocks, all panels of a row block in turn."""
    return blocks.row_blocks * panel_count(isa, columns)


def _add_up(module: Any, isa: Isa) -> Any:
    """add_up(c, ldc, rows, columns, totals, ldt, first, last): totals = (0 if first else totals) +
    C, in f64; if it is the last time, C is what they are then."""
    sizes = (I64, I64, I64)
    f = Function.part(module, isa, "add_up", POINTER, *sizes, POINTER, I64, I1, I1)
    c, ldc, rows, columns, totals, ldt, first, last = f.arguments
    wide: Any = ir.VectorType(F64, isa.lanes)
    for row, column, mask in f.pieces(rows, columns):
        place = f.at(c, f.add(f.mul(row, ldc), column))
        total = f.at(totals, f.add(f.mul(row, ldt), column), F64)
        value, before = f.fpext(f.read(place, mask=mask), wide), f.block
        with f.if_then(f.not_(first)):
            more, end = f.fadd(f.read(total, wide, mask), value), f.block
        both = f.phi(wide)
        both.add_incoming(value, before)
        both.add_incoming(more, end)
        with f.if_else(last) as (done, other):
            with done:
                f.write(f.fptrunc(both, f.vector), place, mask)
            with other:
                f.write(both, total, mask)
    f.ret_void()
    return f.made


def tile_kernel(isa: Isa, product: Product) -> KernelText:
    """The product of packed rows and panels.

    Words: `gptrs.kernels.gemm.product.MATMUL_WORDS`, the last of them a `Blocking`; extent:
    `tile_extent`. Each tile of a panel asks for its share of the next panel.
    """
    kernel = _Kernel(isa, product)
    kernel.emit()
    return KernelText(str(kernel.module), kernel.name)


class _Kernel:
    """The tile kernel, as it is being written."""

    def __init__(self, isa: Isa, product: Product) -> None:
        self.name = f"matmul_tiles_{product.label}"
        self.module: Any = ir.Module(f"{self.name} {isa.name}")
        module, weights = self.module, product.weights
        tiles, self._finish = Tiles(module, isa, product), Finish(module, isa, product)
        self._stored = tiles.functions("stored")
        self._add_up = _add_up(module, isa)
        self._unpack = unpack_part(module, isa, weights) if product.coded else None
        self._decodes = product.coded and isa.lookup
        if self._decodes:
            self._decoded, self._kept = tiles.functions("decoded"), tiles.functions("kept")
        self._f = f = Function.kernel(module, isa, self.name)
        self._words = w = matmul_words(f, f.arguments[0])
        self._width, self._line = i64(isa.tile_columns), i64(row_bytes(isa, weights))
        self._start, self._container = w["panels"], None
        self._block = DepthBlock(None, None, [])  # the one that is being written
        if product.coded:
            self._container = Container(f, weights, w["panels"])
            self._start = self._container.panels
            held = self._container.row_bytes
            self._line = f.select(self._container.coded, held, self._line)
            self._beside = f.room(_most_depth(isa) * isa.tile_columns)

    def emit(self) -> None:
        """Row blocks, blocks of the depth in the order of sums, those that suit caches, panels."""
        f, w = self._f, self._words
        _, first, last = f.arguments
        panels = f.ceiling(w["columns"], self._width)
        panels = f.select(f.icmp_signed(">", panels, i64(0)), panels, i64(1))  # it divides
        tiles, row_blocks = f.ceiling(w["rows"], w["height"]), w["row_blocks"]
        with f.loop(f.sdiv(first, panels), f.ceiling(last, panels)) as block:
            before = f.mul(block.index, panels)
            begin, end = f.positive(f.sub(first, before)), f.least(f.sub(last, before), panels)
            edges = [f.mul(f.add(block.index, i64(i)), tiles) for i in (0, 1)]
            top, bottom = (f.sdiv(edge, row_blocks) for edge in edges)
            with depth_blocks(f, w["depth"]) as self._block:
                # Without depth there is one turn all the same, which sets C to zero.
                some = f.add(self._block.begin, i64(1))
                stop = f.select(f.icmp_signed("<", some, self._block.end), self._block.end, some)
                with f.loop(self._block.begin, stop, w["depth_block"]) as k:
                    length = f.least(f.sub(self._block.end, k.index), w["depth_block"])
                    with f.loop(begin, end) as panel:
                        opens = f.icmp_signed("==", panel.index, begin)
                        self._panel(panel.index, (k.index, length), (top, bottom), opens)
        f.ret_void()

    def _panel(
        self, panel: Any, depth: tuple[Any, Any], numbers: tuple[Any, Any], opens: Any
    ) -> None:
        """The tiles of these ``numbers``, first and last, of a block of a panel, which may be the
        first of all (``opens``).

        Each tile asks for its share of the next panel. What nobody has asked for, a panel's first
        tile asks for as it goes; so does an only one, as the next panel may be another thread's. A
        panel that was unpacked has been read already.
        """
        f, w, (k, length), (top, bottom) = self._f, self._words, depth, numbers
        here = f.mul(f.add(f.mul(panel, w["depth"]), k), self._line)
        here = f.at(self._start, here, I8)
        following = f.at(here, f.mul(w["depth"], self._line), I8)
        tiles = f.sub(bottom, top)
        step = f.ceiling(self._line, tiles)
        unasked = f.or_(opens, f.icmp_signed("==", tiles, i64(1)))

        def walk(functions: TileFunctions, first: Any, last: Any, *weights: Any) -> None:
            with f.loop(first, last) as number:
                share = f.mul(f.mul(f.sub(number.index, top), step), length)
                ahead, pace = f.at(following, share, I8), step
                if weights[0] is here:
                    itself = f.and_(unasked, f.icmp_signed("==", number.index, top))
                    ahead = f.select(itself, f.at(here, i64(AHEAD), I8), ahead)
                    pace = f.select(itself, self._line, pace)
                self._tile(functions, number.index, panel, depth, (ahead, pace), weights)

        def walk_unpacked() -> None:
            where = w["panels"], w["depth"], panel, k, length
            f.call(self._unpack, [*where, self._beside])
            walk(self._stored, top, bottom, self._beside)

        if self._container is None:
            walk(self._stored, top, bottom, here)
        elif not self._decodes:
            walk_unpacked()
        else:
            low = f.icmp_signed("<=", w["height"], i64(decoding_rows(f.isa)))
            with f.if_else(f.and_(self._container.coded, low)) as (coded, other):
                with coded:
                    place, second = f.mul(k, self._width), f.add(top, i64(1))
                    entry = skipped(f, self._container.exceptions(panel), place)
                    given = here, w["panels"], entry, place
                    with f.if_else(f.icmp_signed("==", second, bottom)) as (alone, several):
                        with alone:
                            walk(self._decoded, top, second, *given)
                        with several:
                            walk(self._kept, top, second, *given, self._beside)
                            walk(self._stored, second, bottom, self._beside)
                with other:
                    walk_unpacked()

    def _tile(
        self,
        functions: TileFunctions,
        number: Any,
        panel: Any,
        depth: tuple[Any, Any],
        ahead: tuple[Any, Any],
        weights: Sequence[Any],
    ) -> None:
        """A tile, and what follows the product if the depth ends."""
        f, w, (k, length) = self._f, self._words, depth
        row, column = f.mul(number, w["height"]), f.mul(panel, self._width)
        rows = f.least(f.sub(w["rows"], row), w["height"])
        columns = f.least(f.sub(w["columns"], column), self._width)
        a = f.mul(f.add(f.mul(number, w["depth"]), k), i64(f.isa.tile_rows))
        c = f.at(w["c"], f.add(f.mul(row, w["ldc"]), column))
        fresh, (source, *coded) = f.icmp_signed("==", k, self._block.begin), weights
        given = [f.at(w["a"], a), source, *ahead, c, w["ldc"], length, fresh, *coded, rows]
        covered = f.icmp_signed("==", columns, self._width)
        with f.if_else(covered, likely=True) as (inside, cut):
            with inside:
                f.call(functions.whole, given)
            with cut:
                f.call(functions.edge, [*given, columns])
        reached = f.add(k, length)
        closes = f.icmp_signed(">=", reached, self._block.end)
        with f.if_then(f.and_(closes, is_given(f, w["totals"]))):
            totals = f.at(w["totals"], f.add(f.mul(row, w["columns"]), column), F64)
            ends = [f.icmp_signed("==", self._block.begin, i64(0))]
            ends.append(f.icmp_signed("==", self._block.end, w["depth"]))
            f.call(self._add_up, [c, w["ldc"], rows, columns, totals, w["columns"], *ends])
        with f.if_then(f.icmp_signed(">=", reached, w["depth"])):
            self._finish.emit(f, w, (row, column), (rows, columns))

"""Blocked GEMM: the matrix product for many rows, with tiles of C in registers and cache blocking.

    for row block of A:                         # extent: threads split (row block, panel)
        for depth block of the order rule:      # 4096, then 512 each (`product`)
            for depth block of the cache:       # so that a block of a panel stays in L1 or L2
                for panel of B:                 # extent
                    decompress the block of the panel (if it is compressed and not decoded in tiles)
                    or make pairs of bf16 of it (if A has them)
                    for tile of A in the row block:
                        microkernel             # C[h, w] += A tile · panel block
                        at the end of a depth block: totals (f64) += C
                        at the end of the depth: epilogue (`product`), in L1

    A: packed tiles [⌈M/h⌉, K, h], a row block in L2      B: panels [⌈N/w⌉, K, w], streamed
    C: [M, N], a tile in registers                        totals: f64 [M, N] if K > 4096

The row block of A stays in L2 beside the block of a panel (`Blocking`); each tile prefetches its
share of the next panel into L2. Row blocks also split the work where panels are too few for all
threads. The kernel's bits do not depend on the blocking (see `gptrs.kernels.gemm.product`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F64, I8, Function, KernelText, i64
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.gemm.bf16_pairs import TAIL, stay_normal, write_exponent
from gptrs.kernels.gemm.microkernel import TileFunctions, Tiles
from gptrs.kernels.gemm.number_types import BF16_PAIRS
from gptrs.kernels.gemm.packing import panel_count
from gptrs.kernels.gemm.product import (
    FIRST_BLOCK,
    DepthBlock,
    Finish,
    Product,
    depth_blocks,
    gemm_arguments,
    is_given,
    prefetch_rows,
)
from gptrs.kernels.gemm.register_tile import tile_function
from gptrs.kernels.gemm.tile_sums import add_up_function
from gptrs.kernels.gemm.weight_elements import AHEAD, row_bytes
from gptrs.kernels.weight_compression.decoder import decoder_rows
from gptrs.kernels.weight_compression.format import (
    DEPTH_STEP,
    Container,
    copy_rows,
    decompress_function,
    skip_exceptions,
)


class Blocking(NamedTuple):
    """Block sizes of the blocked product."""

    depth_block: int
    """Elements of the depth."""
    height: int
    """Rows of C in a tile: at most ``tile_rows``."""
    row_blocks: int
    """Tiles are dealt to so many row blocks as evenly as can be: at most as many as there are."""


def _row_block_bytes(isa: Isa) -> int:
    """The size of a row block of A, which stays in L2 beside a block of a panel.

    Levels with large panels read A so seldom that more of it may come from L3; and each row block
    decodes the panels again.
    """
    return max(384 * KB, 7 * isa.panel_bytes)


def blocking(
    isa: Isa, rows: int, depth: int, *, row_blocks: int = 1, compressed: bool = False
) -> Blocking:
    """Blocks that suit the caches; at least so many row blocks, if there are tiles for them.

    Each row block reads all panels, so that more of them pay only where panels are too few for all
    threads.
    """
    most, depth = _most_depth(isa), min(depth, FIRST_BLOCK)  # the others are shorter
    steps = -(-depth // max(1, -(-depth // most) * DEPTH_STEP))
    depth_block = max(1, steps) * DEPTH_STEP
    tiles = -(-rows // (decoder_rows(isa) if compressed else isa.tile_rows))
    height = max(1, -(-rows // max(1, tiles)))  # 8 rows are two tiles of 4, and not of 6 and 2
    fitting = max(1, _row_block_bytes(isa) // (4 * depth_block * isa.tile_rows))
    return Blocking(depth_block, height, max(-(-tiles // fitting), min(row_blocks, tiles)))


def _most_depth(isa: Isa) -> int:
    """Rows of a panel in a block."""
    return isa.panel_bytes // (4 * isa.tile_columns)


def blocked_gemm_extent(isa: Isa, columns: int, blocks: Blocking) -> int:
    """The extent of `blocked_gemm_kernel`: row blocks times panels, panels innermost."""
    return blocks.row_blocks * panel_count(isa, columns)


def blocked_gemm_kernel(isa: Isa, product: Product) -> KernelText:
    """The product of packed rows and panels.

    Arguments: `gptrs.kernels.gemm.product.GEMM_ARGUMENTS`, the last of them a `Blocking`; extent:
    `blocked_gemm_extent`. Each tile of a panel prefetches its share of the next panel.
    """
    kernel = _BlockedGemm(isa, product)
    kernel.emit()
    return KernelText(str(kernel.module), kernel.name)


class _BlockedGemm:
    """The kernel, as it is being written."""

    def __init__(self, isa: Isa, product: Product) -> None:
        self.name = f"gemm_blocked_{product.label}"
        self.module: Any = ir.Module(f"{self.name} {isa.name}")
        module, weights = self.module, product.weights
        tiles, self._finish = Tiles(module, isa, product), Finish(module, isa, product)
        self._stored = tiles.functions("stored")
        self._add_up = add_up_function(module, isa)
        self._unpack: Any = None
        if product.compressed:
            self._unpack = decompress_function(module, isa, weights, pairs=product.pairs)
        self._decompresses = product.compressed and isa.lookup
        self._reads_stored = weights == "f32"
        if self._decompresses:
            self._decoded, self._kept = tiles.functions("decoded"), tiles.functions("kept")
        self._f = f = Function.kernel(module, isa, self.name)
        self._arguments = w = gemm_arguments(f, f.arguments[0])
        self._width, self._line = i64(isa.tile_columns), i64(row_bytes(isa, weights))
        self._start, self._container = w["panels"], None
        self._block = DepthBlock(None, None, [])  # the one that is being written
        self._pairs: tuple[Any, Any] | None = None
        if product.pairs:
            exact = replace(BF16_PAIRS, exact=True)
            self._pairs = tile_function(module, isa, BF16_PAIRS), tile_function(module, isa, exact)
            self._beside = f.stack_array(_most_depth(isa) * isa.tile_columns + TAIL)
        elif product.compressed:
            self._beside = f.stack_array(_most_depth(isa) * isa.tile_columns)
        if product.compressed:
            self._container = Container(f, weights, w["panels"])
            self._start = self._container.panels
            held = self._container.row_bytes
            self._line = f.select(self._container.compressed, held, self._line)

    def emit(self) -> None:
        """The loop nest: row blocks, depth blocks (order rule), depth blocks (cache), panels."""
        f, w = self._f, self._arguments
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

        Each tile prefetches its share of the next panel. A panel that was not prefetched so (the
        first one, and every one if panels have one tile, as the next panel may be another
        thread's) is prefetched by its first tile, `AHEAD` bytes before the use. A panel that was
        decompressed to the stack has been read already.
        """
        f, w, (k, length), (top, bottom) = self._f, self._arguments, depth, numbers
        here = f.mul(f.add(f.mul(panel, w["depth"]), k), self._line)
        here = f.at(self._start, here, I8)
        following = f.at(here, f.mul(w["depth"], self._line), I8)
        tiles = f.sub(bottom, top)
        step = f.ceiling(self._line, tiles)
        not_prefetched = f.or_(opens, f.icmp_signed("==", tiles, i64(1)))

        def emit_tiles(functions: TileFunctions, first: Any, last: Any, *weights: Any) -> None:
            with f.loop(first, last) as number:
                share = f.mul(f.mul(f.sub(number.index, top), step), length)
                ahead, pace = f.at(following, share, I8), step
                if weights[0] is here:
                    itself = f.and_(not_prefetched, f.icmp_signed("==", number.index, top))
                    ahead = f.select(itself, f.at(here, i64(AHEAD), I8), ahead)
                    pace = f.select(itself, self._line, pace)
                self._tile(functions, number.index, panel, depth, (ahead, pace), weights)

        def emit_decompressed() -> None:
            where = w["panels"], w["depth"], panel, k, length
            f.call(self._unpack, [*where, self._beside])
            emit_tiles(self._stored, top, bottom, self._beside)

        def emit_other() -> None:
            """A panel that no tile decodes, where it lies if tiles read it as it is."""
            if self._container is None or not self._reads_stored:
                emit_decompressed()
                return
            with f.if_else(self._container.compressed) as (compressed, plain):
                with compressed:
                    emit_decompressed()
                with plain:
                    emit_tiles(self._stored, top, bottom, here)

        if self._pairs is not None:
            self._pair(panel, depth)
            with f.loop(top, bottom) as number:
                share = f.mul(f.mul(f.sub(number.index, top), step), length)
                self._tile_of_pairs(number.index, panel, depth, (f.at(following, share, I8), step))
        elif self._container is None:
            emit_tiles(self._stored, top, bottom, here)
        elif not self._decompresses:
            emit_decompressed()
        else:
            low = f.icmp_signed("<=", w["height"], i64(decoder_rows(f.isa)))
            with f.if_else(f.and_(self._container.compressed, low)) as (compressed, other):
                with compressed:
                    place, second = f.mul(k, self._width), f.add(top, i64(1))
                    entry = skip_exceptions(f, self._container.exceptions(panel), place)
                    given = here, w["panels"], entry, place
                    with f.if_else(f.icmp_signed("==", second, bottom)) as (alone, several):
                        with alone:
                            emit_tiles(self._decoded, top, second, *given)
                        with several:
                            emit_tiles(self._kept, top, second, *given, self._beside)
                            emit_tiles(self._stored, second, bottom, self._beside)
                with other:
                    emit_other()

    def _tile(
        self,
        functions: TileFunctions,
        number: Any,
        panel: Any,
        depth: tuple[Any, Any],
        ahead: tuple[Any, Any],
        weights: Sequence[Any],
    ) -> None:
        """A tile; at the end of the depth also bias, activation and residual."""
        f, w, (k, length) = self._f, self._arguments, depth
        row, column = f.mul(number, w["height"]), f.mul(panel, self._width)
        rows = f.least(f.sub(w["rows"], row), w["height"])
        columns = f.least(f.sub(w["columns"], column), self._width)
        a = f.mul(f.add(f.mul(number, w["depth"]), k), i64(f.isa.tile_rows))
        c = f.at(w["c"], f.add(f.mul(row, w["ldc"]), column))
        fresh, (source, *compressed) = f.icmp_signed("==", k, self._block.begin), weights
        given = [f.at(w["a"], a), source, *ahead, c, w["ldc"], length, fresh, *compressed, rows]
        self._finish.prefetch(f, w, (row, column), rows)
        covered = f.icmp_signed("==", columns, self._width)
        with f.if_else(covered, likely=True) as (inside, cut):
            with inside:
                f.call(functions.whole, given)
            with cut:
                f.call(functions.edge, [*given, columns])
        self._close((row, column), (rows, columns), f.add(k, length))

    def _pair(self, panel: Any, depth: tuple[Any, Any]) -> None:
        """The rows of a panel in a block of the depth in pairs, and their exponent, beside."""
        f, w, (k, length) = self._f, self._arguments, depth
        if self._unpack is not None:
            f.call(self._unpack, [w["panels"], w["depth"], panel, k, length, self._beside])
        else:
            begin = f.mul(f.add(f.mul(panel, w["depth"]), k), self._width)
            copy_rows(f, "bf16", self._start, begin, length, self._beside, pairs=True)
        write_exponent(f, self._beside, f.mul(f.lshr(length, i64(1)), self._width))

    def _tile_of_pairs(
        self, number: Any, panel: Any, depth: tuple[Any, Any], ahead: tuple[Any, Any]
    ) -> None:
        """A tile of pairs, by instructions that take subnormal numbers for zero unless there may be
        some."""
        f, w, (k, length) = self._f, self._arguments, depth
        row, column = f.mul(number, w["height"]), f.mul(panel, self._width)
        rows = f.least(f.sub(w["rows"], row), w["height"])
        columns = f.least(f.sub(w["columns"], column), self._width)
        height, one, nothing = i64(f.isa.tile_rows), i64(1), i64(0)
        whole, begin, pairs = (
            f.mul(f.lshr(n, one), m)
            for n, m in ((w["depth"], height), (k, height), (length, self._width))
        )
        tile = f.at(w["a"], f.mul(number, f.add(whole, i64(TAIL))))
        c = f.at(w["c"], f.add(f.mul(row, w["ldc"]), column))
        given = [f.at(tile, begin), one, height, nothing, self._beside, self._width, nothing]
        given += [c, w["ldc"], f.lshr(length, one), f.icmp_signed("==", k, self._block.begin)]
        given += [*ahead, one, rows, columns]
        prefetch_rows(f, c, w["ldc"], rows)
        self._finish.prefetch(f, w, (row, column), rows)
        assert self._pairs is not None
        quick, exact = self._pairs
        ends = f.at(tile, whole), f.at(self._beside, pairs)
        with f.if_else(stay_normal(f, *ends), likely=True) as (normal, other):
            with normal:
                f.call(quick, given)
            with other:
                f.call(exact, given)
        self._close((row, column), (rows, columns), f.add(k, length))

    def _close(self, place: tuple[Any, Any], size: tuple[Any, Any], reached: Any) -> None:
        """What follows a tile at the end of a block of the depth, and of all of it."""
        f, w, (row, column), (rows, columns) = self._f, self._arguments, place, size
        c = f.at(w["c"], f.add(f.mul(row, w["ldc"]), column))
        closes = f.icmp_signed(">=", reached, self._block.end)
        with f.if_then(f.and_(closes, is_given(f, w["totals"]))):
            totals = f.at(w["totals"], f.add(f.mul(row, w["ldc"]), column), F64)
            ends = [f.icmp_signed("==", self._block.begin, i64(0))]
            ends.append(f.icmp_signed("==", self._block.end, w["depth"]))
            f.call(self._add_up, [c, w["ldc"], rows, columns, totals, w["ldc"], *ends])
        with f.if_then(f.icmp_signed(">=", reached, w["depth"])):
            self._finish.emit(f, w, (row, column), (rows, columns))

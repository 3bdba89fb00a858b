"""Tiled product of arguments of any element type, in batches: C = A·B, operands packed or not.

    for (matrix, row block, column block):      # extent; matrices of one tile: one call for many
        for depth block of the order rule:      # floats: 4096, then 512 each (`product`)
            for depth block of the cache:
                for panel of the column block:  # the inner loop where B stays in the cache
                    for tile of the row block:
                        C[h, w] += A · B        # `register_tile`; of one row: `gemv_row`
                        at the end of a depth block: totals (f64) += C
                        at the end of the depth: epilogue, or C as elements of the result

    A: tile begins a_tile after the one before    row a_row, depth a_depth     packed: K·h, 1, h
    B: panel begins b_panel after the one before  depth b_depth                packed: K·w, w

Packed or not is a matter of strides, so that there is one kernel for both. An element's bits depend
on neither: floats have the order of sums of `gptrs.kernels.gemm.product`, and integers have none.
C is a matrix of sums; where the result has other elements it is scratch memory, from which each
tile is converted when it is finished.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import (
    F64,
    I8,
    I64,
    Function,
    KernelText,
    Loop,
    i64,
)
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.gemm.bf16_pairs import stay_normal
from gptrs.kernels.gemm.gemv_row import row_function
from gptrs.kernels.gemm.number_types import PLAIN, NumberTypes, stored_type
from gptrs.kernels.gemm.product import DepthBlock, Finish, Product, depth_blocks, is_given
from gptrs.kernels.gemm.register_tile import UNROLLED, tile_function
from gptrs.kernels.gemm.tile_sums import add_up_function, convert_function

_POINTERS = ("a", "b", "c", "out", "totals", "bias", "residual")
_SIZES = (
    *("rows", "depth", "columns", "a_tile", "a_row", "a_depth", "b_panel", "b_depth", "ldr"),
    *("depth_block", "row_blocks", "column_blocks", "triangle", "batch1", "batch2"),
    *("a_step0", "a_step1", "a_step2", "b_step0", "b_step1", "b_step2"),
)
TILED_ARGUMENTS = _POINTERS + _SIZES
"""The argument block of `tiled_product_kernel`, in order.

All strides and ``columns`` count numbers of the sums (`register_tile`). Matrices of C and of the
result follow each other without gaps; those of A and B are on a grid of three axes, the last two of
extents ``batch1`` and ``batch2``, with a step for each. The extent is matrices times row blocks
times column blocks. With ``triangle`` 1, of square matrices the tiles that are wholly above the
diagonal are left out; it is 0 otherwise. ``out`` is read where sums are not stored as they are;
``totals``, f64, where the depth has several blocks.
"""

IN_CACHE = 128 * KB
"""The size of a block of B that stays in L2 beside a tile of A: then C is written by rows, one tile
beside the other, as its rows are in other pages."""

_AT_ONCE = 32
"""Tiles below each other that one call computes; they are finished while they are in L1."""


def grid_place(f: Function, w: dict[str, Any], matrix: Any, steps: Sequence[str]) -> Any:
    """The first element of a matrix on the grid of the batch."""
    start = f.mul(matrix, w[steps[2]])
    inner = f.mul(w["batch1"], w["batch2"])
    before = f.block
    with f.if_then(f.icmp_signed(">", inner, i64(0))):
        places = [
            f.udiv(matrix, inner),
            f.urem(f.udiv(matrix, w["batch2"]), w["batch1"]),
            f.urem(matrix, w["batch2"]),
        ]
        other = i64(0)
        for place, step in zip(places, steps, strict=True):
            other = f.add(other, f.mul(place, w[step]))
        end = f.block
    found = f.phi(I64)
    found.add_incoming(start, before)
    found.add_incoming(other, end)
    return found


def tiled_product_kernel(isa: Isa, types: NumberTypes, product: Product) -> KernelText:
    """The product of matrices of ``types``; those of f32 with the epilogue of ``product``.

    Arguments: `TILED_ARGUMENTS`.
    """
    kernel = _TiledProduct(isa, types, product)
    kernel.emit()
    return KernelText(str(kernel.module), kernel.name)


class _TiledProduct:
    """The kernel, as it is being written."""

    def __init__(self, isa: Isa, types: NumberTypes, product: Product) -> None:
        self.name = f"tiled_{types.label}_{product.label}"
        self._types = types
        self.module: Any = ir.Module(f"{self.name} {isa.name}")
        self._tile = tile_function(self.module, isa, types)
        self._exact: Any = None
        if types.has_pairs:
            self._exact = tile_function(self.module, isa, replace(types, exact=True))
        self._row = row_function(self.module, isa, types) if types.has_rows else None
        self._finish = Finish(self.module, isa, product) if types == PLAIN else None
        self._add_up = None if types.is_integer else add_up_function(self.module, isa, types)
        self._convert = None if types.copies else convert_function(self.module, isa, types)
        self._f = f = Function.kernel(self.module, isa, self.name)
        self._w = f.argument_block(f.arguments[0], _POINTERS, _SIZES)
        self._width, self._height = i64(types.width(isa)), i64(types.rows(isa))
        self._block = DepthBlock(None, None, [])  # the one that is being written

    def emit(self) -> None:
        """The loop nest."""
        f, w = self._f, self._w
        least = [
            f.icmp_signed("<=", w["rows"], self._height),
            f.icmp_signed("<=", w["columns"], self._width),
            f.icmp_signed("<=", w["depth"], w["depth_block"]),
            f.icmp_signed("==", f.mul(w["row_blocks"], w["column_blocks"]), i64(1)),
        ]
        with f.if_else(reduce(f.and_, least)) as (small, large):
            with small:
                self._emit_small()
            with large:
                self._emit_blocks()
        f.ret_void()

    def _emit_small(self) -> None:
        """Matrices of one tile each: runs of those that are evenly spaced."""
        f, w = self._f, self._w
        _, first, last = f.arguments
        many = f.icmp_signed(">", w["batch2"], i64(0))
        most = f.select(many, w["batch2"], f.add(last, i64(1)))
        nothing = i64(0)
        self._block = DepthBlock(nothing, w["depth"], [])
        with f.loop(f.sdiv(first, most), f.ceiling(last, most)) as run:
            before = f.mul(run.index, most)
            begin = f.add(before, f.positive(f.sub(first, before)))
            end = f.least(last, f.add(before, most))
            place = begin, f.sub(end, begin), nothing, nothing
            size = self._height, self._width
            operands = self._matrices(begin)
            self._emit_tile(place, size, operands, (nothing, w["depth"]), (operands[1], nothing))

    def _matrices(self, matrix: Any) -> tuple[Any, Any]:
        """The first elements of A and of B of a matrix."""
        f, w, number = self._f, self._w, self._types.sum_type
        a = f.at(w["a"], grid_place(f, w, matrix, ("a_step0", "a_step1", "a_step2")), number)
        b = f.at(w["b"], grid_place(f, w, matrix, ("b_step0", "b_step1", "b_step2")), number)
        return a, b

    def _emit_blocks(self) -> None:
        f, w, number = self._f, self._w, self._types.sum_type
        _, first, last = f.arguments
        with f.loop(first, last) as item:
            column_block = f.urem(item.index, w["column_blocks"])
            rest = f.udiv(item.index, w["column_blocks"])
            row_block, matrix = f.urem(rest, w["row_blocks"]), f.udiv(rest, w["row_blocks"])
            a, b = self._matrices(matrix)
            tiles = self._share(w["rows"], self._height, row_block, w["row_blocks"])
            panels = self._share(w["columns"], self._width, column_block, w["column_blocks"])
            with self._depth_blocks() as self._block:
                # Without depth there is one turn all the same, which sets C to zero.
                some = f.add(self._block.begin, i64(1))
                stop = f.select(f.icmp_signed("<", some, self._block.end), self._block.end, some)
                with f.loop(self._block.begin, stop, w["depth_block"]) as k:
                    length = f.least(f.sub(self._block.end, k.index), w["depth_block"])
                    begin = f.at(a, f.mul(k.index, w["a_depth"]), number)
                    row = f.at(b, f.mul(k.index, w["b_depth"]), number)
                    self._emit_items(matrix, (begin, row), (tiles, panels), (k.index, length))

    def _emit_items(
        self,
        matrix: Any,
        operands: tuple[Any, Any],
        block: tuple[tuple[Any, Any], tuple[Any, Any]],
        depth: tuple[Any, Any],
    ) -> None:
        """Tiles and panels of a ``block`` in a block of the ``depth``; or one row, of whole rows
        of B where they lie."""
        f, w, number = self._f, self._w, self._types.sum_type
        (begin, row), (tiles, panels), one = operands, block, i64(1)
        pace = self._pace(f.sub(tiles[1], tiles[0]))

        def tile_at(tile: Any, panel: Any, count: Any = one, *, in_cache: bool) -> None:
            left = f.at(begin, f.mul(tile, w["a_tile"]), number)
            right = f.at(row, f.mul(panel, w["b_panel"]), number)
            place = f.mul(tile, self._height), f.mul(panel, self._width)
            ahead = right, i64(0)
            if not in_cache:
                ahead = self._share_of_next(right, f.sub(tile, tiles[0]), pace, depth[1])
            size, steps = (self._height, self._width), (w["a_tile"], i64(0))
            self._emit_tile((matrix, count, *place), size, (left, right), depth, ahead, steps)

        def tiled() -> None:
            used = f.mul(f.mul(f.sub(panels[1], panels[0]), self._width), depth[1])
            small = f.icmp_signed("<=", used, i64(IN_CACHE // self._types.bytes))
            whole = f.icmp_signed("==", w["triangle"], i64(0))
            with f.if_else(f.and_(small, whole)) as (rows_first, panels_first):
                with rows_first:
                    begun = tiles[0]
                    if not self._types.has_pairs:  # several tiles of those have no exponent
                        begun = self._of_one_panel(tiles, panels)
                        with f.loop(tiles[0], begun, i64(_AT_ONCE)) as group:
                            count = f.least(f.sub(begun, group.index), i64(_AT_ONCE))
                            tile_at(group.index, panels[0], count, in_cache=True)
                    with f.loop(begun, tiles[1]) as tile, f.loop(*panels) as panel:
                        tile_at(tile.index, panel.index, in_cache=True)
                with panels_first, f.loop(*panels) as panel, self._tiles(panel, *tiles) as tile:
                    tile_at(tile.index, panel.index, in_cache=False)

        if self._row is None:
            tiled()
            return
        single = f.icmp_signed("==", w["rows"], one)
        lies = f.icmp_signed("==", w["b_panel"], self._width)
        with f.if_else(f.and_(single, lies)) as (alone, several):
            with alone:
                first, last = (f.mul(panel, self._width) for panel in panels)
                place, size = (matrix, one, i64(0), first), (one, f.sub(last, first))
                self._emit_tile(place, size, (begin, f.at(row, first, number)), depth)
            with several:
                tiled()

    def _of_one_panel(self, tiles: tuple[Any, Any], panels: tuple[Any, Any]) -> Any:
        """The end of the tiles that one call computes, several at once: those of whole height, of
        one panel. Each is the next matrix of C, as its rows follow the ones before."""
        f = self._f
        alone = f.icmp_signed("==", f.sub(panels[1], panels[0]), i64(1))
        whole = f.least(f.sdiv(self._w["rows"], self._height), tiles[1])
        return f.add(tiles[0], f.select(alone, f.positive(f.sub(whole, tiles[0])), i64(0)))

    def _pace(self, tiles: Any) -> Any:
        """The bytes of the next panel that each of so many tiles prefetches for `UNROLLED` of the
        depth: hardly any where B lies in rows."""
        f, width = self._f, self._types.width(self._f.isa)
        packed = f.icmp_signed("==", self._w["b_depth"], self._width)
        some = f.select(f.icmp_signed(">", tiles, i64(1)), tiles, i64(1))  # it divides
        share = f.ceiling(i64(UNROLLED * width * self._types.bytes), some)
        return f.select(packed, share, i64(1))

    def _share_of_next(self, panel: Any, number: Any, pace: Any, length: Any) -> tuple[Any, Any]:
        """What a tile prefetches of the panel after this one, and the pace."""
        f = self._f
        following = f.at(panel, self._w["b_panel"], self._types.sum_type)
        before = f.mul(number, f.mul(pace, f.udiv(length, i64(UNROLLED))))
        return f.at(following, before, I8), pace

    def _tiles(self, panel: Loop, first: Any, last: Any) -> Any:
        """A loop over the tiles of a panel."""
        f = self._f
        diagonal = f.mul(f.udiv(f.mul(panel.index, self._width), self._height), self._w["triangle"])
        return f.loop(f.add(first, f.positive(f.sub(diagonal, first))), last)

    def _share(self, size: Any, step: Any, number: Any, count: Any) -> tuple[Any, Any]:
        """The tiles or panels of a block: they are dealt to blocks as evenly as can be."""
        f = self._f
        whole = f.ceiling(size, step)
        ends = [f.udiv(f.mul(f.add(number, i64(i)), whole), count) for i in (0, 1)]
        return ends[0], ends[1]

    @contextmanager
    def _depth_blocks(self) -> Generator[DepthBlock]:
        depth = self._w["depth"]
        if self._types.is_integer:
            yield DepthBlock(i64(0), depth, [])
        else:
            with depth_blocks(self._f, depth, group=self._types.group) as block:
                yield block

    def _call_tile(self, given: list[Any], k: Any) -> None:
        """A register tile from depth ``k`` on. Several matrices of pairs may have subnormal sums,
        as may tiles whose exponents say so."""
        f, w, number = self._f, self._w, self._types.sum_type
        if self._exact is None:
            f.call(self._tile, given)
            return

        def exponent(start: Any, tile: str, depth: str) -> Any:
            tail = f.sub(w[tile], i64(self._types.tail))
            return f.at(start, f.sub(tail, f.mul(k, w[depth])), number)

        left, right = (
            exponent(given[0], "a_tile", "a_depth"),
            exponent(given[4], "b_panel", "b_depth"),
        )
        one = f.icmp_signed("==", given[-3], i64(1))
        with f.if_else(f.and_(one, stay_normal(f, left, right))) as (normal, other):
            with normal:
                f.call(self._tile, given)
            with other:
                f.call(self._exact, given)

    def _emit_tile(
        self,
        place: tuple[Any, Any, Any, Any],
        size: tuple[Any, Any],
        operands: tuple[Any, Any],
        depth: tuple[Any, Any],
        ahead: tuple[Any, Any] | None = None,
        steps: tuple[Any, Any] | None = None,
    ) -> None:
        """The tile of up to ``size`` at a ``place``: of a matrix and so many matrices, a row and a
        column. It prefetches ``ahead``, at a pace; without that it is a row alone. ``steps``: from
        one matrix to the next, of A and of B, where they are not those of the batch."""
        f, w, (matrix, count, row, column), (k, length) = self._f, self._w, place, depth
        rows = f.least(f.sub(w["rows"], row), size[0])
        columns = f.least(f.sub(w["columns"], column), size[1])
        whole = f.mul(matrix, w["rows"])
        at = f.add(f.mul(f.add(whole, row), w["columns"]), column)
        c = f.at(w["c"], at, self._types.sum_type)
        ldc = w["columns"]
        fresh = f.icmp_signed("==", k, self._block.begin)
        a, b = operands
        if ahead is None:
            f.call(self._row, [a, w["a_depth"], b, w["b_depth"], c, columns, length, fresh])
        else:
            a_step, b_step = steps or (w["a_step2"], w["b_step2"])
            given = [a, w["a_row"], w["a_depth"], a_step, b, w["b_depth"], b_step, c, ldc]
            self._call_tile([*given, length, fresh, *ahead, count, rows, columns], k)
        rows = f.mul(rows, count)  # those of several matrices follow each other
        reached = f.add(k, length)
        if self._add_up is not None:
            closes = f.icmp_signed(">=", reached, self._block.end)
            with f.if_then(f.and_(closes, is_given(f, w["totals"]))):
                totals = f.at(w["totals"], at, F64)
                ends = [f.icmp_signed("==", self._block.begin, i64(0))]
                ends.append(f.icmp_signed("==", self._block.end, w["depth"]))
                f.call(self._add_up, [c, ldc, rows, columns, totals, ldc, *ends])
        if self._convert is None and self._finish is None:
            return
        with f.if_then(f.icmp_signed(">=", reached, w["depth"])):
            if self._convert is not None:
                out = f.at(w["out"], at, stored_type(self._types.result))
                f.call(self._convert, [c, ldc, out, ldc, rows, columns])
            if self._finish is not None:
                self._finish.emit(f, w | {"ldc": ldc}, (f.add(whole, row), column), (rows, columns))

"""Packing of a product's operand of any element type and any strides into tiles.

    operand [outer, depth], any strides       tiles [⌈outer/t⌉, depth, t] of numbers of the sums

    for tile of each matrix of a batch:       # extent
        outer stride 1:  for k: for some tiles: t elements at once, widened
        depth stride 1:  for square of elements: widened, transposed in registers
        otherwise, and at the edges: element by element

The operand is A with t = h, or the transpose of B with t = w. Elements are widened to numbers of
the sums on the way. A complex element is moved as a whole. A group of narrow integers becomes a
number: t groups of consecutive depth side by side, zero beyond the depth; behind a tile of pairs of
bf16 is their least exponent (`gptrs.kernels.gemm.bf16_pairs`). Places beyond ``outer``
are not written, as no tile reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I32, Function, KernelText, i64, like
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.bf16_pairs import write_exponent
from gptrs.kernels.gemm.number_types import NumberTypes, widened
from gptrs.kernels.gemm.tiled import grid_place

_POINTERS = ("source", "destination")
_SIZES = ("outer", "depth", "outer_stride", "depth_stride", "tiles", "batch1", "batch2")
_STEPS = ("step0", "step1", "step2")
PACK_ARGUMENTS = (*_POINTERS, *_SIZES, *_STEPS)
"""The argument block of `pack_operand_kernel`. Strides count elements, complex ones too; matrices
are on a grid as in `gptrs.kernels.gemm.tiled.TILED_ARGUMENTS`."""


def pack_operand_kernel(isa: Isa, types: NumberTypes, tile: int, *, left: bool) -> KernelText:
    """Packs an operand into tiles of ``tile`` elements; signed bytes of the ``left`` one are offset
    by 128. Arguments: `PACK_ARGUMENTS`; extent: tiles of all matrices."""
    packing = _Packing(isa, types, tile, left)
    packing.emit()
    return KernelText(str(packing.module), packing.name)


_AT_ONCE = 8
"""Tiles that are packed side by side."""


class _Packing:
    """The kernel, as it is being written."""

    def __init__(self, isa: Isa, types: NumberTypes, tile: int, left: bool) -> None:
        self._types, self._tile, self._group = types, tile, types.group
        self._offset = left and types.group == 4
        self.name = f"pack_{'left' if left else 'right'}_{types.label}"
        self.module: Any = ir.Module(f"{self.name} {isa.name}")
        self._f = f = Function.kernel(self.module, isa, self.name)
        self._w = f.argument_block(f.arguments[0], _POINTERS, (*_SIZES, *_STEPS))
        self._moved = types.parts == 2 and types.stored == types.sums
        """Whether a complex element is moved as one integer."""
        if self._moved:
            self._stored = self._number = ir.IntType(16 * types.bytes)
        elif types.parts == 2:
            self._stored = ir.VectorType(types.stored_type, 2)
            self._number = ir.VectorType(types.sum_type, 2)
        else:
            self._stored, self._number = types.stored_type, types.sum_type
        self._is_scalar = types.parts == 1 or self._moved
        """Whether an element is one number: a vector of them can be read at once."""
        self._side = i64(tile)
        self._groups = f.ceiling(self._w["depth"], i64(self._group))
        self._full = f.sdiv(self._w["depth"], i64(self._group))
        """The groups of the depth, and those that are not cut."""
        cut = f.urem(self._full, i64(self._lanes)) if self._lanes else self._full
        self._squared = f.sub(self._full, cut)
        """The groups in squares."""
        self._matrix: tuple[Any, Any] = (None, None)
        """Its first element, and the tiles before it."""
        self._source: Any = None
        self._out: Any = None

    def emit(self) -> None:
        """The loop nest."""
        f, w = self._f, self._w
        _, first, last = f.arguments
        tiles, one = w["tiles"], i64(1)
        along = [f.icmp_signed("==", w[name], one) for name in ("outer_stride", "depth_stride")]
        whole = f.sdiv(w["outer"], i64(self._tile))
        with f.loop(f.udiv(first, tiles), f.ceiling(last, tiles)) as matrix:
            before = f.mul(matrix.index, tiles)
            begin, end = f.positive(f.sub(first, before)), f.least(f.sub(last, before), tiles)
            self._matrix = grid_place(f, w, matrix.index, _STEPS), before
            stop = begin
            if self._is_scalar:
                stop = f.select(along[0], f.least(end, whole), begin)
                stop = f.select(f.icmp_signed(">", stop, begin), stop, begin)
                self._rows(begin, stop)
            with f.loop(stop, end) as tile:
                self._place(tile.index)
                if self._types.has_pairs:
                    self._clear()
                count = f.least(f.sub(w["outer"], f.mul(tile.index, i64(self._tile))), self._side)
                squares = f.and_(f.icmp_signed("==", count, self._side), along[1])
                done = f.select(squares, self._squared, i64(0))
                self._squares(done)
                self._elements(done, count)
                self._close()
        f.ret_void()

    def _clear(self) -> None:
        """Set a tile to zero: its exponent is one of all places."""
        f, lanes = self._f, self._types.lanes(self._f.isa)
        nothing = ir.Constant(ir.VectorType(self._types.sum_type, lanes), None)
        for _, at, mask in f.pieces(i64(1), f.mul(self._groups, self._side), lanes):
            f.write(nothing, self._at(self._out, at), mask)

    def _place(self, tile: Any) -> None:
        """Where a tile of the matrix is read, and where it is packed."""
        f, w, (start, before) = self._f, self._w, self._matrix
        top = f.mul(f.mul(tile, self._side), w["outer_stride"])
        self._source = self._at(w["source"], f.add(start, top), stored=True)
        tail = i64(self._types.tail)
        numbers = f.mul(f.add(before, tile), f.add(f.mul(self._groups, self._side), tail))
        self._out = self._at(w["destination"], numbers)

    def _close(self) -> None:
        """Write the exponent behind a packed tile of pairs of bf16."""
        if self._types.has_pairs:
            write_exponent(self._f, self._out, self._f.mul(self._groups, self._side))

    @property
    def _lanes(self) -> int:
        """The side of a square; 0 where elements are not transposed in registers."""
        if self._types.parts == 2:
            return self._f.isa.lanes // 2 if self._moved and self._types.bytes == 4 else 0
        return self._types.lanes(self._f.isa)

    def _at(self, pointer: Any, index: Any, *, stored: bool = False) -> Any:
        """The address of an element, as stored or packed."""
        types = self._types
        element, parts = (types.stored_type if stored else types.sum_type), types.parts
        index = self._f.mul(index, i64(parts)) if parts > 1 else index
        return self._f.at(pointer, index, element)

    def _widened(self, value: Any) -> Any:
        types = self._types
        if self._moved or types.has_pairs:
            return value
        wanted = types.sum_type if self._group == 1 else ir.IntType(32 // self._group)
        return widened(self._f, value, types.stored, wanted)

    def _grouped(self, values: Sequence[Any]) -> Any:
        """Numbers from the elements of a group, each of one depth: one, or a vector."""
        f, bits = self._f, 32 // self._group
        if self._group == 1:
            return self._widened(values[0])
        total: Any = None
        for i, value in enumerate(map(self._widened, values)):
            kind = value.type
            wide = ir.VectorType(I32, kind.count) if isinstance(kind, ir.VectorType) else I32
            part = f.zext(value, wide)
            place = self._group - 1 - i if self._types.has_pairs else i
            part = f.shl(part, like(part, place * bits))
            total = part if total is None else f.or_(total, part)
        return self._offset_by(total)

    def _ordered(self, value: Any) -> Any:
        """Groups as they lie in memory: pairs of bf16 have the first element in the high half."""
        if not self._types.has_pairs:
            return self._offset_by(value)
        f = self._f
        return f.or_(f.shl(value, like(value, 16)), f.lshr(value, like(value, 16)))

    def _offset_by(self, value: Any) -> Any:
        return self._f.xor(value, like(value, -0x7F7F7F80)) if self._offset else value

    def _rows(self, begin: Any, end: Any) -> None:
        """Outer stride 1: all elements of a tile of one depth at once, of several whole tiles side
        by side, so that the operand is read in longer runs."""
        f, w = self._f, self._w
        kind = ir.VectorType(self._stored, self._tile)
        with f.loop(begin, end, i64(_AT_ONCE)) as group:
            stop = f.least(f.add(group.index, i64(_AT_ONCE)), end)
            self._place(group.index)
            apart = f.add(f.mul(self._groups, self._side), i64(self._types.tail))
            with f.loop(i64(0), self._full) as k:
                first = f.mul(k.index, i64(self._group))
                rows = [f.mul(f.add(first, i64(g)), w["depth_stride"]) for g in range(self._group)]
                out = f.mul(k.index, self._side)
                with f.loop(i64(0), f.sub(stop, group.index), carried=[i64(0), out]) as tile:
                    column, out = tile.values
                    places = [
                        self._at(self._source, f.add(row, column), stored=True) for row in rows
                    ]
                    values = [f.read(place, kind) for place in places]
                    f.write(self._grouped(values), self._at(self._out, out))
                    tile.values = [f.add(column, self._side), f.add(out, apart)]
            if self._group > 1:
                with f.loop(group.index, stop) as tile:
                    self._place(tile.index)
                    self._elements(self._full, self._side)
                    self._close()

    def _read(self, pointer: Any) -> Any:
        return self._f.read(pointer, self._stored)

    def _squares(self, end: Any) -> None:
        """Depth stride 1: squares of elements up to depth ``end``, transposed."""
        f, w, lanes, tile, group = self._f, self._w, self._lanes, self._tile, self._group
        if not lanes:
            return
        kind = ir.VectorType(self._stored, lanes * group)
        with f.loop(i64(0), end, i64(lanes)) as k:
            for first in range(0, tile, lanes):
                size = min(lanes, tile - first)
                block: list[Any] = []
                for row in range(first, first + size):
                    at = f.add(f.mul(i64(row), w["outer_stride"]), f.mul(k.index, i64(group)))
                    value = self._widened(f.read(self._at(self._source, at, stored=True), kind))
                    if group > 1:
                        value = self._ordered(f.bitcast(value, ir.VectorType(I32, lanes)))
                    block.append(value)
                undefined = ir.Constant(block[0].type, ir.Undefined)
                block += [undefined] * (lanes - size)
                kept = ir.Constant(ir.VectorType(I32, size), [*range(size)])
                for i, column in enumerate(f.transposed(block)):
                    out = f.add(f.mul(f.add(k.index, i64(i)), i64(tile)), i64(first))
                    part = f.shuffle_vector(column, undefined, kept)
                    f.write(part, self._at(self._out, out))

    def _elements(self, begin: Any, count: Any) -> None:
        """One by one from depth ``begin`` on; the last group may be cut."""
        full, end = self._full, self._groups
        with self._f.loop(begin, full) as k, self._f.loop(i64(0), count) as i:
            self._element(k.index, i.index, cut=False)
        if self._group > 1:
            with self._f.loop(full, end) as k, self._f.loop(i64(0), count) as i:
                self._element(k.index, i.index, cut=True)

    def _element(self, k: Any, i: Any, *, cut: bool) -> None:
        f, w = self._f, self._w
        start = f.mul(i, w["outer_stride"])
        values: list[Any] = []
        for g in range(self._group):
            row = f.add(f.mul(k, i64(self._group)), i64(g))
            there = f.icmp_signed("<", row, w["depth"])
            row = f.select(there, row, i64(0)) if cut else row
            place = f.add(start, f.mul(row, w["depth_stride"]))
            value = self._read(self._at(self._source, place, stored=True))
            values.append(f.select(there, value, like(value, 0)) if cut else value)
        out = f.add(f.mul(k, i64(self._tile)), i)
        f.write(self._grouped(values), self._at(self._out, out))

"""Packing of a product's operand of any element type and any strides into tiles.

    operand [outer, depth], any strides       tiles [⌈outer/t⌉, depth, t] of numbers of the sums

    for tile of each matrix of a batch:       # extent
        outer stride 1:  for k: t elements at once, widened
        depth stride 1:  for square of elements: widened, transposed in registers
        otherwise, and at the edges: element by element

The operand is A with t = h, or the transpose of B with t = w. Elements are widened to numbers of
the sums on the way. A complex element is moved as a whole. A group of narrow integers becomes a
number: t groups of consecutive depth side by side, zero beyond the depth. Places beyond ``outer``
are not written, as no tile reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I32, Function, KernelText, i64, like
from gptrs.kernels.compiler.isa import Isa
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
        self._source: Any = None
        self._out: Any = None

    def emit(self) -> None:
        """The loop nest."""
        f, w, group = self._f, self._w, i64(self._group)
        _, first, last = f.arguments
        tile, one = i64(self._tile), i64(1)
        depth = f.ceiling(w["depth"], group)
        full = f.sdiv(w["depth"], group)
        with f.loop(first, last) as item:
            matrix = f.udiv(item.index, w["tiles"])
            top = f.mul(f.urem(item.index, w["tiles"]), tile)
            start = f.add(grid_place(f, w, matrix, _STEPS), f.mul(top, w["outer_stride"]))
            self._source = self._at(w["source"], start, stored=True)
            self._out = self._at(w["destination"], f.mul(f.mul(item.index, depth), tile))
            count = f.least(f.sub(w["outer"], top), tile)
            whole = f.icmp_signed("==", count, tile)
            along = [f.icmp_signed("==", w[name], one) for name in ("outer_stride", "depth_stride")]
            with f.if_else(f.and_(whole, along[0])) as (rows, other):
                with rows:
                    done = full if self._is_scalar else i64(0)
                    if self._is_scalar:
                        self._rows(full)
                    self._elements(done, full, depth, count)
                with other:
                    done = f.select(f.and_(whole, along[1]), self._squared(full), i64(0))
                    self._squares(done)
                    self._elements(done, full, depth, count)
        f.ret_void()

    @property
    def _lanes(self) -> int:
        """The side of a square; 0 where elements are not transposed in registers."""
        if self._types.parts == 2:
            return self._f.isa.lanes // 2 if self._moved and self._types.bytes == 4 else 0
        return self._types.lanes(self._f.isa)

    def _squared(self, full: Any) -> Any:
        return self._f.sub(full, self._f.urem(full, i64(self._lanes))) if self._lanes else i64(0)

    def _at(self, pointer: Any, index: Any, *, stored: bool = False) -> Any:
        """The address of an element, as stored or packed."""
        types = self._types
        element, parts = (types.stored_type if stored else types.sum_type), types.parts
        index = self._f.mul(index, i64(parts)) if parts > 1 else index
        return self._f.at(pointer, index, element)

    def _widened(self, value: Any) -> Any:
        types = self._types
        if self._moved:
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
            part = f.shl(part, like(part, i * bits))
            total = part if total is None else f.or_(total, part)
        return self._offset_by(total)

    def _offset_by(self, value: Any) -> Any:
        return self._f.xor(value, like(value, -0x7F7F7F80)) if self._offset else value

    def _rows(self, full: Any) -> None:
        """Outer stride 1: all elements of a tile of one depth at once."""
        f, w = self._f, self._w
        kind = ir.VectorType(self._stored, self._tile)
        with f.loop(i64(0), full) as k:
            first = f.mul(k.index, i64(self._group))
            rows = [f.add(first, i64(g)) for g in range(self._group)]
            at = [f.mul(row, w["depth_stride"]) for row in rows]
            values = [f.read(self._at(self._source, place, stored=True), kind) for place in at]
            out = f.mul(k.index, i64(self._tile))
            f.write(self._grouped(values), self._at(self._out, out))

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
                        value = self._offset_by(f.bitcast(value, ir.VectorType(I32, lanes)))
                    block.append(value)
                undefined = ir.Constant(block[0].type, ir.Undefined)
                block += [undefined] * (lanes - size)
                kept = ir.Constant(ir.VectorType(I32, size), [*range(size)])
                for i, column in enumerate(f.transposed(block)):
                    out = f.add(f.mul(f.add(k.index, i64(i)), i64(tile)), i64(first))
                    part = f.shuffle_vector(column, undefined, kept)
                    f.write(part, self._at(self._out, out))

    def _elements(self, begin: Any, full: Any, end: Any, count: Any) -> None:
        """One by one from depth ``begin`` on; the groups from ``full`` on are cut."""
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

"""Small matrix products C[M, N] = A[M, K]·B[K, N] of known sizes, as functions in the LLVM module
of a generated loop.

    for a strip of columns:                       # a row of a tile is V vectors
        for a tile of rows:
            sums[R, V] = 0                        # registers
            for k in depth:
                sums[r, v] += A[r, k] · B[k, v]   for all r, v
            C[tile, strip] = sums

A may have any two strides, rows of B and C are contiguous. Nothing is packed: B stays in a cache
between the iterations of the loop. The last vector of a row is masked. An element is one chain of
multiply-adds, depth ascending, from zero: the order of `gptrs.kernels.gemm.product` within its
first block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, I1, I32, POINTER, VOID, Builder, Loop, i32, i64

_ROW = 8  # vectors of a tile of one row: multiply-adds whose latencies overlap
_HEIGHT = 4  # rows of a tile


class ProductSizes(NamedTuple):
    """The sizes of a product, and its strides in elements."""

    rows: int
    depth: int
    columns: int
    a_row: int
    a_depth: int
    b_row: int
    vector_bits: int
    """The width of the vector registers; there are 32 of 512 bits, else 16."""


def inline_product(module: Any, element: Any, sizes: ProductSizes) -> Any:
    """The LLVM function ``void product(ptr a, ptr b, ptr c)`` of these sizes in ``module``, of f32
    or f64. It is written at the first request."""
    symbol = f"product_{'_'.join(map(str, sizes))}.{element}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    made = ir.Function(module, ir.FunctionType(VOID, [POINTER] * 3), symbol)
    made.linkage = "linkonce_odr"
    writer = _Writer(made, element, sizes)
    writer.write()
    writer.f.ret_void()
    return made


class _Writer:
    """Writes the function of one product."""

    def __init__(self, made: Any, element: Any, sizes: ProductSizes) -> None:
        self.f = Builder(made.append_basic_block("entry"))
        self._element, self._sizes = element, sizes
        self._a, self._b, self._c = made.args
        self._bytes = 4 if element == F32 else 8
        self._lanes = sizes.vector_bits // 8 // self._bytes
        self._height = min(_HEIGHT, sizes.rows)
        sums = 24 if sizes.vector_bits == 512 else 12  # the rest holds a row of B and factors
        self._width = min(_ROW, sums // self._height) * self._lanes

    def write(self) -> None:
        f, columns = self.f, self._sizes.columns
        whole = columns - columns % self._width
        if whole:
            with f.loop(i64(0), i64(whole), i64(self._width)) as strip:
                self._strip(strip.index, self._width)
        if whole < columns:
            self._strip(i64(whole), columns - whole)

    def _strip(self, column: Any, width: int) -> None:
        f, rows = self.f, self._sizes.rows
        whole = rows - rows % self._height
        with f.loop(i64(0), i64(whole), i64(self._height)) as tile:
            self._tile(tile.index, self._height, column, width)
        if whole < rows:
            self._tile(i64(whole), rows - whole, column, width)

    def _tile(self, row: Any, height: int, column: Any, width: int) -> None:
        f, s = self.f, self._sizes
        counts = [min(self._lanes, width - at) for at in range(0, width, self._lanes)]
        zero = ir.Constant(self._vector, None)
        start = f.at(self._b, column, self._element)
        a = f.at(self._a, f.mul(row, i64(s.a_row)), self._element)
        sums = [zero] * (height * len(counts))
        with f.loop(i64(0), i64(s.depth), carried=sums) as k:
            top = f.at(start, f.mul(k.index, i64(s.b_row)), self._element)
            self._add_products(k, a, top, counts)
        for r in range(height):
            place = f.add(f.mul(f.add(row, i64(r)), i64(s.columns)), column)
            c = f.at(self._c, place, self._element)
            for v, count in enumerate(counts):
                at = f.at(c, i64(v * self._lanes), self._element)
                self._write(k.values[r * len(counts) + v], at, count)

    def _add_products(self, k: Loop, a: Any, b: Any, counts: Sequence[int]) -> None:
        """Add the products of row ``k`` of B to the sums of a tile."""
        f, s, many = self.f, self._sizes, len(counts)
        places = [f.at(b, i64(v * self._lanes), self._element) for v in range(many)]
        right = [self._read(at, count) for at, count in zip(places, counts, strict=True)]
        for r in range(len(k.values) // many):
            place = f.add(f.mul(k.index, i64(s.a_depth)), i64(r * s.a_row))
            factor = f.load(f.at(a, place, self._element), align=self._bytes, typ=self._element)
            left = f.splat(factor, self._lanes)
            for v in range(many):
                at = r * many + v
                k.values[at] = f.multiply_add(left, right[v], k.values[at])

    @property
    def _vector(self) -> Any:
        return ir.VectorType(self._element, self._lanes)

    @property
    def _suffix(self) -> str:
        return f"v{self._lanes}f{8 * self._bytes}.p0"

    def _mask(self, count: int) -> Any:
        kind = ir.VectorType(I1, self._lanes)
        return ir.Constant(kind, [int(lane < count) for lane in range(self._lanes)])

    def _read(self, at: Any, count: int) -> Any:
        """The first ``count`` elements of a vector."""
        f, kind = self.f, self._vector
        if count == self._lanes:
            return f.load(at, align=self._bytes, typ=kind)
        mask = self._mask(count)
        load = f.intrinsic(f"masked.load.{self._suffix}", kind, POINTER, I32, mask.type, kind)
        return f.call(load, [at, i32(self._bytes), mask, ir.Constant(kind, None)])

    def _write(self, value: Any, at: Any, count: int) -> None:
        f = self.f
        if count == self._lanes:
            f.store(value, at, align=self._bytes)
            return
        mask, name = self._mask(count), f"masked.store.{self._suffix}"
        store = f.intrinsic(name, VOID, value.type, POINTER, I32, mask.type)
        f.call(store, [value, at, i32(self._bytes), mask])

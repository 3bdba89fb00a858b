"""GEMV, or GEMM of few vectors, over an unpacked matrix [N, K], which is read once, where it lies.

    for group of rows of the matrix, as many as a register has lanes:
        totals[vectors] = 0                     # a lane for each row; f64, on the stack
        for block of the depth:
            sums[vectors] = 0                   # registers
            for square of the group in the block:
                transpose it in registers
                for k in the square:
                    sums += x[:, k] · column k of the square
            totals += sums
        C[:, group] = totals

    matrix [N, K]:  row n    │ □ │ □ │ □ │ ...      □: a square [lanes, lanes]
                    row n+1  │   │   │   │          lanes rows are read side by side
                    ...

Argument block, extent and order of sums are those of `gptrs.kernels.gemm.gemv`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.gemv import OutputStore, few_vectors_kernel, gemv_arguments, vector_starts
from gptrs.kernels.gemm.product import Product, Totals, depth_blocks


class _Groups:
    """Groups of rows for some vectors, as their function is being written."""

    def __init__(self, f: Function, vectors: int) -> None:
        self.f, lanes = f, f.isa.lanes
        address, self.top, self.begin, self.end = f.arguments
        self.arguments = w = gemv_arguments(f, address)
        self.store, self.square = OutputStore(f, w), f.stack_array(lanes * lanes)
        self.totals = Totals(f, vectors)
        self.x = vector_starts(f, w, self.top, vectors)

    def emit(self) -> None:
        """All groups of a range."""
        f, w, lanes = self.f, self.arguments, self.f.isa.lanes
        final = f.sub(w["outputs"], i64(1))
        with f.loop(self.begin, self.end, i64(lanes)) as group:
            numbers = [f.least(f.add(group.index, i64(i)), final) for i in range(lanes)]
            rows = [f.at(w["matrix"], f.mul(number, w["ldm"])) for number in numbers]
            self.totals.clear(len(self.x))
            with depth_blocks(f, w["depth"]) as block:
                self.totals.add(self._sums(rows, block.begin, block.end))
            for vector, value in enumerate(self.totals.sums(len(self.x))):
                self.store.emit(f.add(self.top, i64(vector)), group.index, value)

    def _sums(self, rows: list[Any], begin: Any, end: Any) -> list[Any]:
        """The sums over a block of the depth. The rest of it after whole squares is transposed to
        the stack, as there may be no more elements of x."""
        f, lanes = self.f, i64(self.f.isa.lanes)
        whole = f.sub(end, f.srem(f.sub(end, begin), lanes))
        zero = ir.Constant(f.vector, [0.0] * f.isa.lanes)
        with f.loop(begin, whole, lanes, [zero] * len(self.x)) as k:
            for i, column in enumerate(self._columns(rows, k.index, None)):
                k.values = self._add(k.values, column, f.add(k.index, i64(i)))
        with f.if_then(f.icmp_signed("<", whole, end)):
            columns = self._columns(rows, whole, f.mask(f.sub(end, whole)))
            for i, column in enumerate(columns):
                f.write(column, f.at(self.square, i64(i * f.isa.lanes)))
        with f.loop(whole, end, carried=k.values) as rest:
            column = f.read(f.at(self.square, f.mul(f.sub(rest.index, whole), lanes)))
            rest.values = self._add(rest.values, column, rest.index)
        return rest.values

    def _columns(self, rows: list[Any], k: Any, mask: Any) -> list[Any]:
        """A square's columns, from column ``k`` of its rows on."""
        return self.f.transposed([self.f.read(self.f.at(row, k), mask=mask) for row in rows])

    def _add(self, sums: list[Any], column: Any, k: Any) -> list[Any]:
        """The sums with the products of a column."""
        f, at = self.f, self.f.mul(k, self.arguments["x_depth"])
        left = [f.splat(f.read(f.at(x, at), F32)) for x in self.x]
        return [f.multiply_add(a, column, total) for a, total in zip(left, sums, strict=True)]


def gemv_transposed_kernel(isa: Isa, product: Product) -> KernelText:
    """Vectors times the transpose of a matrix as it lies. Arguments:
    `gptrs.kernels.gemm.gemv.GEMV_ARGUMENTS`, of a matrix [outputs, depth]; extent: items."""
    return few_vectors_kernel(
        isa, product, "gemv_transposed", lambda f, vectors: _Groups(f, vectors).emit()
    )

"""GEMV of one row over an unpacked matrix [K, N] of any real element type: C[n] += A[k] · B[k, n].

    for window of columns:                      # C of it stays in L1 and L2
        for k, eight at once:                   # eight rows of B are read side by side
            for vector of columns in the window:
                C += splat(A[k]) · B[k, columns]

It takes the place of register tiles in `gptrs.kernels.gemm.tiled`: with one row nothing of B is
used twice, and a tile's width of each row would be a read of two cache lines from another page.
The order of sums is that of a tile: one chain of multiply-adds, depth ascending.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I1, I64, POINTER, Function, i64
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.gemm.number_types import NumberTypes, multiply_add

_ROWS = 8
"""How many rows of B are read side by side."""
_WINDOW = 64 * KB
"""The bytes of C in a window: long reads suit hardware prefetchers better than C in L1 does."""


def row_function(module: Any, isa: Isa, types: NumberTypes) -> Any:
    """row(a, a_depth, b, b_depth, c, columns, depth, fresh): the products of a row with ``depth``
    rows of B, ``b_depth`` numbers apart, added to C, or to zero where ``fresh``."""
    f = Function.part(module, isa, "row", POINTER, I64, POINTER, I64, POINTER, I64, I64, I1)
    a, a_depth, b, b_depth, c, columns, depth, fresh = f.arguments
    number, lanes = types.sum_type, types.lanes(isa)
    vector: Any = ir.VectorType(number, lanes)
    with f.if_then(fresh):
        for _, column, mask in f.pieces(i64(1), columns, lanes):
            f.write(ir.Constant(vector, None), f.at(c, column, number), mask)

    def add(at: Any, mask: Any, factors: Sequence[Any], rows: Sequence[Any]) -> None:
        place = f.at(c, at, number)
        total = f.read(place, vector, mask)
        for factor, row in zip(factors, rows, strict=True):
            right = f.read(f.at(row, at, number), vector, mask)
            total = multiply_add(f, types, factor, right, total)
        f.write(total, place, mask)

    def several(begin: Any, end: Any, first: Any, last: Any, many: int) -> None:
        whole = f.sub(last, f.urem(f.sub(last, first), i64(lanes)))
        with f.loop(begin, end, i64(many)) as k:
            numbers = [f.add(k.index, i64(i)) for i in range(many)]
            places = [f.at(a, f.mul(n, a_depth), number) for n in numbers]
            factors = [f.splat(f.read(place, number), lanes) for place in places]
            rows = [f.at(b, f.mul(n, b_depth), number) for n in numbers]
            with f.loop(first, whole, i64(lanes)) as column:
                add(column.index, None, factors, rows)
            with f.if_then(f.icmp_signed("<", whole, last)):
                add(whole, f.mask(f.sub(last, whole), lanes), factors, rows)

    rest, most = f.sub(depth, f.urem(depth, i64(_ROWS))), i64(_WINDOW // types.bytes)
    with f.loop(i64(0), columns, most) as window:
        last = f.least(columns, f.add(window.index, most))
        several(i64(0), rest, window.index, last, _ROWS)
        several(rest, depth, window.index, last, 1)
    f.ret_void()
    return f.made

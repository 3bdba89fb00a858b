"""Passes over a finished tile of C: totals of several blocks of the depth, elements of the result.

Both run while the tile is in L1. Callers: `gptrs.kernels.gemm.tiled`, `gptrs.kernels.gemm.blocked`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F64, I1, I64, POINTER, Function
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.number_types import PLAIN, NumberTypes, narrowed, stored_type


def convert_function(module: Any, isa: Isa, types: NumberTypes) -> Any:
    """convert(c, ldc, out, ldo, rows, columns): sums as elements of the result."""
    f = Function.part(module, isa, "convert", POINTER, I64, POINTER, I64, I64, I64)
    c, ldc, out, ldo, rows, columns = f.arguments
    element, lanes = stored_type(types.result), types.lanes(isa)
    for row, column, mask in f.pieces(rows, columns, lanes):
        source = f.at(c, f.add(f.mul(row, ldc), column), types.sum_type)
        target = f.at(out, f.add(f.mul(row, ldo), column), element)
        value = f.read(source, ir.VectorType(types.sum_type, lanes), mask)
        f.write(narrowed(f, value, types), target, mask)
    f.ret_void()
    return f.made


def add_up_function(module: Any, isa: Isa, types: NumberTypes = PLAIN) -> Any:
    """add_up(c, ldc, rows, columns, totals, ldt, first, last): totals = (0 if first else totals) +
    C, in f64; in the last block of the depth C = totals."""
    sizes = (I64, I64, I64)
    f = Function.part(module, isa, "add_up", POINTER, *sizes, POINTER, I64, I1, I1)
    c, ldc, rows, columns, totals, ldt, first, last = f.arguments
    number, lanes = types.sum_type, types.lanes(isa)
    vector, wide = ir.VectorType(number, lanes), ir.VectorType(F64, lanes)
    for row, column, mask in f.pieces(rows, columns, lanes):
        place = f.at(c, f.add(f.mul(row, ldc), column), number)
        total = f.at(totals, f.add(f.mul(row, ldt), column), F64)
        value = f.read(place, vector, mask)
        value, before = value if number == F64 else f.fpext(value, wide), f.block
        with f.if_then(f.not_(first)):
            more, end = f.fadd(f.read(total, wide, mask), value), f.block
        both = f.phi(wide)
        both.add_incoming(value, before)
        both.add_incoming(more, end)
        with f.if_else(last) as (done, other):
            with done:
                f.write(both if number == F64 else f.fptrunc(both, vector), place, mask)
            with other:
                f.write(both, total, mask)
    f.ret_void()
    return f.made

"""Partition of integer keys around a pivot with vector compression, as LLVM IR.

    below = above = 0
    for vector in keys:
        mask = vector < pivot
        keys[below:] = the lanes in mask, moved together;  below += their number
        spare[above:] = the other lanes, moved together;   above += their number
    keys[below:] = spare[:above]

Whole vectors are stored: what is behind the lanes that count is overwritten by the next store, and
keys are never written beyond the vector that was read. Source of the compressing instructions:
Intel's VPCOMPRESS of AVX-512; other levels have none, and sort otherwise.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I1, I32, I64, POINTER, VOID, Builder, i32, i64
from gptrs.kernels.ordering.sorting_network import VECTOR_BITS, lane_mask, lanes_of

SLACK = VECTOR_BITS // 8
"""Bytes of the spare array behind its last key that are overwritten."""


def partition(module: Any, key: Any) -> Any:
    """The LLVM function ``i64 partition(ptr keys, ptr spare, i64 count, key pivot)``: the keys that
    are less than ``pivot`` come first; the result is their number. It is written at the first
    request."""
    symbol = f"partition.{key}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    made = ir.Function(module, ir.FunctionType(I64, [POINTER, POINTER, I64, key]), symbol)
    made.linkage = "linkonce_odr"
    made.attributes.add("noinline")
    f = Builder(made.append_basic_block("entry"))
    keys, spare, count, pivot = made.args
    lanes, align = lanes_of(key), key.width // 8
    vector, bits = ir.VectorType(key, lanes), ir.IntType(lanes)
    truths = ir.VectorType(I1, lanes)
    pivots, every = f.splat(pivot, lanes), ir.Constant(truths, [1] * lanes)
    compress = f.intrinsic(
        f"experimental.vector.compress.v{lanes}{key}", vector, vector, truths, vector
    )
    counted = f.intrinsic(f"ctpop.i{lanes}", bits, bits)

    def number(mask: Any) -> Any:
        return f.zext(f.call(counted, [f.bitcast(mask, bits)]), I64)

    def together(x: Any, mask: Any) -> Any:
        return f.call(compress, [x, mask, ir.Constant(vector, ir.Undefined)])

    whole = f.and_(count, i64(-lanes))
    with f.loop(i64(0), whole, i64(lanes), [i64(0), i64(0)]) as loop:
        below, above = loop.values
        x = f.load(f.at(keys, loop.index, key), align=align, typ=vector)
        mask = f.icmp_signed("<", x, pivots)
        f.store(together(x, mask), f.at(keys, below, key), align=align)
        f.store(together(x, f.xor(mask, every)), f.at(spare, above, key), align=align)
        less = number(mask)
        loop.values = [f.add(below, less), f.add(above, f.sub(i64(lanes), less))]
    below, above = loop.values
    rest = lane_mask(f, f.sub(count, whole), key)
    load = f.intrinsic(f"masked.load.v{lanes}{key}.p0", vector, POINTER, I32, truths, vector)
    x = f.call(load, [f.at(keys, whole, key), i32(align), rest, ir.Constant(vector, None)])
    mask = f.icmp_signed("<", x, pivots)
    first, other = f.and_(mask, rest), f.and_(f.xor(mask, every), rest)
    f.store(together(x, other), f.at(spare, above, key), align=align)
    store = f.intrinsic(f"masked.store.v{lanes}{key}.p0", VOID, vector, POINTER, I32, truths)
    place = f.at(keys, below, key)
    f.call(store, [together(x, first), place, i32(align), lane_mask(f, number(first), key)])
    below, above = f.add(below, number(first)), f.add(above, number(other))
    copy = f.intrinsic("memcpy.p0.p0.i64", VOID, POINTER, POINTER, I64, I1)
    size = f.mul(above, i64(align))
    f.call(copy, [f.at(keys, below, key), spare, size, ir.Constant(I1, 0)])
    f.ret(below)
    return made

"""Partition of integer keys around a pivot with vectors, as LLVM IR.

    below = above = 0
    for vector in keys:
        mask = vector < pivot
        keys[below:] = the lanes in mask, moved together;  below += their number
        spare[above:] = the other lanes, moved together;   above += their number
    keys[below:] = spare[:above]

Whole vectors are stored: what is behind the lanes that count is overwritten by the next store, and
keys are never written beyond the vector that was read. Vectors of 512 bits are compressed
(VPCOMPRESS of AVX-512). Vectors of 256 bits are permuted (VPERMD of AVX2), as a table says for each
mask: the lanes in it first, the others last. Such a vector is stored at both places, and the others
fill the spare array from its end.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Builder,
    Loop,
    i32,
    i64,
)
from gptrs.kernels.ordering.sorting_network import lane_mask

SLACK = 64
"""Bytes of the spare array behind its last key that are overwritten."""
_UNROLLED = 4


def partition(module: Any, key: Any, vector_bits: int) -> Any:
    """The LLVM function ``i64 partition(ptr keys, ptr spare, i64 count, key pivot)``: the keys that
    are less than ``pivot`` come first; the result is their number. It is written at the first
    request."""
    symbol = f"partition{vector_bits}.{key}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    made = ir.Function(module, ir.FunctionType(I64, [POINTER, POINTER, I64, key]), symbol)
    made.linkage = "linkonce_odr"
    made.attributes.add("noinline")
    f = Builder(made.append_basic_block("entry"))
    keys, _, count, _ = made.args
    lanes = vector_bits // key.width
    if vector_bits == 512:
        below, others = _compressed(f, key, lanes, *made.args)
    else:
        below, others = _permuted(f, key, lanes, *made.args)
    copy = f.intrinsic("memcpy.p0.p0.i64", VOID, POINTER, POINTER, I64, I1)
    size = f.mul(f.sub(count, below), i64(key.width // 8))
    f.call(copy, [f.at(keys, below, key), others, size, ir.Constant(I1, 0)])
    f.ret(below)
    return made


def _permuted(
    f: Builder, key: Any, lanes: int, keys: Any, spare: Any, count: Any, pivot: Any
) -> tuple[Any, Any]:
    """How many keys are less, and where the others are."""
    align = key.width // 8
    vector, mask_bits, words = ir.VectorType(key, lanes), ir.IntType(lanes), ir.VectorType(I32, 8)
    bytes_ = ir.VectorType(I8, 8)
    table = _permutations(f.module, lanes)
    permute = f.intrinsic("x86.avx2.permd", words, words, words)
    counted = f.intrinsic("ctpop.i64", I64, I64)
    pivots = f.splat(pivot, lanes)

    def put(at: Any, x: Any, below: Any) -> Any:
        mask = f.zext(f.bitcast(f.icmp_signed("<", x, pivots), mask_bits), I64)
        places = f.zext(f.load(f.at(table, mask, bytes_), align=8, typ=bytes_), words)
        x = f.bitcast(f.call(permute, [f.bitcast(x, words), places]), vector)
        f.store(x, f.at(keys, below, key), align=align)
        top = f.sub(f.add(below, f.sub(count, i64(lanes))), at)
        f.store(x, f.at(spare, top, key), align=align)
        return f.add(below, f.call(counted, [mask]))

    def step(loop: Loop, unrolled: int) -> None:
        places = [f.add(loop.index, i64(n * lanes)) for n in range(unrolled)]
        vectors = [f.load(f.at(keys, at, key), align=align, typ=vector) for at in places]
        for at, x in zip(places, vectors, strict=True):
            loop.values[0] = put(at, x, loop.values[0])

    most, whole = f.and_(count, i64(-lanes * _UNROLLED)), f.and_(count, i64(-lanes))
    with f.loop(i64(0), most, i64(lanes * _UNROLLED), [i64(0)]) as loop:
        step(loop, _UNROLLED)
    with f.loop(most, whole, i64(lanes), loop.values) as loop:
        step(loop, 1)
    with f.loop(whole, count, None, loop.values) as loop:
        below = loop.values[0]
        x = f.load(f.at(keys, loop.index, key), align=align, typ=key)
        f.store(x, f.at(keys, below, key), align=align)
        top = f.sub(f.add(below, f.sub(count, i64(1))), loop.index)
        f.store(x, f.at(spare, top, key), align=align)
        loop.values[0] = f.add(below, f.zext(f.icmp_signed("<", x, pivot), I64))
    below = loop.values[0]
    return below, f.at(spare, below, key)


def _permutations(module: Any, lanes: int) -> Any:
    """For each mask of ``lanes`` lanes of a vector of 256 bits: which of its words of 32 bits come
    at each place, as bytes."""
    symbol = f"permutations{lanes}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    words = 8 // lanes
    rows = [
        sorted(range(8), key=lambda word: not mask >> word // words & 1) for mask in range(2**lanes)
    ]
    values = [place for row in rows for place in row]
    made = ir.GlobalVariable(module, ir.ArrayType(I8, len(values)), symbol)
    made.initializer = ir.Constant(made.value_type, bytearray(values))
    made.global_constant, made.linkage, made.align = True, "internal", 64
    return made


def _compressed(
    f: Builder, key: Any, lanes: int, keys: Any, spare: Any, count: Any, pivot: Any
) -> tuple[Any, Any]:
    """How many keys are less, and where the others are."""
    align = key.width // 8
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
    rest = lane_mask(f, f.sub(count, whole), vector)
    load = f.intrinsic(f"masked.load.v{lanes}{key}.p0", vector, POINTER, I32, truths, vector)
    x = f.call(load, [f.at(keys, whole, key), i32(align), rest, ir.Constant(vector, None)])
    mask = f.icmp_signed("<", x, pivots)
    first, other = f.and_(mask, rest), f.and_(f.xor(mask, every), rest)
    f.store(together(x, other), f.at(spare, above, key), align=align)
    store = f.intrinsic(f"masked.store.v{lanes}{key}.p0", VOID, vector, POINTER, I32, truths)
    place = f.at(keys, below, key)
    f.call(store, [together(x, first), place, i32(align), lane_mask(f, number(first), vector)])
    return f.add(below, number(first)), spare

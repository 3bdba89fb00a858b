"""Register tile of a product of arguments, for every element type: C[h, w] += A[h, k] · B[k, w].

    for matrix:                                 # several only where each has one tile
        sums[h, w] = 0 or C                     # registers
        for k in block of the depth:
            b[w] = B[k]                         # registers
            for row in h:
                sums[row] += splat(A[row, k]) · b
        C = sums

A has any strides; rows of B are contiguous. So operands are read where they lie, or packed:

    A as it lies: strides lda, 1 (or 1, lda)      packed tile [K, h]: strides 1, h
    B as it lies: rows ldb apart                  packed panel [K, w]: rows w apart

Tiles at the edges of C read and write under a mask what is there. Rows beyond the last one are the
last one again: they compute and store the same numbers.

Complex numbers are pairs of real ones: a·b = re(a)·b + im(a)·ib, with ib = (−im b, re b) made from
b in registers. Signed bytes are multiplied by an instruction of unsigned and signed ones: A has 128
added when it is packed, and one row of the tile sums 128·b, which is subtracted at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I1, I16, I32, I64, POINTER, Function, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.number_types import NumberTypes

TILE = (*(POINTER, I64, I64, I64), *(POINTER, I64, I64), *(POINTER, I64), *(I64, I1), *([I64] * 3))
"""The arguments of a tile function: A and its strides by row, by depth and by matrix; B and its
strides by depth and by matrix; C and its stride by row; the depth, and whether sums begin at zero;
the number of matrices, rows and columns. Matrices of C follow each other without gaps. Strides and
columns count numbers of the sums: parts of complex ones, groups of bytes."""


def heights(isa: Isa, types: NumberTypes) -> list[int]:
    """The numbers of rows that functions are generated for: others take the next."""
    return [*(n for n in (1, 2, 4, 8) if n < types.rows(isa)), types.rows(isa)]


def tile_function(module: Any, isa: Isa, types: NumberTypes) -> Any:
    """tile(`TILE`): a tile of up to h rows and w columns."""
    sizes = heights(isa, types)
    parts = {
        (rows, vectors): _tile(module, isa, types, rows, vectors)
        for rows in sizes
        for vectors in range(1, isa.tile_vectors + 1)
    }
    f = Function.part(module, isa, "tile", *TILE)
    *_, rows, columns = f.arguments
    vectors = f.ceiling(columns, i64(types.lanes(isa)))
    key = f.add(f.mul(vectors, i64(types.rows(isa) + 1)), rows)
    f.choose(
        key,
        [
            (v * (types.rows(isa) + 1) + n, parts[min(s for s in sizes if s >= n), v], f.arguments)
            for v in range(1, isa.tile_vectors + 1)
            for n in range(1, types.rows(isa) + 1)
        ],
    )
    f.ret_void()
    return f.made


def _tile(module: Any, isa: Isa, types: NumberTypes, height: int, vectors: int) -> Any:
    """A tile of up to so many rows and vectors of columns, of each of the matrices."""
    f = Function.part(module, isa, f"tile{height}x{vectors}", *TILE)
    a, a_row, a_depth, a_step, b, b_depth, b_step, c, ldc, depth, fresh, *sizes = f.arguments
    count, rows, columns = sizes
    lanes, number = types.lanes(isa), types.sum_type
    masks = [f.mask(f.sub(columns, i64(v * lanes)), lanes) for v in range(vectors)]
    final = f.sub(rows, i64(1))
    numbers = [f.least(i64(row), final) for row in range(height)]
    steps = a_step, b_step, f.mul(rows, ldc)
    with f.loop(i64(0), count, carried=[a, b, c]) as matrix:
        left, right, out = matrix.values
        places = [
            f.at(f.at(out, f.mul(n, ldc), number), i64(v * lanes), number)
            for n in numbers
            for v in range(vectors)
        ]
        sums = _begin(f, types, places, masks, fresh)
        starts = [f.at(left, f.mul(n, a_row), number) for n in numbers]
        found = _sums(f, types, (starts, a_depth), (right, b_depth), masks, depth, sums)
        for i, (value, place) in enumerate(zip(found, places, strict=True)):
            f.write(value, place, masks[i % vectors])
        matrix.values = [
            f.at(at, step, number) for at, step in zip(matrix.values, steps, strict=True)
        ]
    f.ret_void()
    return f.made


def _begin(
    f: Function, types: NumberTypes, places: Sequence[Any], masks: Sequence[Any], fresh: Any
) -> list[Any]:
    """The sums that a tile begins with: zero, or the elements of C."""
    vector: Any = ir.VectorType(types.sum_type, types.lanes(f.isa))
    cut = [*masks] * (len(places) // len(masks))
    entry, resume, start = f.block, f.append_basic_block("resume"), f.append_basic_block("start")
    f.cbranch(fresh, start, resume)
    f.position_at_end(resume)
    held = [f.read(place, vector, mask) for place, mask in zip(places, cut, strict=True)]
    f.branch(start)
    f.position_at_end(start)
    sums = [f.phi(vector) for _ in places]
    for total, value in zip(sums, held, strict=True):
        total.add_incoming(ir.Constant(vector, None), entry)
        total.add_incoming(value, resume)
    return sums


def _sums(
    f: Function,
    types: NumberTypes,
    left: tuple[Sequence[Any], Any],
    right: tuple[Any, Any],
    masks: Sequence[Any],
    depth: Any,
    sums: list[Any],
) -> list[Any]:
    """``sums`` of a tile with the products of the depth added: of the rows of A that begin at some
    places, and of B, each with its stride by depth."""
    (starts, a_depth), (b, b_depth) = left, right
    lanes, number, vectors = types.lanes(f.isa), types.sum_type, len(masks)
    vector: Any = ir.VectorType(number, lanes)
    offsets = [ir.Constant(vector, None)] * vectors if types.group == 4 else []
    with f.loop(i64(0), depth, carried=[*sums, *offsets, b]) as loop:
        *carried, row = loop.values
        b_row = [
            f.read(f.at(row, i64(v * lanes), number), vector, masks[v]) for v in range(vectors)
        ]
        at = f.mul(loop.index, a_depth)
        total, more = carried[: len(sums)], carried[len(sums) :]
        for part in range(types.parts):
            b_row = b_row if part == 0 else [_turned(f, value) for value in b_row]
            for i, begin in enumerate(starts):
                place = f.at(begin, at if part == 0 else f.add(at, i64(1)), number)
                factor = f.splat(f.read(place, number), lanes)
                for v in range(vectors):
                    j = i * vectors + v
                    total[j] = _multiply_add(f, types, factor, b_row[v], total[j])
        byte = f.splat(ir.Constant(I32, -0x7F7F7F80), lanes) if offsets else None
        more = [_multiply_add(f, types, byte, r, m) for r, m in zip(b_row, more, strict=False)]
        loop.values = [*total, *more, f.at(row, b_depth, number)]
    found, offsets = loop.values[: len(sums)], loop.values[len(sums) : -1]
    if not offsets:
        return found
    return [f.sub(value, offsets[i % vectors]) for i, value in enumerate(found)]


def _turned(f: Function, b: Any) -> Any:
    """i·b of a vector of complex numbers: (−im, re) of each."""
    count = b.type.count
    places = [i + 1 + count if i % 2 == 0 else i - 1 for i in range(count)]
    return f.shuffle_vector(b, f.fneg(b), ir.Constant(ir.VectorType(I32, count), places))


def _multiply_add(f: Function, types: NumberTypes, a: Any, b: Any, c: Any) -> Any:
    if not types.is_integer:
        return f.multiply_add(a, b, c)
    if types.group == 1:
        return f.add(f.mul(a, b), c)
    bits = f.isa.vector_bits
    if types.group == 4:
        return _call(f, "x86.avx512.vpdpbusd.512", [c, a, b])
    pairs = ir.VectorType(I16, bits // 16)
    name = {512: "x86.avx512.pmaddw.d.512", 256: "x86.avx2.pmadd.wd"}[bits]
    operands = [f.bitcast(a, pairs), f.bitcast(b, pairs)]
    return f.add(_call(f, name, operands, c.type), c)


def _call(f: Function, name: str, operands: Sequence[Any], result: Any = None) -> Any:
    result = result or operands[0].type
    return f.call(f.intrinsic(name, result, *(o.type for o in operands)), operands)

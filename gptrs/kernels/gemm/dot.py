"""Dot products of rows of A [M, K] with a vector, or of one vector with another: one column of C.

    for row, for segment of it:                 # extent: threads share segments too
        total = 0                               # f64
        for block of the segment:               # 1024 elements
            sums[32 lanes] = 0                  # registers
            for 32 elements of the block:
                sums += a · x
            total += the lanes of sums, as a tree
        totals[row, segment] = total

    row of A:  |── segment 0 (2¹⁷) ──|── segment 1 ──| ...
                block (1024), block, ...
                 element k of a block goes to lane k mod 32

Both operands are read where they lie and widened on the way; short rows a few at once, from as many
streams: in caches as many as have their sums in registers, in memory four, as a core then reads
1.2 to 1.3 times as fast as from one, even where half of the sums are spilled to the stack. A second
kernel adds up the segments of each row, if there are several.

Order rule: element k goes to lane k mod 32 of its block, whatever the vector level; blocks and
segments begin at fixed places. The order depends on the depth alone, and elements of 0 at the end
change nothing. A lane adds up 32 products in f32, the first two steps of the tree are f32, and the
rest is f64, so that the error hardly grows with the depth: the tests hold it to twice that of
pairwise summation. Elements of f64 are added up in f64 in 16 lanes, so that registers hold the sums
of several rows, integers in i32 or i64, where no order changes them
(`gptrs.kernels.gemm.number_types`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F64, I32, I64, POINTER, Function, KernelText, i64
from gptrs.kernels.compiler.isa import KB, Isa
from gptrs.kernels.gemm.gemv import finish_outputs
from gptrs.kernels.gemm.number_types import (
    PLAIN,
    NumberTypes,
    multiply_add,
    narrowed,
    stored_type,
    widened,
)
from gptrs.kernels.gemm.product import Finish, Product
from gptrs.kernels.gemm.tiled import grid_place
from gptrs.kernels.rowwise.norm import across

_POINTERS = ("a", "x", "totals", "c", "bias", "residual")
_A_STEPS, _X_STEPS = (tuple(f"{name}_step{axis}" for axis in range(3)) for name in ("a", "x"))
_SIZES = (
    *("rows", "depth", "segments", "lda", "ldc", "ldr", "by_rows"),
    *("batch1", "batch2", *_A_STEPS, *_X_STEPS),
)
DOT_ARGUMENTS = _POINTERS + _SIZES
"""The argument block of `dot_kernel` and `dot_totals_kernel`, in order.

Each matrix of a batch has so many ``rows``, ``lda`` elements apart; matrices and their vectors are
on grids as in `gptrs.kernels.gemm.tiled.TILED_ARGUMENTS`. The result's elements follow each other;
bias, residual, ldc, ldr and ``by_rows`` are those of `gptrs.kernels.gemm.gemv.GEMV_ARGUMENTS`, of
one vector. With one segment, ``totals`` is not used, and `dot_kernel` alone is run.
"""

SHORTEST = 32
"""Fewer elements, of the rows of one matrix, are summed as `gptrs.kernels.gemm.product` does, which
is faster: by `gptrs.kernels.gemm.gemv_transposed`."""
SEGMENT = 2**17
"""Elements of a row that one thread adds up."""
_BLOCK, _LANE_BYTES, _NARROW = 1024, 128, 8
_STREAMS = 4
"""Rows that are read side by side at most."""
IN_CACHE = 16 * 1024 * KB
"""Matrices up to this size may lie in a cache, which one stream reads as fast as several."""


def dot_segments(depth: int) -> int:
    """How many segments a row has."""
    return max(1, -(-depth // SEGMENT))


def _lanes(types: NumberTypes) -> int:
    """The lanes of a row's sums: 32 of 32 bits, 16 of 64."""
    return _LANE_BYTES // types.bytes


def _rows_at_once(isa: Isa, types: NumberTypes) -> int:
    """The number of rows whose sums registers hold, beside the vectors that are read."""
    return max(1, min(_STREAMS, isa.registers * 3 // 4 * types.lanes(isa) // _lanes(types)))


def _total_type(types: NumberTypes) -> Any:
    """The type of sums over several blocks."""
    return types.sum_type if types.is_integer else F64


def _lane_sum(f: Function, types: NumberTypes, vectors: Sequence[Any]) -> Any:
    """The total of all lanes, as a tree, halves first; of f32 in f32 down to `_NARROW` of them."""
    combine = f.add if types.is_integer else f.fadd
    parts: list[Any] = list(vectors)
    lanes = width = types.lanes(f.isa)
    while len(parts) * lanes > _NARROW and len(parts) > 1:
        parts = _pairs(parts, combine)
    part: Any = parts[0]
    while width > _NARROW:
        width //= 2
        kind = ir.VectorType(I32, width)
        halves = [ir.Constant(kind, [*range(i, i + width)]) for i in (0, width)]
        low, high = (f.shuffle_vector(part, part, half) for half in halves)
        parts = [part := combine(low, high)]
    parts = [_widened(f, part, _total_type(types)) for part in parts]
    while len(parts) > 1:
        parts = _pairs(parts, combine)
    return across(f, parts[0], combine)


def _pairs(parts: list[Any], combine: Callable[[Any, Any], Any]) -> list[Any]:
    half = len(parts) // 2
    return [combine(low, high) for low, high in zip(parts[:half], parts[half:], strict=True)]


def _widened(f: Function, part: Any, total: Any) -> Any:
    wide = ir.VectorType(total, part.type.count)
    return part if part.type == wide else f.fpext(part, wide)


def _stored(f: Function, types: NumberTypes, total: Any) -> Any:
    """A total as an element of the result."""
    value = total if total.type == types.sum_type else f.fptrunc(total, types.sum_type)
    return value if types.copies else narrowed(f, value, types)


def _dots(module: Any, isa: Isa, types: NumberTypes, rows: int, *, stored: bool) -> Any:
    """dots(a, lda, x, depth, out): the sums of products of so many rows, as totals or ``stored`` as
    elements of the result."""
    name = f"dots{rows}_{'stored' if stored else 'totals'}"
    f = Function.part(module, isa, name, POINTER, I64, POINTER, I64, POINTER)
    a, lda, x, depth, out = f.arguments
    element, lanes = types.stored_type, types.lanes(isa)
    width = _lanes(types)
    vectors, kind = width // lanes, ir.VectorType(element, lanes)
    starts = [f.at(a, f.mul(lda, i64(row)), element) for row in range(rows)]
    zero = ir.Constant(ir.VectorType(types.sum_type, lanes), None)

    def read(pointer: Any, mask: Any) -> Any:
        value = f.read(pointer, kind, mask)
        return value if types.reads else widened(f, value, types.stored, types.sum_type)

    def add(sums: list[Any], start: Any, masked: bool) -> None:
        for i in range(vectors):
            at = f.add(start, i64(i * lanes))
            mask = f.mask(f.sub(depth, at), lanes) if masked else None
            right = read(f.at(x, at, element), mask)
            for row, begin in enumerate(starts):
                left, j = read(f.at(begin, at, element), mask), row * vectors + i
                sums[j] = multiply_add(f, types, left, right, sums[j])

    totals = [ir.Constant(_total_type(types), 0)] * rows
    with f.loop(i64(0), depth, i64(_BLOCK), totals) as block:
        end = f.least(depth, f.add(block.index, i64(_BLOCK)))
        whole = f.sub(end, f.srem(f.sub(end, block.index), i64(width)))
        with f.loop(block.index, whole, i64(width), [zero] * (rows * vectors)) as k:
            add(k.values, k.index, masked=False)
        with f.loop(whole, end, i64(width), k.values) as rest:
            add(rest.values, rest.index, masked=True)
        combine = f.add if types.is_integer else f.fadd
        for row in range(rows):
            lane_sum = _lane_sum(f, types, rest.values[row * vectors : (row + 1) * vectors])
            block.values[row] = combine(block.values[row], lane_sum)
    kind_out = stored_type(types.result) if stored else _total_type(types)
    for row, total in enumerate(block.values):
        value = _stored(f, types, total) if stored else total
        f.write(value, f.at(out, i64(row), kind_out))
    f.ret_void()
    return f.made


def dot_kernel(isa: Isa, product: Product, types: NumberTypes = PLAIN) -> KernelText:
    """Segments of rows times the vector, of real ``types``; those of f32 with the epilogue of
    ``product``. Arguments: `DOT_ARGUMENTS`; extent: segments of all rows."""
    name = _name("dot", product, types)
    module = ir.Module(f"{name} {isa.name}")
    part = _dots(module, isa, types, 1, stored=False)
    wholes = [_dots(module, isa, types, rows, stored=True) for rows in range(1, _STREAMS + 1)]
    finish = Finish(module, isa, product) if types == PLAIN else None
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _POINTERS, _SIZES)
    rows, segments, depth = w["rows"], w["segments"], w["depth"]
    element, result = types.stored_type, stored_type(types.result)
    size = f.mul(f.mul(rows, depth), i64(types.stored_bytes))
    lies_in_cache = f.icmp_signed("<=", size, i64(IN_CACHE))
    most = f.select(lies_in_cache, i64(_rows_at_once(isa, types)), i64(_STREAMS))

    def operands(matrix: Any) -> tuple[Any, Any]:
        a, x = (grid_place(f, w, matrix, steps) for steps in (_A_STEPS, _X_STEPS))
        return f.at(w["a"], a, element), f.at(w["x"], x, element)

    with f.if_else(f.icmp_signed("==", segments, i64(1))) as (one, several):
        with one:
            with f.loop(f.sdiv(first, rows), f.ceiling(last, rows)) as matrix:
                before = f.mul(matrix.index, rows)
                begin, end = f.positive(f.sub(first, before)), f.least(f.sub(last, before), rows)
                a, x = operands(matrix.index)
                with f.loop(begin, end, most) as row:
                    out = f.at(w["c"], f.add(before, row.index), result)
                    top = f.at(a, f.mul(row.index, w["lda"]), element)
                    given = [top, w["lda"], x, depth, out]
                    count = f.least(f.sub(end, row.index), most)
                    f.choose(count, [(i + 1, whole, given) for i, whole in enumerate(wholes)])
            if finish is not None:
                finish_outputs(f, finish, w, i64(1), first, last)
        with several, f.loop(first, last) as index:
            row, segment = f.udiv(index.index, segments), f.urem(index.index, segments)
            a, x = operands(f.udiv(row, rows))
            begin = f.mul(segment, i64(SEGMENT))
            length = f.least(f.sub(depth, begin), i64(SEGMENT))
            out = f.at(w["totals"], index.index, _total_type(types))
            top = f.add(f.mul(f.urem(row, rows), w["lda"]), begin)
            f.call(part, [f.at(a, top, element), w["lda"], f.at(x, begin, element), length, out])
    f.ret_void()
    return KernelText(str(module), name)


def _name(kind: str, product: Product, types: NumberTypes) -> str:
    return f"{kind}_{product.label if types == PLAIN else types.label}"


def dot_totals_kernel(isa: Isa, product: Product, types: NumberTypes = PLAIN) -> KernelText:
    """The sums of segments, in order. Arguments: `DOT_ARGUMENTS`; extent: rows."""
    name, total = _name("dot_totals", product, types), _total_type(types)
    module = ir.Module(f"{name} {isa.name}")
    finish = Finish(module, isa, product) if types == PLAIN else None
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _POINTERS, _SIZES)
    combine = f.add if types.is_integer else f.fadd
    with f.loop(first, last) as row:
        begin = f.mul(row.index, w["segments"])
        end, zero = f.add(begin, w["segments"]), ir.Constant(total, 0)
        with f.loop(begin, end, carried=[zero]) as segment:
            value = f.read(f.at(w["totals"], segment.index, total), total)
            segment.values = [combine(segment.values[0], value)]
        value = _stored(f, types, segment.values[0])
        f.write(value, f.at(w["c"], row.index, stored_type(types.result)))
    if finish is not None:
        finish_outputs(f, finish, w, i64(1), first, last)
    f.ret_void()
    return KernelText(str(module), name)

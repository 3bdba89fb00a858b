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

Both operands are read where they lie; short rows a few at once, from as many streams. A second
kernel adds up the segments of each row, if there are several.

Order rule: element k goes to lane k mod 32 of its block, whatever the vector level; blocks and
segments begin at fixed places. The order depends on the depth alone, and elements of 0 at the end
change nothing. A lane adds up 32 products in f32, the first two steps of the tree are f32, and the
rest is f64, so that the error hardly grows with the depth: the tests hold it to twice that of
pairwise summation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, F64, I32, I64, POINTER, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.gemv import finish_outputs
from gptrs.kernels.gemm.product import Finish, Product
from gptrs.kernels.rowwise.norm import across

_POINTERS = ("a", "x", "totals", "c", "bias", "residual")
_SIZES = ("rows", "depth", "segments", "lda", "a_step", "x_step", "ldc", "ldr", "by_rows")
DOT_ARGUMENTS = _POINTERS + _SIZES
"""The argument block of `dot_kernel` and `dot_totals_kernel`, in order.

Each matrix of a batch has so many ``rows``, ``lda`` elements apart; matrices are ``a_step`` and
their vectors ``x_step`` elements apart. The result's elements follow each other; bias, residual,
ldc, ldr and ``by_rows`` are those of `gptrs.kernels.gemm.gemv.GEMV_ARGUMENTS`, of one vector. With
one segment, ``totals`` is not used, and `dot_kernel` alone is run.
"""

SHORTEST = 32
"""Fewer elements, of the rows of one matrix, are summed as `gptrs.kernels.gemm.product` does, which
is faster: by `gptrs.kernels.gemm.gemv_transposed`."""
SEGMENT = 2**17
"""Elements of a row that one thread adds up."""
_BLOCK, _LANES, _NARROW = 1024, 32, 8


def dot_segments(depth: int) -> int:
    """How many segments a row has."""
    return max(1, -(-depth // SEGMENT))


def _rows_at_once(isa: Isa) -> int:
    """The number of rows whose sums registers hold, beside the vectors that are read."""
    return max(1, min(4, isa.registers * 3 // 4 * isa.lanes // _LANES))


def _lane_sum(f: Function, vectors: Sequence[Any]) -> Any:
    """The f64 sum of all lanes, as a tree, halves first; in f32 down to `_NARROW` of them."""
    lanes = f.isa.lanes
    parts: list[Any] = list(vectors)
    while len(parts) * lanes > _NARROW and len(parts) > 1:
        parts = _pairs(f, parts)
    part: Any = parts[0]
    width = lanes
    while width > _NARROW:
        width //= 2
        kind = ir.VectorType(I32, width)
        halves = [ir.Constant(kind, [*range(i, i + width)]) for i in (0, width)]
        low, high = (f.shuffle_vector(part, part, half) for half in halves)
        parts = [part := f.fadd(low, high)]
    parts = [f.fpext(part, ir.VectorType(F64, width)) for part in parts]
    while len(parts) > 1:
        parts = _pairs(f, parts)
    return across(f, parts[0], f.fadd)


def _pairs(f: Function, parts: list[Any]) -> list[Any]:
    half = len(parts) // 2
    return [f.fadd(low, high) for low, high in zip(parts[:half], parts[half:], strict=True)]


def _dots(module: Any, isa: Isa, rows: int, result: Any) -> Any:
    """dots(a, lda, x, depth, out): the sums of products of so many rows, as ``result``."""
    f = Function.part(module, isa, f"dots{rows}_{result}", POINTER, I64, POINTER, I64, POINTER)
    a, lda, x, depth, out = f.arguments
    lanes, vectors = isa.lanes, _LANES // isa.lanes
    starts = [f.at(a, f.mul(lda, i64(row))) for row in range(rows)]
    zero = ir.Constant(f.vector, [0.0] * lanes)

    def add(sums: list[Any], start: Any, masked: bool) -> None:
        for i in range(vectors):
            at = f.add(start, i64(i * lanes))
            mask = f.mask(f.sub(depth, at)) if masked else None
            right = f.read(f.at(x, at), mask=mask)
            for row, begin in enumerate(starts):
                left, j = f.read(f.at(begin, at), mask=mask), row * vectors + i
                sums[j] = f.multiply_add(left, right, sums[j])

    totals = [ir.Constant(F64, 0.0)] * rows
    with f.loop(i64(0), depth, i64(_BLOCK), totals) as block:
        end = f.least(depth, f.add(block.index, i64(_BLOCK)))
        whole = f.sub(end, f.srem(f.sub(end, block.index), i64(_LANES)))
        with f.loop(block.index, whole, i64(_LANES), [zero] * (rows * vectors)) as k:
            add(k.values, k.index, masked=False)
        with f.loop(whole, end, i64(_LANES), k.values) as rest:
            add(rest.values, rest.index, masked=True)
        for row in range(rows):
            lane_sum = _lane_sum(f, rest.values[row * vectors : (row + 1) * vectors])
            block.values[row] = f.fadd(block.values[row], lane_sum)
    for row, total in enumerate(block.values):
        value = f.fptrunc(total, F32) if result is F32 else total
        f.write(value, f.at(out, i64(row), result))
    f.ret_void()
    return f.made


def dot_kernel(isa: Isa, product: Product) -> KernelText:
    """Segments of rows times the vector. Arguments: `DOT_ARGUMENTS`; extent: segments of all
    rows."""
    name, most = f"dot_{product.label}", _rows_at_once(isa)
    module = ir.Module(f"{name} {isa.name}")
    finish, part = Finish(module, isa, product), _dots(module, isa, 1, F64)
    wholes = [_dots(module, isa, rows, F32) for rows in range(1, most + 1)]
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _POINTERS, _SIZES)
    rows, segments, depth = w["rows"], w["segments"], w["depth"]

    def operands(matrix: Any, row: Any) -> tuple[Any, Any]:
        a = f.add(f.mul(matrix, w["a_step"]), f.mul(row, w["lda"]))
        return f.at(w["a"], a), f.at(w["x"], f.mul(matrix, w["x_step"]))

    with f.if_else(f.icmp_signed("==", segments, i64(1))) as (one, several):
        with one:
            with f.loop(f.sdiv(first, rows), f.ceiling(last, rows)) as matrix:
                before = f.mul(matrix.index, rows)
                begin, end = f.positive(f.sub(first, before)), f.least(f.sub(last, before), rows)
                with f.loop(begin, end, i64(most)) as row:
                    a, x = operands(matrix.index, row.index)
                    out = f.at(w["c"], f.add(before, row.index))
                    given = [a, w["lda"], x, depth, out]
                    count = f.least(f.sub(end, row.index), i64(most))
                    f.choose(count, [(i + 1, whole, given) for i, whole in enumerate(wholes)])
            finish_outputs(f, finish, w, i64(1), first, last)
        with several, f.loop(first, last) as index:
            row, segment = f.udiv(index.index, segments), f.urem(index.index, segments)
            a, x = operands(f.udiv(row, rows), f.urem(row, rows))
            begin = f.mul(segment, i64(SEGMENT))
            length = f.least(f.sub(depth, begin), i64(SEGMENT))
            out = f.at(w["totals"], index.index, F64)
            f.call(part, [f.at(a, begin), w["lda"], f.at(x, begin), length, out])
    f.ret_void()
    return KernelText(str(module), name)


def dot_totals_kernel(isa: Isa, product: Product) -> KernelText:
    """The sums of segments, in order. Arguments: `DOT_ARGUMENTS`; extent: rows."""
    name = f"dot_totals_{product.label}"
    module = ir.Module(f"{name} {isa.name}")
    finish = Finish(module, isa, product)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _POINTERS, _SIZES)
    with f.loop(first, last) as row:
        begin = f.mul(row.index, w["segments"])
        end, zero = f.add(begin, w["segments"]), ir.Constant(F64, 0.0)
        with f.loop(begin, end, carried=[zero]) as segment:
            value = f.read(f.at(w["totals"], segment.index, F64), F64)
            segment.values = [f.fadd(segment.values[0], value)]
        f.write(f.fptrunc(segment.values[0], F32), f.at(w["c"], row.index))
    finish_outputs(f, finish, w, i64(1), first, last)
    f.ret_void()
    return KernelText(str(module), name)

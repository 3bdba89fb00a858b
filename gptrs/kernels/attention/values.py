"""Weighted sums of a block's values in attention: sums = sums·factor + weights·v.

    for group of value columns:                 # as many vectors as registers hold for all rows
        sums[row, columns] ·= factor[row]       # registers
        for key in [first, last):
            right = v[key, columns]
            sums[row, columns] += splat(weights[row, key]) · right
        store sums

    v [count, D] with any stride of keys; sums [rows, width] on the stack

`copy_values` copies values to rows of f32 without gaps, padded with zeros to whole vectors, which
many rows read. Called by
`gptrs.kernels.attention.flash_attention`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.attention.blocks import Head, States, short_loop, vectors_of
from gptrs.kernels.compiler.ir_builder import F32, I64, POINTER, Function, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import WeightType, element_type, read_weights


def copy_values(module: Any, isa: Isa, head: Head) -> Any:
    """copy(v, stride, count, copied): values [count, D] into [count, width], zeros at the end."""
    lanes, size, width = isa.lanes, head.size, head.width(isa)
    f = Function.part(module, isa, "copy_values", POINTER, I64, I64, POINTER)
    v, stride, count, copied = f.arguments
    with f.loop(i64(0), count) as key:
        source = f.at(v, f.mul(key.index, stride), head.element)
        target = f.at(copied, f.mul(key.index, i64(width)))
        for d in range(0, size, lanes):
            mask = None if d + lanes <= size else f.mask(i64(size - d))
            value = read_weights(f, head.stored, source, i64(d), mask=mask)
            f.write(value, f.at(target, i64(d)))
    f.ret_void()
    return f.made


def add_values(module: Any, isa: Isa, head: Head, rows: int, stored: WeightType = "f32") -> Any:
    """add(weights, v, stride, first, last, states, sums): sums·factor + weights·v of ``rows``, of
    copied values or those that lie in memory as ``stored``.

    Then the factors are 1: the next keys of the block are added as if in the same call.
    """
    parameters = (POINTER, POINTER, I64, I64, I64, POINTER, POINTER)
    suffix = "" if stored == "f32" else f"_{stored}"
    f = Function.part(module, isa, f"add_values{rows}{suffix}", *parameters)
    weights, v, stride, first, last, states, sums = f.arguments
    lanes, width, state = isa.lanes, head.width(isa), States(f)
    count = width // lanes
    step = vectors_of(isa, rows, max(8, count))
    places = [state.factor(state.of(states, i64(row))) for row in range(rows)]
    factors = [f.splat(f.read(place, F32)) for place in places]
    for place in places:
        f.write(ir.Constant(F32, 1.0), place)

    def columns(column: Any, vectors: int) -> None:
        places = [
            f.at(sums, f.add(column, i64(row * width + i * lanes)))
            for row in range(rows)
            for i in range(vectors)
        ]
        held = [f.fmul(f.read(p), factors[j // vectors]) for j, p in enumerate(places)]
        start = f.at(v, column, element_type(stored))
        with f.loop(first, last, carried=held) as key:
            at = f.mul(key.index, stride)
            right = [
                read_weights(f, stored, start, f.add(at, i64(i * lanes))) for i in range(vectors)
            ]
            for row in range(rows):
                place = f.at(weights, f.add(key.index, i64(row * head.block)))
                left = f.splat(f.read(place, F32))
                for i in range(vectors):
                    j = row * vectors + i
                    key.values[j] = f.multiply_add(left, right[i], key.values[j])
        for place, value in zip(places, key.values, strict=True):
            f.write(value, place)

    whole = count - count % step
    with short_loop(f, whole * lanes, step * lanes) as column:
        columns(column, step)
    if count % step:
        columns(i64(whole * lanes), count % step)
    f.ret_void()
    return f.made

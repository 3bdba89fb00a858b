"""Attention scores q·kᵀ of a block of keys, packing of keys, and the online softmax.

    score_unpacked (decode):                        score_tile (prefill):
    for lanes of keys:                              for group of key vectors:
        for lanes of the head:                          for d in head:
            transpose keys [lanes, lanes]                   right = packed[d, keys]
            sums[row] += splat(q[row, d]) · column          sums[row] += splat(q[row, d]) · right
        scores[row, keys] = sums · scale                scores[row, keys] = sums · scale
    with a soft cap c, c · tanh(sums · scale / c)

    keys [count, D] as they lie  ── pack_keys ──▶  packed [D, block]: a vector is one d of many keys

In registers: the sums of all rows of the tile for the key vectors, a vector of keys, a splat of q.
While keys are read where they lie, the following keys and their values are prefetched into L2, in
ascending cache lines. `softmax` and `softmax_tile` turn scores into weights exp(s − max), and
update the row's maximum, factor and sum (arXiv:1805.02867). Called by
`gptrs.kernels.attention.flash_attention`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from gptrs.kernels.attention.blocks import Head, States, short_loop, vectors_of
from gptrs.kernels.compiler.ir_builder import F32, I32, I64, POINTER, Function, i64, like
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import LINE_BYTES, read_weights, weight_bytes
from gptrs.kernels.rowwise.norm import across, greater
from gptrs.kernels.vector_math import exp_below, tanh

_SHORT = 32
"""Head sizes up to this need no software prefetch: the hardware prefetcher follows the keys."""

_Add = Callable[[Any, Any, list[Any], list[Any]], list[Any]]
_End = Callable[[Any, list[Any]], None]


class _Keys:
    """A loop over ``count`` keys where they lie, transposed in registers, a vector at a time.

    With ``prefetches``, the following keys and the values of these are prefetched, as they may come
    from memory; with ``beyond`` (count, other keys), after so many keys the first of the others.
    The last key is repeated to fill its vector.
    """

    def __init__(
        self, f: Function, head: Head, *given: Any, prefetches: bool = True, beyond: Any = None
    ) -> None:
        self.f, self.head, self.prefetches, self.beyond = f, head, prefetches, beyond
        self.k, self.stride, self.v, self.v_stride = given
        self.lanes = f.isa.lanes

    def columns(self, rows: list[Any], d: Any, used: int) -> list[Any]:
        """``used`` columns [keys] from element d on."""
        f, stored = self.f, self.head.stored
        mask = None if used == self.lanes else f.mask(i64(used))
        return f.transposed([read_weights(f, stored, row, d, mask=mask) for row in rows])[:used]

    def each_vector(self, count: Any, begin: int, add: _Add, end: _End | None = None) -> None:
        """For each vector of keys ``values = add(key, d, columns, values)`` from ``begin`` zeros
        on, in steps over the head's elements, then ``end(key, values)``."""
        f, lanes, size = self.f, self.lanes, self.head.size
        final, whole = f.sub(count, i64(1)), i64(size - size % lanes)
        zero = ir.Constant(f.vector, [0.0] * lanes)
        with f.loop(i64(0), count, i64(lanes)) as key:
            index = [f.least(f.add(key.index, i64(i)), final) for i in range(lanes)]
            rows = [self._at(self.k, f.mul(i, self.stride)) for i in index]
            with f.loop(i64(0), whole, i64(lanes), carried=[zero] * begin) as d:
                if self.prefetches:
                    self._prefetch(key.index, d.index)
                columns = self.columns(rows, d.index, lanes)
                d.values = add(key.index, d.index, columns, d.values)
            values = d.values
            if size % lanes:
                columns = self.columns(rows, whole, size % lanes)
                values = add(key.index, whole, columns, values)
            if end is not None:
                end(key.index, values)

    def _at(self, pointer: Any, index: Any) -> Any:
        return self.f.at(pointer, index, self.head.element)

    def _prefetch(self, key: Any, d: Any) -> None:
        # Cache lines in ascending order, which memory delivers fastest.
        f, lanes = self.f, self.lanes
        in_line = LINE_BYTES // weight_bytes(self.head.stored)
        row_lines = -(-self.head.size // in_line)
        lines = -(-row_lines * lanes * lanes // self.head.size)  # with each step of d
        line = f.mul(f.udiv(d, i64(lanes)), i64(lines))
        number = f.udiv(line, i64(row_lines))
        d = f.mul(f.urem(line, i64(row_lines)), i64(in_line))
        value = self._at(self.v, f.add(f.mul(f.add(key, number), self.v_stride), d))
        following = f.add(key, i64(lanes))
        coming = self._at(self.k, f.mul(following, self.stride))
        if self.beyond is not None:
            count, other = self.beyond
            coming = f.select(f.icmp_signed("<", following, count), coming, other)
        coming = self._at(coming, f.add(f.mul(number, self.stride), d))
        for start in (coming, value):
            for i in range(lines):
                f.prefetch(self._at(start, i64(i * in_line)), cache=2)


def pack_keys(module: Any, isa: Isa, head: Head) -> Any:
    """pack(k, stride, v, v_stride, count, packed): keys [count, D] into [D, block].

    Vectors beyond the last key's are left alone, and not used.
    """
    parameters = (POINTER, I64, POINTER, I64, I64, POINTER)
    f = Function.part(module, isa, "pack_keys", *parameters)
    *given, count, packed = f.arguments

    def put(key: Any, d: Any, columns: list[Any], values: list[Any]) -> list[Any]:
        for i, column in enumerate(columns):
            place = f.add(f.mul(f.add(d, i64(i)), i64(head.block)), key)
            f.write(column, f.at(packed, place))
        return values

    _Keys(f, head, *given).each_vector(count, 0, put)
    f.ret_void()
    return f.made


def score_unpacked(module: Any, isa: Isa, head: Head, rows: int) -> Any:
    """score(queries, k, stride, v, v_stride, left, other, count, scores): q·k·scale of one tile,
    keys where they lie. For the prefetch: ``left`` keys follow in all, then those at ``other``."""
    parameters = (POINTER, POINTER, I64, POINTER, I64, I64, POINTER, I64, POINTER)
    f = Function.part(module, isa, f"score_unpacked{rows}", *parameters)
    queries, *given, left, other, count, scores = f.arguments

    def add(_key: Any, d: Any, columns: list[Any], sums: list[Any]) -> list[Any]:
        for i, column in enumerate(columns):
            for row in range(rows):
                place = f.at(queries, f.add(f.add(d, i64(i)), i64(row * head.width(isa))))
                sums[row] = f.multiply_add(f.splat(f.read(place, F32)), column, sums[row])
        return sums

    def end(key: Any, sums: list[Any]) -> None:
        for row, value in enumerate(sums):
            place = f.at(scores, f.add(key, i64(row * head.block)))
            f.write(_scaled(f, head, value), place)

    keys = _Keys(f, head, *given, prefetches=head.size > _SHORT, beyond=(left, other))
    keys.each_vector(count, rows, add, end)
    f.ret_void()
    return f.made


def score_tile(module: Any, isa: Isa, head: Head, rows: int) -> Any:
    """score(queries, keys, count, scores): q·k·scale of ``rows`` and the first packed keys."""
    f = Function.part(module, isa, f"score{rows}", POINTER, POINTER, I64, POINTER)
    queries, keys, count, scores = f.arguments
    lanes, block, width = isa.lanes, head.block, head.width(isa)
    vectors = vectors_of(isa, rows, block // lanes)
    zero = ir.Constant(f.vector, [0.0] * lanes)
    with f.loop(i64(0), count, i64(vectors * lanes)) as key:
        column = f.at(keys, key.index)
        with f.loop(i64(0), i64(head.size), carried=[zero] * (rows * vectors)) as d:
            at = f.mul(d.index, i64(block))
            right = [f.read(f.at(column, f.add(at, i64(i * lanes)))) for i in range(vectors)]
            for row in range(rows):
                left = f.splat(f.read(f.at(queries, f.add(d.index, i64(row * width))), F32))
                for i in range(vectors):
                    j = row * vectors + i
                    d.values[j] = f.multiply_add(left, right[i], d.values[j])
        for j, value in enumerate(d.values):
            row, i = divmod(j, vectors)
            place = f.at(scores, f.add(key.index, i64(row * block + i * lanes)))
            f.write(_scaled(f, head, value), place)
    f.ret_void()
    return f.made


def _scaled(f: Function, head: Head, products: Any) -> Any:
    """A vector of scores from sums of products: times the scale, then within the cap."""
    if head.softcap is None:
        return f.fmul(products, like(products, head.factor))
    inner = f.fmul(products, like(products, head.factor / head.softcap))
    return f.fmul(tanh(f, inner), like(products, head.softcap))


def softmax(module: Any, isa: Isa, head: Head) -> Any:
    """softmax(scores, first, last, state): scores of a row become weights e^(s − max).

    Keys from ``first`` to ``last`` are seen, the others of their vectors get 0.
    """
    f = Function.part(module, isa, "softmax", POINTER, I64, I64, POINTER)
    scores, first, last, state = f.arguments
    lanes, states = isa.lanes, States(f)
    numbers = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
    infinity = ir.Constant(f.vector, [-math.inf] * lanes)
    low, high = (f.splat(f.trunc(x, I32)) for x in (first, last))
    start = f.sub(first, f.urem(first, i64(lanes)))
    with f.loop(start, last, i64(lanes), carried=[infinity]) as loop:
        key = f.add(f.splat(f.trunc(loop.index, I32)), numbers)
        inside = f.and_(f.icmp_signed(">=", key, low), f.icmp_signed("<", key, high))
        place = f.at(scores, loop.index)
        value = f.select(inside, f.read(place), infinity)
        f.write(value, place)
        loop.values = [greater(f, value, loop.values[0])]
    before, base = _raised(f, states.top(state), loop.values[0])
    factor = exp_below(f, f.fsub(f.splat(before), f.splat(base)))
    f.write(f.extract_element(factor, i64(0)), states.factor(state))
    _weighed(f, scores, start, last, [base], [states.total(state)], [factor])
    f.ret_void()
    return f.made


def softmax_tile(module: Any, isa: Isa, head: Head) -> Any:
    """softmax(scores, states): the same for a tile whose rows see all keys of a whole block."""
    f = Function.part(module, isa, "softmax_tile", POINTER, POINTER)
    scores, states = f.arguments
    rows, lanes, state_of = isa.tile_rows, isa.lanes, States(f)
    infinity = ir.Constant(f.vector, [-math.inf] * lanes)
    bases, factors = (f.alloca(F32, i64(-(-rows // lanes) * lanes)) for _ in range(2))
    for array in (bases, factors):
        array.type = POINTER
    with short_loop(f, rows, 1) as row:
        at = f.at(scores, f.mul(row, i64(head.block)))
        with f.loop(i64(0), i64(head.block), i64(lanes), carried=[infinity]) as loop:
            loop.values = [greater(f, f.read(f.at(at, loop.index)), loop.values[0])]
        before, base = _raised(f, state_of.top(state_of.of(states, row)), loop.values[0])
        f.write(base, f.at(bases, row))
        f.write(f.fsub(before, base), f.at(factors, row))
    for row in range(0, rows, lanes):
        place = f.at(factors, i64(row))
        f.write(exp_below(f, f.read(place)), place)
    with short_loop(f, rows, 2) as row:
        pair = [row, f.add(row, i64(1))]
        its = [state_of.of(states, each) for each in pair]
        found = [f.read(f.at(factors, each), F32) for each in pair]
        for state, factor in zip(its, found, strict=True):
            f.write(factor, state_of.factor(state))
        subtract = [f.read(f.at(bases, each), F32) for each in pair]
        at = f.at(scores, f.mul(row, i64(head.block)))
        totals = [state_of.total(state) for state in its]
        spread = [f.splat(factor) for factor in found]
        _weighed(f, at, i64(0), i64(head.block), subtract, totals, spread, head.block)
    f.ret_void()
    return f.made


def _raised(f: Function, place: Any, vector: Any) -> tuple[Any, Any]:
    """Raise a row's maximum to that of ``vector``: the old maximum, and the number to subtract."""
    before = f.read(place, F32)
    top = greater(f, across(f, vector, lambda a, b: greater(f, a, b)), before)
    f.write(top, place)
    # −∞ minus −∞ would be NaN; 0 in its place gives weights e^−∞ = 0.
    none = f.fcmp_ordered("==", top, ir.Constant(F32, -math.inf))
    return before, f.select(none, ir.Constant(F32, 0.0), top)


def _weighed(
    f: Function,
    scores: Any,
    start: Any,
    stop: Any,
    bases: list[Any],
    totals: list[Any],
    factors: list[Any],
    distance: int = 0,
) -> None:
    """Scores of rows side by side, so far from each other, become weights; add them to totals."""
    spread = [f.splat(base) for base in bases]
    zero = ir.Constant(f.vector, [0.0] * f.isa.lanes)
    with f.loop(start, stop, i64(f.isa.lanes), carried=[zero] * len(bases)) as loop:
        for row, base in enumerate(spread):
            place = f.at(scores, f.add(loop.index, i64(row * distance)))
            weight = exp_below(f, f.fsub(f.read(place), base))
            f.write(weight, place)
            loop.values[row] = f.fadd(loop.values[row], weight)
    for total, factor, value in zip(totals, factors, loop.values, strict=True):
        f.write(f.multiply_add(f.read(total), factor, value), total)

"""Attention softmax(q·kᵀ·scale + mask)·v in f32, without a matrix of scores (arXiv:2205.14135).

One kernel serves prefill and decode. Keys are walked in blocks counted from the row's first key. Of
each block a core packs the keys [block, D] into columns [D, block] on its stack, computes scores of
a few queries in registers, the softmax so far of each (arXiv:1805.02867), and adds the block's
values to the results, again in registers.

Order rule: a score is one chain of multiply-adds over the head's elements; the sum of a block's
weights adds vectors, then lanes as a tree; an element of the result is one chain over the keys that
the query sees, ascending, scaled at the beginning of a block where the maximum rises. Keys that a
query does not see take no part, whatever they hold. So the bits of a query's result depend on its
keys alone: not on other queries or rows, padding, capacity, the kernel's range or ``row_block``.
"""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from llvmlite import ir

from gptrs.errors import ArgumentError
from gptrs.kernels.emit import F32, I1, I32, I64, POINTER, Function, KernelText, i64, like
from gptrs.kernels.isa import Isa
from gptrs.kernels.math import exp
from gptrs.kernels.norm import across, greater

Index = Literal["i32", "i64"]

_POINTERS = ("q", "k", "v", "result", "start", "length")
_STRIDES = tuple(
    f"{operand}_{axis}" for operand in ("q", "k", "v", "r") for axis in ("batch", "head", "token")
)
_SIZES = ("groups", "shared", "queries", "keys", "row_block", "window")
_ROW_STRIDES = ("start_stride", "length_stride")
ATTENTION_WORDS = _POINTERS + _SIZES + _STRIDES + _ROW_STRIDES
"""The argument words, in order.

For q and result [B, H, S, D], k and v [B, G, T, D]: ``groups`` is G, ``shared`` H / G, ``queries``
S, ``keys`` T. All strides count elements and may be anything; the elements of a head are
contiguous. ``start`` and ``length`` point to kv_start and kv_len, one integer every ``stride`` (0:
one for all rows). ``row_block`` is from 1 to `most_rows`. Words that the `Head` makes no use of may
be anything. The result overlaps no operand.
"""

_FAR = 1 << 60
"""Lengths and windows beyond mean the same, and sums of a few of them are words."""


@dataclass(frozen=True)
class Head:
    """What the code depends on besides the vector level."""

    size: int
    """D, from 1 to 256."""
    scale: float | None = None
    """1/√D unless given."""
    causal: bool = False
    window: bool = False
    start: bool = False
    length: bool = False
    index: Index = "i32"
    """The type of kv_start and kv_len."""

    @property
    def block(self) -> int:
        """How many keys a block has: as many as keep the packed ones at 16 KB or less."""
        return 64 if self.size <= 64 else 32 if self.size <= 128 else 16

    @property
    def label(self) -> str:
        """A part of the kernel's name."""
        flags = [n for n in ("causal", "window", "start", "length") if getattr(self, n)]
        return "_".join([str(self.size), *flags])


def most_rows(isa: Isa) -> int:
    """The longest row block: a few tiles, so that packing of keys is paid by many queries."""
    return -(-48 // isa.tile_rows) * isa.tile_rows


def attention_extent(batch: int, groups: int, shared: int, queries: int, row_block: int) -> int:
    """The extent: row blocks of every group of every batch row. Its rows are H/G · S, in the order
    of queries, the heads that share a group side by side."""
    return batch * groups * -(-shared * queries // row_block)


def row_block_for(
    isa: Isa, batch: int, groups: int, shared: int, queries: int, threads: int
) -> int:
    """A row block that leaves every thread some pieces; it changes no bit of the result."""
    rows = max(1, shared * queries)
    wanted = -(-4 * threads // max(1, batch * groups))  # row blocks of each group
    block = min(most_rows(isa), -(-rows // wanted))
    tile = isa.tile_rows
    return min(most_rows(isa), -(-block // tile) * tile)


class _Scratch:
    """Arrays of f32 on the stack, for one piece at a time: 150 KB at most, 70 KB with D = 64."""

    def __init__(self, f: Function, head: Head) -> None:
        rows, lanes = most_rows(f.isa), f.isa.lanes
        width = -(-head.size // lanes) * lanes

        def room(count: int) -> Any:
            made: Any = f.alloca(F32, i64(count))
            made.type = POINTER
            made.align = 64
            return made

        self.width = width
        self.queries = room(rows * head.size)  # [tile, D, tile_rows]
        self.keys = room(head.size * head.block)  # [D, block]
        self.values = room(head.block * width)  # [block, width]
        self.scores = room(rows * head.block)  # [row, block]; weights in the end
        self.sums = room(rows * width)  # [row, width]
        self.states = room(rows * _STATE)


# Of each row: the greatest score, the sum of weights, the factor that brings sums up to date.
_STATE = 3


def _variants(isa: Isa) -> list[int]:
    """Numbers of rows that tiles are made for; others are filled up to the next."""
    return [rows for rows in (1, 2, 4, 8) if rows < isa.tile_rows] + [isa.tile_rows]


def _vectors(isa: Isa, rows: int, most: int) -> int:
    """How many vectors of each row fit into registers, a power of two."""
    count = 1
    while 2 * count <= most:
        used = 2 * count * rows + (2 * count if rows > 1 else 0) + 1
        if used > isa.registers:
            break
        count *= 2
    return count


def _pack_keys(module: Any, isa: Isa, head: Head) -> Any:
    """pack(k, stride, count, packed, v, v_stride, ahead): keys [count, D] into [D, block].

    The last key fills up its vector; vectors beyond are left alone, and not used. With ``ahead`` it
    asks for the next block's keys and this block's values, which pays where they come from memory.
    """
    lanes, size = isa.lanes, head.size
    parameters = (POINTER, I64, I64, POINTER, POINTER, I64, I1)
    f = Function.part(module, isa, "pack_keys", *parameters)
    k, stride, count, packed, v, v_stride, ahead = f.arguments
    final = f.sub(count, i64(1))
    following = f.at(k, f.mul(stride, i64(head.block)))

    def ask(key: Any, d: Any) -> None:
        # Once a line of 16 elements, lines beginning anywhere.
        begins = f.icmp_signed("==", f.and_(d, i64(15)), i64(0))
        with f.if_then(f.and_(ahead, begins)):
            for i in range(lanes):
                token = f.add(key, i64(i))
                f.prefetch(f.at(following, f.add(f.mul(token, stride), d)))
                f.prefetch(f.at(v, f.add(f.mul(token, v_stride), d)))

    def columns(rows: list[Any], key: Any, d: Any, used: int) -> None:
        at = [f.at(row, d) for row in rows]
        mask = None if used == lanes else f.mask(i64(used))
        for i, column in enumerate(f.transposed([f.read(p, mask=mask) for p in at])[:used]):
            place = f.add(f.mul(f.add(d, i64(i)), i64(head.block)), key)
            f.write(column, f.at(packed, place))

    with f.loop(i64(0), count, i64(lanes)) as key:
        rows = [
            f.at(k, f.mul(f.least(f.add(key.index, i64(i)), final), stride)) for i in range(lanes)
        ]
        with f.loop(i64(0), i64(size - size % lanes), i64(lanes)) as d:
            ask(key.index, d.index)
            columns(rows, key.index, d.index, lanes)
        if size % lanes:
            columns(rows, key.index, i64(size - size % lanes), size % lanes)
    f.ret_void()
    return f.made


def _copy_values(module: Any, isa: Isa, head: Head) -> Any:
    """copy(v, stride, count, copied): values [count, D] into [count, width], zeros at the end."""
    lanes, size = isa.lanes, head.size
    width = -(-size // lanes) * lanes
    f = Function.part(module, isa, "copy_values", POINTER, I64, I64, POINTER)
    v, stride, count, copied = f.arguments
    with f.loop(i64(0), count) as key:
        source = f.at(v, f.mul(key.index, stride))
        target = f.at(copied, f.mul(key.index, i64(width)))
        for d in range(0, size, lanes):
            mask = None if d + lanes <= size else f.mask(i64(size - d))
            f.write(f.read(f.at(source, i64(d)), mask=mask), f.at(target, i64(d)))
    f.ret_void()
    return f.made


def _score_tile(module: Any, isa: Isa, head: Head, rows: int) -> Any:
    """score(queries, keys, count, scores): q·k of packed ``rows`` and the block's first keys."""
    f = Function.part(module, isa, f"score{rows}", POINTER, POINTER, I64, POINTER)
    queries, keys, count, scores = f.arguments
    lanes, block = isa.lanes, head.block
    vectors = _vectors(isa, rows, block // lanes)
    zero = ir.Constant(f.vector, [0.0] * lanes)
    with f.loop(i64(0), count, i64(vectors * lanes)) as key:
        column = f.at(keys, key.index)
        with f.loop(i64(0), i64(head.size), carried=[zero] * (rows * vectors)) as d:
            at = f.mul(d.index, i64(block))
            right = [f.read(f.at(column, f.add(at, i64(i * lanes)))) for i in range(vectors)]
            at = f.mul(d.index, i64(isa.tile_rows))
            for row in range(rows):
                left = f.splat(f.read(f.at(queries, f.add(at, i64(row))), F32))
                for i in range(vectors):
                    j = row * vectors + i
                    d.values[j] = f.multiply_add(left, right[i], d.values[j])
        for j, value in enumerate(d.values):
            row, i = divmod(j, vectors)
            f.write(value, f.at(scores, f.add(key.index, i64(row * block + i * lanes))))
    f.ret_void()
    return f.made


def _add_values(module: Any, isa: Isa, head: Head, rows: int) -> Any:
    """add(weights, v, stride, first, last, states, sums): sums·factor + weights·v of ``rows``."""
    parameters = (POINTER, POINTER, I64, I64, I64, POINTER, POINTER)
    f = Function.part(module, isa, f"add_values{rows}", *parameters)
    weights, v, stride, first, last, states, sums = f.arguments
    lanes = isa.lanes
    count = -(-head.size // lanes)
    step = _vectors(isa, rows, max(8, count))

    def columns(column: Any, vectors: int) -> None:
        places = [
            f.at(sums, f.add(column, i64(row * count * lanes + i * lanes)))
            for row in range(rows)
            for i in range(vectors)
        ]
        factors = [f.splat(f.read(f.at(states, i64(row * _STATE + 2)), F32)) for row in range(rows)]
        held = [f.fmul(f.read(p), factors[j // vectors]) for j, p in enumerate(places)]
        start = f.at(v, column)
        with f.loop(first, last, carried=held) as key:
            at = f.mul(key.index, stride)
            right = [f.read(f.at(start, f.add(at, i64(i * lanes)))) for i in range(vectors)]
            for row in range(rows):
                place = f.at(weights, f.add(key.index, i64(row * head.block)))
                left = f.splat(f.read(place, F32))
                for i in range(vectors):
                    j = row * vectors + i
                    key.values[j] = f.multiply_add(left, right[i], key.values[j])
        for place, value in zip(places, key.values, strict=True):
            f.write(value, place)

    whole = count - count % step
    with f.loop(i64(0), i64(whole * lanes), i64(step * lanes)) as column:
        columns(column.index, step)
    if count % step:
        columns(i64(whole * lanes), count % step)
    f.ret_void()
    return f.made


def _softmax(module: Any, isa: Isa, head: Head, rows: int) -> Any:
    """softmax(scores, first, last, states): scores of ``rows`` become weights exp(s − max).

    For one row: keys from ``first`` to ``last`` are seen, the others of their vectors get 0. For
    more all keys of a whole block are seen; side by side, rows wait less for each other's results.
    """
    f = Function.part(module, isa, f"softmax{rows}", POINTER, I64, I64, POINTER)
    scores, first, last, states = f.arguments
    lanes, each = isa.lanes, range(rows)
    scale = head.scale if head.scale is not None else 1 / math.sqrt(head.size)
    numbers = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
    infinity = ir.Constant(f.vector, [-math.inf] * lanes)
    low, high = (f.splat(f.trunc(x, I32)) for x in (first, last))
    start, stop = f.sub(first, f.urem(first, i64(lanes))), last
    if rows > 1:
        start, stop = i64(0), i64(head.block)

    def place(row: int, index: Any) -> Any:
        return f.at(scores, f.add(index, i64(row * head.block)))

    def seen(row: int, index: Any) -> Any:
        value = f.fmul(f.read(place(row, index)), like(infinity, scale))
        if rows > 1:
            return value
        key = f.add(f.splat(f.trunc(index, I32)), numbers)
        inside = f.and_(f.icmp_signed(">=", key, low), f.icmp_signed("<", key, high))
        return f.select(inside, value, infinity)

    with f.loop(start, stop, i64(lanes), carried=[infinity] * rows) as loop:
        loop.values = [greater(f, seen(row, loop.index), loop.values[row]) for row in each]
    tops, befores, bases = loop.values, [], []
    for row in each:
        state = f.at(states, i64(row * _STATE))
        before = f.read(state, F32)
        top = greater(f, across(f, tops[row], lambda a, b: greater(f, a, b)), before)
        f.write(top, state)
        # −∞ minus −∞ would be NaN; 0 in its place gives weights exp(−∞) = 0.
        none = f.fcmp_ordered("==", top, ir.Constant(F32, -math.inf))
        befores.append(before)
        bases.append(f.splat(f.select(none, ir.Constant(F32, 0.0), top)))
    with f.loop(start, stop, i64(lanes), carried=[like(infinity, 0.0)] * rows) as loop:
        for row in each:
            weight = exp(f, f.fsub(seen(row, loop.index), bases[row]))
            f.write(weight, place(row, loop.index))
            loop.values[row] = f.fadd(loop.values[row], weight)
    for row in each:
        factor = f.extract_element(exp(f, f.fsub(f.splat(befores[row]), bases[row])), i64(0))
        total = f.at(states, i64(row * _STATE + 1))
        held = f.fmul(f.read(total, F32), factor)
        f.write(f.fadd(held, across(f, loop.values[row], f.fadd)), total)
        f.write(factor, f.at(states, i64(row * _STATE + 2)))
    f.ret_void()
    return f.made


class _Parts:
    """The functions that a kernel calls, and those for so many rows of a tile."""

    def __init__(self, module: Any, isa: Isa, head: Head) -> None:
        self.isa = isa
        self.pack_keys = _pack_keys(module, isa, head)
        self.copy_values = _copy_values(module, isa, head)
        self.softmax, self.softmax2 = (_softmax(module, isa, head, rows) for rows in (1, 2))
        self.score = {rows: _score_tile(module, isa, head, rows) for rows in _variants(isa)}
        self.add_values = {rows: _add_values(module, isa, head, rows) for rows in _variants(isa)}

    def for_rows(self, f: Function, rows: Any, parts: dict[int, Any], arguments: list[Any]) -> None:
        """Call the function for ``rows``, or for a few more, whose results are not used."""
        cases = [
            (n, next(part for most, part in parts.items() if most >= n), arguments)
            for n in range(1, self.isa.tile_rows + 1)
        ]
        f.choose(rows, cases)


class _Piece:
    """What one row block of one group works on: values in the function that is being written."""

    def __init__(self, f: Function, head: Head, w: dict[str, Any], scratch: _Scratch) -> None:
        self.f, self.head, self.w, self.scratch = f, head, w, scratch

    def locate(self, piece: Any) -> None:
        """Find the piece: its batch row, group, rows and the keys that the batch row offers."""
        f, w = self.f, self.w
        rows = f.mul(w["shared"], w["queries"])
        blocks = f.ceiling(rows, w["row_block"])
        pair = f.udiv(piece, blocks)
        self.top = f.mul(f.urem(piece, blocks), w["row_block"])
        self.count = f.least(f.sub(rows, self.top), w["row_block"])
        self.group, self.batch = f.urem(pair, w["groups"]), f.udiv(pair, w["groups"])
        self.start, end = i64(0), w["keys"]
        if self.head.start:
            self.start = f.within(self._integer("start"), 0, _FAR)
        if self.head.length:
            end = f.within(self._integer("length"), -_FAR, _FAR)
        self.end = f.least(end, w["keys"])
        self.offset = f.sub(end, w["queries"])  # the position of query 0

    def _integer(self, name: str) -> Any:
        f, kind = self.f, I32 if self.head.index == "i32" else I64
        at = f.mul(self.batch, self.w[f"{name}_stride"])
        value = f.read(f.at(self.w[name], at, kind), kind)
        return value if kind is I64 else f.sext(value, I64)

    def at(self, operand: str, head: Any, token: Any) -> Any:
        """The address of the first element of a token of q, k, v or r (the result)."""
        f, w = self.f, self.w
        place = f.mul(self.batch, w[f"{operand}_batch"])
        place = f.add(place, f.mul(head, w[f"{operand}_head"]))
        place = f.add(place, f.mul(token, w[f"{operand}_token"]))
        return f.at(w["result" if operand == "r" else operand], place)

    def of_row(self, operand: str, row: Any) -> Any:
        """The address of q or r of a row of this piece."""
        f = self.f
        row = f.add(self.top, row)
        shared = self.w["shared"]
        head = f.add(f.mul(self.group, shared), f.urem(row, shared))
        return self.at(operand, head, f.udiv(row, shared))

    def low(self, row: Any) -> Any:
        """The first key that a row of this piece sees."""
        if not self.head.window:
            return self.start
        f, position = self.f, self._position(row)
        first = f.sub(f.add(position, i64(1)), f.within(self.w["window"], 1, _FAR))
        return f.select(f.icmp_signed(">", first, self.start), first, self.start)

    def high(self, row: Any) -> Any:
        """The key after the last one that a row of this piece sees."""
        if not self.head.causal:
            return self.end
        return self.f.least(self.f.add(self._position(row), i64(1)), self.end)

    def _position(self, row: Any) -> Any:
        f = self.f
        return f.add(self.offset, f.udiv(f.add(self.top, row), self.w["shared"]))

    def begin(self) -> None:
        """Pack the queries into tiles [D, tile_rows] and clear the rows' states and sums."""
        f, scratch, size = self.f, self.scratch, self.head.size
        tile = i64(f.isa.tile_rows)
        zero = ir.Constant(F32, 0.0)
        with f.loop(i64(0), self.count) as row:
            source = self.of_row("q", row.index)
            inside = f.urem(row.index, tile)
            place = f.add(f.mul(f.sub(row.index, inside), i64(size)), inside)
            with f.loop(i64(0), i64(size)) as d:
                target = f.at(scratch.queries, f.add(place, f.mul(d.index, tile)))
                f.write(f.read(f.at(source, d.index), F32), target)
            state = self.state(row.index)
            f.write(ir.Constant(F32, -math.inf), state)
            f.write(zero, f.at(state, i64(1)))
            sums = f.at(scratch.sums, f.mul(row.index, i64(scratch.width)))
            with f.loop(i64(0), i64(scratch.width), i64(f.isa.lanes)) as d:
                f.write(ir.Constant(f.vector, [0.0] * f.isa.lanes), f.at(sums, d.index))

    def state(self, row: Any) -> Any:
        """The state of a row."""
        return self.f.at(self.scratch.states, self.f.mul(row, i64(_STATE)))

    def walk(self, parts: _Parts) -> None:
        """Take the keys in blocks, from the first that any row sees."""
        f, block = self.f, i64(self.head.block)
        first, last = self.low(i64(0)), self.high(f.sub(self.count, i64(1)))
        before = f.sub(first, self.start)
        first = f.sub(first, f.urem(before, block))
        with f.loop(first, last, block) as loop:
            key, count = loop.index, f.least(f.sub(last, loop.index), block)
            k, v = self.at("k", self.group, key), self.at("v", self.group, key)
            few = f.icmp_signed("<=", self.count, i64(f.isa.tile_rows))
            given = [k, self.w["k_token"], count, self.scratch.keys, v, self.w["v_token"], few]
            f.call(parts.pack_keys, given)
            values = self._values(parts, v, count)
            with f.loop(i64(0), self.count, i64(f.isa.tile_rows)) as tile:
                self._tile(parts, tile.index, key, count, values)

    def _values(self, parts: _Parts, direct: Any, count: Any) -> tuple[Any, Any]:
        """Where the block's values are, and their stride: copied if their end needs care, or if
        several tiles read them, which far strides would make slow."""
        f, scratch = self.f, self.scratch
        stride = self.w["v_token"]
        copied, width = scratch.values, i64(scratch.width)
        if self.head.size % f.isa.lanes:
            f.call(parts.copy_values, [direct, stride, count, copied])
            return copied, width
        several = f.icmp_signed(">", self.count, i64(f.isa.tile_rows))
        with f.if_then(several):
            f.call(parts.copy_values, [direct, stride, count, copied])
        return f.select(several, copied, direct), f.select(several, width, stride)

    def _tile(self, parts: _Parts, row: Any, key: Any, count: Any, values: tuple[Any, Any]) -> None:
        """A block of keys for the tile of queries that begins with ``row``."""
        f = self.f
        rows = f.least(f.sub(self.count, row), i64(f.isa.tile_rows))
        final = f.sub(f.add(row, rows), i64(1))
        stop = f.add(key, count)
        low, high = self.low(final), self.high(row)
        some = f.and_(
            f.icmp_signed("<", self.low(row), stop), f.icmp_signed(">", self.high(final), key)
        )
        every = f.and_(f.icmp_signed("<=", low, key), f.icmp_signed(">=", high, stop))
        scratch = self.scratch
        scores = f.at(scratch.scores, f.mul(row, i64(self.head.block)))
        queries = f.at(scratch.queries, f.mul(row, i64(self.head.size)))
        with f.if_then(some):
            parts.for_rows(f, rows, parts.score, [queries, scratch.keys, count, scores])
            with f.if_else(every, likely=True) as (whole, partly):
                with whole:
                    self._weigh(parts, row, rows, count)
                    given = self._sums(row, values, i64(0), count)
                    parts.for_rows(f, rows, parts.add_values, given)
                with partly, f.loop(row, f.add(row, rows)) as each:
                    self._row(parts, each.index, key, count, values)

    def _weigh(self, parts: _Parts, row: Any, rows: Any, count: Any) -> None:
        """The softmax of a tile that sees all keys of a block."""
        f, block = self.f, i64(self.head.block)
        pairs = f.and_(f.icmp_signed("==", count, block), f.icmp_signed(">", rows, i64(1)))
        with f.if_else(pairs) as (two, one):
            # An odd row is joined by the next of its tile, which nobody uses: tiles have even rows.
            for branch, part, step in ((two, parts.softmax2, 2), (one, parts.softmax, 1)):
                with branch, f.loop(row, f.add(row, rows), i64(step)) as each:
                    at = f.at(self.scratch.scores, f.mul(each.index, block))
                    f.call(part, [at, i64(0), count, self.state(each.index)])

    def _row(self, parts: _Parts, row: Any, key: Any, count: Any, values: tuple[Any, Any]) -> None:
        """A block of keys for a row that does not see all of them."""
        f = self.f
        first = f.sub(self.low(row), key)
        first = f.select(f.icmp_signed(">", first, i64(0)), first, i64(0))
        last = f.least(f.sub(self.high(row), key), count)
        with f.if_then(f.icmp_signed("<", first, last)):
            scores = f.at(self.scratch.scores, f.mul(row, i64(self.head.block)))
            f.call(parts.softmax, [scores, first, last, self.state(row)])
            f.call(parts.add_values[1], self._sums(row, values, first, last))

    def _sums(self, row: Any, values: tuple[Any, Any], first: Any, last: Any) -> list[Any]:
        f, scratch = self.f, self.scratch
        weights = f.at(scratch.scores, f.mul(row, i64(self.head.block)))
        sums = f.at(scratch.sums, f.mul(row, i64(scratch.width)))
        return [weights, *values, first, last, self.state(row), sums]

    def finish(self) -> None:
        """Divide by the sums of weights and store; a row that saw nothing gives 0."""
        f, scratch, size, lanes = self.f, self.scratch, self.head.size, self.f.isa.lanes
        one = ir.Constant(F32, 1.0)
        with f.loop(i64(0), self.count) as row:
            total = f.read(f.at(self.state(row.index), i64(1)), F32)
            # With a key seen the sum is 1 or more; NaN compares false and stays.
            total = f.splat(f.select(f.fcmp_ordered("<", total, one), one, total))
            source = f.at(scratch.sums, f.mul(row.index, i64(scratch.width)))
            target = self.of_row("r", row.index)
            for d in range(0, size, lanes):
                value = f.fdiv(f.read(f.at(source, i64(d))), total)
                mask = None if d + lanes <= size else f.mask(i64(size - d))
                f.write(value, f.at(target, i64(d)), mask)


def attention_kernel(isa: Isa, head: Head) -> KernelText:
    """Attention for heads like ``head``. Words: `ATTENTION_WORDS`; extent: `attention_extent`.

    Query i of S stands at position kv_len − S + i. It sees the keys from kv_start to kv_len, if
    ``causal`` none after its position, with a ``window`` none that many or more before it. One that
    sees no key, or only keys with a score of −∞, gives 0. Raises `ArgumentError` for a head size
    that it is not made for.
    """
    if not 1 <= head.size <= 256:
        raise ArgumentError(f"head size {head.size}, expected 1 to 256")
    name = f"attention_{head.label}"
    module = ir.Module(f"{name} {isa.name}")
    parts = _Parts(module, isa, head)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    sizes = ATTENTION_WORDS[len(_POINTERS) :]
    piece = _Piece(f, head, f.words(address, _POINTERS, sizes), _Scratch(f, head))
    with f.loop(first, last) as loop:
        piece.locate(loop.index)
        piece.begin()
        piece.walk(parts)
        piece.finish()
    f.ret_void()
    return KernelText(str(module), name)

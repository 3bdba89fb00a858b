"""FlashAttention loop of a work item: the blocks of keys, with online softmax.

    prefill (more than four rows):                  decode (up to four rows, one tile):
    for block of keys:                              scores(block 0)
        pack keys; copy values if strided           for block of keys:
        for tile of rows that sees the block:           weights = softmax(scores)
            scores = q · packed keys                    for 8 or more keys:
            weights = softmax(scores)                       scores of the next block
            sums += weights · values                        sums += weights · values

The decode loop reads keys of the next block and values of this one in turn: it is bound by memory,
which is faster with two streams. Values are prefetched `_AHEAD` elements before their use. A block
that all rows of a tile see takes the fast path; at the edges of masks, keys that all rows see are
added for the tile together and the others row by row. Sources as in
`gptrs.kernels.attention.kernel`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.attention.blocks import UNPACKED_ROWS, Head, variants
from gptrs.kernels.attention.scores import (
    pack_keys,
    score_tile,
    score_unpacked,
    softmax,
    softmax_tile,
)
from gptrs.kernels.attention.values import add_values, copy_values
from gptrs.kernels.attention.work_item import WorkItem
from gptrs.kernels.compiler.ir_builder import I1, I64, Function, i64
from gptrs.kernels.compiler.isa import Isa

_AHEAD = 2048
"""Elements that values are prefetched before their use, while scores of other keys are computed."""


class AttentionFunctions:
    """The functions that a kernel calls, some of them by the number of rows of a tile."""

    def __init__(self, module: Any, isa: Isa, head: Head) -> None:
        self.pack_keys = pack_keys(module, isa, head)
        self.copy_values = copy_values(module, isa, head)
        self.softmax = softmax(module, isa, head)
        self.softmax_tile = softmax_tile(module, isa, head)
        unpacked = [rows for rows in variants(isa) if rows <= UNPACKED_ROWS]
        self.unpacked = {rows: score_unpacked(module, isa, head, rows) for rows in unpacked}
        self.score = {rows: score_tile(module, isa, head, rows) for rows in variants(isa)}
        self.add_values = {rows: add_values(module, isa, head, rows) for rows in variants(isa)}
        self.add_stored = self.add_values
        """Of values where they lie."""
        if head.stored != "f32":
            self.add_stored = {
                rows: add_values(module, isa, head, rows, head.stored) for rows in unpacked
            }

    def for_rows(
        self, f: Function, rows: Any, functions: dict[int, Any], arguments: list[Any]
    ) -> None:
        """Call the function for ``rows``, or the next larger one, whose other results are
        unused."""
        cases = [
            (n, next(function for most, function in functions.items() if most >= n), arguments)
            for n in range(1, max(functions) + 1)
        ]
        f.choose(rows, cases)


class _StridedRows(NamedTuple):
    """Rows in memory: the address of the first, and the stride."""

    first: Any
    stride: Any

    def at(self, f: Function, element: Any, row: Any) -> _StridedRows:
        """From a row on."""
        return _StridedRows(f.at(self.first, f.mul(row, self.stride), element), self.stride)


class _Block(NamedTuple):
    """Consecutive keys: number of the first, count, and the addresses of keys and values."""

    key: Any
    count: Any
    keys: _StridedRows
    values: _StridedRows

    def part(self, f: Function, element: Any, first: Any, count: Any) -> _Block:
        """Some of them, where they lie."""
        keys, values = (rows.at(f, element, first) for rows in (self.keys, self.values))
        return _Block(f.add(self.key, first), count, keys, values)


class _Tile:
    """As many queries as scores are taken of at once, from ``row`` of the item on. Values are
    copied, or they lie in memory (``add`` reads either)."""

    def __init__(
        self, item: WorkItem, functions: AttentionFunctions, row: Any, add: dict[int, Any]
    ) -> None:
        f = self.f = item.f
        self.add_values = add
        self.item, self.functions, self.row = item, functions, row
        self.rows = f.least(f.sub(item.count, row), i64(f.isa.tile_rows))
        self.final = f.sub(f.add(row, self.rows), i64(1))
        self.queries = f.at(item.scratch.queries, f.mul(row, i64(item.width)))
        self.sums = f.at(item.scratch.sums, f.mul(row, i64(item.width)))
        self.states = item.states.of(item.scratch.states, row)

    def sees(self, key: Any, count: Any) -> Any:
        """How many of ``count`` keys from ``key`` on it takes scores of."""
        f = self.f
        return f.least(f.sub(self.item.high(self.final), key), count)

    def score_unpacked(self, block: _Block, scores: Any) -> None:
        """Scores of keys where they lie. Behind the last one, prefetches those of the next item,
        most likely the next group's."""
        f, item = self.f, self.item
        left = f.sub(item.high(self.final), block.key)
        other = item.at("k", f.add(item.group, i64(1)), item.low(self.row))
        given = [self.queries, *block.keys, *block.values, left, other, block.count, scores]
        self.functions.for_rows(self.f, self.rows, self.functions.unpacked, given)

    def score_packed(self, count: Any, scores: Any) -> None:
        """Scores of the packed keys."""
        given = [self.queries, self.item.scratch.keys, count, scores]
        self.functions.for_rows(self.f, self.rows, self.functions.score, given)

    def sees_all(self, key: Any, count: Any) -> Any:
        """Whether each row sees all of ``count`` keys from ``key`` on."""
        f, low, high = self.f, self.item.low(self.final), self.item.high(self.row)
        stop = f.add(key, count)
        return f.and_(f.icmp_signed("<=", low, key), f.icmp_signed(">=", high, stop))

    def weigh(self, scores: Any, count: Any) -> None:
        """The softmax of a tile that sees all keys of a block."""
        f, block = self.f, i64(self.item.head.block)
        full = f.and_(
            f.icmp_signed("==", count, block),
            f.icmp_signed("==", self.rows, i64(f.isa.tile_rows)),
        )
        with f.if_else(full) as (together, one_by_one):
            with together:
                f.call(self.functions.softmax_tile, [scores, self.states])
            with one_by_one, f.loop(i64(0), self.rows) as each:
                at, state = self._of(each.index, scores)[:2]
                f.call(self.functions.softmax, [at, i64(0), count, state])

    def add(self, scores: Any, values: _StridedRows, first: Any, last: Any) -> None:
        """Add the values of keys that all rows see."""
        given = [scores, *values, first, last, self.states, self.sums]
        self.functions.for_rows(self.f, self.rows, self.add_values, given)

    def take(self, scores: Any, block: _Block) -> None:
        """The softmax and values of a block, by the keys of it that each row sees."""
        f = self.f
        with f.if_else(self.sees_all(block.key, block.count), likely=True) as (whole, partly):
            with whole:
                self.weigh(scores, block.count)
                self.add(scores, block.values, i64(0), block.count)
            with partly:
                self._take_partly(scores, block)

    def _take_partly(self, scores: Any, block: _Block) -> None:
        """Keys that all rows see at once for the tile, the keys before and after row by row."""
        f, item = self.f, self.item
        first = f.positive(f.sub(item.low(self.final), block.key))
        last = f.least(f.sub(item.high(self.row), block.key), block.count)
        any_common = f.icmp_signed("<", first, last)

        def add_for(row: Any, begin: Any, end: Any) -> None:
            weights, *its = self._of(row, scores)
            with f.if_then(f.icmp_signed("<", begin, end)):
                given = [weights, *block.values, begin, end, *its]
                f.call(self.add_values[1], given)

        def seen_by(row: Any) -> tuple[Any, Any]:
            row = f.add(self.row, row)
            low, high = f.sub(item.low(row), block.key), f.sub(item.high(row), block.key)
            return f.positive(low), f.least(high, block.count)

        with f.loop(i64(0), self.rows) as each:
            begin, end = seen_by(each.index)
            with f.if_then(f.icmp_signed("<", begin, end)):
                at, state = self._of(each.index, scores)[:2]
                f.call(self.functions.softmax, [at, begin, end, state])
                add_for(each.index, begin, f.select(any_common, first, end))
        with f.if_then(any_common):
            self.add(scores, block.values, first, last)
            with f.loop(i64(0), self.rows) as each:
                add_for(each.index, last, seen_by(each.index)[1])

    def _of(self, row: Any, scores: Any) -> tuple[Any, Any, Any]:
        """The scores, state and sums of a row of the tile."""
        f, item = self.f, self.item
        at = f.at(scores, f.mul(row, i64(item.head.block)))
        sums = f.at(self.sums, f.mul(row, i64(item.width)))
        return at, item.states.of(self.states, row), sums


def flash_attention(item: WorkItem, functions: AttentionFunctions) -> None:
    """Take the keys in blocks, from the first that any row sees. Blocks are counted from the row's
    first key, which a window may have left behind: then kv_start is negative."""
    f, block = item.f, i64(item.head.block)
    first, last = item.low(i64(0)), item.high(f.sub(item.count, i64(1)))
    first = f.positive(f.sub(first, f.urem(f.sub(first, item.origin), block)))
    few = f.icmp_signed("<=", item.count, i64(UNPACKED_ROWS))
    with f.if_else(few) as (one, several):
        with one:
            _attend_unpacked(item, functions, first, last)
        with several, f.loop(first, last, block) as loop:
            _attend_packed(item, functions, _block(item, loop.index, last))


def _block(item: WorkItem, key: Any, last: Any) -> _Block:
    """The block that begins with ``key``; it ends before ``last``."""
    f, w = item.f, item.w
    k, v = (item.at(operand, item.group, key) for operand in ("k", "v"))
    count = f.least(f.sub(last, key), i64(item.head.block))
    return _Block(key, count, _StridedRows(k, w["k_token"]), _StridedRows(v, w["v_token"]))


def _attend_packed(item: WorkItem, functions: AttentionFunctions, block: _Block) -> None:
    """A block for several tiles. Values with a large stride or in 16 bits are copied once for all
    of them."""
    f, width = item.f, i64(item.width)
    f.call(functions.pack_keys, [*block.keys, *block.values, block.count, item.scratch.keys])
    far = f.icmp_signed("!=", block.values.stride, width)
    wanted = far if item.head.stored == "f32" else None
    block = block._replace(values=_copied(item, functions, block, wanted))
    with f.loop(i64(0), item.count, i64(f.isa.tile_rows)) as each:
        tile = _Tile(item, functions, each.index, functions.add_values)
        stop = f.add(block.key, block.count)
        begins = f.icmp_signed("<", item.low(each.index), stop)
        ends = f.icmp_signed(">", item.high(tile.final), block.key)
        with f.if_then(f.and_(begins, ends)):
            tile.score_packed(tile.sees(block.key, block.count), item.scratch.scores)
            tile.take(item.scratch.scores, block)


def _copied(
    item: WorkItem, functions: AttentionFunctions, block: _Block, wanted: Any
) -> _StridedRows:
    """The block's values, copied if ``wanted`` (None: always) or if the head is not whole
    vectors."""
    f, target, width = item.f, item.scratch.values, i64(item.width)
    given = [*block.values, block.count, target]
    if item.head.size % f.isa.lanes or wanted is None:
        f.call(functions.copy_values, given)
        return _StridedRows(target, width)
    with f.if_then(wanted):
        f.call(functions.copy_values, given)
    values = block.values
    return _StridedRows(
        f.select(wanted, target, values.first), f.select(wanted, width, values.stride)
    )


def _attend_unpacked(item: WorkItem, functions: AttentionFunctions, first: Any, last: Any) -> None:
    """All blocks for a single tile, bound by memory.

    Values of a block are added while scores of the next block are computed, as two streams in turn
    are read faster than one.
    """
    f, size = item.f, item.head.block
    copied = item.head.size % f.isa.lanes != 0
    tile = _Tile(item, functions, i64(0), functions.add_values if copied else functions.add_stored)
    side = i64(f.isa.tile_rows * size)
    with f.loop(first, last, i64(size), carried=[i64(0), i64(0)]) as loop:
        ready, at = loop.values
        block = _block(item, loop.index, last)
        scores = f.at(item.scratch.scores, at)
        with f.if_then(f.icmp_signed("==", ready, i64(0))):
            count = tile.sees(block.key, block.count)
            with f.if_then(f.icmp_signed(">", count, i64(0))):
                tile.score_unpacked(block._replace(count=count), scores)
        other = f.sub(side, at)
        following = _block(item, f.add(loop.index, i64(size)), last)
        count = tile.sees(following.key, following.count)
        further = f.icmp_signed(">", count, i64(0))
        both = f.and_(further, tile.sees_all(block.key, block.count))
        if copied:
            both = ir.Constant(I1, False)
        with f.if_else(both) as (together, alone):
            with together:
                tile.weigh(scores, block.count)
                _add_and_score(
                    tile, scores, block, following, count, f.at(item.scratch.scores, other)
                )
            with alone:
                values = _copied(item, functions, block, both)
                tile.take(scores, block._replace(values=values))
        loop.values = [f.zext(both, I64), f.select(both, other, at)]


def _add_and_score(
    tile: _Tile, scores: Any, block: _Block, following: _Block, count: Any, target: Any
) -> None:
    """Add a whole block's values, and take scores of the next block's first ``count`` keys."""
    f, element = tile.f, tile.item.head.element
    step = i64(max(8, f.isa.lanes))
    with f.loop(i64(0), i64(tile.item.head.block), step) as loop:
        left = f.least(f.sub(count, loop.index), step)
        with f.if_then(f.icmp_signed(">", left, i64(0))):
            part = following.part(f, element, loop.index, left)
            ahead = f.add(loop.index, i64(_AHEAD // tile.item.head.size))
            part = part._replace(values=block.values.at(f, element, ahead))
            tile.score_unpacked(part, f.at(target, loop.index))
        tile.add(scores, block.values, loop.index, f.add(loop.index, step))

"""The walk of a row block over its keys, in blocks (`gptrs.kernels.attention.kernel`)."""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.attention.blocks import NEAR_ROWS, Head, variants
from gptrs.kernels.attention.scores import (
    pack_keys,
    score_near,
    score_tile,
    softmax,
    softmax_tile,
)
from gptrs.kernels.attention.values import add_values, copy_values
from gptrs.kernels.attention.work_item import Piece
from gptrs.kernels.compiler.ir_builder import I1, I64, Function, i64
from gptrs.kernels.compiler.isa import Isa

_AHEAD = 2048
"""How many elements before their use values are asked for, while scores of others are taken."""


class Parts:
    """The functions that a kernel calls, and those for so many rows of a tile."""

    def __init__(self, module: Any, isa: Isa, head: Head) -> None:
        self.pack_keys = pack_keys(module, isa, head)
        self.copy_values = copy_values(module, isa, head)
        self.softmax = softmax(module, isa, head)
        self.softmax_tile = softmax_tile(module, isa, head)
        near = [rows for rows in variants(isa) if rows <= NEAR_ROWS]
        self.near = {rows: score_near(module, isa, head, rows) for rows in near}
        self.score = {rows: score_tile(module, isa, head, rows) for rows in variants(isa)}
        self.add_values = {rows: add_values(module, isa, head, rows) for rows in variants(isa)}

    def for_rows(self, f: Function, rows: Any, parts: dict[int, Any], arguments: list[Any]) -> None:
        """Call the function for ``rows``, or for a few more, whose results are not used."""
        cases = [
            (n, next(part for most, part in parts.items() if most >= n), arguments)
            for n in range(1, max(parts) + 1)
        ]
        f.choose(rows, cases)


class _Lying(NamedTuple):
    """Rows in memory: the first one, and the distance of rows."""

    first: Any
    stride: Any

    def at(self, f: Function, row: Any) -> _Lying:
        """From a row on."""
        return _Lying(f.at(self.first, f.mul(row, self.stride)), self.stride)


class _Block(NamedTuple):
    """Keys side by side: the number of the first, how many, and where they and their values are."""

    key: Any
    count: Any
    keys: _Lying
    values: _Lying

    def part(self, f: Function, first: Any, count: Any) -> _Block:
        """Some of them."""
        keys, values = self.keys.at(f, first), self.values.at(f, first)
        return _Block(f.add(self.key, first), count, keys, values)


class _Tile:
    """As many queries as scores are taken of at once, from ``row`` of the piece on."""

    def __init__(self, piece: Piece, parts: Parts, row: Any) -> None:
        f = self.f = piece.f
        self.piece, self.parts, self.row = piece, parts, row
        self.rows = f.least(f.sub(piece.count, row), i64(f.isa.tile_rows))
        self.final = f.sub(f.add(row, self.rows), i64(1))
        self.queries = f.at(piece.scratch.queries, f.mul(row, i64(piece.width)))
        self.sums = f.at(piece.scratch.sums, f.mul(row, i64(piece.width)))
        self.states = piece.states.of(piece.scratch.states, row)

    def sees(self, key: Any, count: Any) -> Any:
        """How many of ``count`` keys from ``key`` on it takes scores of."""
        f = self.f
        return f.least(f.sub(self.piece.high(self.final), key), count)

    def score_near(self, block: _Block, scores: Any) -> None:
        """Scores of keys where they lie. Behind the last one it asks for those of the next piece,
        most likely the next group's."""
        f, piece = self.f, self.piece
        left = f.sub(piece.high(self.final), block.key)
        other = piece.at("k", f.add(piece.group, i64(1)), piece.low(self.row))
        given = [self.queries, *block.keys, *block.values, left, other, block.count, scores]
        self.parts.for_rows(self.f, self.rows, self.parts.near, given)

    def score_packed(self, count: Any, scores: Any) -> None:
        """Scores of the packed keys."""
        given = [self.queries, self.piece.scratch.keys, count, scores]
        self.parts.for_rows(self.f, self.rows, self.parts.score, given)

    def sees_all(self, key: Any, count: Any) -> Any:
        """Whether each row sees all of ``count`` keys from ``key`` on."""
        f, low, high = self.f, self.piece.low(self.final), self.piece.high(self.row)
        stop = f.add(key, count)
        return f.and_(f.icmp_signed("<=", low, key), f.icmp_signed(">=", high, stop))

    def weigh(self, scores: Any, count: Any) -> None:
        """The softmax of a tile that sees all keys of a block."""
        f, block = self.f, i64(self.piece.head.block)
        full = f.and_(
            f.icmp_signed("==", count, block),
            f.icmp_signed("==", self.rows, i64(f.isa.tile_rows)),
        )
        with f.if_else(full) as (together, one_by_one):
            with together:
                f.call(self.parts.softmax_tile, [scores, self.states])
            with one_by_one, f.loop(i64(0), self.rows) as each:
                at, state = self._of(each.index, scores)[:2]
                f.call(self.parts.softmax, [at, i64(0), count, state])

    def add(self, scores: Any, values: _Lying, first: Any, last: Any) -> None:
        """Add the values of keys that all rows see."""
        given = [scores, *values, first, last, self.states, self.sums]
        self.parts.for_rows(self.f, self.rows, self.parts.add_values, given)

    def take(self, scores: Any, block: _Block) -> None:
        """The softmax and values of a block, of which each row sees what it sees."""
        f = self.f
        with f.if_else(self.sees_all(block.key, block.count), likely=True) as (whole, partly):
            with whole:
                self.weigh(scores, block.count)
                self.add(scores, block.values, i64(0), block.count)
            with partly:
                self._take_partly(scores, block)

    def _take_partly(self, scores: Any, block: _Block) -> None:
        """Keys that all rows see for the tile together, those before and after for each row."""
        f, piece = self.f, self.piece
        first = f.positive(f.sub(piece.low(self.final), block.key))
        last = f.least(f.sub(piece.high(self.row), block.key), block.count)
        any_common = f.icmp_signed("<", first, last)

        def add_for(row: Any, begin: Any, end: Any) -> None:
            weights, *its = self._of(row, scores)
            with f.if_then(f.icmp_signed("<", begin, end)):
                given = [weights, *block.values, begin, end, *its]
                f.call(self.parts.add_values[1], given)

        def seen_by(row: Any) -> tuple[Any, Any]:
            row = f.add(self.row, row)
            low, high = f.sub(piece.low(row), block.key), f.sub(piece.high(row), block.key)
            return f.positive(low), f.least(high, block.count)

        with f.loop(i64(0), self.rows) as each:
            begin, end = seen_by(each.index)
            with f.if_then(f.icmp_signed("<", begin, end)):
                at, state = self._of(each.index, scores)[:2]
                f.call(self.parts.softmax, [at, begin, end, state])
                add_for(each.index, begin, f.select(any_common, first, end))
        with f.if_then(any_common):
            self.add(scores, block.values, first, last)
            with f.loop(i64(0), self.rows) as each:
                add_for(each.index, last, seen_by(each.index)[1])

    def _of(self, row: Any, scores: Any) -> tuple[Any, Any, Any]:
        """The scores, state and sums of a row of the tile."""
        f, piece = self.f, self.piece
        at = f.at(scores, f.mul(row, i64(piece.head.block)))
        sums = f.at(self.sums, f.mul(row, i64(piece.width)))
        return at, piece.states.of(self.states, row), sums


def walk(piece: Piece, parts: Parts) -> None:
    """Take the keys in blocks, from the first that any row sees."""
    f, block = piece.f, i64(piece.head.block)
    first, last = piece.low(i64(0)), piece.high(f.sub(piece.count, i64(1)))
    first = f.sub(first, f.urem(f.sub(first, piece.start), block))
    few = f.icmp_signed("<=", piece.count, i64(NEAR_ROWS))
    with f.if_else(few) as (one, several):
        with one:
            _walk_near(piece, parts, first, last)
        with several, f.loop(first, last, block) as loop:
            _take_packed(piece, parts, _block(piece, loop.index, last))


def _block(piece: Piece, key: Any, last: Any) -> _Block:
    """The block that begins with a key, of those before ``last``."""
    f, w = piece.f, piece.w
    k, v = (piece.at(operand, piece.group, key) for operand in ("k", "v"))
    count = f.least(f.sub(last, key), i64(piece.head.block))
    return _Block(key, count, _Lying(k, w["k_token"]), _Lying(v, w["v_token"]))


def _take_packed(piece: Piece, parts: Parts, block: _Block) -> None:
    """A block for several tiles. Values at far strides would be slow for all but the first."""
    f, width = piece.f, i64(piece.width)
    f.call(parts.pack_keys, [*block.keys, *block.values, block.count, piece.scratch.keys])
    far = f.icmp_signed("!=", block.values.stride, width)
    block = block._replace(values=_copied(piece, parts, block, far))
    with f.loop(i64(0), piece.count, i64(f.isa.tile_rows)) as each:
        tile = _Tile(piece, parts, each.index)
        stop = f.add(block.key, block.count)
        begins = f.icmp_signed("<", piece.low(each.index), stop)
        ends = f.icmp_signed(">", piece.high(tile.final), block.key)
        with f.if_then(f.and_(begins, ends)):
            tile.score_packed(tile.sees(block.key, block.count), piece.scratch.scores)
            tile.take(piece.scratch.scores, block)


def _copied(piece: Piece, parts: Parts, block: _Block, wanted: Any) -> _Lying:
    """The block's values, copied if that is wanted or if their end needs care."""
    f, target, width = piece.f, piece.scratch.values, i64(piece.width)
    given = [*block.values, block.count, target]
    if piece.head.size % f.isa.lanes:
        f.call(parts.copy_values, given)
        return _Lying(target, width)
    with f.if_then(wanted):
        f.call(parts.copy_values, given)
    values = block.values
    return _Lying(f.select(wanted, target, values.first), f.select(wanted, width, values.stride))


def _walk_near(piece: Piece, parts: Parts, first: Any, last: Any) -> None:
    """All blocks for a single tile. What it waits for is memory, which gives more if asked at two
    places in turn: a block's values are added while scores of the next block are taken."""
    f, size = piece.f, piece.head.block
    tile = _Tile(piece, parts, i64(0))
    side = i64(f.isa.tile_rows * size)
    with f.loop(first, last, i64(size), carried=[i64(0), i64(0)]) as loop:
        ready, at = loop.values
        block = _block(piece, loop.index, last)
        scores = f.at(piece.scratch.scores, at)
        with f.if_then(f.icmp_signed("==", ready, i64(0))):
            count = tile.sees(block.key, block.count)
            with f.if_then(f.icmp_signed(">", count, i64(0))):
                tile.score_near(block._replace(count=count), scores)
        other = f.sub(side, at)
        following = _block(piece, f.add(loop.index, i64(size)), last)
        count = tile.sees(following.key, following.count)
        further = f.icmp_signed(">", count, i64(0))
        both = f.and_(further, tile.sees_all(block.key, block.count))
        if piece.head.size % f.isa.lanes:
            both = ir.Constant(I1, False)  # its values are copied
        with f.if_else(both) as (together, alone):
            with together:
                tile.weigh(scores, block.count)
                _add_and_score(
                    tile, scores, block, following, count, f.at(piece.scratch.scores, other)
                )
            with alone:
                values = _copied(piece, parts, block, both)
                tile.take(scores, block._replace(values=values))
        loop.values = [f.zext(both, I64), f.select(both, other, at)]


def _add_and_score(
    tile: _Tile, scores: Any, block: _Block, following: _Block, count: Any, target: Any
) -> None:
    """Add a whole block's values, and take scores of the next block's first ``count`` keys."""
    f = tile.f
    step = i64(max(8, f.isa.lanes))
    with f.loop(i64(0), i64(tile.piece.head.block), step) as loop:
        left = f.least(f.sub(count, loop.index), step)
        with f.if_then(f.icmp_signed(">", left, i64(0))):
            part = following.part(f, loop.index, left)
            ahead = f.add(loop.index, i64(_AHEAD // tile.piece.head.size))
            part = part._replace(values=block.values.at(f, ahead))
            tile.score_near(part, f.at(target, loop.index))
        tile.add(scores, block.values, loop.index, f.add(loop.index, step))

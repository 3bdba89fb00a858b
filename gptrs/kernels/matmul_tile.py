"""A tile of the matrix product: a part of C in registers, while a block of the depth goes by."""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.coded import Container, Decoder, block_rows, place_of
from gptrs.kernels.emit import F32, I1, I8, I64, POINTER, Function, i64
from gptrs.kernels.isa import Isa
from gptrs.kernels.matmul import Product
from gptrs.kernels.matmul_weights import LINE_BYTES, WeightType, read_ahead, read_weights


def decoding_rows(isa: Isa) -> int:
    """How high a tile may be that decodes a panel as it reads it: registers are left for that."""
    return min(isa.tile_rows, (isa.registers - 6) // isa.tile_vectors)


_TILE = (POINTER, POINTER, POINTER, I64, POINTER, I64, I64, I1)
_CODED = (POINTER, POINTER, I64)


def _tile(module: Any, isa: Isa, product: Product, rows: int, decode: bool) -> Any:
    """tile(a, panel, ahead, step, c, ldc, depth, fresh): C[rows, w] = (0 if fresh else C) + A·B.

    Meanwhile it asks for memory from ``ahead`` on, ``step`` bytes for each row of the panel. If it
    is to ``decode``, three arguments follow: the container, the panel's exceptions from here on,
    and the place of the block's begin in the panel. Else a panel of a coded product is f32 here.
    """
    kinds = (*_TILE, *_CODED) if decode else _TILE
    f = Function.part(module, isa, f"tile{rows}{'_coded' * decode}", *kinds)
    a, panel, ahead, step, c, ldc, depth, fresh, *coded = f.arguments
    lanes, vectors = isa.lanes, isa.tile_vectors
    weights = _Coded(f, product, panel, *coded) if decode else _Plain(f, product, panel)
    places = [
        f.at(f.at(c, f.mul(ldc, i64(row))), i64(vector * lanes))
        for row in range(rows)
        for vector in range(vectors)
    ]
    for place in places[:: max(1, LINE_BYTES // (4 * lanes))]:
        f.prefetch(place)
    zero = ir.Constant(f.vector, [0.0] * lanes)
    entry, resume, start = f.block, f.append_basic_block("resume"), f.append_basic_block("start")
    f.cbranch(fresh, start, resume)
    f.position_at_end(resume)
    held = [f.read(place) for place in places]
    f.branch(start)
    f.position_at_end(start)
    sums = [f.phi(f.vector) for _ in places]
    for total, value in zip(sums, held, strict=True):
        total.add_incoming(zero, entry)
        total.add_incoming(value, resume)
    carried = [*sums, ahead, *weights.carried]
    with f.loop(i64(0), depth, i64(weights.rows), carried=carried) as loop:
        *sums, ahead = loop.values[: len(sums) + 1]
        weights.carried = loop.values[len(sums) + 1 :]
        for k, right in weights.read(loop.index):
            read_ahead(f, product.weights, ahead)
            at = f.mul(f.add(loop.index, i64(k)), i64(isa.tile_rows))
            for row in range(rows):
                left = f.splat(f.read(f.at(a, f.add(at, i64(row))), F32))
                for vector in range(vectors):
                    i = row * vectors + vector
                    sums[i] = f.multiply_add(left, right[vector], sums[i])
            ahead = f.at(ahead, step, I8)
        loop.values = [*sums, ahead, *weights.carried]
    for total, place in zip(loop.values, places, strict=False):
        f.write(total, place)
    f.ret_void()
    return f.made


class _Plain:
    """Rows of a panel as vectors of f32, one at a time."""

    rows = 1

    def __init__(self, f: Function, product: Product, panel: Any) -> None:
        self._f, self._panel = f, panel
        self._weights: WeightType = "f32" if product.coded else product.weights
        self.carried: list[Any] = []

    def read(self, row: Any) -> Iterator[tuple[int, list[Any]]]:
        """The vectors of each of the rows from ``row`` on, and its number."""
        f = self._f
        at = f.mul(row, i64(f.isa.tile_columns))
        places = [f.add(at, i64(i * f.isa.lanes)) for i in range(f.isa.tile_vectors)]
        yield 0, [read_weights(f, self._weights, self._panel, place) for place in places]


class _Coded:
    """`_Plain` of a panel that is coded, the rows of a block at a time."""

    def __init__(
        self, f: Function, product: Product, panel: Any, start: Any, entry: Any, first: Any
    ) -> None:
        self._f, self._panel, self._first = f, panel, first
        self._container = Container(f, product.weights, start)
        self._decoder = Decoder(f, product.weights, self._container.table())
        self.rows = block_rows(f.isa)
        self.carried = [entry, place_of(f, entry)]

    def read(self, row: Any) -> Iterator[tuple[int, list[Any]]]:
        """As that of `_Plain`."""
        f, vectors = self._f, self._f.isa.tile_vectors
        block = self._container.after(self._panel, row)
        first = f.add(self._first, f.mul(row, i64(f.isa.tile_columns)))
        for half in (0, 1):
            entry, place = self.carried
            right, self.carried = self._decoder.half(block, half, first, (entry, place))
            for i in range(0, len(right), vectors):
                yield (half * len(right) + i) // vectors, right[i:][:vectors]


def _copy(module: Any, isa: Isa, decode: bool) -> Any:
    """copy(source, lds, destination, ldd, rows, columns)."""
    f = Function.part(module, isa, f"copy{'_coded' * decode}", POINTER, I64, POINTER, I64, I64, I64)
    source, lds, destination, ldd, rows, columns = f.arguments
    for row, column, mask in f.pieces(rows, columns):
        value = f.read(f.at(source, f.add(f.mul(row, lds), column)), mask=mask)
        f.write(value, f.at(destination, f.add(f.mul(row, ldd), column)), mask)
    f.ret_void()
    return f.made


def _edge(module: Any, isa: Isa, whole: Any, decode: bool) -> Any:
    """edge(as tile, rows, columns): a tile that C does not cover, computed beside it."""
    kinds = (*_TILE, *_CODED) if decode else _TILE
    f = Function.part(module, isa, f"edge{'_coded' * decode}", *kinds, I64, I64)
    a, panel, ahead, step, c, ldc, depth, fresh, *coded, rows, columns = f.arguments
    copy, width = _copy(module, isa, decode), i64(isa.tile_columns)
    beside = f.alloca(ir.ArrayType(F32, isa.tile_rows * isa.tile_columns))
    with f.if_then(f.not_(fresh)):
        f.call(copy, [c, ldc, beside, width, rows, columns])
    f.call(whole, [a, panel, ahead, step, beside, width, depth, fresh, *coded, rows])
    f.call(copy, [beside, width, c, ldc, rows, columns])
    f.ret_void()
    return f.made


def _whole(module: Any, isa: Isa, product: Product, decode: bool) -> Any:
    """whole(as tile, rows): the tile function for so many rows."""
    most = decoding_rows(isa) if decode else isa.tile_rows
    tiles = [_tile(module, isa, product, rows + 1, decode) for rows in range(most)]
    kinds = (*_TILE, *_CODED) if decode else _TILE
    f = Function.part(module, isa, f"whole{'_coded' * decode}", *kinds, I64)
    *arguments, rows = f.arguments
    f.choose(rows, [(i + 1, tile, arguments) for i, tile in enumerate(tiles)])
    f.ret_void()
    return f.made


class TileFunctions(NamedTuple):
    """Both take the arguments of a tile function, then how many rows it has."""

    whole: Any
    edge: Any
    """Of a tile that C does not cover; how many columns it has comes last."""


def tile_functions(module: Any, isa: Isa, product: Product, decode: bool = False) -> TileFunctions:
    """The functions for a tile of any size; see `_tile` for their arguments."""
    whole = _whole(module, isa, product, decode)
    return TileFunctions(whole, _edge(module, isa, whole, decode))

"""Microkernel of the blocked GEMM: a register tile of C over a block of the depth.

    sums[h, w] = 0 or C                     # registers: h rows of w/lanes vectors
    prefetch C                              # into L1: it is stored at the end
    for k in block of the depth:
        b[w] = panel[k]                     # registers: w/lanes vectors, widened to f32
        prefetch `step` bytes at `ahead`    # into L2: the tile's share of the next panel
        for row in h:
            sums[row] += splat(a[k, row]) · b
    C = sums

    packed A, one tile:  k=0: a0 a1 .. a(h-1) | k=1: a0 a1 .. | ...     h = `Isa.tile_rows`
    panel of B:          k=0: b0 b1 .. b(w-1) | k=1: b0 b1 .. | ...     w = `Isa.tile_columns`

A function is generated for each number of rows up to h, never inlined, so that its loop has all
registers. A tile at the edge of C is computed in a buffer on the stack and copied. Compressed
panels (`gptrs.kernels.weight_compression`) are decoded in registers by the tile that reads them;
the first tile of several stores the decoded f32 for the others. Called by
`gptrs.kernels.gemm.blocked`.

For the technique (packed operands, a microkernel with C in registers) compare Goto and van de
Geijn, "Anatomy of high-performance matrix multiplication" (2008), and BLIS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, I1, I8, I64, POINTER, Function, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.conv.indirect_gemm import copy_function
from gptrs.kernels.gemm.product import Product
from gptrs.kernels.gemm.weight_elements import (
    LINE_BYTES,
    WeightType,
    read_ahead,
    read_weights,
    row_bytes,
)
from gptrs.kernels.weight_compression.decoder import (
    Decoder,
    PanelDecoder,
    can_pipeline,
    decoder_rows,
)
from gptrs.kernels.weight_compression.format import Container

Panel = Literal["stored", "decoded", "kept"]
"""How a tile reads a panel.

- stored: as it is (f32 if the weights are compressed and the panel was decompressed before);
- decoded: compressed, and decoded in registers;
- kept: the same, and the decoded f32 are stored for the other tiles of the panel.
"""

_TILE = (POINTER, POINTER, POINTER, I64, POINTER, I64, I64, I1)
_COMPRESSED = (POINTER, POINTER, I64)
_ARGUMENTS: dict[Panel, tuple[Any, ...]] = {
    "stored": _TILE,
    "decoded": (*_TILE, *_COMPRESSED),
    "kept": (*_TILE, *_COMPRESSED, POINTER),
}


def _tile(module: Any, isa: Isa, product: Product, panels: Panel, rows: int) -> Any:
    """tile(a, panel, ahead, step, c, ldc, depth, fresh): C[rows, w] = (0 if fresh else C) + A·B.

    ``ahead``: the address prefetched meanwhile, ``step`` bytes for each row of the panel. A tile
    that decodes has three more arguments: the container, the address of the panel's next exception,
    and the place in the panel where the block begins; "kept" a fourth: where the f32 are stored.
    """
    f = Function.part(module, isa, f"{panels}_tile{rows}", *_ARGUMENTS[panels])
    a, panel, ahead, step, c, ldc, depth, fresh, *compressed = f.arguments
    lanes, vectors, line = isa.lanes, isa.tile_vectors, row_bytes(isa, product.weights)
    places = [
        f.at(f.at(c, f.mul(ldc, i64(row))), i64(vector * lanes))
        for row in range(rows)
        for vector in range(vectors)
    ]
    weights = (
        _CompressedPanel(f, product, len(places), panel, depth, *compressed)
        if compressed
        else _StoredPanel(f, product, panel)
    )
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
            read_ahead(f, line, ahead)
            at = f.mul(f.add(loop.index, i64(k)), i64(isa.tile_rows))
            for row in range(rows):
                left = f.splat(f.read(f.at(a, f.add(at, i64(row))), F32))
                for vector in range(vectors):
                    i = row * vectors + vector
                    sums[i] = f.multiply_add(left, right[vector], sums[i])
                weights.advance()
            ahead = f.at(ahead, step, I8)
        loop.values = [*sums, ahead, *weights.carried]
    for total, place in zip(loop.values, places, strict=False):
        f.write(total, place)
    f.ret_void()
    return f.made


class _StoredPanel:
    """Rows of a panel as vectors of f32, one at a time."""

    rows = 1

    def __init__(self, f: Function, product: Product, panel: Any) -> None:
        self._f, self._panel = f, panel
        self._weights: WeightType = "f32" if product.compressed else product.weights
        self.carried: list[Any] = []

    def read(self, row: Any) -> Iterator[tuple[int, list[Any]]]:
        """The vectors of each of the rows from ``row`` on, and its number."""
        f = self._f
        at = f.mul(row, i64(f.isa.tile_columns))
        places = [f.add(at, i64(i * f.isa.lanes)) for i in range(f.isa.tile_vectors)]
        yield 0, [read_weights(f, self._weights, self._panel, place) for place in places]

    def advance(self) -> None:
        """Emit the instructions that are interleaved with multiply-adds: none."""


class _CompressedPanel(PanelDecoder):
    """Rows of a compressed panel as vectors of f32, the rows of a block at a time."""

    def __init__(
        self,
        f: Function,
        product: Product,
        sums: int,
        panel: Any,
        depth: Any,
        start: Any,
        entry: Any,
        first: Any,
        keep: Any = None,
    ) -> None:
        decoder = Decoder(f, product.weights, Container(f, product.weights, start))
        pipelined = can_pipeline(f.isa, sums)
        super().__init__(decoder, panel, depth, entry, first, pipelined=pipelined)
        self._keep = keep

    def read(self, row: Any) -> Iterator[tuple[int, list[Any]]]:
        """`_StoredPanel.read`; stores the vectors too if the tile keeps them."""
        f = self._f
        for k, vectors in super().read(row):
            if self._keep is not None:
                kept = f.at(self._keep, f.mul(f.add(row, i64(k)), i64(f.isa.tile_columns)))
                for i, vector in enumerate(vectors):
                    f.write(vector, f.at(kept, i64(i * f.isa.lanes)))
            yield k, vectors


class TileFunctions(NamedTuple):
    """Both have the arguments of a tile function, then the number of rows."""

    whole: Any
    edge: Any
    """Of a tile at the edge of C; the last argument is the number of columns."""


class Tiles:
    """The functions of a module for tiles of any size; their arguments are those of `_tile`."""

    def __init__(self, module: Any, isa: Isa, product: Product) -> None:
        self._module, self._isa, self._product = module, isa, product
        self._copy = copy_function(module, isa)

    def functions(self, panels: Panel) -> TileFunctions:
        whole = self._whole(panels)
        return TileFunctions(whole, self._edge(panels, whole))

    def _whole(self, panels: Panel) -> Any:
        """whole(as tile, rows): the tile function for so many rows."""
        module, isa = self._module, self._isa
        most = isa.tile_rows if panels == "stored" else decoder_rows(isa)
        tiles = [_tile(module, isa, self._product, panels, rows + 1) for rows in range(most)]
        f = Function.part(module, isa, f"{panels}_whole", *_ARGUMENTS[panels], I64)
        *arguments, rows = f.arguments
        f.choose(rows, [(i + 1, tile, arguments) for i, tile in enumerate(tiles)])
        f.ret_void()
        return f.made

    def _edge(self, panels: Panel, whole: Any) -> Any:
        """edge(as tile, rows, columns): a tile at the edge of C, computed on the stack."""
        isa = self._isa
        f = Function.part(self._module, isa, f"{panels}_edge", *_ARGUMENTS[panels], I64, I64)
        a, panel, ahead, step, c, ldc, depth, fresh, *compressed, rows, columns = f.arguments
        width, beside = i64(isa.tile_columns), f.stack_array(isa.tile_rows * isa.tile_columns)
        with f.if_then(f.not_(fresh)):
            f.call(self._copy, [c, ldc, beside, width, rows, columns])
        f.call(whole, [a, panel, ahead, step, beside, width, depth, fresh, *compressed, rows])
        f.call(self._copy, [beside, width, c, ldc, rows, columns])
        f.ret_void()
        return f.made

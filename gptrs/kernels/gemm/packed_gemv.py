"""Software-prefetched GEMV over packed panels (decode): the matrix product for few rows.

    for group of rows of A (at most 8):
        for two panels side by side, or one:            # extent: panels
            totals[rows, panels, w] = 0                 # f64, on the stack
            for depth block of the order rule:
                sums[rows, panels, w] = 0               # registers
                for k in the block:
                    for panel in the group:
                        b[w] = panel[k]                 # widened to f32, or decoded
                        sums[:, panel] += splat(A[:, k]) · b
                totals += sums
            C[rows, columns of the panels] = totals
    epilogue (bias, activation, factor, residual) of the range

    panels:  | 0 | 1 | 2 | 3 | 4 | 5 |      stream 1 reads 0, 1, 2 and stream 2 reads 3, 4, 5:
               └──stream 1─┘└─stream 2─┘    each goes on in ascending addresses

Each of two streams reads consecutive panels, so that memory is read at two places and without a
break, as hardware prefetchers expect: they fetch ahead of a stream and start slowly at a new
address. Levels whose CPUs do so too late (`Isa.prefetches_streams`) prefetch in software, `AHEAD`
bytes before the use, into L2; so do all where registers hold the sums of one panel alone, whose
single stream is too slow for hardware. Compressed panels are decoded
in registers (`gptrs.kernels.weight_compression.decoder`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, I8, I64, POINTER, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.product import (
    DepthBlock,
    Finish,
    Product,
    Totals,
    depth_blocks,
    gemm_arguments,
)
from gptrs.kernels.gemm.weight_elements import (
    AHEAD,
    WeightType,
    element_type,
    read_ahead,
    read_weights,
    row_bytes,
)
from gptrs.kernels.weight_compression.decoder import (
    Decoder,
    PanelDecoder,
    can_pipeline,
    decoder_registers,
    decoder_rows,
)
from gptrs.kernels.weight_compression.format import Container, block_bytes, block_rows

MOST_ROWS = 8
_TWO_COMPRESSED = 20
"""Most sums with which two compressed panels are read side by side. With more, one panel is read,
and its blocks are decoded in a software pipeline (`PanelDecoder`)."""


def packed_gemv_limit(isa: Isa, product: Product) -> int:
    """The most rows for which `packed_gemv_kernel` is the faster one: fewer than a tile has."""
    most = decoder_rows(isa) if product.compressed else isa.tile_rows
    return max(1, min(MOST_ROWS, most - 1))


def _streams(isa: Isa, rows: int, compressed: bool) -> list[int]:
    """How many panels are read side by side, in the main loop and in the loop over the rest: two if
    registers hold their sums, which gives the CPU enough independent instructions."""
    sums = 2 * rows * isa.tile_vectors
    if compressed:
        both = sums <= min(_TWO_COMPRESSED, decoder_registers(isa))
    else:
        both = sums + rows < isa.registers  # and an element of each row of A
    return [2, 1] if both else [1]


_GEMV_ARGUMENTS = (I64, POINTER, I64, I64, I64)


def _gemv_function(module: Any, isa: Isa, product: Product, rows: int, compressed: bool) -> Any:
    """gemv(arguments, panels, row, first, last): ``rows`` rows of C from ``row`` on, for a range
    of panels. ``panels`` is the address of the container if the panels are compressed."""
    f = Function.part(module, isa, f"gemv{rows}{'_compressed' * compressed}", *_GEMV_ARGUMENTS)
    address, panels, top, first, last = f.arguments
    w = gemm_arguments(f, address)
    a = [f.at(w["a"], f.mul(f.add(top, i64(row)), w["lda"])) for row in range(rows)]
    panels_at_once = _streams(isa, rows, compressed)
    kind = _CompressedPanels if compressed else _Panels
    totals = Totals(f, rows * panels_at_once[0] * isa.tile_vectors)
    group = kind(f, product, w, panels, totals, alone=panels_at_once == [1])
    for streams in panels_at_once:
        length = f.sdiv(f.sub(last, first), i64(streams))
        with f.loop(i64(0), length) as turn:
            begin = f.add(first, turn.index)
            group.emit(a, top, [f.add(begin, f.mul(length, i64(i))) for i in range(streams)])
        first = f.add(first, f.mul(length, i64(streams)))
    f.ret_void()
    return f.made


class _Panels:
    """Rows of C from several panels that are read side by side, or from one ``alone``."""

    def __init__(
        self,
        f: Function,
        product: Product,
        arguments: dict[str, Any],
        panels: Any,
        totals: Totals,
        *,
        alone: bool,
    ) -> None:
        self.f, self.arguments, self.panels, self.alone = f, arguments, panels, alone
        self.prefetches = alone or f.isa.prefetches_streams
        self.totals = totals
        self.weights: WeightType = product.weights
        self.zero = ir.Constant(f.vector, [0.0] * f.isa.lanes)

    def emit(self, a: list[Any], top: Any, numbers: list[Any]) -> None:
        """The rows ``a``, from row ``top`` of C on, of the panels with these ``numbers``."""
        count = len(a) * len(numbers) * self.f.isa.tile_vectors
        self.totals.clear(count)
        with depth_blocks(self.f, self.arguments["depth"], self.begin(numbers)) as block:
            sums, block.carried = self.sums(a, numbers, block)
            self.totals.add(sums)
        self.store(self.totals.sums(count), top, numbers)

    def begin(self, numbers: list[Any]) -> list[Any]:
        """The values carried from block to block of the depth."""
        return []

    def sums(
        self, a: list[Any], numbers: list[Any], block: DepthBlock
    ) -> tuple[list[Any], list[Any]]:
        """Sums over a block by row, panel and vector; and the values carried to the next block."""
        f, w, vectors = self.f, self.arguments, self.f.isa.tile_vectors
        kind, streams = element_type(self.weights), len(numbers)
        width = i64(f.isa.tile_columns)
        starts = [f.mul(f.mul(number, w["depth"]), width) for number in numbers]
        panels = [f.at(self.panels, start, kind) for start in starts]
        carried = [self.zero] * (len(a) * streams * vectors)
        with f.loop(block.begin, block.end, carried=carried) as loop:
            left = [f.splat(f.read(f.at(row, loop.index), F32)) for row in a]
            at = f.mul(loop.index, width)
            if self.prefetches:
                size = row_bytes(f.isa, self.weights)
                ahead = f.mul(f.add(loop.index, i64(AHEAD // size)), width)
                for panel in panels:
                    read_ahead(f, size, f.at(panel, ahead, kind))
            for i in range(streams * vectors):
                stream, vector = divmod(i, vectors)
                index = f.add(at, i64(vector * f.isa.lanes))
                right = read_weights(f, self.weights, panels[stream], index)
                for row in range(len(a)):
                    j = row * streams * vectors + i
                    loop.values[j] = f.multiply_add(left[row], right, loop.values[j])
        return loop.values, []

    def store(self, sums: list[Any], top: Any, numbers: list[Any]) -> None:
        """Write sums to C."""
        f, w, vectors = self.f, self.arguments, self.f.isa.tile_vectors
        for j, total in enumerate(sums):
            row, i = divmod(j, len(numbers) * vectors)
            column = f.mul(numbers[i // vectors], i64(f.isa.tile_columns))
            here = f.add(column, i64(i % vectors * f.isa.lanes))
            c = f.at(w["c"], f.add(f.mul(f.add(top, i64(row)), w["ldc"]), here))
            f.write(total, c, f.mask(f.sub(w["columns"], here)))


class _CompressedPanels(_Panels):
    """`_Panels` of compressed panels, a few rows of each at a time."""

    def __init__(
        self,
        f: Function,
        product: Product,
        arguments: dict[str, Any],
        panels: Any,
        totals: Totals,
        *,
        alone: bool,
    ) -> None:
        super().__init__(f, product, arguments, panels, totals, alone=alone)
        self.container = Container(f, product.weights, panels)
        self.decoder = Decoder(f, product.weights, self.container)
        self.decoders: list[PanelDecoder] = []

    def begin(self, numbers: list[Any]) -> list[Any]:
        f, depth, zero = self.f, self.arguments["depth"], i64(0)
        pipelined = self.alone and can_pipeline(f.isa, self.totals.most)
        self.decoders = [
            PanelDecoder(
                self.decoder,
                self.container.block(number, depth, zero),
                depth,
                self.container.exceptions(number),
                zero,
                pipelined=pipelined,
            )
            for number in numbers
        ]
        return [value for decoder in self.decoders for value in decoder.carried]

    def sums(
        self, a: list[Any], numbers: list[Any], block: DepthBlock
    ) -> tuple[list[Any], list[Any]]:
        f, vectors, streams = self.f, self.f.isa.tile_vectors, len(numbers)
        count = len(a) * streams * vectors
        carried = [self.zero] * count + block.carried
        with f.loop(block.begin, block.end, i64(block_rows(f.isa)), carried=carried) as loop:
            sums, state = loop.values[:count], iter(loop.values[count:])
            for stream, decoder in enumerate(self.decoders):
                decoder.carried = [next(state) for _ in decoder.carried]
                if self.prefetches:
                    ahead = f.at(decoder.block(loop.index), i64(AHEAD), I8)
                    read_ahead(f, block_bytes(f.isa, self.weights), ahead)
                for k, right in decoder.read(loop.index):
                    for row in range(len(a)):
                        left = f.splat(f.read(f.at(a[row], f.add(loop.index, i64(k))), F32))
                        for vector in range(vectors):
                            j = (row * streams + stream) * vectors + vector
                            sums[j] = f.multiply_add(left, right[vector], sums[j])
                        decoder.advance()
            loop.values = [
                *sums,
                *(value for decoder in self.decoders for value in decoder.carried),
            ]
        return loop.values[:count], loop.values[count:]


def packed_gemv_kernel(isa: Isa, product: Product) -> KernelText:
    """The product for few rows.

    Arguments: `gptrs.kernels.gemm.product.GEMM_ARGUMENTS`; extent:
    `gptrs.kernels.gemm.packing.panel_count`.
    """
    name = f"packed_gemv_{product.label}"
    module = ir.Module(f"{name} {isa.name}")
    most = packed_gemv_limit(isa, product)
    finish = Finish(module, isa, product)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = gemm_arguments(f, address)

    def emit_gemv(panels: Any, compressed: bool = False) -> None:
        functions = [
            _gemv_function(module, isa, product, rows + 1, compressed) for rows in range(most)
        ]
        with f.loop(i64(0), w["rows"], i64(most)) as top:
            rows = f.least(f.sub(w["rows"], top.index), i64(most))
            arguments = [address, panels, top.index, first, last]
            f.choose(rows, [(i + 1, function, arguments) for i, function in enumerate(functions)])

    if product.compressed:
        container = Container(f, product.weights, w["panels"])
        with f.if_else(container.compressed) as (compressed, plain):
            with compressed:
                if isa.lookup:
                    emit_gemv(w["panels"], compressed=True)
            with plain:
                emit_gemv(container.panels)
    else:
        emit_gemv(w["panels"])
    column = f.mul(first, i64(isa.tile_columns))
    end = f.least(f.mul(last, i64(isa.tile_columns)), w["columns"])
    finish.emit(f, w, (i64(0), column), (w["rows"], f.sub(end, column)))
    f.ret_void()
    return KernelText(str(module), name)

"""The matrix product for few rows: one walk over the weights, several panels side by side.

Each of the panels that are read side by side is followed by the one that lies behind it, so that
memory is read from a few places on, and without a break: as the CPU expects it, which asks for what
comes next and starts slowly at a new place.
"""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.coded import Container, Decoder, block_rows, decoding_registers, place_of
from gptrs.kernels.emit import F32, I64, POINTER, Function, KernelText, i64
from gptrs.kernels.isa import Isa
from gptrs.kernels.matmul import Finish, Product, matmul_words
from gptrs.kernels.matmul_weights import WeightType, element_type, read_weights


def row_kernel_limit(isa: Isa, product: Product) -> int:
    """The most rows for which `row_kernel` is the faster one: for which it walks two panels."""
    return max(1, min(6, _free(isa, product.coded) // (2 * isa.tile_vectors)))


def _free(isa: Isa, coded: bool) -> int:
    """Registers for sums, beside one of A and one of a panel."""
    return decoding_registers(isa) if coded else isa.registers - 2


def _streams(isa: Isa, product: Product, rows: int, coded: bool) -> list[int]:
    """How many panels are walked at once, for the bulk and for what is left."""
    if coded:  # its instructions are many enough to keep the CPU busy
        return [2, 1]
    most = 4
    while most > 1 and most * rows * isa.tile_vectors > _free(isa, coded):
        most //= 2
    # Coded products have two kinds of walks, so that they have fewer of each.
    return sorted({most, 1} if product.coded else {most, max(1, most // 2), 1}, reverse=True)


_WALK = (I64, POINTER, I64, I64, I64)


def _walk(module: Any, isa: Isa, product: Product, rows: int, coded: bool) -> Any:
    """walk(words, panels, row, first, last): ``rows`` rows of C from ``row`` on, panels of the
    range; ``panels`` is a container's begin if they are coded."""
    f = Function.part(module, isa, f"walk{rows}{'_coded' * coded}", *_WALK)
    address, panels, top, first, last = f.arguments
    w = matmul_words(f, address)
    a = [f.at(w["a"], f.mul(f.add(top, i64(row)), w["lda"])) for row in range(rows)]
    walk = _CodedDots(f, product, w, panels) if coded else _Dots(f, product, w, panels)
    for streams in _streams(isa, product, rows, coded):
        length = f.sdiv(f.sub(last, first), i64(streams))
        with f.loop(i64(0), length) as turn:
            begin = f.add(first, turn.index)
            walk.emit(a, top, [f.add(begin, f.mul(length, i64(i))) for i in range(streams)])
        first = f.add(first, f.mul(length, i64(streams)))
    f.ret_void()
    return f.made


class _Dots:
    """Rows of C from several panels, read side by side."""

    def __init__(self, f: Function, product: Product, words: dict[str, Any], panels: Any) -> None:
        self.f, self.words, self.panels = f, words, panels
        self.weights: WeightType = product.weights
        self.zero = ir.Constant(f.vector, [0.0] * f.isa.lanes)

    def emit(self, a: list[Any], top: Any, numbers: list[Any]) -> None:
        """The rows ``a``, from row ``top`` of C on, of the panels with these ``numbers``."""
        self.store(self.sums(a, numbers), top, numbers)

    def sums(self, a: list[Any], numbers: list[Any]) -> list[Any]:
        """Sums by row, panel and vector."""
        f, w, vectors = self.f, self.words, self.f.isa.tile_vectors
        kind, streams = element_type(self.weights), len(numbers)
        panels = [f.at(self.panels, f.mul(number, w["panel_step"]), kind) for number in numbers]
        carried = [self.zero] * (len(a) * streams * vectors)
        with f.loop(i64(0), w["depth"], carried=carried) as loop:
            left = [f.splat(f.read(f.at(row, loop.index), F32)) for row in a]
            at = f.mul(loop.index, w["ldp"])
            for i in range(streams * vectors):
                stream, vector = divmod(i, vectors)
                index = f.add(at, i64(vector * f.isa.lanes))
                right = read_weights(f, self.weights, panels[stream], index)
                for row in range(len(a)):
                    j = row * streams * vectors + i
                    loop.values[j] = f.multiply_add(left[row], right, loop.values[j])
        return loop.values

    def store(self, sums: list[Any], top: Any, numbers: list[Any]) -> None:
        """Write sums to C."""
        f, w, vectors = self.f, self.words, self.f.isa.tile_vectors
        for j, total in enumerate(sums):
            row, i = divmod(j, len(numbers) * vectors)
            column = f.mul(numbers[i // vectors], i64(f.isa.tile_columns))
            here = f.add(column, i64(i % vectors * f.isa.lanes))
            c = f.at(w["c"], f.add(f.mul(f.add(top, i64(row)), w["ldc"]), here))
            f.write(total, c, f.mask(f.sub(w["columns"], here)))


class _CodedDots(_Dots):
    """`_Dots` of coded panels, a block of each at a time."""

    def __init__(self, f: Function, product: Product, words: dict[str, Any], panels: Any) -> None:
        super().__init__(f, product, words, panels)
        self.container = Container(f, product.weights, panels)
        self.decoder = Decoder(f, product.weights, self.container.table())

    def sums(self, a: list[Any], numbers: list[Any]) -> list[Any]:
        f, depth, vectors = self.f, self.words["depth"], self.f.isa.tile_vectors
        streams = len(numbers)
        rows, count = block_rows(f.isa), len(a) * streams * vectors
        entries = [self.container.exceptions(number) for number in numbers]
        blocks = [self.container.block(number, depth, i64(0)) for number in numbers]
        carried = [self.zero] * count + entries + [place_of(f, entry) for entry in entries]
        with f.loop(i64(0), depth, i64(rows), carried=carried) as loop:
            sums = loop.values[:count]
            entries, places = loop.values[count:][:streams], loop.values[count + streams :]
            following = [*zip(entries, places, strict=True)]
            left = [
                [f.splat(f.read(f.at(row, f.add(loop.index, i64(i))), F32)) for row in a]
                for i in range(rows)
            ]
            first = f.mul(loop.index, i64(f.isa.tile_columns))
            for stream in range(streams):
                block = self.container.after(blocks[stream], loop.index)
                right, following[stream] = self.decoder.block(block, first, following[stream])
                for i, weight in enumerate(right):
                    k, vector = divmod(i, vectors)
                    for row in range(len(a)):
                        j = (row * streams + stream) * vectors + vector
                        sums[j] = f.multiply_add(left[k][row], weight, sums[j])
            loop.values = [*sums, *(e for e, _ in following), *(p for _, p in following)]
        return loop.values[:count]


def row_kernel(isa: Isa, product: Product) -> KernelText:
    """The product for few rows.

    Words: `gptrs.kernels.matmul.MATMUL_WORDS`; extent: `gptrs.kernels.packing.panel_count`.
    """
    name = f"matmul_rows_{product.label}"
    module = ir.Module(f"{name} {isa.name}")
    most = row_kernel_limit(isa, product)
    finish = Finish(module, isa, product)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = matmul_words(f, address)

    def walk(panels: Any, coded: bool = False) -> None:
        walks = [_walk(module, isa, product, rows + 1, coded) for rows in range(most)]
        with f.loop(i64(0), w["rows"], i64(most)) as top:
            rows = f.least(f.sub(w["rows"], top.index), i64(most))
            arguments = [address, panels, top.index, first, last]
            f.choose(rows, [(i + 1, walk, arguments) for i, walk in enumerate(walks)])

    if product.coded:
        container = Container(f, product.weights, w["panels"])
        with f.if_else(container.coded) as (coded, plain):
            with coded:
                if isa.lookup:
                    walk(w["panels"], coded=True)
            with plain:
                walk(container.panels)
    else:
        walk(w["panels"])
    column = f.mul(first, i64(isa.tile_columns))
    end = f.least(f.mul(last, i64(isa.tile_columns)), w["columns"])
    finish.emit(f, w, (i64(0), column), (w["rows"], f.sub(end, column)))
    f.ret_void()
    return KernelText(str(module), name)

"""The matrix product for few rows: one walk over the weights, several panels side by side."""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.emit import F32, I64, Function, KernelText, i64
from gptrs.kernels.isa import Isa
from gptrs.kernels.matmul import Finish, Product, matmul_words
from gptrs.kernels.matmul_weights import (
    WeightType,
    element_type,
    read_weights,
)


def row_kernel_limit(isa: Isa) -> int:
    """The most rows for which `row_kernel` is the faster one: for which it walks two panels."""
    return min(6, _free(isa) // (2 * isa.tile_vectors))


def _free(isa: Isa) -> int:
    """Registers for sums, beside one of A and one of a panel."""
    return isa.registers - 2


def _streams(isa: Isa, rows: int) -> list[int]:
    """How many panels are walked at once, for the bulk and for what is left."""
    most = 4
    while most > 1 and most * rows * isa.tile_vectors > _free(isa):
        most //= 2
    return sorted({most, max(1, most // 2), 1}, reverse=True)


def _walk(module: Any, isa: Isa, product: Product, rows: int) -> Any:
    """walk(words, row, first, last): ``rows`` rows of C from ``row`` on, panels of the range."""
    f = Function.part(module, isa, f"walk{rows}", I64, I64, I64, I64)
    address, top, first, last = f.arguments
    w = matmul_words(f, address)
    a = [f.at(w["a"], f.mul(f.add(top, i64(row)), w["lda"])) for row in range(rows)]
    for streams in _streams(isa, rows):
        whole = f.sub(last, f.srem(f.sub(last, first), i64(streams)))
        with f.loop(first, whole, i64(streams)) as panel:
            _dots(f, product.weights, w, a, (top, panel.index), streams)
        first = whole
    f.ret_void()
    return f.made


def _dots(
    f: Function,
    weights: WeightType,
    w: dict[str, Any],
    a: list[Any],
    place: tuple[Any, Any],
    streams: int,
) -> None:
    """Rows of C at ``place`` (row, panel) from ``streams`` panels, read side by side."""
    isa, (top, panel) = f.isa, place
    lanes, vectors, width = isa.lanes, isa.tile_vectors, isa.tile_columns
    panels = [
        f.at(w["panels"], f.mul(f.add(panel, i64(i)), w["panel_step"]), element_type(weights))
        for i in range(streams)
    ]
    zero = ir.Constant(f.vector, [0.0] * lanes)
    # sums[row, stream, vector]
    with f.loop(i64(0), w["depth"], carried=[zero] * (len(a) * streams * vectors)) as loop:
        left = [f.splat(f.read(f.at(row, loop.index), F32)) for row in a]
        at = f.mul(loop.index, w["ldp"])
        for i in range(streams * vectors):
            stream, vector = divmod(i, vectors)
            index = f.add(at, i64(vector * lanes))
            right = read_weights(f, weights, panels[stream], index)
            for row in range(len(a)):
                j = row * streams * vectors + i
                loop.values[j] = f.multiply_add(left[row], right, loop.values[j])
    column = f.mul(panel, i64(width))
    for j, total in enumerate(loop.values):
        row, i = divmod(j, streams * vectors)
        here = f.add(column, i64(i * lanes))
        c = f.at(w["c"], f.add(f.mul(f.add(top, i64(row)), w["ldc"]), here))
        f.write(total, c, f.mask(f.sub(w["columns"], here)))


def row_kernel(isa: Isa, product: Product) -> KernelText:
    """The product for few rows.

    Words: `gptrs.kernels.matmul.MATMUL_WORDS`; extent: `gptrs.kernels.packing.panel_count`.
    """
    name = f"matmul_rows_{product.label}"
    module = ir.Module(f"{name} {isa.name}")
    most = row_kernel_limit(isa)
    walks = [_walk(module, isa, product, rows) for rows in range(1, most + 1)]
    finish = Finish(module, isa, product)
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = matmul_words(f, address)
    with f.loop(i64(0), w["rows"], i64(most)) as top:
        rows = f.least(f.sub(w["rows"], top.index), i64(most))
        arguments = [address, top.index, first, last]
        f.choose(rows, [(i + 1, walk, arguments) for i, walk in enumerate(walks)])
    column = f.mul(first, i64(isa.tile_columns))
    end = f.least(f.mul(last, i64(isa.tile_columns)), w["columns"])
    finish.emit(f, w, (i64(0), column), (w["rows"], f.sub(end, column)))
    f.ret_void()
    return KernelText(str(module), name)

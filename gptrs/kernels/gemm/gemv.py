"""GEMV, or GEMM of few vectors, over an unpacked matrix [K, N], which is read once, where it lies.

    for window of columns:                      # sums and totals of it stay in L1 and L2
        for block of the depth:
            sums[vectors, window] = 0
            for k in the block, eight at once:
                sums += x[:, k] · matrix[k, window]
            totals += sums                      # f64
        C[:, window] = totals

    matrix [K, N]:     ┌── window ──┬── window ──┐
       k = 0  stream 0 │ ──────────▶│            │
       k = 1  stream 1 │ ──────────▶│            │      eight rows side by side
       ...             └────────────┴────────────┘

In registers: a vector of each row of the matrix, a splat of each x, the sums of one column vector.
Several rows of the matrix are read side by side, each from left to right, as hardware prefetchers
expect. A window is wide so that they seldom have to start anew at another address.

The order of sums is that of `gptrs.kernels.gemm.product`, so that a row of C has the same bits with
more rows beside it, which other kernels then compute. With ``short`` blocks it is another one, for
a product with one column (see `gptrs.kernels.gemm.dot`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, F64, I64, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.product import Finish, Product, depth_blocks

_POINTERS = ("x", "matrix", "c", "bias", "residual")
_SIZES = (
    *("vectors", "depth", "outputs", "x_step", "x_depth"),
    *("ldm", "ldc", "ldr", "by_rows", "item"),
)
GEMV_ARGUMENTS = _POINTERS + _SIZES
"""The argument block of `gemv_kernel` and `gptrs.kernels.gemm.gemv_transposed`, in order.

C[v, o] = Σₖ x[v, k] · matrix[k, o] for ``vectors`` x ``outputs``. Vectors begin ``x_step`` elements
apart, and their elements lie ``x_depth`` apart; ldm, ldc and ldr are leading dimensions of the
matrix, C and the residual. C lies as [vectors, outputs] where ``by_rows`` is 1, as [outputs,
vectors] where it is 0: few rows, or few columns. The extent counts items of so many outputs.
"""

_AT_ONCE = (1, 2, 4, 8)
"""Numbers of vectors that functions are generated for; others are padded to the next."""
MOST_VECTORS = _AT_ONCE[-1]
"""With more vectors, the matrix is read again for the next ones."""
_WINDOW = 4096
"""Columns of a window for one vector; for more vectors, fewer."""
_ROWS = 8
"""How many rows of the matrix are read side by side; the depth of a short block."""


def gemv_arguments(f: Function, address: Any) -> dict[str, Any]:
    """The arguments at ``address`` by name."""
    return f.argument_block(address, _POINTERS, _SIZES)


def finish_outputs(
    f: Function, finish: Finish, arguments: dict[str, Any], vectors: Any, first: Any, last: Any
) -> None:
    """The epilogue of the product, for a range of outputs."""
    count, zero = f.sub(last, first), i64(0)
    with f.if_else(f.icmp_signed("!=", arguments["by_rows"], zero)) as (rows, columns):
        with rows:
            finish.emit(f, arguments, (zero, first), (vectors, count))
        with columns:
            finish.emit(f, arguments, (first, zero), (count, vectors))


class OutputStore:
    """Stores vectors of outputs to C. Constructed at the beginning of a function (stack)."""

    def __init__(self, f: Function, arguments: dict[str, Any]) -> None:
        self._f, self._arguments, self._beside = f, arguments, f.stack_array(f.isa.lanes)

    def emit(self, vector: Any, first: Any, value: Any) -> None:
        """``value`` for outputs from ``first`` on, as many of them as there are, if there is such a
        vector."""
        with self._f.if_then(self._f.icmp_signed("<", vector, self._arguments["vectors"])):
            self._write(vector, first, value)

    def _write(self, vector: Any, first: Any, value: Any) -> None:
        f, w = self._f, self._arguments
        left = f.sub(w["outputs"], first)
        with f.if_else(f.icmp_signed("!=", w["by_rows"], i64(0))) as (rows, columns):
            with rows:
                place = f.at(w["c"], f.add(f.mul(vector, w["ldc"]), first))
                f.write(value, place, f.mask(left))
            with columns:
                f.write(value, self._beside)
                with f.loop(i64(0), f.least(left, i64(f.isa.lanes))) as lane:
                    row = f.mul(f.add(first, lane.index), w["ldc"])
                    element = f.read(f.at(self._beside, lane.index), F32)
                    f.write(element, f.at(w["c"], f.add(row, vector)))


def vector_starts(f: Function, arguments: dict[str, Any], top: Any, count: int) -> list[Any]:
    """Addresses of ``count`` vectors from ``top`` on; beyond the last vector, that of the last."""
    final = f.sub(arguments["vectors"], i64(1))
    numbers = [f.least(f.add(top, i64(i)), final) for i in range(count)]
    return [f.at(arguments["x"], f.mul(number, arguments["x_step"])) for number in numbers]


class _Window:
    """A window of columns for some vectors, as its function is being written."""

    def __init__(self, f: Function, vectors: int, short: bool) -> None:
        self.f, self.vectors, self.short = f, vectors, short
        address, self.top, self.begin, self.end = f.arguments
        self.arguments = gemv_arguments(f, address)
        self.store = OutputStore(f, self.arguments)
        self.x = vector_starts(f, self.arguments, self.top, vectors)
        self.most = max(_WINDOW // vectors, _WINDOW // 4)
        self.sums, self.totals = (
            f.stack_array(vectors * self.most),
            f.stack_array(vectors * self.most, F64),
        )
        self.wide: Any = ir.VectorType(F64, f.isa.lanes)
        self.zero = ir.Constant(f.vector, [0.0] * f.isa.lanes)

    def emit(self) -> None:
        f = self.f
        with f.loop(self.begin, self.end, i64(self.most)) as column:
            self.first = column.index
            self.width = f.least(f.sub(self.end, self.first), i64(self.most))
            self._window()

    def _window(self) -> None:
        f, w = self.f, self.arguments
        self._each(lambda v, at: f.write(ir.Constant(self.wide, None), self._total(v, at)))
        if self.short:
            self._short_blocks()
        else:
            with depth_blocks(f, w["depth"]) as block:
                begin, end = block.begin, block.end
                self._each(lambda v, at: f.write(self.zero, self._sum(v, at)))
                whole = f.sub(end, f.srem(f.sub(end, begin), i64(_ROWS)))
                self._rows(begin, whole, _ROWS)
                self._rows(whole, end, 1)
                self._each(self._add_sum)
        self._each(self._store)

    def _sum(self, vector: int, at: Any) -> Any:
        return self.f.at(self.sums, self.f.add(at, i64(vector * self.most)))

    def _total(self, vector: int, at: Any) -> Any:
        return self.f.at(self.totals, self.f.add(at, i64(vector * self.most)), F64)

    def _each(self, body: Callable[[int, Any], None]) -> None:
        """``body`` of (vector, column) for all vectors of columns; the last may be cut."""
        with self.f.loop(i64(0), self.width, i64(self.f.isa.lanes)) as column:
            for vector in range(self.vectors):
                body(vector, column.index)

    def _add(self, value: Any, vector: int, at: Any) -> None:
        f, place = self.f, self._total(vector, at)
        f.write(f.fadd(f.read(place, self.wide), f.fpext(value, self.wide)), place)

    def _add_sum(self, vector: int, at: Any) -> None:
        self._add(self.f.read(self._sum(vector, at)), vector, at)

    def _store(self, vector: int, at: Any) -> None:
        f = self.f
        value = f.fptrunc(f.read(self._total(vector, at), self.wide), f.vector)
        place = f.add(self.top, i64(vector))
        self.store.emit(place, f.add(self.first, at), value)

    def _short_blocks(self) -> None:
        f, depth = self.f, self.arguments["depth"]
        whole = f.sub(depth, f.srem(depth, i64(_ROWS)))
        self._rows(i64(0), whole, _ROWS)
        self._each(lambda v, at: f.write(self.zero, self._sum(v, at)))
        self._rows(whole, depth, 1)
        self._each(self._add_sum)

    def _rows(self, begin: Any, end: Any, many: int) -> None:
        """Add the products of the rows in a range, so ``many`` at once, to the sums; of a
        short block to the totals."""
        f, w = self.f, self.arguments
        with f.loop(begin, end, i64(many)) as k:
            numbers = [f.add(k.index, i64(row)) for row in range(many)]
            starts = [f.at(w["matrix"], f.add(f.mul(n, w["ldm"]), self.first)) for n in numbers]
            left = [[self._factor(vector, n) for n in numbers] for vector in range(self.vectors)]

            def columns(at: Any, mask: Any) -> None:
                whole = self.short and many == _ROWS
                places = [self._sum(vector, at) for vector in range(self.vectors)]
                sums = [self.zero if whole else f.read(place) for place in places]
                for row, start in enumerate(starts):
                    right = f.read(f.at(start, at), mask=mask)
                    for vector in range(self.vectors):
                        sums[vector] = f.multiply_add(left[vector][row], right, sums[vector])
                for vector, place in enumerate(places):
                    if whole:
                        self._add(sums[vector], vector, at)
                    else:
                        f.write(sums[vector], place)

            lanes = i64(f.isa.lanes)
            full = f.sub(self.width, f.urem(self.width, lanes))
            with f.loop(i64(0), full, lanes) as column:
                columns(column.index, None)
            with f.if_then(f.icmp_signed("<", full, self.width)):
                columns(full, f.mask(f.sub(self.width, full)))

    def _factor(self, vector: int, row: Any) -> Any:
        f = self.f
        return f.splat(f.read(f.at(self.x[vector], f.mul(row, self.arguments["x_depth"])), F32))


def few_vectors_kernel(
    isa: Isa,
    product: Product,
    name: str,
    emit: Callable[[Function, int], None],
    at_once: Sequence[int] = _AT_ONCE,
) -> KernelText:
    """A kernel with functions for these numbers of vectors, which ``emit`` writes.

    Their arguments: the address of the argument block, the first vector, a range of outputs.
    """
    name = f"{name}_{product.label}"
    module = ir.Module(f"{name} {isa.name}")
    finish = Finish(module, isa, product)
    parts: dict[int, Any] = {}
    for vectors in at_once:
        part = Function.part(module, isa, f"vectors{vectors}", I64, I64, I64, I64)
        emit(part, vectors)
        part.ret_void()
        parts[vectors] = part.made
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = gemv_arguments(f, address)
    begin = f.mul(first, w["item"])
    end = f.least(f.mul(last, w["item"]), w["outputs"])
    most = at_once[-1]
    with f.loop(i64(0), w["vectors"], i64(most)) as top:
        count = f.least(f.sub(w["vectors"], top.index), i64(most))
        given = [address, top.index, begin, end]
        sizes = [min(size for size in at_once if size >= n) for n in range(1, most + 1)]
        f.choose(count, [(n + 1, parts[size], given) for n, size in enumerate(sizes)])
    finish_outputs(f, finish, w, w["vectors"], begin, end)
    f.ret_void()
    return KernelText(str(module), name)


def gemv_kernel(isa: Isa, product: Product, *, short: bool = False) -> KernelText:
    """Vectors times a matrix as it lies. Arguments: `GEMV_ARGUMENTS`; extent: items.

    ``short`` blocks, of one vector alone, are added up in f64 every few elements.
    """
    name, at_once = ("gemv_short", (1,)) if short else ("gemv", _AT_ONCE)
    return few_vectors_kernel(
        isa, product, name, lambda f, vectors: _Window(f, vectors, short).emit(), at_once
    )

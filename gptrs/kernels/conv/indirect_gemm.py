"""Indirect GEMM: a matrix product whose rows of A are addressed through offsets, not packed.

    sums[h, w] = 0                              # registers: h rows of w/lanes vectors
    for run of a row:
        begin[h] = a + places[h] + offsets[run]
        for k in length of the run:
            b[w] = panel[k]                     # registers: w/lanes vectors
            prefetch `share` bytes at `ahead`   # into L2: a part of the next panel
            for row in h:
                sums[row] += splat(begin[row][k]) · b
    C = epilogue(sums)                          # bias, activation, residual, in registers

    places:   [h] where each row of A begins      offsets:  [runs], the same for all rows
    row r of A = a[places[r] + offsets[0] ...], a[places[r] + offsets[1] ...], ...

So a convolution multiplies pixels by taps without im2col, and Winograd's products read the
transformed tiles where they are. B is packed in panels as for `gptrs.kernels.gemm.product`; each
element is one chain of multiply-adds, depth ascending, from zero, however deep; then bias,
activation and residual. Used by `gptrs.kernels.conv.direct` and
`gptrs.kernels.conv.winograd_product`. Compare the indirection buffer of Dukhan, "The Indirect
Convolution Algorithm", arXiv:1907.02129 (pointers there, offsets here).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, I8, I64, POINTER, Function, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import read_ahead, row_bytes
from gptrs.kernels.vector_math import ACTIVATIONS

_Vectors = tuple[Any, list[Any]]
"""A pointer, which may be null, and an offset from it for each vector."""


class Epilogue(NamedTuple):
    """The epilogue of a product besides the bias: activation, and its order with the residual."""

    activation: str | None = None
    """One of `gptrs.kernels.vector_math.ACTIVATIONS`."""
    last: bool = False
    """Whether the activation follows the residual rather than the bias."""

    @property
    def label(self) -> str:
        """A part of the names of kernels."""
        return f"{self.activation}{'_last' if self.last else ''}" if self.activation else "plain"

    def emit(
        self,
        f: Function,
        sums: list[Any],
        bias: _Vectors,
        residual: _Vectors,
        masks: Sequence[Any] | None = None,
    ) -> list[Any]:
        """The sums with bias, activation and residual, if they are given; vectors with a mask read
        no other element."""
        masks = masks or [None] * len(sums)

        def activated(values: list[Any], now: bool) -> list[Any]:
            if self.activation is None or not now:
                return values
            return [ACTIVATIONS[self.activation](f, value) for value in values]

        sums = activated(_plus(f, sums, bias, masks), not self.last)
        return activated(_plus(f, sums, residual, masks), self.last)


class Rows(NamedTuple):
    """A matrix A without gaps."""

    first: Any
    count: Any
    depth: Any
    places: Any
    """Address of the offsets of a block's rows: `strided_rows`."""


class Places(NamedTuple):
    """Addresses of the elements of C."""

    first: Any
    step: Any
    """Elements from row to row, also of the residual."""


_IGEMM = (
    *(POINTER, POINTER, POINTER, I64, I64, POINTER, POINTER, I64),
    *(POINTER, I64, POINTER, POINTER, I64),
)


class IndirectGemm:
    """The functions for row blocks of all heights, in the module of a kernel."""

    def __init__(self, module: Any, isa: Isa, epilogue: Epilogue) -> None:
        self._isa, self._epilogue = isa, epilogue
        functions = [self._igemm(module, height) for height in range(1, isa.tile_rows + 1)]
        self._whole = self._by_height(module, functions)
        # By vectors; for the largest height alone (of most blocks), as each takes 50 ms to compile.
        self._narrow = [self._igemm(module, isa.tile_rows, n + 1) for n in range(isa.tile_vectors)]
        self._edge = self._edge_function(module)

    def emit(self, f: Function, given: list[Any], height: Any, columns: Any) -> None:
        """C of ``height`` rows, of the next ``columns`` columns.

        ``given``: a, places (address of i64: where each row begins, in elements), offsets (address
        of i64: where each run of a row begins, relative to the row), number of runs, their length,
        panel, ahead, share (bytes to prefetch from ``ahead`` on, for each element of the depth), c,
        ldc, bias, residual, ldr. A null bias or residual is none.
        """
        width = i64(self._isa.tile_columns)
        with f.if_else(f.icmp_signed(">=", columns, width), likely=True) as (covered, cut):
            with covered:
                f.call(self._whole, [*given, height])
            with cut:
                tall = f.icmp_signed("==", height, i64(self._isa.tile_rows))
                with f.if_else(tall, likely=True) as (most, few):
                    with most:
                        vectors = f.ceiling(columns, i64(self._isa.lanes))
                        cases = [(n + 1, function) for n, function in enumerate(self._narrow)]
                        f.choose(
                            vectors, [(n, function, [*given, columns]) for n, function in cases]
                        )
                    with few:
                        f.call(self._edge, [*given, height, columns])

    def emit_panel(
        self, f: Function, a: Rows, panel: Any, c: Places, bias: Any, residual: Any, columns: Any
    ) -> None:
        """C of all rows of A, which lie without gaps, of the next ``columns`` columns.

        The row blocks prefetch the panel behind this one.
        """
        following = f.at(panel, f.mul(a.depth, i64(f.isa.tile_columns)))
        with each_row_block(f, a.count) as block:
            ahead = f.at(following, f.mul(block.share, a.depth), I8)
            begin, place = f.at(a.first, f.mul(block.first, a.depth)), f.mul(block.first, c.step)
            arguments = [begin, a.places, a.places, i64(1), a.depth, panel, ahead, block.bytes]
            arguments += [f.at(c.first, place), c.step, bias, behind(f, residual, place), c.step]
            self.emit(f, arguments, block.height, columns)

    def _igemm(self, module: Any, height: int, narrow: int = 0) -> Any:
        """igemm(arguments of `emit`). With ``narrow`` not 0, it computes that many vectors of a
        row, and its last argument is the number of columns that it stores."""
        isa, extra = self._isa, [I64] if narrow else []
        name = f"igemm{height}_{self._epilogue.label}"
        f = Function.part(module, isa, f"{name}_{narrow}" if narrow else name, *_IGEMM, *extra)
        a, places, offsets, runs, length, panel, ahead, share, *rest = f.arguments
        c, ldc, bias, residual, ldr, *columns = rest
        lanes, vectors = isa.lanes, narrow or isa.tile_vectors
        zero = ir.Constant(f.vector, [0.0] * lanes)
        rows = [f.at(a, f.read(f.at(places, i64(row), I64), I64)) for row in range(height)]
        sums = [zero] * (height * vectors)
        with f.loop(i64(0), runs, carried=[*sums, panel, ahead]) as run:
            *sums, panel, ahead = run.values
            offset = f.read(f.at(offsets, run.index, I64), I64)
            starts = [f.at(row, offset) for row in rows]
            with f.loop(i64(0), length, carried=[*sums, ahead]) as loop:
                *sums, ahead = loop.values
                at = f.mul(loop.index, i64(isa.tile_columns))
                right = [f.read(f.at(panel, f.add(at, i64(v * lanes)))) for v in range(vectors)]
                read_ahead(f, row_bytes(isa, "f32"), ahead)
                for row in range(height):
                    left = f.splat(f.read(f.at(starts[row], loop.index), F32))
                    for v in range(vectors):
                        i = row * vectors + v
                        sums[i] = f.multiply_add(left, right[v], sums[i])
                loop.values = [*sums, f.at(ahead, share, I8)]
            *sums, ahead = loop.values
            panel = f.at(panel, f.mul(length, i64(isa.tile_columns)))
            run.values = [*sums, panel, ahead]
        masks: list[Any] = [None] * vectors
        if columns:
            masks[-1] = f.mask(f.sub(columns[0], i64((vectors - 1) * lanes)))
        self._finish(f, run.values[:-2], masks, (c, ldc), bias, (residual, ldr))
        f.ret_void()
        return f.made

    def _finish(
        self,
        f: Function,
        sums: list[Any],
        masks: list[Any],
        c: tuple[Any, Any],
        bias: Any,
        residual: tuple[Any, Any],
    ) -> None:
        """Write C; ``masks``: of the vectors of each row."""
        lanes, places = self._isa.lanes, [divmod(i, len(masks)) for i in range(len(sums))]
        masks = [masks[v] for _, v in places]

        def offsets(ld: Any) -> list[Any]:
            return [f.add(f.mul(ld, i64(row)), i64(v * lanes)) for row, v in places]

        finished = self._epilogue.emit(
            f, sums, (bias, offsets(i64(0))), (residual[0], offsets(residual[1])), masks
        )
        for total, offset, mask in zip(finished, offsets(c[1]), masks, strict=True):
            f.write(total, f.at(c[0], offset), mask)

    def _by_height(self, module: Any, functions: list[Any]) -> Any:
        """whole(as igemm, height): the function of that height."""
        f = Function.part(module, self._isa, f"whole_{self._epilogue.label}", *_IGEMM, I64)
        *given, height = f.arguments
        f.choose(height, [(i + 1, function, given) for i, function in enumerate(functions)])
        f.ret_void()
        return f.made

    def _edge_function(self, module: Any) -> Any:
        """edge(as igemm, height, columns): a row block at the edge of C, computed on the stack."""
        f = Function.part(module, self._isa, f"edge_{self._epilogue.label}", *_IGEMM, I64, I64)
        *given, c, ldc, bias, residual, ldr, height, columns = f.arguments
        copy, width = copy_function(module, self._isa), i64(self._isa.tile_columns)
        room = ir.ArrayType(F32, self._isa.tile_rows * self._isa.tile_columns)
        null = ir.Constant(POINTER, None)

        def beside(pointer: Any, ld: Any, rows: Any) -> Any:
            """A copy of a matrix with rows of a whole tile's width, if there is one."""
            memory = f.alloca(room)
            there = f.icmp_unsigned("!=", pointer, null)
            with f.if_then(there):
                f.call(copy, [pointer, ld, memory, width, rows, columns])
            return f.select(there, memory, null)

        result, row = f.alloca(room), beside(bias, i64(0), i64(1))
        more = beside(residual, ldr, height)
        f.call(self._whole, [*given, result, width, row, more, width, height])
        f.call(copy, [result, width, c, ldc, height, columns])
        f.ret_void()
        return f.made


class RowBlock(NamedTuple):
    """A block of neighbouring rows of a matrix."""

    first: Any
    """Its first row."""
    height: Any
    bytes: Any
    """Bytes that a row block prefetches of each row of the next panel; all together the panel."""
    share: Any
    """Bytes of it that the row blocks before prefetched."""


@contextmanager
def each_row_block(f: Function, count: Any) -> Generator[RowBlock]:
    """A loop over row blocks of ``count`` > 0 rows: as few as possible, with heights that differ by
    one at most, as a low block takes nearly as long as a high one."""
    number = f.ceiling(count, i64(f.isa.tile_rows))
    height = f.udiv(count, number)
    higher = f.sub(count, f.mul(height, number))
    share = f.ceiling(i64(row_bytes(f.isa, "f32")), number)
    with f.loop(i64(0), number) as loop:
        first = f.add(f.mul(loop.index, height), f.least(loop.index, higher))
        more = f.zext(f.icmp_signed("<", loop.index, higher), I64)
        yield RowBlock(first, f.add(height, more), share, f.mul(loop.index, share))


def strided_rows(f: Function, step: Any) -> Any:
    """The `places` of rows that begin ``step`` elements apart, the first one at 0."""
    places = f.alloca(I64, i64(f.isa.tile_rows))
    for row in range(f.isa.tile_rows):
        f.write(f.mul(step, i64(row)), f.at(places, i64(row), I64))
    return places


def given(f: Function, pointer: Any) -> Any:
    """Whether ``pointer`` is not null."""
    return f.icmp_unsigned("!=", pointer, ir.Constant(POINTER, None))


def behind(f: Function, pointer: Any, index: Any) -> Any:
    """The address of element ``index`` of an array, null if the array is."""
    return f.select(given(f, pointer), f.at(pointer, index), ir.Constant(POINTER, None))


def _plus(f: Function, sums: list[Any], other: _Vectors, masks: Sequence[Any]) -> list[Any]:
    pointer, offsets = other
    before = f.block
    with f.if_then(given(f, pointer)):
        now = [
            f.fadd(total, f.read(f.at(pointer, offset), mask=mask))
            for total, offset, mask in zip(sums, offsets, masks, strict=True)
        ]
        inside = f.block
    joined = [f.phi(f.vector) for _ in sums]
    for phi, old, new in zip(joined, sums, now, strict=True):
        phi.add_incoming(old, before)
        phi.add_incoming(new, inside)
    return joined


def copy_function(module: Any, isa: Isa) -> Any:
    """copy(source, lds, destination, ldd, rows, columns), in ``module``."""
    if (found := module.globals.get("copy")) is not None:
        return found
    f = Function.part(module, isa, "copy", POINTER, I64, POINTER, I64, I64, I64)
    source, lds, destination, ldd, rows, columns = f.arguments
    for row, column, mask in f.pieces(rows, columns):
        value = f.read(f.at(source, f.add(f.mul(row, lds), column)), mask=mask)
        f.write(value, f.at(destination, f.add(f.mul(row, ldd), column)), mask)
    f.ret_void()
    return f.made


def fill_function(module: Any, isa: Isa) -> Any:
    """fill(pointer, count): zeros, in ``module``."""
    if (found := module.globals.get("fill")) is not None:
        return found
    f = Function.part(module, isa, "fill", POINTER, I64)
    pointer, count = f.arguments
    zero = ir.Constant(f.vector, [0.0] * isa.lanes)
    for _, place, mask in f.pieces(i64(1), count):
        f.write(zero, f.at(pointer, place), mask)
    f.ret_void()
    return f.made

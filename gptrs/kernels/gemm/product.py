"""The matrix product C = act(A·B + bias) · factor + residual in f32.

    A [M, K], lda           B packed in panels [⌈N/w⌉, K, w]       C [M, N], ldc
    ┌──── K ────┐           panel 0   panel 1    ...               ┌──── N ────┐
    │ row 0     │           ┌─w─┐     ┌─w─┐                        │ w │ w │...│
    │ row 1     │           │k=0│     │k=0│                        │   │   │   │
    │ ...       │           │k=1│     │k=1│                        │   │   │   │
    └───────────┘           │...│     │...│                        └───────────┘
                            └───┘     └───┘  one panel is contiguous, k-major

B is packed once into *panels*, w being the width of a register tile: the part of B that a tile of C
needs is contiguous, in the order of use. Two kernels read the same panels:

- `gptrs.kernels.gemm.blocked`, for many rows: tiles of C in registers over a block of the depth K;
  A is packed into tiles [⌈M/h⌉, K, h] by a kernel of `pack_rows_kernel`;
- `gptrs.kernels.gemm.packed_gemv`, for up to `packed_gemv_limit` rows: reads A unpacked and several
  panels side by side, as some cores read memory faster in several streams than in one.

Order rule: the depth has blocks, a first one of `FIRST_BLOCK` and others of `BLOCK`. An element of
C is, in each block, one chain of multiply-adds, depth ascending, from zero; blocks are added up in
f64. A tile starts from the value of C in its block, so that bits depend neither on the kernel, nor
on the cache blocking, nor on how the extent is split over threads; and elements of 0 at the end of
the depth change nothing. Bias, activation, factor and residual follow, each rounded by itself.
Products with one column have an order of their own (`gptrs.kernels.gemm.dot`).

Operands that are not packed once, as weights are, and have few vectors on one side, are read where
they lie, by `gptrs.kernels.gemm.gemv` and `gptrs.kernels.gemm.gemv_transposed`, in the same order.

This module has the parts that both kernels share: the parameters of their code (`Product`), the
argument block (`GEMM_ARGUMENTS`), the loop over depth blocks, the f64 totals, and the epilogue
(`Finish`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F64, I64, POINTER, Function, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import LINE_BYTES, WeightType
from gptrs.kernels.vector_math import ACTIVATIONS
from gptrs.lazy_dataclass import dataclass

_POINTERS = ("a", "panels", "c", "bias", "factor", "residual", "totals")
_SIZES = (
    *("rows", "depth", "columns", "lda", "ldc", "ldf", "ldr"),
    *("depth_block", "height", "row_blocks"),
)
GEMM_ARGUMENTS = _POINTERS + _SIZES
"""The argument block of both product kernels, in order.

Leading dimensions (lda of A, ldc of C, ldf of the factor, ldr of the residual) and sizes count
elements. Where ``bias``, ``factor`` or ``residual`` is 0, there is none; the last two are [M, N].
For the tile kernel ``a`` points to packed tiles and lda is not read; it alone reads ``totals``, f64
[rows, ldc] where the depth has several blocks, else 0, and the sizes of its blocks. C overlaps no
operand.
"""


@dataclass(frozen=True)
class Product:
    """The parameters of a product kernel's code besides the vector level."""

    weights: WeightType = "f32"
    compressed: bool = False
    """Whether the panels are in a container of `gptrs.kernels.weight_compression.format`."""
    activation: str | None = None
    """One of `gptrs.kernels.vector_math.ACTIVATIONS`, applied after the bias."""
    pairs: bool = False
    """Whether the blocked product of weights of bf16 has A, with numbers of bf16 as well, in
    pairs (`gptrs.kernels.gemm.bf16_pairs`)."""

    @property
    def label(self) -> str:
        """A part of the names of its kernels."""
        parts = [
            self.weights,
            "pairs" if self.pairs else None,
            "compressed" if self.compressed else None,
            self.activation,
        ]
        return "_".join(part for part in parts if part)


FIRST_BLOCK, BLOCK = 4096, 512
"""The depth of the first block of a product, and of all others."""


@dataclass
class DepthBlock:
    """A block of the depth in a loop over all of them, and the values carried to the next one."""

    begin: Any
    end: Any
    carried: list[Any]


@contextmanager
def depth_blocks(
    f: Function, depth: Any, carried: Sequence[Any] = (), *, group: int = 1
) -> Generator[DepthBlock]:
    """A loop over the blocks of the depth, which counts groups of so many elements. Without depth
    there is one block, which is empty."""
    opening, block_depth = i64(FIRST_BLOCK // group), i64(BLOCK // group)
    beyond = f.positive(f.sub(depth, opening))
    count = f.add(f.ceiling(beyond, block_depth), i64(1))
    with f.loop(i64(0), count, carried=carried) as loop:
        end = f.add(f.mul(loop.index, block_depth), opening)
        opens = f.icmp_signed("==", loop.index, i64(0))
        begin = f.select(opens, i64(0), f.sub(end, block_depth))
        block = DepthBlock(begin, f.least(end, depth), loop.values)
        yield block
        loop.values = block.carried


class Totals:
    """Vectors of sums over blocks of the depth, added up in f64 on the stack.

    Constructed at the beginning of a function, as it allocates on the stack.
    """

    def __init__(self, f: Function, most: int) -> None:
        self._f, self.most = f, most
        self._wide: Any = ir.VectorType(F64, f.isa.lanes)
        self._held = f.stack_array(most * f.isa.lanes, F64)

    def _place(self, number: int) -> Any:
        return self._f.at(self._held, i64(number * self._f.isa.lanes), F64)

    def clear(self, count: int) -> None:
        """Set the first ``count`` vectors to zero."""
        for number in range(count):
            self._f.write(ir.Constant(self._wide, None), self._place(number))

    def add(self, sums: Sequence[Any]) -> None:
        """Add the sums over a block."""
        f = self._f
        for number, value in enumerate(sums):
            place = self._place(number)
            f.write(f.fadd(f.read(place, self._wide), f.fpext(value, self._wide)), place)

    def sums(self, count: int) -> list[Any]:
        """The first ``count`` vectors in f32."""
        f = self._f
        return [f.fptrunc(f.read(self._place(i), self._wide), f.vector) for i in range(count)]


def gemm_arguments(f: Function, address: Any) -> dict[str, Any]:
    """The arguments at ``address`` by name."""
    return f.argument_block(address, _POINTERS, _SIZES)


class Finish:
    """The epilogue of a product (bias, activation, factor, residual), in the module of its kernel.

    Each is a pass over a part of C that is still in L1: a pass costs little there, and one kernel
    serves products with and without them. Kernels without the argument ``factor`` have none.
    """

    def __init__(self, module: Any, isa: Isa, product: Product) -> None:
        self._module, self._isa = module, isa
        self._add = _combine(module, isa, "add")
        self._multiply: Any = None
        self._activate = _activate(module, isa, product.activation) if product.activation else None

    def emit(
        self, f: Function, arguments: dict[str, Any], place: tuple[Any, Any], size: tuple[Any, Any]
    ) -> None:
        """Finish the part of C at ``place`` (row, column) of ``size`` (rows, columns)."""
        row, column = place
        part = [
            f.at(arguments["c"], f.add(f.mul(row, arguments["ldc"]), column)),
            arguments["ldc"],
            *size,
        ]
        with f.if_then(is_given(f, arguments["bias"])):
            f.call(self._add, [*part, f.at(arguments["bias"], column), i64(0)])
        if self._activate is not None:
            f.call(self._activate, part)
        if "factor" in arguments:
            self._multiply = self._multiply or _combine(self._module, self._isa, "multiply")
            self._apply(f, self._multiply, part, place, arguments["factor"], arguments["ldf"])
        self._apply(f, self._add, part, place, arguments["residual"], arguments["ldr"])

    def prefetch(
        self, f: Function, arguments: dict[str, Any], place: tuple[Any, Any], rows: Any
    ) -> None:
        """Prefetch the factor and the residual of the tile of C at ``place``, which is finished
        some thousand cycles later."""
        row, column = place
        for name, stride in (("factor", "ldf"), ("residual", "ldr")):
            matrix, step = arguments[name], arguments[stride]
            with f.if_then(is_given(f, matrix)):
                start = f.at(matrix, f.add(f.mul(row, step), column))
                prefetch_rows(f, start, step, rows)

    def _apply(
        self,
        f: Function,
        function: Any,
        part: list[Any],
        place: tuple[Any, Any],
        matrix: Any,
        stride: Any,
    ) -> None:
        """Combine a part of C with the same part of ``matrix``, if there is one."""
        row, column = place
        with f.if_then(is_given(f, matrix)):
            f.call(function, [*part, f.at(matrix, f.add(f.mul(row, stride), column)), stride])


def prefetch_rows(f: Function, start: Any, stride: Any, rows: Any) -> None:
    """Prefetch ``rows`` of a tile of f32."""
    with f.loop(i64(0), rows) as row:
        at = f.at(start, f.mul(row.index, stride))
        for column in range(0, f.isa.tile_columns, LINE_BYTES // 4):
            f.prefetch(f.at(at, i64(column)))


def is_given(f: Function, pointer: Any) -> Any:
    """Whether a pointer is not null."""
    return f.icmp_unsigned("!=", pointer, ir.Constant(POINTER, None))


_PART = (POINTER, I64, I64, I64)


def _combine(module: Any, isa: Isa, name: Literal["add", "multiply"]) -> Any:
    """add(c, ldc, rows, columns, other, ldo): C + other, or multiply: C · other; with ldo = 0, one
    row to all of C."""
    f = Function.part(module, isa, name, *_PART, POINTER, I64)
    c, ldc, rows, columns, other, ldo = f.arguments
    for row, column, mask in f.pieces(rows, columns):
        place = f.at(c, f.add(f.mul(row, ldc), column))
        value = f.read(f.at(other, f.add(f.mul(row, ldo), column)), mask=mask)
        held = f.read(place, mask=mask)
        f.write(f.fadd(held, value) if name == "add" else f.fmul(held, value), place, mask)
    f.ret_void()
    return f.made


def _activate(module: Any, isa: Isa, activation: str) -> Any:
    """activate(c, ldc, rows, columns): the activation of C, in place."""
    f = Function.part(module, isa, "activate", *_PART)
    c, ldc, rows, columns = f.arguments
    for row, column, mask in f.pieces(rows, columns):
        place = f.at(c, f.add(f.mul(row, ldc), column))
        f.write(ACTIVATIONS[activation](f, f.read(place, mask=mask)), place, mask)
    f.ret_void()
    return f.made

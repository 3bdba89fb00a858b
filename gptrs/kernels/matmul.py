"""The matrix product C[M, N] = act(A[M, K]·B[K, N] + bias[N]) + residual[M, N] in f32.

B is packed once into *panels* [⌈N/w⌉, K, w], where w is the width of a tile: what a tile of C needs
of it lies in one piece, in the order of use. Two kernels read the same panels:

- `gptrs.kernels.matmul_tiles`, for many rows: tiles of C are kept in registers over a block of the
  depth; A is packed into tiles [⌈M/h⌉, K, h] by a kernel of `pack_rows_kernel`;
- `gptrs.kernels.matmul_rows`, for up to `row_kernel_limit` rows: takes A as it is and walks several
  panels at once, as some cores read memory faster in several streams than in one.

Order rule: every element of C is one chain of multiply-adds, depth ascending, from zero. A tile
starts from what C holds after the block of depth before, so that bits depend neither on the
kernel, nor on the blocking, nor on how the extent is split over threads. Bias, activation and
residual follow, each rounded by itself.

This file has what both kernels share: what their code depends on, their words, and what follows
the product.
"""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from gptrs.kernels.emit import I64, POINTER, Function, i64
from gptrs.kernels.isa import Isa
from gptrs.kernels.math import ACTIVATIONS
from gptrs.kernels.matmul_weights import WeightType

_POINTERS = ("a", "panels", "c", "bias", "residual")
_SIZES = (
    *("rows", "depth", "columns", "lda", "ldc", "ldr"),
    *("panel_step", "ldp"),
    *("depth_block", "height", "row_blocks"),
)
MATMUL_WORDS = _POINTERS + _SIZES
"""The argument words of both product kernels, in order.

Leading dimensions (lda of A, ldc of C, ldr of the residual) and sizes count elements. Where
``bias`` or ``residual`` is 0, nothing is added. For the tile kernel ``a`` points to packed tiles
and lda is not read; the sizes of blocks are read by it alone. The row kernel can take weights
[K, N] that are not packed, so it is told where panels are: each begins ``panel_step`` elements
after the one before, and its rows are ``ldp`` apart. C overlaps no operand.
"""


@dataclass(frozen=True)
class Product:
    """What the code of a product depends on besides the vector level."""

    weights: WeightType = "f32"
    coded: bool = False
    """Whether the panels are in a container of `gptrs.kernels.coded`."""
    activation: str | None = None
    """One of `gptrs.kernels.math.ACTIVATIONS`, applied after the bias."""

    @property
    def label(self) -> str:
        """A part of the names of its kernels."""
        parts = [self.weights, "coded" if self.coded else None, self.activation]
        return "_".join(part for part in parts if part)


def matmul_words(f: Function, address: Any) -> dict[str, Any]:
    """The words at ``address`` by name."""
    return f.words(address, _POINTERS, _SIZES)


class Finish:
    """What follows a product, written into the module of its kernel.

    Bias, activation and residual are a pass each over a part of C that is still in L1: a pass costs
    little there, and one kernel serves products with and without them.
    """

    def __init__(self, module: Any, isa: Isa, product: Product) -> None:
        self._add = _add(module, isa)
        self._activate = _activate(module, isa, product.activation) if product.activation else None

    def emit(
        self, f: Function, words: dict[str, Any], place: tuple[Any, Any], size: tuple[Any, Any]
    ) -> None:
        """Finish the part of C at ``place`` (row, column) of ``size`` (rows, columns)."""
        row, column = place
        bias, residual, ldr = words["bias"], words["residual"], words["ldr"]
        part = [f.at(words["c"], f.add(f.mul(row, words["ldc"]), column)), words["ldc"], *size]
        with f.if_then(_given(f, bias)):
            f.call(self._add, [*part, f.at(bias, column), i64(0)])
        if self._activate is not None:
            f.call(self._activate, part)
        with f.if_then(_given(f, residual)):
            f.call(self._add, [*part, f.at(residual, f.add(f.mul(row, ldr), column)), ldr])


def _given(f: Function, pointer: Any) -> Any:
    return f.icmp_unsigned("!=", pointer, ir.Constant(POINTER, None))


_PART = (POINTER, I64, I64, I64)


def _add(module: Any, isa: Isa) -> Any:
    """add(c, ldc, rows, columns, other, ldo): C + other; with ldo = 0, one row to all of C."""
    f = Function.part(module, isa, "add", *_PART, POINTER, I64)
    c, ldc, rows, columns, other, ldo = f.arguments
    for row, column, mask in f.pieces(rows, columns):
        place = f.at(c, f.add(f.mul(row, ldc), column))
        value = f.read(f.at(other, f.add(f.mul(row, ldo), column)), mask=mask)
        f.write(f.fadd(f.read(place, mask=mask), value), place, mask)
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

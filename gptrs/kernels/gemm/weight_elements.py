"""Storage types of weights (f32, f16, bf16): loads that widen to f32, sizes, and panel prefetch.

Used by the product kernels, for the keys and values of attention, and by
`gptrs.kernels.rowwise.take`. Widening is exact. f16
uses the conversion instruction where the level has one (`Isa.half`), else integer operations; bf16
is a shift by 16 bits.
"""

from __future__ import annotations

from typing import Any, Literal

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F16, F32, I8, I16, I32, Function, i64, like
from gptrs.kernels.compiler.isa import Isa

WeightType = Literal["f32", "f16", "bf16"]

_BYTES: dict[WeightType, int] = {"f32": 4, "f16": 2, "bf16": 2}
LINE_BYTES = 64


def element_type(weights: WeightType) -> Any:
    """The LLVM type that weights are stored in: 16-bit ones as their bits."""
    return F32 if weights == "f32" else I16


def read_weights(
    f: Function,
    weights: WeightType,
    block: Any,
    index: Any,
    lanes: int | None = None,
    mask: Any = None,
) -> Any:
    """Weights from element ``index`` on, widened to f32, which is exact: a whole vector of them,
    or one of ``lanes``. With a ``mask``, zeros elsewhere; no other element is read.
    """
    lanes = lanes or f.isa.lanes
    pointer = f.at(block, index, element_type(weights))
    wide = ir.VectorType(F32, lanes)
    if weights == "f32":
        return f.read(pointer, wide, mask)
    narrow = f.read(pointer, ir.VectorType(I16, lanes), mask)
    if weights == "f16" and f.isa.half:
        return f.fpext(f.bitcast(narrow, ir.VectorType(F16, lanes)), wide)
    bits = f.zext(narrow, ir.VectorType(I32, lanes))
    if weights == "bf16":
        return f.bitcast(f.shl(bits, like(bits, 16)), wide)
    return widened_half(f, bits, wide)


def widened_half(f: Function, bits: Any, wide: Any) -> Any:
    """f32 from the 16 bits of float16 without an instruction for it (and LLVM would call one).

    By integers, as multiplying f32 subnormal numbers takes some CPUs a hundred times longer.
    """
    sign = f.shl(f.and_(bits, like(bits, 0x8000)), like(bits, 16))
    size = f.shl(f.and_(bits, like(bits, 0x7FFF)), like(bits, 13))
    bias = like(bits, (127 - 15) << 23)  # between the two formats' exponents
    normal = f.add(size, bias)
    infinite = f.icmp_signed(">=", size, like(bits, 0x7C00 << 13))
    normal = f.select(infinite, f.add(normal, bias), normal)
    # A subnormal one becomes the fraction of 2⁻¹⁴·(1 + fraction).
    raised = f.bitcast(f.or_(size, like(bits, (127 - 14) << 23)), wide)
    small = f.fsub(raised, like(raised, 2.0**-14))
    subnormal = f.icmp_signed("<", size, like(bits, 0x0400 << 13))
    result = f.select(subnormal, f.bitcast(small, bits.type), normal)
    return f.bitcast(f.or_(result, sign), wide)


def weight_bytes(weights: WeightType) -> int:
    """The size of a weight."""
    return _BYTES[weights]


AHEAD = 8192
"""Prefetch distance in bytes, where a single stream of panels is read."""


def row_bytes(isa: Isa, weights: WeightType) -> int:
    """The size of a row of a panel."""
    return isa.tile_columns * _BYTES[weights]


def read_ahead(f: Function, size: int, place: Any) -> None:
    """Prefetch ``size`` bytes of memory from ``place`` on, into L2."""
    for offset in range(0, size, LINE_BYTES):
        f.prefetch(f.at(place, i64(offset), I8), cache=2)

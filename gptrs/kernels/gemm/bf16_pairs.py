"""Pairs of bf16 that ``vdpbf16ps`` (AVX512-BF16) multiplies and adds to f32: c + a₁·b₁ + a₀·b₀.

    number of 32 bits:   │ element k (high half, a₁) │ element k + 1 (low half, a₀) │

The instruction rounds twice, as two multiply-adds in that order do (Intel's manual, "VDPBF16PS";
found so on Zen 4), so that sums have the bits of `gptrs.kernels.gemm.product`. But it takes
subnormal numbers for zero, operands and sums. So each packed tile is followed by the least exponent
field of its nonzero elements. An element of exponent field e is a multiple of 2^(e − 134); all that
is added up with fields e and f is one of 2^(e + f − 268), rounded or not, and as that is at least
2⁻¹²⁶, no sum is subnormal. Other tiles are widened and multiplied in two instructions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I16, I32, Function, i32, i64, like
from gptrs.kernels.compiler.isa import Isa, host

TAIL = 16
"""The numbers behind a packed tile, a line of the cache, of which the first is its exponent."""
_NORMAL = 268 - 126
"""Products of tiles whose exponents add up to this have no subnormal numbers."""
_ZERO, _SUBNORMAL = 1000, -1000
"""The exponents of tiles that are zero, or have subnormal elements."""


class _BFloat(ir.Type):
    """LLVM's type of bf16, which llvmlite has not."""

    def __str__(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


def multiplies_bf16(isa: Isa) -> bool:
    """Whether this CPU has the instruction for vectors of this level."""
    return isa.vector_bits == 512 and host()[2].get("avx512bf16", False)


def multiply_pairs(f: Function, a: Any, b: Any, c: Any) -> Any:
    """c + a·b of pairs in numbers of 32 bits, by the instruction."""
    pairs: Any = ir.VectorType(_BFloat(), 2 * c.type.count)
    name = f"x86.avx512bf16.dpbf16ps.{f.isa.vector_bits}"
    dot = f.intrinsic(name, c.type, c.type, pairs, pairs)
    return f.call(dot, [c, f.bitcast(a, pairs), f.bitcast(b, pairs)])


def element_of_pairs(f: Function, value: Any, which: int) -> Any:
    """Element 0 or 1 of each pair, widened: in numbers of f32."""
    bits = f.bitcast(value, ir.VectorType(I32, value.type.count))
    wide = f.shl(bits, like(bits, 16)) if which else f.and_(bits, like(bits, -0x10000))
    return f.bitcast(wide, value.type)


def pairs_of(f: Function, first: Any, second: Any) -> Any:
    """Pairs of elements that are bf16 in numbers of f32: of depth k, and of k + 1."""
    numbers = ir.VectorType(I32, first.type.count)
    high, low = f.bitcast(first, numbers), f.bitcast(second, numbers)
    return f.or_(high, f.lshr(low, like(low, 16)))


def half_of_pair(f: Function, place: Any) -> Any:
    """Where an element of a panel, at a ``place`` of its rows, lies in pairs of rows, in halves of
    numbers: the first element of a pair is the high half."""
    width = f.isa.tile_columns
    row, column = f.udiv(place, i64(width)), f.urem(place, i64(width))
    pair = f.add(f.mul(f.lshr(row, i64(1)), i64(width)), column)
    return f.sub(f.add(f.shl(pair, i64(1)), i64(1)), f.and_(row, i64(1)))


def write_exponent(f: Function, tile: Any, count: Any) -> None:
    """Write the exponent of a packed tile of ``count`` numbers behind it."""
    lanes = f.isa.lanes
    halves, numbers = ir.VectorType(I16, 2 * lanes), ir.VectorType(I32, lanes)
    whole = f.sub(count, f.urem(count, i64(lanes)))

    def least(found: Any, at: Any, mask: Any) -> Any:
        value = f.bitcast(f.read(f.at(tile, at, I32), numbers, mask), halves)
        size = f.sub(f.and_(value, like(value, 0x7FFF)), like(value, 1))  # zero becomes the largest
        return _least(f, size, found)

    most = ir.Constant(halves, [-1] * halves.count)
    with f.loop(i64(0), whole, i64(lanes), [most]) as at:
        at.values = [least(at.values[0], at.index, None)]
    found = least(at.values[0], whole, f.mask(f.sub(count, whole)))
    while found.type.count > 1:
        width = found.type.count // 2
        kind = ir.VectorType(I32, width)
        parts = [ir.Constant(kind, [*range(i, i + width)]) for i in (0, width)]
        found = _least(f, *(f.shuffle_vector(found, found, part) for part in parts))
    size = f.zext(f.extract_element(found, i32(0)), I32)
    field = f.lshr(f.add(size, i32(1)), i32(7))
    field = f.select(f.icmp_signed("==", field, i32(0)), i32(_SUBNORMAL), field)
    field = f.select(f.icmp_signed("==", size, i32(0xFFFF)), i32(_ZERO), field)
    f.write(field, f.at(tile, count, I32))


def _least(f: Function, a: Any, b: Any) -> Any:
    return f.select(f.icmp_unsigned("<", a, b), a, b)


def stay_normal(f: Function, a: Any, b: Any) -> Any:
    """Whether no sum of two packed tiles is subnormal, whose exponents are at ``a`` and ``b``."""
    total = f.add(f.read(a, I32), f.read(b, I32))
    return f.icmp_signed(">=", total, i32(_NORMAL))

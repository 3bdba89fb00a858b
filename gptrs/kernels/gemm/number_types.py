"""Element types of a matrix product: how operands are stored, what is added up, what is stored.

    stored element ──widened──▶ number of the sums ──multiply, add──▶ sum ──narrowed──▶ result
    f16, bf16, f32                f32                                   one rounding
    f64                           f64
    integers of up to 32 bits     i32: modulo 2³²                       wraps to `through`, then
    wider ones                    i64: modulo 2⁶⁴                       extends to the result
    cf32, cf64                    pairs of f32, f64 (real, imaginary)

Sums of integers are modulo a power of two that the result's divides, so that no order and no
intermediate overflow changes them. With `group` > 1, a number is that many narrow integers of
consecutive depth in 32 bits, which one instruction multiplies and adds up: four of 8 bits
(``vpdpbusd``), two of 16 (``pmaddwd``); or two of bf16 (`gptrs.kernels.gemm.bf16_pairs`). Element
names are those of `gptrs.ir.types`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F16, F32, F64, I8, I16, I32, I64, Function, like
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.bf16_pairs import TAIL, multiply_pairs
from gptrs.kernels.gemm.weight_elements import widened_half
from gptrs.lazy_dataclass import dataclass

FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
INTEGERS = {
    "si4": 4,
    "ui4": 4,
    "si8": 8,
    "ui8": 8,
    "si16": 16,
    "ui16": 16,
    "si32": 32,
    "ui32": 32,
    "si64": 64,
    "ui64": 64,
}
COMPLEX = {"cf32": "f32", "cf64": "f64"}
_STORED = {"f32": F32, "f64": F64, "f16": I16, "bf16": I16, "i32": I32, "i64": I64}


@dataclass(frozen=True)
class NumberTypes:
    """The element types of a product. Names of complex elements are those of their parts."""

    stored: str
    sums: str
    """``f32``, ``f64``, ``i32`` or ``i64``."""
    through: str
    """The type that sums are taken in by the op's meaning: integers wrap to it."""
    result: str
    parts: int = 1
    """2 for complex numbers."""
    group: int = 1
    exact: bool = False
    """Whether pairs of bf16 are multiplied by instructions that keep subnormal numbers."""

    @property
    def label(self) -> str:
        """A part of the names of its kernels."""
        kind = "c" if self.parts == 2 else ""
        names = dict.fromkeys([self.stored, self.sums, self.through, self.result])
        return "_".join([kind + name for name in names]) + (f"_{self.group}" * (self.group > 1))

    @property
    def is_integer(self) -> bool:
        return self.sums in ("i32", "i64")

    @property
    def bytes(self) -> int:
        """The size of a number of the sums."""
        return 8 if self.sums in ("f64", "i64") else 4

    @property
    def stored_bytes(self) -> int:
        """The size of a part of a stored element."""
        bits = FLOATS.get(self.stored) or INTEGERS[self.stored]
        return max(8, bits) // 8

    @property
    def copies(self) -> bool:
        """Whether sums are stored as they are."""
        return self.result == self.sums or (
            self.is_integer and INTEGERS[self.through] == INTEGERS[self.result] == 8 * self.bytes
        )

    @property
    def reads(self) -> bool:
        """Whether stored elements are numbers of the sums, which kernels read where they lie."""
        if self.is_integer:
            return self.group == 1 and INTEGERS[self.stored] == 8 * self.bytes
        return self.stored == self.sums

    @property
    def has_rows(self) -> bool:
        """Whether rows of B can be read where they lie by `gptrs.kernels.gemm.gemv_row`."""
        return self.reads and self.parts == 1

    @property
    def has_pairs(self) -> bool:
        """Whether numbers are pairs of bf16, which have an exponent behind each tile."""
        return self.group == 2 and not self.is_integer

    @property
    def tail(self) -> int:
        """The numbers behind a packed tile."""
        return TAIL if self.has_pairs else 0

    @property
    def sum_type(self) -> Any:
        return _STORED[self.sums]

    @property
    def stored_type(self) -> Any:
        return stored_type(self.stored)

    def lanes(self, isa: Isa) -> int:
        """How many numbers of the sums a register holds."""
        return isa.vector_bits // (8 * self.bytes)

    def rows(self, isa: Isa) -> int:
        """The rows of a register tile; the offset of signed bytes takes the place of one."""
        return isa.tile_rows - (self.group == 4)

    def width(self, isa: Isa) -> int:
        """The numbers in a row of a register tile."""
        return isa.tile_vectors * self.lanes(isa)


PLAIN = NumberTypes("f32", "f32", "f32", "f32")
BF16_PAIRS = NumberTypes("bf16", "f32", "f32", "f32", group=2)


def number_types(stored: str, through: str, result: str) -> NumberTypes | None:
    """The types of a product of elements ``stored`` that is computed in ``through``, or None."""
    names = [stored, through, result]
    parts = 1
    if all(name in COMPLEX for name in names):
        names, parts = [COMPLEX[name] for name in names], 2
    stored, through, result = names
    if all(name in INTEGERS for name in names):
        through = {"si4": "si8", "ui4": "ui8"}.get(through, through)
        return NumberTypes(stored, "i64" if INTEGERS[through] > 32 else "i32", through, result)
    if not all(name in FLOATS for name in names):
        return None
    sums = "f64" if through == "f64" else "f32"
    if sums == "f64" and FLOATS[result] == 16:  # they would round twice
        return None
    return NumberTypes(stored, sums, sums, result, parts)


def stored_type(name: str) -> Any:
    """The LLVM type of an element; floats of 16 bits as their bits."""
    if name in INTEGERS:
        return ir.IntType(max(8, INTEGERS[name]))
    return _STORED[name]


def _shaped(value: Any, element: Any) -> Any:
    kind = value.type
    return ir.VectorType(element, kind.count) if isinstance(kind, ir.VectorType) else element


def widened(f: Function, value: Any, stored: str, wanted: Any) -> Any:
    """Stored elements, one or a vector of them, as numbers of the LLVM type ``wanted``: floats are
    rounded once where it is narrower, integers wrap."""
    if stored in INTEGERS:
        if INTEGERS[stored] == 4:
            value = f.shl(value, like(value, 4))
            value = (f.ashr if stored == "si4" else f.lshr)(value, like(value, 4))
        return _resized(f, value, wanted, signed=stored.startswith("s"))
    if stored == "bf16":
        bits = f.zext(value, _shaped(value, I32))
        value = f.bitcast(f.shl(bits, like(bits, 16)), _shaped(value, F32))
    elif stored == "f16" and f.isa.half:
        value = f.fpext(f.bitcast(value, _shaped(value, F16)), _shaped(value, F32))
    elif stored == "f16":
        value = widened_half(f, f.zext(value, _shaped(value, I32)), _shaped(value, F32))
    return _rounded(f, value, wanted)


def _resized(f: Function, value: Any, wanted: Any, *, signed: bool) -> Any:
    kind, held = _shaped(value, wanted), value.type
    width = (held.element if isinstance(held, ir.VectorType) else held).width
    if width == wanted.width:
        return value
    if width > wanted.width:
        return f.trunc(value, kind)
    return (f.sext if signed else f.zext)(value, kind)


def _rounded(f: Function, value: Any, wanted: Any) -> Any:
    kind = _shaped(value, wanted)
    if value.type == kind:
        return value
    return (f.fpext if wanted == F64 else f.fptrunc)(value, kind)


def narrowed(f: Function, value: Any, types: NumberTypes) -> Any:
    """Sums, one or a vector of them, as stored elements of the result."""
    if not types.is_integer:
        if types.result == "f16":
            return f.bitcast(f.fptrunc(value, _shaped(value, F16)), _shaped(value, I16))
        if types.result == "bf16":
            return _bf16(f, value)
        return _rounded(f, value, types.sum_type if types.copies else stored_type(types.result))
    signed = types.through.startswith("s")
    value = _resized(f, value, stored_type(types.through), signed=signed)
    value = _resized(f, value, stored_type(types.result), signed=signed)
    if INTEGERS[types.result] == 4:
        value = widened(f, value, types.result, I8)
    return value


def _bf16(f: Function, value: Any) -> Any:
    """f32 rounded to the nearest, ties to even, as bits."""
    bits = f.bitcast(value, _shaped(value, I32))
    odd = f.and_(f.lshr(bits, like(bits, 16)), like(bits, 1))
    rounded = f.lshr(f.add(f.add(bits, odd), like(bits, 0x7FFF)), like(bits, 16))
    nothing = f.or_(f.lshr(bits, like(bits, 16)), like(bits, 0x7FC0))
    chosen = f.select(f.fcmp_unordered("uno", value, value), nothing, rounded)
    return f.trunc(chosen, _shaped(value, I16))


def multiply_add(f: Function, types: NumberTypes, a: Any, b: Any, c: Any) -> Any:
    """a·b + c of vectors of numbers of the sums; those of groups multiply by instructions of their
    own."""
    if types.has_pairs and not types.exact:
        return multiply_pairs(f, a, b, c)
    if not types.is_integer:
        return f.multiply_add(a, b, c)
    if types.group == 1:
        return f.add(f.mul(a, b), c)
    bits = f.isa.vector_bits
    if types.group == 4:
        return _call(f, "x86.avx512.vpdpbusd.512", [c, a, b])
    pairs = ir.VectorType(I16, bits // 16)
    name = {512: "x86.avx512.pmaddw.d.512", 256: "x86.avx2.pmadd.wd"}[bits]
    operands = [f.bitcast(a, pairs), f.bitcast(b, pairs)]
    return f.add(_call(f, name, operands, c.type), c)


def _call(f: Function, name: str, operands: Sequence[Any], result: Any = None) -> Any:
    result = result or operands[0].type
    return f.call(f.intrinsic(name, result, *(o.type for o in operands)), operands)

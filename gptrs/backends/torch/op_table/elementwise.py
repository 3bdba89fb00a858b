"""Elementwise ops in torch."""

from __future__ import annotations

from gptrs.backends.torch.op_table.row import FLOAT, FLOATING, Row, Rows
from gptrs.ir.ops import bitcast, complex_numbers, elementary, elementwise
from gptrs.ir.program import Instruction, Operation, Value
from gptrs.ir.types import Kind

_BITS: tuple[Kind, ...] = ("int", "uint")
_BOOL: tuple[Kind, ...] = ("bool",)
_REAL_BOOL: tuple[Kind, ...] = ("float", "bool")


def _divides_number(instruction: Instruction) -> bool:
    return not isinstance(instruction.operands[0], Value)


def _of_floats(name: str, kinds: tuple[Kind, ...] = FLOATING) -> Rows:
    return (Row(f"torch.{name}({{0}})", kinds=kinds, narrow=True),)


def _operator(symbol: str, *, ui64: bool = False, numbers: bool = False) -> Rows:
    text = f"{{0}} {symbol} {{1}}"
    return (Row(text, narrow=True, narrow_numbers=numbers, ui64=ui64),)


def _wide(instruction: Instruction) -> bool:
    return instruction.result.type.dtype.bits >= 32


ROWS: dict[Operation, Rows] = {
    elementwise.neg: (Row("-{0}", narrow=True, ui64=True),),
    elementwise.abs_: (Row("torch.abs({0})", narrow=True),),
    elementwise.exp: _of_floats("exp"),
    elementwise.log: _of_floats("log"),
    elementwise.tanh: _of_floats("tanh"),
    elementwise.erf: _of_floats("erf"),
    elementwise.sqrt: (Row("pt.sqrt({0})", kinds=FLOATING, narrow=True),),
    elementwise.rsqrt: (Row("torch.rsqrt({0})", kinds=FLOATING, narrow_devices=True),),
    elementwise.reciprocal: _of_floats("reciprocal"),
    elementwise.sin: _of_floats("sin"),
    elementwise.cos: _of_floats("cos"),
    elementwise.floor: _of_floats("floor"),
    elementwise.ceil: _of_floats("ceil"),
    elementwise.round_: _of_floats("round"),
    elementwise.sign: (Row("pt.sign({0})", narrow=True),),
    elementwise.is_finite: (Row("torch.isfinite({0})", narrow=True),),
    elementwise.logical_not: (Row("~{0}", kinds=_BOOL),),
    elementwise.bit_not: (Row("~{0}", kinds=_BITS, ui64=True),),
    elementwise.add: _operator("+", ui64=True, numbers=True),
    elementwise.sub: _operator("-", ui64=True, numbers=True),
    elementwise.mul: _operator("*", ui64=True, numbers=True),
    elementwise.div: (
        Row("torch.div(*pt.pair({0}, {1}))", kinds=FLOATING, when=_divides_number),
        Row("{0} / {1}", kinds=FLOATING, narrow=True),
        Row("pt.div(run, {0}, {1})", kinds=_BITS),
    ),
    elementwise.floor_divide: (Row("pt.floor_divide({0}, {1})"),),
    elementwise.maximum: (Row("pt.maximum({0}, {1})", narrow=True),),
    elementwise.minimum: (Row("pt.minimum({0}, {1})", narrow=True),),
    elementwise.pow_: (Row("pt.pow_(run, {0}, {1})"),),
    elementwise.remainder: (Row("pt.remainder(run, {0}, {1})"),),
    elementwise.logical_and: _operator("&"),
    elementwise.logical_or: _operator("|"),
    elementwise.bit_and: _operator("&", ui64=True),
    elementwise.bit_or: _operator("|", ui64=True),
    elementwise.bit_xor: _operator("^", ui64=True),
    elementwise.shift_left: (Row("pt.shift_left(run, {0}, {1}, {bits})", kinds=_BITS),),
    elementwise.shift_right: (Row("pt.shift_right(run, {0}, {1}, {bits})", kinds=_BITS),),
    elementwise.less: _operator("<"),
    elementwise.less_equal: _operator("<="),
    elementwise.greater: _operator(">"),
    elementwise.greater_equal: _operator(">="),
    elementwise.equal: _operator("==", ui64=True),
    elementwise.not_equal: _operator("!=", ui64=True),
    elementwise.select: (Row("pt.select({0}, {1}, {2}, {out})", moves=True),),
    elementwise.clamp: (Row("pt.clamp({0}, {1}, {2})", narrow=True),),
    elementwise.cast: (Row("pt.cast({0}, {source}, {target})", moves=True, shares=True),),
    elementwise.stop_gradient: (Row("{0}", moves=True, shares=True),),
    bitcast.bitcast: (Row("pt.bitcast({0}, {source}, {target})", moves=True, shares=True),),
    complex_numbers.real: (Row("torch.real({0})", shares=True),),
    complex_numbers.imag: (Row("torch.imag({0})", shares=True),),
    complex_numbers.conj: (Row("torch.conj_physical({0})"),),
    complex_numbers.complex_: (Row("pt.complex_({0}, {1})"),),
    elementary.log1p: (Row("pt.log1p({0})", kinds=FLOAT),),
    elementary.log2: _of_floats("log2", FLOAT),
    elementary.log10: _of_floats("log10", FLOAT),
    elementary.expm1: _of_floats("expm1", FLOAT),
    elementary.exp2: _of_floats("exp2", FLOAT),
    elementary.tan: _of_floats("tan"),
    elementary.asin: _of_floats("asin", FLOAT),
    elementary.acos: _of_floats("acos", FLOAT),
    elementary.atan: _of_floats("atan", FLOAT),
    elementary.sinh: _of_floats("sinh"),
    elementary.cosh: _of_floats("cosh"),
    elementary.asinh: _of_floats("asinh", FLOAT),
    elementary.acosh: _of_floats("acosh", FLOAT),
    elementary.atanh: _of_floats("atanh", FLOAT),
    elementary.cbrt: (Row("pt.cbrt({0})"),),
    elementary.trunc: _of_floats("trunc"),
    elementary.signbit: _of_floats("signbit", _REAL_BOOL),
    elementary.is_nan: (Row("torch.isnan({0})", narrow=True),),
    elementary.is_inf: (Row("torch.isinf({0})", narrow=True),),
    elementary.atan2: (Row("pt.atan2({0}, {1})", narrow=True),),
    elementary.hypot: (Row("pt.hypot({0}, {1})"),),
    elementary.copysign: (Row("pt.copysign({0}, {1})", narrow=True),),
    elementary.gcd: (Row("pt.gcd({0}, {1})"),),
    elementary.nextafter: (
        Row("pt.nextafter({0}, {1})", moves=True, when=_wide, but="f16, bf16, fp8"),
    ),
}

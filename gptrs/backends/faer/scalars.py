"""Scalar code generation: each elementwise op on one element of a dtype, in kernel source.

Narrow floats are f32 here. Integer arithmetic has 64 bits and is wrapped by a conversion. Where an
op on integers has no result, `failure` says so; the loop reports it at its end.

Integers, bools, comparisons and selects are exact, and each + − × ÷ and root of floats rounds once,
as in NumPy: a product and a sum never become a fused multiply-add. exp, log, tanh, erf, sin, cos
and pow are those of `gptrs.kernels.scalar_functions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from gptrs.backends.faer.bit_rules import bitcast as of_bitcast
from gptrs.backends.faer.complex_rules import COMPLEX_RULES
from gptrs.backends.faer.element_types import POINTERS as POINTERS
from gptrs.backends.faer.element_types import convert as convert
from gptrs.backends.faer.element_types import literal as literal
from gptrs.backends.faer.element_types import loaded as loaded
from gptrs.backends.faer.element_types import local_pointer as local_pointer
from gptrs.backends.faer.element_types import rounded as rounded
from gptrs.backends.faer.element_types import stored as stored
from gptrs.backends.faer.elementary_rules import APPROXIMATE, ELEMENTARY_RULES
from gptrs.backends.faer.scalar_functions import can_write
from gptrs.backends.faer.scalar_text import Rule as Rule
from gptrs.backends.faer.scalar_text import Scalars as Scalars
from gptrs.backends.faer.scalar_text import of_kernels, of_libm, of_two, to_whole
from gptrs.ir.ops import bitcast, elementwise, reduce
from gptrs.ir.program import Instruction, Operation
from gptrs.ir.types import DType, f64


def _infix(symbol: str) -> Rule:
    return lambda s: s.wrapped(f"{s.operands[0]} {symbol} {s.operands[1]}")


def _compare(symbol: str) -> Rule:
    return lambda s: f"{s.operands[0]} {symbol} {s.operands[1]}"


def _neg(s: Scalars) -> str:
    return s.wrapped(f"-{s.operands[0]}")


def _is_finite(s: Scalars) -> str:
    x, zero = s.operands[0], literal(s.dtype, 0)
    if s.dtype.is_complex:
        zero = "0"
        parts = (f"{x}.{part} - {x}.{part} == {zero}" for part in ("real", "imag"))
        return " and ".join(parts)
    return f"{x} - {x} == {zero}"


def _absolute(s: Scalars) -> str:
    return s.operands[0] if s.dtype.kind == "uint" else s.wrapped(f"abs({s.operands[0]})")


def _one_over(s: Scalars, divisor: str) -> str:
    if s.dtype.is_complex:
        return s.wrapped(f"complex_quotient({literal(s.dtype, 1)}, {divisor})")
    return f"{literal(s.dtype, 1)} / {divisor}"


def _rsqrt(s: Scalars) -> str:
    return _one_over(s, of_libm("sqrt")(s))


def _sign(s: Scalars) -> str:
    x, zero = s.operands[0], literal(s.dtype, 0)
    sign = convert(s.dtype, f"int64({x} > {zero}) - int64({x} < {zero})")
    return f"{sign} if {x} == {x} else {x}" if s.dtype.is_float else sign


def _extreme(name: str, dtype: DType, x: str, y: str) -> str:
    """The ``maximum`` or ``minimum`` of two."""
    if dtype.is_float:
        return f"{name}({x}, {y})"
    return f"{x} if {x} {'>' if name == 'maximum' else '<'} {y} else {y}"


def _extreme_of(name: str) -> Rule:
    return lambda s: _extreme(name, s.dtype, *s.operands)


def _clamp(s: Scalars) -> str:
    """min(max(x, low), high); NaN where any of the three is."""
    x, low, high = s.operands
    if s.dtype.is_float:
        return f"minimum(maximum({x}, {low}), {high})"
    return f"{x} if {low} < {x} < {high} else ({low} if {x} <= {low} < {high} else {high})"


_MULTIPLIED = 16  # powers up to this are products in the text


def _power(s: Scalars) -> str:
    """xʸ. √ takes a tenth of the time of a power; it differs from x^½ at −0 and −∞."""
    x, y = s.operands
    if s.dtype.is_complex:
        return s.wrapped(f"complex_power(complex128({x}), complex128({y}))")
    if s.dtype.is_integer and isinstance(s.number, int) and 0 < s.number <= _MULTIPLIED:
        return s.wrapped(f"{'uint64' if s.dtype.name == 'ui64' else 'int64'}({x}) ** {s.number}")
    if s.dtype.is_integer:
        function = "unsigned_power" if s.dtype.name == "ui64" else "integer_power"
        return s.wrapped(f"{function}({x}, {y})")
    if s.number not in (0.5, -0.5):
        return f"pow{32 if s.dtype.bits < 64 else 64}({x}, {y})"
    infinity = literal(s.dtype, math.inf)
    root = f"math.sqrt({infinity} if {x} == -{infinity} else {x} + {literal(s.dtype, 0)})"
    return root if s.number == 0.5 else _one_over(s, root)


def _divide(s: Scalars) -> str:
    if s.dtype.is_complex:
        return s.wrapped(f"complex_quotient({s.operands[0]}, {s.operands[1]})")
    return _floored(s, "//", "quotient") if s.dtype.is_integer else _infix("/")(s)


def _remainder(s: Scalars) -> str:
    return _floored(s, "%", "remainder") if s.dtype.is_integer else of_two("remainder")(s)


def _floored(s: Scalars, symbol: str, name: str) -> str:
    """A quotient or remainder of integers. Where the divisor is 0 the step fails, whatever this
    is. The least integer by −1 wraps, as its negation does."""
    x, y = s.operands
    if isinstance(s.number, int) and s.number > 0:
        return _infix(symbol)(s)
    if s.dtype.bits < 64:
        return s.wrapped(f"floor_{name}({x}, int64({y}) if {y} != 0 else int64(1))")
    if s.dtype.kind == "uint":
        return s.wrapped(f"{x} {symbol} ({y} if {y} != 0 else uint64(1))")
    whole = s.wrapped(f"{x} {symbol} ({y} if {y} != 0 and {y} != -1 else int64(1))")
    return f"{whole} if {y} != -1 else {s.wrapped(f'-{x}') if symbol == '//' else 'int64(0)'}"


def _shift(symbol: str) -> Rule:
    """A shift; by the number of bits or more, of all of them. Where the number is negative the
    step fails, whatever this is."""

    def text(s: Scalars) -> str:
        x, bits = s.operands[0], s.dtype.bits
        rest = f"{x} >> {bits - 1}" if symbol == ">>" and s.dtype.kind == "int" else ""
        wide = "uint64" if s.dtype.name == "ui64" else "int64"
        if isinstance(s.number, int):
            if s.number >= bits and not rest:
                return literal(s.dtype, 0)
            return s.wrapped(f"{wide}({x}) {symbol} {wide}({min(s.number, bits - 1)})")
        shifted = s.wrapped(f"{wide}({x}) {symbol} {wide}({s.operands[1]} & {wide}(63))")
        return f"{shifted} if {s.operands[1]} < {bits} else {s.wrapped(rest or '0')}"

    return text


def _cast(s: Scalars) -> str:
    x, source, target = s.operands[0], s.dtype, s.result
    if target.is_bool:
        return x if source.is_bool else f"{x} != {literal(source, 0)}"
    if target.is_integer and source.is_float:
        return _truncate(x, source, target)
    if source.compute is target:
        return x
    if target.compute is target:
        return convert(target, x)
    wide = before_rounding(source, target, x)
    return wide if target.name == source.name else rounded(target, wide)


def before_rounding(source: DType, target: DType, x: str) -> str:
    """A number in arithmetic on ``source`` as f32 that is to be rounded to a narrower float, so
    that it is rounded once in all."""
    return f"odd_float({x})" if source is f64 else convert(target, x)


def _truncate(x: str, source: DType, target: DType) -> str:
    """Toward zero; what is beyond the limits becomes the limit, NaN becomes 0."""
    low, high = target.limits
    below, above = literal(source, float(low)), literal(source, float(high) + 1)
    inside = convert(target, f"int64({x})" if target.name != "ui64" else x)
    small = f"{literal(target, low)} if {x} <= {below} else {literal(target, 0)}"
    return (
        f"{inside} if {x} > {below} and {x} < {above} else"
        f" ({literal(target, high)} if {x} >= {above} else ({small}))"
    )


RULES: dict[Operation, Rule] = {
    elementwise.neg: _neg,
    elementwise.abs_: _absolute,
    elementwise.exp: of_kernels("exp"),
    elementwise.log: of_kernels("log"),
    elementwise.tanh: of_kernels("tanh"),
    elementwise.erf: of_kernels("erf"),
    elementwise.sqrt: of_libm("sqrt"),
    elementwise.sin: of_kernels("sin"),
    elementwise.cos: of_kernels("cos"),
    elementwise.rsqrt: _rsqrt,
    elementwise.reciprocal: lambda s: _one_over(s, s.operands[0]),
    elementwise.floor: to_whole("floor"),
    elementwise.ceil: to_whole("ceil"),
    elementwise.round_: to_whole("nearest"),
    elementwise.sign: _sign,
    elementwise.is_finite: _is_finite,
    elementwise.logical_not: lambda s: f"not {s.operands[0]}",
    elementwise.bit_not: lambda s: s.wrapped(f"~{s.operands[0]}"),
    elementwise.stop_gradient: lambda s: s.operands[0],
    elementwise.cast: _cast,
    bitcast.bitcast: of_bitcast,
    elementwise.add: _infix("+"),
    elementwise.sub: _infix("-"),
    elementwise.mul: _infix("*"),
    elementwise.div: _divide,
    elementwise.floor_divide: of_two("floor_divide"),
    elementwise.maximum: _extreme_of("maximum"),
    elementwise.minimum: _extreme_of("minimum"),
    elementwise.pow_: _power,
    elementwise.remainder: _remainder,
    elementwise.logical_and: lambda s: f"{s.operands[0]} & {s.operands[1]}",
    elementwise.logical_or: lambda s: f"{s.operands[0]} | {s.operands[1]}",
    elementwise.bit_and: _infix("&"),
    elementwise.bit_or: _infix("|"),
    elementwise.bit_xor: _infix("^"),
    elementwise.shift_left: _shift("<<"),
    elementwise.shift_right: _shift(">>"),
    elementwise.less: _compare("<"),
    elementwise.less_equal: _compare("<="),
    elementwise.equal: _compare("=="),
    elementwise.not_equal: _compare("!="),
    elementwise.greater: _compare(">"),
    elementwise.greater_equal: _compare(">="),
    elementwise.select: lambda s: f"{s.operands[1]} if {s.operands[0]} else {s.operands[2]}",
    elementwise.clamp: _clamp,
    **ELEMENTARY_RULES,
    **COMPLEX_RULES,
}
"""By op: its text for one element."""


def has_rule(op: Operation) -> bool:
    """Whether a loop knows what an elementwise op computes of one element."""
    return op in RULES or op.scalar_rule is not None


def has_form(instruction: Instruction) -> bool:
    """Whether a loop can compute the instruction for one element; a new op may have no rule."""
    op = instruction.op
    return not op.elementwise or op in RULES or can_write(op, instruction.attrs)


_FAILURES: dict[Operation, str] = {
    elementwise.div: "==",
    elementwise.remainder: "==",
    elementwise.pow_: "<",
    elementwise.shift_left: "<",
    elementwise.shift_right: "<",
}
"""By op on integers: how the second operand is to 0 where there is no result."""


def can_report(op: Operation) -> bool:
    """Whether a loop knows where an op has no result."""
    return op in _FAILURES


def failure(op: Operation, dtype: DType, operands: tuple[str, ...]) -> str:
    """Where an op on integers has no result; empty if it always has one."""
    symbol = _FAILURES.get(op, "")
    never = not dtype.is_integer or (symbol == "<" and dtype.kind == "uint")
    return "" if never or not symbol else f"{operands[1]} {symbol} 0"


_APPROXIMATE: frozenset[Operation] = frozenset(
    [
        *(elementwise.exp, elementwise.log, elementwise.tanh, elementwise.erf),
        *(elementwise.sin, elementwise.cos, elementwise.pow_, *APPROXIMATE),
    ]
)
_COMPLEX: frozenset[Operation] = frozenset(
    [
        *(elementwise.add, elementwise.sub, elementwise.neg, elementwise.select),
        *(elementwise.cast, elementwise.stop_gradient, bitcast.bitcast),
        *COMPLEX_RULES,
    ]
)
"""What NumPy computes of each part of complex numbers."""
ORDERED: frozenset[Operation] = frozenset([reduce.reduce_sum, reduce.reduce_prod])
"""Reductions of floats whose bits depend on the order."""


def is_approximate(instruction: Instruction) -> bool:
    """Whether the bits of a float may differ from those of the op's NumPy meaning."""
    op, dtype = instruction.op, instruction.results[0].type.dtype
    if dtype.is_complex and (op.elementwise or op in ORDERED):
        return op not in _COMPLEX
    return dtype.is_float and (op in _APPROXIMATE or op in ORDERED or op.scalar_rule is not None)


Join = Callable[[DType, str, str], str]


def _join(symbol: str) -> Join:
    def joined(dtype: DType, total: str, x: str) -> str:
        text = f"{total} {symbol} {x}"
        return convert(dtype, text) if dtype.is_integer or dtype.is_complex else text

    return joined


REDUCTIONS: dict[Operation, tuple[float, Join]] = {
    reduce.reduce_sum: (0, _join("+")),
    reduce.reduce_prod: (1, _join("*")),
    reduce.reduce_max: (-math.inf, partial(_extreme, "maximum")),
    reduce.reduce_min: (math.inf, partial(_extreme, "minimum")),
    reduce.reduce_any: (0, _join("|")),
    reduce.reduce_all: (1, _join("&")),
}
"""By op: the start of its accumulator, and how an element joins it."""

PARTS: dict[Operation, str] = {
    reduce.reduce_sum: "sum_of",
    reduce.reduce_prod: "product_of",
    reduce.reduce_max: "maximum_of",
    reduce.reduce_min: "minimum_of",
}
"""By op: what reduces a part of a row of floats. Integers need none: their order is free."""


def start(op: Operation, dtype: DType) -> str:
    """The initial accumulator of a reduction; for integers their limits."""
    neutral, _ = REDUCTIONS[op]
    if dtype.is_integer and math.isinf(neutral):
        return literal(dtype, dtype.limits[0 if neutral < 0 else 1])
    return literal(dtype, neutral)


def rounding_error(total: str, x: str, after: str) -> str:
    """The rounding error of the sum ``after`` of two floats (TwoSum)."""
    return f"(({total} - {after}) + {x} if abs({total}) >= abs({x}) else ({x} - {after}) + {total})"


def joined(op: Operation, dtype: DType, total: str, x: str) -> str:
    """The accumulator combined with one element."""
    _, join = REDUCTIONS[op]
    return join(dtype, total, x)

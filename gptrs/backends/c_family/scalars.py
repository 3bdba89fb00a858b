"""Scalar code generation of the C family: each elementwise op on one element of a dtype.

Narrow floats are f32 here. Integers, truth values, comparisons and selects are exact, and each
+ − × ÷ and root of floats rounds once, as in NumPy: a product and a sum never become a fused
multiply-add. Functions are those of ``vocabulary.h``. Where an op on integers has no result,
`failure` says so, and the kernel reports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gptrs.backends.c_family.element_types import (
    IN_MEMORY,
    NARROW,
    arithmetic,
    convert,
    integer,
    literal,
    loaded,
    rounded,
    stored,
    work,
)
from gptrs.ir.ops import bitcast, elementary, elementwise, reduce
from gptrs.ir.program import Instruction, Operation
from gptrs.ir.types import DType, f64
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Scalars:
    """What a rule sees: the operands' text (names and constants), the dtype of their arithmetic,
    that of the result."""

    operands: tuple[str, ...]
    dtype: DType
    result: DType
    number: object = None
    """The second operand when it is a constant."""

    def call(self, name: str) -> str:
        """A function of the vocabulary on the operands."""
        return self.wrapped(f"{arithmetic(self.dtype)}_{name}({', '.join(self.operands)})")

    def wrapped(self, text: str) -> str:
        """4-bit integers in their own width; other functions wrap by themselves."""
        return convert(self.dtype, text) if self.dtype.bits == 4 else text


Rule = Callable[[Scalars], str]


def _function(name: str) -> Rule:
    return lambda s: s.call(name)


def _infix(symbol: str) -> Rule:
    """An operator; integers wrap."""

    def text(s: Scalars) -> str:
        if not s.dtype.is_integer:
            return f" {symbol} ".join(s.operands)
        wide = work(s.dtype)
        return convert(s.dtype, f" {symbol} ".join(f"({wide}){x}" for x in s.operands))

    return text


def _compare(symbol: str) -> Rule:
    return lambda s: f"(u8)({s.operands[0]} {symbol} {s.operands[1]})"


def _neg(s: Scalars) -> str:
    x = s.operands[0]
    return convert(s.dtype, f"0 - ({work(s.dtype)}){x}") if s.dtype.is_integer else f"-{x}"


def _divide(s: Scalars) -> str:
    return s.call("div") if s.dtype.is_integer else f"{s.operands[0]} / {s.operands[1]}"


def _rsqrt(s: Scalars) -> str:
    return f"{literal(s.dtype, 1)} / {s.call('sqrt')}"


def _power(s: Scalars) -> str:
    x, y = s.operands
    kind = arithmetic(s.dtype)
    return s.wrapped(f"{kind}_pow({x}, (isize){y})") if s.dtype.is_integer else s.call("pow")


def _clamp(s: Scalars) -> str:
    x, low, high = s.operands
    kind = arithmetic(s.dtype)
    return f"{kind}_minimum({kind}_maximum({x}, {low}), {high})"


def _shift(name: str) -> Rule:
    """A shift; of 4-bit integers, by 4 bits or more, all bits are shifted out."""

    def text(s: Scalars) -> str:
        if s.dtype.bits != 4 or name == "right":
            return s.call(f"shift_{name}")
        x, y = s.operands
        return f"({y} < 4 ? {s.wrapped(f'i8_shift_left({x}, {y})')} : (i8)0)"

    return text


def _cast(s: Scalars) -> str:
    return cast(s.dtype, s.result, s.operands[0])


def cast(source: DType, target: DType, x: str) -> str:
    """A number in arithmetic on ``source`` as one in arithmetic on ``target``."""
    if target.is_bool:
        return x if source.is_bool else f"(u8)({x} != 0)"
    if target.is_integer and source.is_float:
        kind = target.name if target.bits == 4 else arithmetic(target)
        return f"{kind}_of_{source.compute.name}({x})"
    if source is target or source.compute is target:
        return x
    if target.compute is target:
        return convert(target, x)
    if source.name == target.name:
        return x
    wide = f"odd_f32({x})" if source is f64 else convert(target, x)
    return rounded(target, wide)


def _bitcast(s: Scalars) -> str:
    """The value of the same bits in another dtype."""
    x, source, target = s.operands[0], s.dtype, s.result
    if source is target:
        return x
    if source.is_float:
        bits = stored(source, x) if source.name in NARROW else f"{source.name}_bits({x})"
    else:
        bits = x
    if target.name in NARROW:
        return loaded(target, f"({IN_MEMORY[target.name]})({bits})")
    if target.is_float:
        return f"{target.name}_of_bits(({'u64' if target.bits == 64 else 'u32'})({bits}))"
    return f"({arithmetic(target)})({bits})"


_BY_NAME = (
    *("log1p", "log2", "log10", "expm1", "exp2", "tan", "asin", "acos", "atan", "sinh", "cosh"),
    *("asinh", "acosh", "atanh", "cbrt", "atan2", "hypot", "copysign", "trunc", "signbit", "gcd"),
)
RULES: dict[Operation, Rule] = {
    elementwise.neg: _neg,
    elementwise.abs_: _function("abs"),
    elementwise.exp: _function("exp"),
    elementwise.log: _function("log"),
    elementwise.tanh: _function("tanh"),
    elementwise.erf: _function("erf"),
    elementwise.sqrt: _function("sqrt"),
    elementwise.sin: _function("sin"),
    elementwise.cos: _function("cos"),
    elementwise.rsqrt: _rsqrt,
    elementwise.reciprocal: _function("reciprocal"),
    elementwise.floor: _function("floor"),
    elementwise.ceil: _function("ceil"),
    elementwise.round_: _function("round"),
    elementwise.sign: _function("sign"),
    elementwise.is_finite: _function("is_finite"),
    elementwise.logical_not: lambda s: f"(u8)!{s.operands[0]}",
    elementwise.bit_not: lambda s: convert(s.dtype, f"~({work(s.dtype)}){s.operands[0]}"),
    elementwise.stop_gradient: lambda s: s.operands[0],
    elementwise.cast: _cast,
    bitcast.bitcast: _bitcast,
    elementwise.add: _infix("+"),
    elementwise.sub: _infix("-"),
    elementwise.mul: _infix("*"),
    elementwise.div: _divide,
    elementwise.floor_divide: _function("floor_divide"),
    elementwise.maximum: _function("maximum"),
    elementwise.minimum: _function("minimum"),
    elementwise.pow_: _power,
    elementwise.remainder: _function("remainder"),
    elementwise.logical_and: lambda s: f"(u8)({s.operands[0]} & {s.operands[1]})",
    elementwise.logical_or: lambda s: f"(u8)({s.operands[0]} | {s.operands[1]})",
    elementwise.bit_and: _infix("&"),
    elementwise.bit_or: _infix("|"),
    elementwise.bit_xor: _infix("^"),
    elementwise.shift_left: _shift("left"),
    elementwise.shift_right: _shift("right"),
    elementwise.less: _compare("<"),
    elementwise.less_equal: _compare("<="),
    elementwise.equal: _compare("=="),
    elementwise.not_equal: _compare("!="),
    elementwise.greater: _compare(">"),
    elementwise.greater_equal: _compare(">="),
    elementwise.select: lambda s: f"{s.operands[0]} ? {s.operands[1]} : {s.operands[2]}",
    elementwise.clamp: _clamp,
    elementary.is_nan: _function("is_nan"),
    elementary.is_inf: _function("is_inf"),
    elementary.nextafter: _function("nextafter"),
    **{getattr(elementary, name): _function(name) for name in _BY_NAME},
}
"""By op: its text for one element."""

CONVERTING: frozenset[Operation] = frozenset([elementwise.cast, bitcast.bitcast])
"""Ops that depend on the dtype in memory, and not only on that of arithmetic."""

_FAILURES: dict[Operation, str] = {
    elementwise.div: "==",
    elementwise.remainder: "==",
    elementwise.pow_: "<",
    elementwise.shift_left: "<",
    elementwise.shift_right: "<",
}
"""By op on integers: how the second operand is to 0 where there is no result."""


def failure(op: Operation, dtype: DType, operands: tuple[str, ...]) -> str:
    """Where an op on integers has no result; empty if it always has one."""
    symbol = _FAILURES.get(op, "")
    never = not dtype.is_integer or (symbol == "<" and dtype.kind == "uint")
    return "" if never or not symbol else f"{operands[1]} {symbol} 0"


def has_rule(instruction: Instruction) -> bool:
    """Whether a loop can compute an elementwise instruction for one element."""
    op = instruction.op
    if op is elementary.nextafter and instruction.result.type.dtype.bits < 32:
        return False  # a narrow float has neighbours of its own
    return not op.elementwise or op in RULES


REDUCTIONS: dict[Operation, tuple[float, str]] = {
    reduce.reduce_sum: (0, "+"),
    reduce.reduce_prod: (1, "*"),
    reduce.reduce_max: (-math.inf, "maximum"),
    reduce.reduce_min: (math.inf, "minimum"),
    reduce.reduce_any: (0, "|"),
    reduce.reduce_all: (1, "&"),
}
"""By op: the initial accumulator, and the operator or function that joins an element."""


def start(op: Operation, dtype: DType) -> str:
    """The initial accumulator of a reduction; for integers their limits."""
    neutral, _ = REDUCTIONS[op]
    if dtype.is_integer and math.isinf(neutral):
        return integer(dtype, dtype.limits[0 if neutral < 0 else 1])
    return literal(dtype, neutral)


def joined(op: Operation, dtype: DType, total: str, x: str) -> str:
    """The accumulator combined with one element."""
    _, join = REDUCTIONS[op]
    operands = Scalars((total, x), dtype, dtype)
    if join.isidentifier():
        return operands.call(join)
    return f"(u8)({total} {join} {x})" if dtype.is_bool else _infix(join)(operands)

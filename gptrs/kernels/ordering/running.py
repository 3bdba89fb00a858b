"""Cumulative operations along contiguous lines in vector registers, as LLVM IR.

In order, as many lines as a vector has lanes beside each other, for floats:

    for tile of lanes x lanes:
        columns = transpose(rows of x)
        for column in columns: s = s + column; column = s      # a chain of each line
        rows of the result = transpose(columns)

In any order, one line, for integers:

    for vector in x:
        for d in 1, 2, 4 … lanes of 128 bits:  v = v + (v moved by d lanes)
        for the halves of 256 bits and more:   upper half += last lane of the lower one
        result = s + v;  s = s + last lane of v

The last tile of lines whose length is no multiple begins in the one before, with the sums that are
in the result. Integers are modulo their size. The order of sums of floats is that of the scalar
loop: the same bits at each vector level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I32, I64, POINTER, VOID, Builder, i64
from gptrs.lazy_dataclass import dataclass

Operation = Literal["sum", "product", "maximum", "minimum"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
Combine = Callable[[Builder, Any, Any], Any]

_GROUP_BITS = 128
"""Of a vector: lanes move within such a group in one instruction."""


@dataclass(frozen=True)
class Integer:
    """A type of integers."""

    bits: int
    signed: bool
    truth: bool = False
    """Whether all but 0 stand for 1."""

    def kind(self, lanes: int = 1) -> Any:
        """LLVM's type of one, or of a vector."""
        one = ir.IntType(self.bits)
        return one if lanes == 1 else ir.VectorType(one, lanes)

    def __str__(self) -> str:
        return f"{'s' if self.signed else 'u'}{self.bits}{'t' * self.truth}"


def element_bytes(element: Any) -> int:
    """The bytes of an integer or a float."""
    if isinstance(element, ir.IntType):
        return element.width // 8
    return 4 if isinstance(element, ir.FloatType) else 8


def running_lines(module: Any, operation: Operation, element: Any, vector_bits: int) -> Any:
    """The LLVM function ``void lines(ptr x, i64 x_column, ptr result, i64 result_column, i64
    count)``: one line in each lane, ``x_column`` and ``result_column`` apart, of at least as many
    elements as there are lanes. It is written at the first request."""
    symbol = f"running_{operation}_lines{vector_bits}.{element}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    f = _function(module, symbol, [POINTER, I64, POINTER, I64, I64])
    x, x_column, result, result_column, count = f.function.args
    align = element_bytes(element)
    lanes = vector_bits // (8 * align)
    vector, combine = ir.VectorType(element, lanes), _COMBINED[operation]

    def places(array: Any, column: Any, at: Any) -> list[Any]:
        return [f.at(array, f.add(f.mul(column, i64(k)), at), element) for k in range(lanes)]

    def tile(at: Any, s: Any) -> Any:
        rows = [f.load(place, align=align, typ=vector) for place in places(x, x_column, at)]
        sums: list[Any] = []
        for column in f.transposed(rows):
            s = combine(f, s, column)
            sums.append(s)
        for row, place in zip(f.transposed(sums), places(result, result_column, at), strict=True):
            f.store(row, place, align=align)
        return s

    start = ir.Constant(vector, [_neutral(operation)] * lanes)
    rest = f.urem(count, i64(lanes))
    with f.loop(i64(0), f.sub(count, rest), i64(lanes), [start]) as loop:
        loop.values = [tile(loop.index, *loop.values)]
    with f.if_then(f.icmp_signed("!=", rest, i64(0))):
        at, s = f.sub(count, i64(lanes)), start
        for k, place in enumerate(places(result, result_column, f.sub(at, i64(1)))):
            s = f.insert_element(s, f.load(place, align=align, typ=element), i64(k))
        tile(at, s)
    f.ret_void()
    return f.function


def running_line(
    module: Any, operation: Operation, source: Integer, number: Integer, vector_bits: int
) -> Any:
    """The LLVM function ``void line(ptr x, ptr result, i64 count)`` of integers: those of ``x`` are
    widened to ``number``. It is written at the first request."""
    symbol = f"running_{operation}_line{vector_bits}.{source}.{number}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    f = _function(module, symbol, [POINTER, POINTER, I64])
    x, result, count = f.function.args
    lanes = vector_bits // number.bits
    neutral = _integer_neutral(operation, number)
    combine = _combined(operation, signed=number.signed)

    def read(at: Any, lanes: int) -> Any:
        value = f.load(f.at(x, at, source.kind()), align=source.bits // 8, typ=source.kind(lanes))
        if source.truth:
            return f.zext(
                f.icmp_signed("!=", value, ir.Constant(value.type, None)), number.kind(lanes)
            )
        if source.bits == number.bits:
            return value
        return (f.sext if source.signed else f.zext)(value, number.kind(lanes))

    def put(value: Any, at: Any) -> None:
        f.store(value, f.at(result, at, number.kind()), align=number.bits // 8)

    start = ir.Constant(number.kind(lanes), [neutral] * lanes)
    whole = f.sub(count, f.urem(count, i64(lanes)))
    with f.loop(i64(0), whole, i64(lanes), [start]) as loop:
        v = _prefixes(f, read(loop.index, lanes), start, combine)
        put(combine(f, loop.values[0], v), loop.index)
        last = _moved(f, v, start, [lanes - 1] * lanes)
        loop.values = [combine(f, loop.values[0], last)]
    with f.loop(whole, count, None, [f.extract_element(loop.values[0], i64(0))]) as loop:
        loop.values = [combine(f, loop.values[0], read(loop.index, 1))]
        put(loop.values[0], loop.index)
    f.ret_void()
    return f.function


def _prefixes(f: Builder, v: Any, neutral: Any, combine: Combine) -> Any:
    """Each lane of ``v`` combined with all before it."""
    lanes = v.type.count
    group, distance = min(lanes, _GROUP_BITS // v.type.element.width), 1
    while distance < group:
        moved = [i - distance if i % group >= distance else None for i in range(lanes)]
        v, distance = combine(f, _moved(f, v, neutral, moved), v), 2 * distance
    while distance < lanes:
        ends = [i // distance * distance - 1 if i // distance % 2 else None for i in range(lanes)]
        v, distance = combine(f, _moved(f, v, neutral, ends), v), 2 * distance
    return v


def _moved(f: Builder, v: Any, neutral: Any, places: list[int | None] | list[int]) -> Any:
    """The lanes of ``v`` at these places; where there is none, the neutral element."""
    lanes = [v.type.count if place is None else place for place in places]
    return f.shuffle_vector(v, neutral, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))


def _function(module: Any, symbol: str, parameters: list[Any]) -> Builder:
    made = ir.Function(module, ir.FunctionType(VOID, parameters), symbol)
    made.linkage = "linkonce_odr"
    made.attributes.add("noinline")
    return Builder(made.append_basic_block("entry"))


def _sum(f: Builder, x: Any, y: Any) -> Any:
    return f.fadd(x, y)


def _product(f: Builder, x: Any, y: Any) -> Any:
    return f.fmul(x, y)


_COMBINED: dict[Operation, Combine] = {
    "sum": _sum,
    "product": _product,
    "maximum": Builder.maximum,
    "minimum": Builder.minimum,
}


def _combined(operation: Operation, *, signed: bool) -> Combine:
    """The operation on integers."""

    def combine(f: Builder, x: Any, y: Any) -> Any:
        match operation:
            case "sum":
                return f.add(x, y)
            case "product":
                return f.mul(x, y)
            case "maximum" | "minimum":
                compare = f.icmp_signed if signed else f.icmp_unsigned
                return f.select(compare(">" if operation == "maximum" else "<", x, y), x, y)

    return combine


def _neutral(operation: Operation) -> float:
    """What changes no bit of the float that it is combined with."""
    return {"sum": -0.0, "product": 1.0, "maximum": -math.inf, "minimum": math.inf}[operation]


def _integer_neutral(operation: Operation, number: Integer) -> int:
    if operation in ("sum", "product"):
        return int(operation == "product")
    half = 2 ** (number.bits - 1)
    low, high = (-half, half - 1) if number.signed else (0, -1)
    return low if operation == "maximum" else high

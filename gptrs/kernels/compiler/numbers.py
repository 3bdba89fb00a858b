"""Arithmetic of kernels in Python's operators: a `Number` is a value of the IR builder.

    def square_plus_one(x):              f.fadd(f.fmul(x, x), like(x, 1.0))
        return x * x + 1.0

Numbers are floats, scalars or vectors. A Python number beside one is a constant of its type. Each
operator is one instruction that rounds by itself; `multiply_add` rounds once where the CPU can.
Comparisons are false for NaN and give a `Truth`, whose `where` selects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, F64, I32, I64, Builder, like
from gptrs.lazy_dataclass import dataclass

Operand = Any
"""A `Number` of the same type, or a Python number."""


@dataclass(frozen=True, eq=False)
class Truth:
    """The result of a comparison."""

    f: Builder
    value: Any

    def where(self, x: Number, y: Operand) -> Number:
        """``x`` where it holds, else ``y``."""
        return Number(self.f, self.f.select(self.value, x.value, x.of(y)))

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.f, self.f.and_(self.value, other.value))

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.f, self.f.or_(self.value, other.value))

    def __invert__(self) -> Truth:
        return Truth(self.f, self.f.not_(self.value))


@dataclass(frozen=True, eq=False)
class Number:
    """A float, or a vector of floats, in a function that is being built."""

    f: Builder
    value: Any

    def of(self, other: Operand) -> Any:
        """The LLVM value of an operand beside this number."""
        return other.value if isinstance(other, Number) else like(self.value, float(other))

    def constant(self, number: float) -> Number:
        """A number of this type."""
        return Number(self.f, like(self.value, number))

    def _made(self, value: Any) -> Number:
        return Number(self.f, value)

    def __add__(self, other: Operand) -> Number:
        return self._made(self.f.fadd(self.value, self.of(other)))

    def __sub__(self, other: Operand) -> Number:
        return self._made(self.f.fsub(self.value, self.of(other)))

    def __mul__(self, other: Operand) -> Number:
        return self._made(self.f.fmul(self.value, self.of(other)))

    def __truediv__(self, other: Operand) -> Number:
        return self._made(self.f.fdiv(self.value, self.of(other)))

    def __radd__(self, other: float) -> Number:
        return self.constant(other) + self

    def __rsub__(self, other: float) -> Number:
        return self.constant(other) - self

    def __rmul__(self, other: float) -> Number:
        return self.constant(other) * self

    def __rtruediv__(self, other: float) -> Number:
        return self.constant(other) / self

    def __neg__(self) -> Number:
        return self._made(self.f.fneg(self.value))

    def __abs__(self) -> Number:
        return self._made(self.f.magnitude(self.value))

    def __lt__(self, other: Operand) -> Truth:
        return self._compared("<", other)

    def __le__(self, other: Operand) -> Truth:
        return self._compared("<=", other)

    def __gt__(self, other: Operand) -> Truth:
        return self._compared(">", other)

    def __ge__(self, other: Operand) -> Truth:
        return self._compared(">=", other)

    def equals(self, other: Operand) -> Truth:
        """Whether both are the same number; −0 is +0."""
        return self._compared("==", other)

    def _compared(self, symbol: str, other: Operand) -> Truth:
        return Truth(self.f, self.f.fcmp_ordered(symbol, self.value, self.of(other)))

    @property
    def is_nan(self) -> Truth:
        return Truth(self.f, self.f.fcmp_unordered("uno", self.value, self.value))

    @property
    def is_f32(self) -> bool:
        return self.element == F32

    @property
    def element(self) -> Any:
        """The type of a lane."""
        kind = self.value.type
        return kind.element if isinstance(kind, ir.VectorType) else kind

    def multiply_add(self, factor: Operand, summand: Operand) -> Number:
        """self · factor + summand, rounded once where the CPU has such an instruction."""
        return self._made(
            self.f.multiply_add(self.value, self.of(factor), self.of(summand)),
        )

    def polynomial(self, coefficients: Sequence[float]) -> Number:
        """Σ cᵢ·selfⁱ by Horner's scheme."""
        result = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = result.multiply_add(self, coefficient)
        return result

    def root(self) -> Number:
        """√self; NaN below 0."""
        return self._made(self.f.root(self.value))

    def with_sign_of(self, other: Number) -> Number:
        """|self| with the sign of ``other`` (of −0 and NaN too)."""
        return self._made(self.f.copy_sign(self.value, other.value))

    def at_most(self, bound: float) -> Number:
        """The lesser of self and ``bound``; NaN stays."""
        return (self > bound).where(self.constant(bound), self)

    def at_least(self, bound: float) -> Number:
        """The greater of self and ``bound``; NaN stays."""
        return (self < bound).where(self.constant(bound), self)

    def in_doubles(self) -> Number:
        """The same number as f64."""
        return self._made(self.f.fpext(self.value, self._kind(F64)))

    def in_floats(self) -> Number:
        """Rounded to f32."""
        return self._made(self.f.fptrunc(self.value, self._kind(F32)))

    @property
    def bits(self) -> Any:
        """The bits as a value of integers of as many bits."""
        return self.f.bitcast(self.value, self._kind(I32 if self.is_f32 else I64))

    def of_bits(self, bits: Any) -> Number:
        """The number of this type that has ``bits``."""
        return self._made(self.f.bitcast(bits, self.value.type))

    def _kind(self, element: Any) -> Any:
        kind = self.value.type
        return ir.VectorType(element, kind.count) if isinstance(kind, ir.VectorType) else element


def formula(function: Callable[..., Number]) -> Callable[..., Any]:
    """A function of numbers as one of the IR builder and LLVM values."""

    def on_values(f: Builder, *operands: Any) -> Any:
        return function(*(Number(f, operand) for operand in operands)).value

    on_values.__doc__ = function.__doc__
    return on_values


def sum_of_two(x: Number, y: Number) -> tuple[Number, Number]:
    """x + y rounded, and the rounding error (Knuth's TwoSum)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)

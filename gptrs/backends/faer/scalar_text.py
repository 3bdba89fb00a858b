"""What the scalar code of an op is written of: the operands' text, functions of the C library and
of kernels.

Used by the tables of rules: `gptrs.backends.faer.scalars`, `elementary_rules`, `complex_rules`.
"""

from __future__ import annotations

from collections.abc import Callable

from gptrs.backends.faer.element_types import convert
from gptrs.ir.types import DType
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Scalars:
    """What a rule sees: the operands' text (names and constants), their dtype, the result's."""

    operands: tuple[str, ...]
    dtype: DType
    result: DType
    number: object = None
    """The second operand when it is a constant."""
    element: DType | None = None
    """The dtype of the first operand, narrow ones too."""

    def wrapped(self, text: str) -> str:
        """Integers in their own width, complex numbers in their own precision."""
        exact = self.dtype.is_integer or self.dtype.is_complex
        return convert(self.dtype, text) if exact else text


Rule = Callable[[Scalars], str]


def of_libm(name: str) -> Rule:
    """A function of the C library; on complex numbers, in the precision of cf64."""

    def text(s: Scalars) -> str:
        if s.dtype.is_complex:
            return s.wrapped(f"complex_{name}(complex128({s.operands[0]}))")
        return f"math.{name}({s.operands[0]})"

    return text


def of_kernels(name: str) -> Rule:
    """A function of `gptrs.kernels.scalar_functions`; on complex numbers the C library's."""

    def text(s: Scalars) -> str:
        if s.dtype.is_complex:
            return of_libm(name)(s)
        return f"{name}{32 if s.dtype.bits < 64 else 64}({s.operands[0]})"

    return text


def of_two(name: str) -> Rule:
    """A function of `gptrs.kernels.scalar_functions` of two floats."""
    return lambda s: f"{name}{32 if s.dtype.bits < 64 else 64}({', '.join(s.operands)})"


def to_whole(name: str) -> Rule:
    """A float rounded to a whole number: ``floor``, ``ceil``, ``trunc`` or ``nearest``."""
    return lambda s: f"{name}({s.operands[0]})"

"""Normal form of products: a coefficient times factors with powers.

x / √v, x · rsqrt(v) and v⁻½ · x have the same factors. They round differently, and where an
intermediate result overflows one may be infinite and the other not, so `Matcher` compares factors
only where rounding may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from gptrs.ir.ops import elementwise, shape
from gptrs.ir.ops.literal import constant, full
from gptrs.ir.ops.shape import broadcast_to, reshape
from gptrs.ir.program import Instruction, Operand, Value
from gptrs.lazy_dataclass import dataclass

Makers = Mapping[Value, Instruction]
Factor = tuple[Operand, Fraction]
"""An operand and its power."""

_HALF = Fraction(1, 2)
_POWERS = (2, 3, 4, -1, -2, _HALF, -_HALF)


@dataclass(frozen=True)
class Product:
    """``coefficient`` times powers of values and symbolic dimensions."""

    coefficient: float
    factors: tuple[Factor, ...]


def number_of(operand: Operand, makers: Makers) -> float | None:
    """The number that all elements of ``operand`` equal, from a literal or a constant; else
    None."""
    while isinstance(operand, Value):
        maker = makers.get(operand)
        if maker is None:
            return None
        if maker.op in (broadcast_to, reshape):
            operand = maker.operands[0]
        elif maker.op is full:
            operand = maker.attrs["value"]
        elif maker.op is constant and maker.attrs["value"].size == 1:
            operand = maker.attrs["value"].item()
        else:
            return None
    if isinstance(operand, int | float) and not isinstance(operand, bool):
        return operand
    return None


def factors_of(factor: Factor, makers: Makers) -> list[Factor] | None:
    """The factors of ``factor``; None when it does not split."""
    operand, power = factor
    whole = power.denominator == 1
    if whole and abs(power) > 1:
        return [(operand, power / abs(power))] * int(abs(power))
    maker = makers.get(operand) if isinstance(operand, Value) else None
    if maker is None or not maker.results[0].type.dtype.is_float:
        return None
    first, *rest = maker.operands or (None,)
    match maker.op:
        case shape.broadcast_to:
            return [(first, power)]
        case elementwise.add if 0 in (number_of(o, makers) for o in maker.operands):
            return [(o, power) for o in maker.operands if number_of(o, makers) != 0]
        case elementwise.reciprocal:
            return [(first, -power)]
        case elementwise.mul if whole:
            return [(first, power), (rest[0], power)]
        case elementwise.div if whole:
            return [(first, power), (rest[0], -power)]
        case elementwise.neg if whole:
            return [(first, power), (-1.0, power)]
        case elementwise.sqrt if whole:
            return [(first, power * _HALF)]
        case elementwise.rsqrt if whole:
            return [(first, -power * _HALF)]
        case elementwise.pow_ if whole and number_of(rest[0], makers) in _POWERS:
            return [(first, power * Fraction(number_of(rest[0], makers) or 1))]
        case _:
            return None


def product_of(value: Value, makers: Makers) -> Product:
    """``value`` in the normal form of products."""
    left: list[Factor] = [(value, Fraction(1))]
    coefficient = 1.0
    factors: list[Factor] = []
    while left:
        factor = left.pop(0)
        number = number_of(factor[0], makers)
        if number is not None:
            coefficient = coefficient * number ** float(factor[1])
        elif (parts := factors_of(factor, makers)) is not None:
            left = [*parts, *left]
        else:
            factors.append(factor)
    return Product(coefficient, tuple(factors))

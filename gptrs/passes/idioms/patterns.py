"""Patterns of idiom recognition: a spelling traced at concrete types, and simplified like the
program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from gptrs.errors import PtirError
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.operands import types_key
from gptrs.ir.ops.shape import reshape
from gptrs.ir.program import Attrs, Instruction, Param, Program, Value, attrs_key
from gptrs.ir.rewrite import Fuel
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property
from gptrs.passes.base import Context
from gptrs.passes.cse import eliminate_common_subexpressions
from gptrs.passes.dce import eliminate_dead_code
from gptrs.passes.idioms.products import Product, product_of
from gptrs.passes.legalize import inlined
from gptrs.passes.simplify import simplify

_MEMO_LIMIT = 1024


class Hole(float):
    """A scalar attribute to solve for. It is a float of an arbitrary value that records the
    arithmetic on it, so that 1 / hole in a spelling and 8.0 in a program give 0.125."""

    name: str
    solve: Callable[[float], float]

    def __new__(
        cls,
        name: str,
        value: float = 0.3819660112501051,
        solve: Callable[[float], float] = lambda found: found,
    ) -> Hole:
        made = super().__new__(cls, value)
        made.name, made.solve = name, solve
        return made

    def __mul__(self, other: float) -> Hole:
        return self._changed(float(self) * other, lambda found: found / other)

    __rmul__ = __mul__

    def __rtruediv__(self, other: float) -> Hole:
        return self._changed(other / float(self), lambda found: other / found)

    def __pow__(self, power: float | Fraction, modulus: None = None) -> Hole:
        exponent = float(power)
        return self._changed(float(self) ** exponent, lambda found: found ** (1 / exponent))

    def _changed(self, value: float, undo: Callable[[float], float]) -> Hole:
        return Hole(self.name, value, lambda found: self.solve(undo(found)))

    def value(self, found: float) -> float | None:
        """The attribute's value for the number ``found`` in the program; None if there is none."""
        try:
            solved: object = self.solve(found)
        except (ArithmeticError, ValueError):
            return None
        return solved if isinstance(solved, int | float) else None


Closed = Callable[[Instruction], bool]
"""Whether a composite stays whole."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """The simplified program of a spelling. ``params`` are in the order of its operands, None for
    absent ones."""

    program: Program
    params: tuple[Param | None, ...]

    @cached_property
    def makers(self) -> dict[Value, Instruction]:
        return {r: i for i in self.program.body for r in i.results}

    @cached_property
    def root(self) -> Value:
        """The result, before a final reshape."""
        (value,) = self.program.results
        maker = self.makers.get(value)
        return next(maker.values()) if maker and maker.op is reshape else value

    @cached_property
    def _products(self) -> dict[Value, Product]:
        return {}

    def product(self, value: Value) -> Product:
        """``value`` as the product of its factors; parameters come last."""
        found = self._products.get(value)
        if found is None:
            found = product_of(value, self.makers)
            params = set[object](self.params)
            ordered = sorted(found.factors, key=lambda factor: factor[0] in params)
            found = self._products[value] = replace(found, factors=tuple(ordered))
        return found


_patterns: dict[object, tuple[Pattern, ...]] = {}


def patterns(
    function: Callable[..., Any],
    operands: Sequence[Type | None],
    attrs: Attrs,
    closed: Closed,
    context: Context,
) -> tuple[Pattern, ...]:
    """The patterns of ``function`` for operands of these types, memoised: one with the ``closed``
    composites whole, and if there are any, one with them decomposed.

    Empty where the types do not fit.
    """
    key = function, types_key(tuple(operands)), attrs_key(attrs), context.precise
    found = _patterns.get(key)
    if found is None:
        if len(_patterns) >= _MEMO_LIMIT:
            _patterns.clear()
        found = _patterns[key] = tuple(_traced(function, operands, attrs, closed, context))
    return found


def _traced(
    function: Callable[..., Any],
    operands: Sequence[Type | None],
    attrs: Attrs,
    closed: Closed,
    context: Context,
) -> Sequence[Pattern]:
    recorder = Recorder("spelling")
    inputs = [o and recorder.input(o, "x") for o in operands]
    try:
        with interpreter(recorder):
            result = function(*inputs, **attrs)
    except PtirError:
        return ()
    if not isinstance(result, Tensor):
        return ()
    program = recorder.finish((result,))
    names = iter(recorder.params)
    params = tuple(o and next(names) for o in operands)
    context = replace(context, fuel=Fuel(), choose=None, in_region=False)
    whole = Pattern(cleaned(inlined(program, closed), context), params)
    if not any(closed(instruction) for instruction in whole.program.body):
        return (whole,)
    return whole, Pattern(cleaned(inlined(program, lambda _: False), context), params)


def cleaned(program: Program, context: Context) -> Program:
    """``program`` simplified; the same for spellings and for the programs that they are compared
    with."""
    for each in (simplify, eliminate_common_subexpressions, eliminate_dead_code):
        program = each(program, context)
    return program


def close(a: float, b: float, *, relative: float = 1e-6) -> bool:
    """Whether two numbers are equal up to the author's rounding. Zeros of different sign are not:
    max(−0, x) differs from max(0, x)."""
    near = math.isfinite(a) and math.isfinite(b) and abs(a - b) <= relative * max(abs(a), abs(b))
    return (a == b or near) and math.copysign(1, a) == math.copysign(1, b)

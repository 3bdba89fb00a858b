"""The regularised incomplete gamma and beta functions: gammainc, gammaincc, betainc.

A series where the lower part is the smaller one, else a continued fraction, by Lentz's method: each
is a loop until all elements have converged. All is computed in f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.approximation import in_doubles_together
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.gamma_function import lgamma, stirling_series

__all__ = ["betainc", "gammainc", "gammaincc"]

Operand = Any
"""A Tensor, an array or a Python number."""

_MOST = 10_000
"""Terms; some √a of them are needed."""
_NEAR = 2.0**-53
_TINY = 1e-290
_LARGE = 10.0

State = tuple[Tensor, ...]


def _either(*conditions: Tensor) -> Tensor:
    first, *others = conditions
    for other in others:
        first = OPS["logical_or"](first, other)
    return first


def _converged(
    step: Callable[[Tensor, State], State], unfinished: Callable[[State], Tensor], state: State
) -> Tensor:
    """The last of ``state`` after as many steps as the slowest element takes; NaN where `_MOST` do
    not suffice. A step is told its number, from 1 on."""

    def holds(loop: tuple[Tensor, State]) -> Tensor:
        more = OPS["reduce_any"](unfinished(loop[1]))
        return OPS["logical_and"](more, OPS["less_equal"](loop[0], float(_MOST)))

    def advance(loop: tuple[Tensor, State]) -> tuple[Tensor, State]:
        return OPS["add"](loop[0], 1.0), step(*loop)

    first = as_tensor(1.0).astype("f64")
    _, state = FUNCTIONS["while_loop"](holds, advance, (first, state))
    return OPS["select"](unfinished(state), math.nan, state[-1])


def _density(a: Tensor, x: Tensor) -> Tensor:
    """xᵃ·e⁻ˣ / Γ(a + 1), for a > 0; of a large a by the distance from x, which the difference of
    large logarithms would lose."""
    small = OPS["sub"](OPS["mul"](a, OPS["log"](x)), x)
    small = OPS["exp"](OPS["sub"](small, lgamma(OPS["add"](a, 1.0))))
    apart = OPS["div"](OPS["sub"](x, a), a)
    inverse = OPS["reciprocal"](OPS["maximum"](a, _LARGE))
    series = stirling_series(inverse)
    power = OPS["mul"](a, OPS["sub"](OPS["log1p"](apart), apart))
    large = OPS["exp"](OPS["sub"](power, series))
    large = OPS["mul"](large, OPS["sqrt"](OPS["mul"](inverse, 0.5 / math.pi)))
    return OPS["select"](OPS["less"](a, _LARGE), small, large)


def _series(a: Tensor, x: Tensor) -> Tensor:
    """Σ xᵏ / ((a + 1)···(a + k))."""

    def step(k: Tensor, state: State) -> State:
        term = OPS["mul"](state[0], OPS["div"](x, OPS["add"](a, k)))
        return term, OPS["add"](state[1], term)

    one = FUNCTIONS["ones_like"](x)
    return _converged(step, lambda s: OPS["greater"](s[0], OPS["mul"](s[1], _NEAR)), (one, one))


def _bounded(x: Tensor) -> Tensor:
    """``x``, or a tiny number for 0: the method divides by it."""
    return OPS["select"](OPS["less"](OPS["abs"](x), _TINY), _TINY, x)


def _lentz(
    numerator: Callable[[Tensor], Tensor], denominator: Callable[[Tensor], Tensor], first: Tensor
) -> Tensor:
    """1 / (b₀ + a₁/(b₁ + a₂/(b₂ + ...))) with b₀ = ``first``."""

    def step(k: Tensor, state: State) -> State:
        c, d, _, found = state
        over, under = numerator(k), denominator(k)
        d = OPS["reciprocal"](_bounded(OPS["add"](OPS["mul"](over, d), under)))
        c = _bounded(OPS["add"](under, OPS["div"](over, c)))
        change = OPS["mul"](c, d)
        return c, d, change, OPS["mul"](found, change)

    def unfinished(state: State) -> Tensor:
        return OPS["greater"](OPS["abs"](OPS["sub"](state[2], 1.0)), 16 * _NEAR)

    d = OPS["reciprocal"](_bounded(first))
    change = FUNCTIONS["zeros_like"](first)
    c = FUNCTIONS["full_like"](first, 1 / _TINY)
    return _converged(step, unfinished, (c, d, change, d))


def _gamma_parts(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The regularised lower and upper incomplete gamma functions."""
    finite = OPS["logical_and"](OPS["is_finite"](a), OPS["is_finite"](x))
    inside = finite & OPS["greater"](a, 0.0) & OPS["greater"](x, 0.0)
    lower = OPS["less"](x, OPS["add"](a, 1.0))
    # Where the other form counts, or neither, both run on numbers that converge at once.
    low, high = OPS["logical_and"](inside, lower), inside & OPS["logical_not"](lower)
    density = _density(OPS["select"](inside, a, 1.0), OPS["select"](inside, x, 1.0))
    a_low, x_low = OPS["select"](low, a, 1.0), OPS["select"](low, x, 1e-3)
    p = OPS["mul"](density, _series(a_low, x_low))
    a, given = OPS["select"](high, a, 1.0), a
    x_high = OPS["select"](high, x, 1e3)
    fraction = _lentz(
        lambda k: OPS["mul"](k, OPS["sub"](a, k)),
        lambda k: OPS["add"](OPS["sub"](x_high, a), OPS["add"](OPS["mul"](k, 2.0), 1.0)),
        OPS["add"](OPS["sub"](x_high, a), 1.0),
    )
    q = OPS["mul"](OPS["mul"](density, a), fraction)
    p, q = (
        OPS["select"](lower, p, OPS["sub"](1.0, q)),
        OPS["select"](lower, OPS["sub"](1.0, p), q),
    )
    # All is below x where a is 0 or x is infinite, nothing where x is 0 or a is infinite.
    no_a, no_x = OPS["equal"](given, 0.0), OPS["equal"](x, 0.0)
    all_a, all_x = OPS["equal"](given, math.inf), OPS["equal"](x, math.inf)
    wrong = _either(
        *(OPS["less"](given, 0.0), OPS["less"](x, 0.0), OPS["is_nan"](given), OPS["is_nan"](x)),
        *(OPS["logical_and"](no_a, no_x), OPS["logical_and"](all_a, all_x)),
    )

    def ends(part: Tensor, below: float) -> Tensor:
        part = OPS["select"](OPS["logical_or"](no_a, all_x), below, part)
        part = OPS["select"](OPS["logical_or"](no_x, all_a), 1 - below, part)
        return OPS["select"](wrong, math.nan, part)

    return ends(p, 1.0), ends(q, 0.0)


def _lower(a: Tensor, x: Tensor) -> Tensor:
    return _gamma_parts(a, x)[0]


def _upper(a: Tensor, x: Tensor) -> Tensor:
    return _gamma_parts(a, x)[1]


@public(op="exp", other_names={"input": "a", "other": "x"})
def gammainc(a: Operand, x: Operand) -> Tensor:
    """∫ tᵃ⁻¹·e⁻ᵗ dt from 0 to x, over Γ(a); NaN for a or x below 0, and 1 at a = 0.

    f64 within 1e-12 of the result; NaN where 10,000 terms do not suffice (x near an a above 10⁶).
    """
    return in_doubles_together(_lower, a, x)


@public(op="exp", other_names={"input": "a", "other": "x"})
def gammaincc(a: Operand, x: Operand) -> Tensor:
    """1 − gammainc(a, x), the integral from x to ∞ over Γ(a), without cancellation where
    x > a + 1."""
    return in_doubles_together(_upper, a, x)


def _beta(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    positive = OPS["greater"](a, 0.0) & OPS["greater"](b, 0.0)
    positive = positive & OPS["is_finite"](a) & OPS["is_finite"](b)
    inside = positive & OPS["greater"](x, 0.0) & OPS["less"](x, 1.0)
    a, b = OPS["select"](positive, a, 1.0), OPS["select"](positive, b, 1.0)
    x, given = OPS["select"](inside, x, 0.5), x
    total = OPS["add"](a, b)
    turned = OPS["greater"](x, OPS["div"](OPS["add"](a, 1.0), OPS["add"](total, 2.0)))
    log = OPS["add"](OPS["mul"](a, OPS["log"](x)), OPS["mul"](b, OPS["log1p"](OPS["neg"](x))))
    log = OPS["add"](log, OPS["sub"](lgamma(total), OPS["add"](lgamma(a), lgamma(b))))
    a, b = OPS["select"](turned, b, a), OPS["select"](turned, a, b)
    x = OPS["select"](turned, OPS["sub"](1.0, x), x)

    def numerator(k: Tensor) -> Tensor:
        half = OPS["floor"](OPS["mul"](k, 0.5))
        at = OPS["add"](a, OPS["mul"](half, 2.0))
        even = OPS["mul"](OPS["mul"](half, OPS["sub"](b, half)), x)
        even = OPS["div"](even, OPS["mul"](OPS["sub"](at, 1.0), at))
        odd = OPS["mul"](OPS["add"](a, half), OPS["add"](total, half))
        odd = OPS["div"](OPS["mul"](OPS["neg"](odd), x), OPS["mul"](at, OPS["add"](at, 1.0)))
        return OPS["select"](OPS["equal"](OPS["mul"](half, 2.0), k), even, odd)

    one = FUNCTIONS["ones_like"](x)
    found = OPS["div"](OPS["mul"](OPS["exp"](log), _lentz(numerator, lambda _: one, one)), a)
    found = OPS["select"](turned, OPS["sub"](1.0, found), found)
    found = OPS["select"](OPS["equal"](given, 0.0), 0.0, found)
    found = OPS["select"](OPS["equal"](given, 1.0), 1.0, found)
    unit = OPS["greater_equal"](given, 0.0) & OPS["less_equal"](given, 1.0)
    return OPS["select"](positive & unit, found, math.nan)


@public(op="exp")
def betainc(a: Operand, b: Operand, x: Operand) -> Tensor:
    """∫ tᵃ⁻¹·(1 − t)ᵇ⁻¹ dt from 0 to x, over that to 1; NaN outside of a, b > 0 and 0 ≤ x ≤ 1.

    f64 within 1e-12 of the result for a + b below 400.
    """
    return in_doubles_together(_beta, a, b, x)

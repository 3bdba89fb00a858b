"""The Hurwitz zeta function and the derivatives of digamma: zeta, polygamma.

Ten terms of the series, and Euler and Maclaurin's formula for the others; all in f64.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from gptrs.errors import ArgumentError
from gptrs.ir.dispatch import FUNCTIONS, OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.approximation import in_doubles, in_doubles_together
from gptrs.numpy_api.function import public
from gptrs.numpy_api.gamma_function import digamma

__all__ = ["polygamma", "zeta"]

Operand = Any
"""A Tensor, an array or a Python number."""

_TERMS = 10
_LEAST = -65536.0
"""Below it the terms up to the first positive q + k would take long."""
# B₂ⱼ / (2j)!
_MACLAURIN = (
    *(8.333333333333333e-02, -1.388888888888889e-03, 3.306878306878307e-05, -8.267195767195767e-07),
    *(2.08767569878681e-08, -5.28419013868749e-10, 1.3382536530684679e-11, -3.38968029632258e-13),
    *(
        8.586062056277845e-15,
        -2.174868698558062e-16,
        5.5090028283602295e-18,
        -1.3954464685812522e-19,
    ),
)


def _term(q: Tensor, s: Tensor) -> Tensor:
    return OPS["pow"](q, OPS["neg"](s))


def _below(q: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """The first positive q + k, and the sum of the terms before it."""

    def step(state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        q, total = state
        negative = OPS["less_equal"](q, 0.0)
        more = OPS["select"](negative, OPS["add"](total, _term(q, s)), total)
        return OPS["select"](negative, OPS["add"](q, 1.0), q), more

    def unfinished(state: tuple[Tensor, Tensor]) -> Tensor:
        return OPS["reduce_any"](OPS["less_equal"](state[0], 0.0))

    return FUNCTIONS["while_loop"](unfinished, step, (q, FUNCTIONS["zeros_like"](q)))


def _zeta(s: Tensor, q: Tensor) -> Tensor:
    pole = OPS["logical_and"](OPS["less_equal"](q, 0.0), OPS["equal"](q, OPS["floor"](q)))
    beyond = OPS["less"](q, _LEAST)
    start = OPS["select"](OPS["logical_or"](pole, beyond), 1.0, q)
    a, total = _below(start, s)
    for _ in range(_TERMS):
        total, a = OPS["add"](total, _term(a, s)), OPS["add"](a, 1.0)
    last = _term(a, s)
    tail = OPS["add"](OPS["div"](OPS["mul"](last, a), OPS["sub"](s, 1.0)), OPS["mul"](last, 0.5))
    s_here = OPS["minimum"](s, 1e3)  # `last` is 0 from there on, and no power of s becomes infinite
    factor = OPS["div"](OPS["mul"](last, s_here), a)
    for j, coefficient in enumerate(_MACLAURIN, 1):
        tail = OPS["add"](tail, OPS["mul"](factor, coefficient))
        for more in (2 * j - 1, 2 * j):
            factor = OPS["div"](OPS["mul"](factor, OPS["add"](s_here, float(more))), a)
    found = OPS["select"](OPS["equal"](q, math.inf), 0.0, OPS["add"](total, tail))
    power_of_negative = OPS["less"](q, 0.0) & OPS["not_equal"](s, OPS["floor"](s))
    found = OPS["select"](OPS["logical_or"](power_of_negative, beyond), math.nan, found)
    found = OPS["select"](OPS["logical_or"](pole, OPS["equal"](s, 1.0)), math.inf, found)
    return OPS["select"](OPS["less"](s, 1.0) | (q != q) | (s != s), math.nan, found)


@public(op="pow", other_names={"other": "q", "input": "x"})
def zeta(x: Operand, q: Operand) -> Tensor:
    """Σ 1/(q + k)ˣ of k ≥ 0, Hurwitz's zeta function; ``zeta(x, 1)`` is Riemann's.

    ∞ at x = 1 and at q = 0, −1, ...; NaN for x < 1, below 0 for an x that is no whole number, and
    for q < −65536. f64 within 1e-14 of the result for q > 0 and x below 6·q + 60.
    """
    return in_doubles_together(_zeta, x, q)


@public(op="log", other_names={"input": "x"})
def polygamma(n: int, x: Operand) -> Tensor:
    """The derivative of order n ≥ 0 of `digamma`, −(−1)ⁿ·n!·ζ(n + 1, x).

    f64 within 1e-14 of the result for x > 0 and n below 6·x + 59; poles and x < −65536 as in
    `zeta`.
    """
    order = operator.index(n)
    if order < 0:
        raise ArgumentError(f"n is {order}, expected 0 or more")
    if order == 0:
        return digamma(x)
    factor = math.factorial(order) if order <= 170 else math.inf
    factor = float(factor) * (1 if order % 2 else -1)

    def body(x: Tensor, _: bool) -> Tensor:
        s = FUNCTIONS["full_like"](x, float(order + 1))
        return OPS["mul"](_zeta(s, x), factor)

    return in_doubles(body, x)

"""Orthogonal polynomials of torch.special, by their recurrences in f64.

A family is its polynomial of degree 1 and what makes that of degree k + 1 of the two before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs.ir.tensor import Tensor
from gptrs.torch.aten.table import aten, ptir

Step = Callable[[Any, Any, Any, Any], Any]
"""From k, x and the polynomials of degree k and k − 1."""


def _chebyshev(k: Any, x: Any, q: Any, p: Any) -> Any:
    return 2 * x * q - p


FAMILIES: dict[str, tuple[Callable[[Any], Any], Step]] = {
    "chebyshev_polynomial_t": (lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": (lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, _chebyshev),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda k, x, q, p: 2 * (x * q - k * p)),
    "hermite_polynomial_he": (lambda x: x, lambda k, x, q, p: x * q - k * p),
    "laguerre_polynomial_l": (
        lambda x: 1 - x,
        lambda k, x, q, p: ((2 * k + 1 - x) * q - k * p) / (k + 1),
    ),
    "legendre_polynomial_p": (
        lambda x: x,
        lambda k, x, q, p: ((2 * k + 1) * x * q - k * p) / (k + 1),
    ),
}


def _polynomial(first: Callable[[Any], Any], step: Step, *, shifted: bool) -> Callable[..., Any]:
    """The polynomials of the degrees ``n``, 0 where that is negative; those that are ``shifted``
    are of 2x − 1."""

    def call(x: Any, n: Any) -> Tensor:
        degree = ptir.cast(ptir.asarray(n), dtype=ptir.si64)
        at, degree = ptir.broadcast_arrays(ptir.cast(ptir.asarray(x), dtype=ptir.f64), degree)
        if shifted:
            at = 2 * at - 1
        most = ptir.max(degree, initial=0)
        one, second = ptir.ones_like(at), first(at)
        result = ptir.where(degree == 0, one, ptir.where(degree == 1, second, 0.0))

        def is_going(state: Any) -> Any:
            return state[0] < most

        def following(state: Any) -> Any:
            k, p, q, result = state
            r = step(ptir.cast(k, dtype=ptir.f64), at, q, p)
            return k + 1, q, r, ptir.where(degree == k + 1, r, result)

        start = ptir.full((), 1, dtype=ptir.si64), one, second, result
        return ptir.while_loop(is_going, following, start)[3]

    return call


for _name, (_first, _step) in FAMILIES.items():
    for _prefix in ("", "shifted_") if "chebyshev" in _name else ("",):
        _full = f"special_{_prefix}{_name}"
        aten(_full, f"{_full}.x_scalar", f"{_full}.n_scalar")(
            _polynomial(_first, _step, shifted=bool(_prefix))
        )
